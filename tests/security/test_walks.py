"""Walks over every page in one world: foreign objects in bodies and queries, unexpected members of a request, scripts
and formulas wherever people write."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from lxml import etree, html

from annotation.models import Campaign, Item, Output, Reference, ReferenceSet, System
from evalapp.accounts.models import Invitation, Membership, Project, User
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from tests.architecture.routes import API, PAGES, Rule
from tests.architecture.test_permissions import addresses, place
from tests.architecture.world import PLAN, World, make_world
from tests.security.poison import poison

pytestmark = pytest.mark.django_db
MARK = "only-foreign"


@pytest.fixture(scope="module")
def world(django_db_setup: Any, django_db_blocker: Any, few_draws_in_module: None) -> Iterator[World]:
    with django_db_blocker.unblock(), transaction.atomic():
        made = make_world()
        _mark(made)
        yield made
        transaction.set_rollback(True)


def _mark(made: World) -> None:
    """Names that only Sam's project has."""
    foreign = made.foreign.project
    item = Item.objects.create(project=foreign, key=MARK, context=[MARK], group=MARK)
    system = System.objects.create(project=foreign, name=MARK)
    Output.objects.create(project=foreign, item=item, system=system, text=MARK)
    row = ReferenceSet.objects.create(project=foreign, name=MARK)
    Reference.objects.create(set=row, item=item, position=0, text=MARK)


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def make_client(user: Any) -> Client:
    client = Client(raise_request_exception=True)
    client.force_login(user)
    return client


# ---- objects named in bodies and queries ------------------------------------------------------------------


def bodies(f: Callable[[str], Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """(method, address below Olga's project, body), each naming an object of Sam's."""
    step = {"evaluator": f("trained")}
    plan = {**PLAN, "slug": "p2", "name": "P2"}
    runs: list[dict[str, Any]] = [
        {"kind": "score", "evaluator": f("trained")},
        {"kind": "score", "evaluator": "token-f1", "references": MARK},
        {"kind": "train", "evaluator": "maude", "systems": [MARK]},
        {"kind": "train", "evaluator": "maude", "references": MARK},
        {"kind": "plan", "evaluator": "maude", "references": MARK},
        {"kind": "select-references", **step, "into": "new"},
        {
            "kind": "select-references",
            "evaluator": "trained-alpha",
            "into": "new",
            "candidates": f"corpus:{f('corpus')}",
        },
        {"kind": "preview-references", **step},
        {"kind": "combine", "parts": [f("trained"), "length"]},
        {"kind": "reliability", **step},
        {"kind": "index", "corpus": f("corpus")},
    ]
    campaigns = [
        {**plan, "systems": [MARK]},
        {**plan, "items": {"keys": [MARK]}},
        {**plan, "items": {"groups": [MARK]}},
        {**plan, "controls": [{"item": MARK, "system": MARK, "expected": {"quality": [1, 2]}}]},
        {**plan, "practice": [{"item": MARK, "system": MARK, "expected": {"quality": [1, 2]}}]},
    ]
    writing = [
        {"name": "W", "corpus": f("corpus"), "evaluator": "rater-alpha"},
        {"name": "W", "evaluator": f("trained")},
        {"name": "W", "start_set": MARK},
        {"name": "W", "items": {"keys": [MARK]}, "options": {"arms": ["control"]}},
    ]
    return [
        *(("post", "runs/", body) for body in runs),
        *(("post", "campaigns/", body) for body in campaigns),
        *(("post", "writing/", body) for body in writing),
        ("post", "reference-sets/", {"name": "new", "merge": ["original", MARK]}),
    ]


@pytest.mark.promise("references")
def test_foreign_object_in_a_body_is_not_found(world):
    """Olga names Sam's objects. A campaign plan is stored as written and refused when it is opened."""
    client = make_client(world.cast.owner)
    wrong = []
    for method, path, body in bodies(lambda name: world.foreign.values[name]):
        with undone():
            before = Run.objects.count()
            answer = getattr(client, method)(
                f"/api/v1/projects/{world.own.project.slug}/{path}", json.dumps(body), content_type="application/json"
            )
            status = answer.status_code
            if status == 201 and path in ("campaigns/", "writing/"):
                status = client.post(f"/api/v1/{path}{answer.json()['id']}/open/").status_code
            if not 400 <= status < 500 or Run.objects.count() != before:
                wrong.append(f"{path} {body}: {status} {answer.content[:200]!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.promise("references")
def test_foreign_object_in_a_query_is_not_found(world):
    client = make_client(world.cast.owner)
    f, own, slug = world.foreign.values, world.own.values, world.own.project.slug
    asked = [
        f"projects/{slug}/candidates/?corpus={f['corpus']}&q=hello",
        f"projects/{slug}/candidates/?corpus={own['corpus']}&item={MARK}",
        f"projects/{slug}/items/?group={MARK}",
        f"projects/{slug}/outputs/?item={MARK}", f"projects/{slug}/outputs/?system={MARK}",
        f"projects/{slug}/ratings/?item={MARK}", f"projects/{slug}/references/?set={MARK}",
        f"projects/{slug}/scores/?evaluator={f['trained']}",
        f"projects/{slug}/leaderboards/systems/?by={f['trained']}",
        f"projects/{slug}/reference-sets/original/comparison/{MARK}/",
        f"assignments/?campaign={f['campaign']}",
    ]  # fmt: skip
    wrong = []
    for path in asked:
        answer = client.get(f"/api/v1/{path}")
        found = answer.json()
        rows = found.get("results", [])
        told = MARK in json.dumps(rows)
        if answer.status_code >= 500 or (answer.status_code < 400 and rows) or told:
            wrong.append(f"{path}: {answer.status_code} {answer.content[:200]!r}")
    online = {"pairs": [{"text": "a", "references": ["b"]}]}
    for query in ("", f"?project={world.foreign.project.slug}"):
        path = f"/api/v1/evaluators/{f['trained']}/score/{query}"
        status = client.post(path, json.dumps(online), content_type="application/json").status_code
        wrong += [f"{path}: {status}"] if status not in (403, 404) else []
    for path, body in (
        (f"/projects/{slug}/evaluators/train/maude/start/", {"check": f["check"]}),
        ("/api/v1/tokens/", {"name": "t", "scopes": ["read"], "project": world.foreign.project.slug}),
    ):
        options = {"content_type": "application/json"} if path.startswith("/api") else {}
        with undone():
            status = client.post(path, body, **options).status_code
        wrong += [f"{path}: {status}"] if status not in (400, 403, 404) else []
    pages = [
        f"/projects/{slug}/items/?group={MARK}", f"/projects/{slug}/items/?q={MARK}",
        f"/projects/{slug}/systems/?by={f['trained']}",
        f"/projects/{slug}/references/compare/?first=original&second={MARK}",
    ]  # fmt: skip
    for path in pages:
        answer = client.get(path)
        text = re.sub(r"<(input|option|form|a|link)\b[^>]*>", "", answer.content.decode())
        if answer.status_code >= 500 or f"<td>{MARK}" in text:
            wrong.append(f"{path}: {answer.status_code}")
    assert not wrong, "\n".join(wrong)


# ---- unexpected members of a request ------------------------------------------------------------------------


@pytest.mark.promise("assignment")
def test_request_sets_only_its_own_members(world):
    cast, slug, v = world.cast, world.own.project.slug, world.own.values
    owner, anna = make_client(cast.owner), make_client(cast.annotator)
    api = f"/api/v1/projects/{slug}/"
    as_json: dict[str, Any] = {"content_type": "application/json"}
    with undone():

        def taken(send: Any, address: str, wanted: dict[str, Any], **beside: Any) -> Any:
            """An endpoint refuses the whole body because of unknown members, and then accepts it without them."""
            refused = send(address, {**wanted, **beside}, **as_json)
            assert refused.status_code == 400, address
            assert {fault["field"] for fault in refused.json()["errors"]} == set(beside)
            answer = send(address, wanted, **as_json)
            assert answer.status_code in (200, 201), address
            return answer.json()

        # Members that a response has but that cannot be set.
        shown = {"slug": "taken", "role": "owner", "meta": {"a": 1}, "created_at": "2020-01-01"}
        taken(owner.patch, api, {"name": "Renamed", **shown}, created_by=1, id=99, deleting_at="2020-01-01")
        project = Project.objects.get(pk=world.own.project.pk)
        assert (project.name, project.slug, project.meta, project.deleting_at) == ("Renamed", slug, {}, None)

        wish = {"is_superuser": "on", "is_staff": "on", "username": "root", "password": "x", "is_active": ""}
        anna.post("/account/", {"first_name": "Anna", "email": "", **wish})
        anna.post("/account/display/", {"theme": "dark", "language": "", **wish})
        user = User.objects.get(pk=cast.annotator.pk)
        assert (user.first_name, user.theme, user.username) == ("Anna", "dark", "anna")
        assert (user.is_superuser, user.is_staff, user.is_active) == (False, False, True)
        assert user.has_usable_password()

        own = {"user": cast.owner.pk, "project": world.foreign.project.pk, "pseudonym": "x"}
        taken(owner.patch, f"{api}members/{v['member']}/", {"role": "viewer"}, **own)
        member = Membership.objects.get(pk=v["member"])
        assert (member.project.slug, member.pseudonym) == (slug, "p-vic")
        assert member.user == cast.viewer

        own = {"uses": -5, "digest": "d", "created_by": cast.stranger.pk, "revoked_at": None}
        made = taken(owner.post, f"{api}invitations/", {"role": "viewer"}, **own)
        invitation = Invitation.objects.get(pk=made["id"])
        assert (invitation.uses, invitation.created_by) == (0, cast.owner)
        assert invitation.digest != "d"

        own = {"user": cast.owner.pk, "digest": "d", "prefix": "p", "token": "t"}
        made = taken(anna.post, "/api/v1/tokens/", {"name": "t", "scopes": ["read"]}, **own)
        assert made["token"] not in ("t", "d")
        assert cast.annotator.tokens.filter(pk=made["id"]).exists()

        taken(owner.patch, f"/api/v1/systems/{v['system']}/", {"kind": "control"}, project=2, name="x")
        assert System.objects.get(pk=v["system"]).project.slug == slug

        body = {"state": "closed", "project": world.foreign.project.pk, "created_by": 1, "unit_count": 0}
        owner.patch(f"/api/v1/campaigns/{v['campaign']}/", body, **as_json)
        campaign = Campaign.objects.get(pk=v["campaign"])
        assert (campaign.state, campaign.project.slug) == ("open", slug)
        assert campaign.unit_count > 0

        body = {"kind": "score", "evaluator": "length", "state": "succeeded", "created_by": 1, "project": 2}
        assert owner.post(f"{api}runs/", body, **as_json).status_code == 400
        answer = {"submission": "5c2f8a4e-8a0e-4a6e-9d3c-0a2b7f1c9e11", "answer": {"quality": 3}, "passed": True}
        answer |= {"annotator": cast.owner.pk, "extra": True, "created_at": "2020-01-01T00:00:00Z", "version": 9}
        assert anna.post(f"/api/v1/assignments/{v['assignment']}/submit/", answer, **as_json).status_code == 200
        judgement = Campaign.objects.get(pk=v["campaign"]).judgements.get()
        assert (judgement.annotator, judgement.version) == (cast.annotator, 1)
        assert (judgement.passed, judgement.extra) == (None, False)
        assert judgement.created_at.year > 2020


# ---- scripts ----------------------------------------------------------------------------------------------

SCRIPT = "\"><script>alert(1)</script><img src=x onerror=alert(1)><a href='javascript:alert(1)'>{{7*7}}</a>'"
SHORT = '"><svg onload=a()>'
OWN = re.compile(r"/static/|/api/v1/docs/")


def harm(text: str) -> list[str]:
    """Anything that a browser would execute in this HTML or SVG."""
    tree = html.fromstring(text)
    found = []
    for node in tree.iter():
        if not isinstance(node.tag, str):
            if isinstance(node, etree._Comment) and "alert" in (node.text or ""):
                found.append("a comment")
            continue
        data = node.get("type") in ("application/json", "text/plain")
        if node.tag == "script" and not data and not OWN.match(node.get("src") or ""):
            found.append("script")
        for name, value in node.attrib.items():
            if name.lower().startswith("on") or name.lower() == "style" or name.lower().startswith("hx-on"):
                found.append(f"{node.tag} {name}")
            if name in ("href", "src", "action", "formaction", "xlink:href", "hx-get", "hx-post") and re.match(
                r"\s*(javascript|vbscript|data:text)", value, re.I
            ):
                found.append(f"{node.tag} {name}={value[:30]}")
            if name == "src" and value == "x":
                found.append("img src=x")
    return found


def looked_at(world: World) -> Iterator[tuple[str, Rule, Client]]:
    clients = {"owner": make_client(world.cast.owner), "annotator": make_client(world.cast.annotator)}
    for name, rules in {**PAGES, **API}.items():
        for rule in rules:
            if rule.method == "get" and name in addresses():
                role = "annotator" if rule.need in ("mine", "annotate", "signed-in") else "owner"
                yield name, rule, clients[role]


@pytest.mark.promise("scripts")
def test_no_page_executes_user_text(world):
    """Every free text column contains a script; every page and fragment shows it as text."""
    wrong, shown = [], 0
    with undone():
        assert poison(SCRIPT, SHORT) > 40
        result = {"note": SCRIPT, "url": "javascript:alert(1)", SCRIPT: {"deep": SCRIPT}}
        Run.objects.filter(pk=world.own.values["run"]).update(result=result, error=SCRIPT, state="failed")
        for name, rule, client in looked_at(world):
            for headers in ({}, {"HX-Request": "true"}):
                if headers and name in API:
                    continue
                answer = client.get(place(world, rule, name, world.own) + rule.query, headers=headers)
                kind = answer.headers.get("Content-Type", "").partition(";")[0]
                content = b"".join(answer.streaming_content) if answer.streaming else answer.content
                where = f"{name}{' (fragment)' if headers else ''}: {answer.status_code}"
                if answer.status_code >= 500:
                    wrong.append(where)
                elif answer.status_code in (301, 302) or name == "metrics":
                    continue
                elif kind in ("text/html", "image/svg+xml") and content.strip():
                    text = content.decode()
                    wrong += [f"{where} {what}" for what in harm(text.removeprefix('<?xml version="1.0"?>'))]
                    shown += "alert(1)" in text
                elif kind not in ("application/json", "application/problem+json", "application/vnd.oai.openapi", ""):
                    disposition = answer.headers.get("Content-Disposition", "")
                    if not disposition.startswith("attachment") or "\n" in disposition:
                        wrong.append(f"{where} {kind} is no attachment: {disposition}")
    assert not wrong, "\n".join(wrong)
    assert shown > 30, f"the texts stood on {shown} pages only"


@pytest.mark.promise("scripts")
def test_reflected_input_is_escaped(world):
    """In queries, in forms with errors, in missing addresses, in Markdown, in file names."""
    cast, slug = world.cast, world.own.project.slug
    owner = make_client(cast.owner)
    wrong = []

    def look(what: str, answer: Any) -> None:
        if answer.headers.get("Content-Type", "").startswith("text/html") and answer.content:
            wrong.extend(f"{what}: {found}" for found in harm(answer.content.decode()))
        if answer.status_code >= 500:
            wrong.append(f"{what}: {answer.status_code}")

    for name in ("q", "group", "by", "state", "kind", "next", "aspect", "references", "cursor", "first", "second"):
        for path in ("items/", "runs/", "systems/", "evaluation/", "references/compare/"):
            look(f"{path}?{name}", owner.get(f"/projects/{slug}/{path}", {name: SCRIPT}))
    look("sign-in", Client().get("/account/sign-in/", {"next": SCRIPT}))
    look("not there", owner.get(f"/projects/{SCRIPT}/"))
    with undone():
        for name, rules in PAGES.items():
            for rule in rules:
                if (
                    name != "accounts:logout"
                    and rule.method == "post"
                    and rule.need in ("write", "manage", "signed-in", "open")
                ):
                    fields = ("name", "title", "slug", "text", "label", "role", "confirmation", "email", "username",
                              "guidelines", "first_name", "landing", "notes", "source", "days", "theme")  # fmt: skip
                    body = dict.fromkeys(fields, SCRIPT)
                    with undone():
                        look(name, owner.post(place(world, rule, name, world.own), body))
        path = place(world, Rule("write"), "annotation:campaign-guidelines-preview", world.own)
        preview = owner.post(path, {"guidelines": _markdown()})
        look("markdown", preview)
        assert b"<strong>bold</strong>" in preview.content
    assert not wrong, "\n".join(wrong)


def _markdown() -> str:
    return "\n\n".join(
        [
            "**bold**", SCRIPT, "[x](javascript:alert(1))", "![x](http://elsewhere.example/x.png)",
            "<b onclick=a()>x</b>",
            "[x](data:text/html,<script>alert(1)</script>)", "`<script>`", "<http://x onmouseover=alert(1)>",
            "[x]: javascript:alert(1)\n[x]", "| a |\n|---|\n| <script>alert(1)</script> |",
        ]
    )  # fmt: skip


# ---- formulas ---------------------------------------------------------------------------------------------

RUNS = re.compile(r"^[=+\-@\t\r]")


def formulas(text: str) -> list[str]:
    """Cells that a spreadsheet would execute; numbers may begin with a minus."""
    found = []
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            if RUNS.match(cell):
                try:
                    float(cell)
                except ValueError:
                    found.append(cell[:40])
    return found


@pytest.mark.promise("formulas")
def test_no_table_contains_a_formula(world):
    """Every free text column contains a formula; every exported CSV or TSV shows it as text."""
    owner, wrong, tables = make_client(world.cast.owner), [], 0
    with undone():
        poison("=cmd|' /C calc'!A0", "=1+1")
        for name, rule, _ in looked_at(world):
            answer = owner.get(place(world, rule, name, world.own) + rule.query)
            kind = answer.headers.get("Content-Type", "")
            if answer.status_code == 200 and kind.startswith(("text/csv", "text/tab")):
                content = b"".join(answer.streaming_content) if answer.streaming else answer.content
                tables += 1
                wrong += [f"{name}: {cell}" for cell in formulas(content.decode())]
        from annotation.services.exports import get_export_folder, request_export

        run = execute_run(request_export(project=world.own.project, user=None, format="safe-csv").pk)
        assert run is not None
        assert run.state == Run.State.SUCCEEDED, run.error
        for path in sorted(get_export_folder(run).rglob("*.csv")):
            tables += 1
            wrong += [f"{path.name}: {cell}" for cell in formulas(path.read_text(encoding="utf-8"))]
    assert tables > 6
    assert not wrong, "\n".join(sorted(set(wrong)))
