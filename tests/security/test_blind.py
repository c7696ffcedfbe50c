"""Responses to an annotator reveal no system, no control item and no other person's answer before their own: body,
headers, addresses, comments, attributes, sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from lxml import html

from annotation.allocation.mix import MemberCounts, choose_step
from annotation.allocation.streams import draw
from annotation.models import Assignment, Campaign, Output, System, Unit
from evalapp.accounts.roles import Role
from tests.architecture.routes import API, PAGES
from tests.architecture.test_permissions import addresses
from tests.cast import Cast, join, person
from tests.judging import SYSTEMS, make_draft, open_rating
from tests.writing import fill_ports, start_constraint

pytestmark = pytest.mark.django_db
CONTROL = {"item": "i000", "system": "sys-alpha", "expected": {"naturalness": [6, 6]}, "why": "the secret reason"}
ONE = [{"name": "naturalness", "question": "How natural is it?", "low": 1, "high": 6}]


class Watched:
    """A browser that records every response, including headers and addresses."""

    def __init__(self, user: Any) -> None:
        self.client = Client()
        self.client.force_login(user)
        self.seen: list[str] = []

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        options: dict[str, Any] = {"headers": headers}
        if path.startswith("/api/") and method != "get":
            options |= {"data": json.dumps(body or {}), "content_type": "application/json"}
        elif body is not None:
            options["data"] = body
        answer = getattr(self.client, method)(path, follow=True, **options)
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        self.seen.append(f"{path} {answer.redirect_chain} {dict(answer.headers)} {content.decode(errors='replace')}")
        return answer

    def never_saw(self, *words: str) -> None:
        for text in self.seen:
            for word in words:
                assert word not in text, f"“{word}” in {text[:300]}"


def doors(campaign: int, public: str, kind: str) -> Iterator[str]:
    """Every address that accepts GET, filled with values known to an annotator."""
    known = {"slug": "alpha", "pk": campaign, "public": public, "name": "original", "item": 1, "number": 0}
    from django.urls import NoReverseMatch, reverse

    for name, rules in {**PAGES, **API}.items():
        if name not in addresses() or not any(rule.method == "get" for rule in rules):
            continue
        for filler in ("x", 1, "csv"):
            try:
                yield reverse(name, kwargs={part: known.get(part, filler) for part in addresses()[name][1]})
                break
            except NoReverseMatch:
                continue


@pytest.mark.promise("blind")
def test_no_response_to_an_annotator_names_a_system(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rating, comparison, Turing and writing, by pages and by API; then every address."""
    fill_ports(monkeypatch)
    rating = open_rating(cast, items=3, aspects=ONE, controls=[CONTROL], options={"control_rate": 0.5})
    Output.objects.update(meta={"provider": "sys-alpha-provider", "cost": 3})
    System.objects.update(meta={"model": "hidden-model"})
    others = [
        make_draft(cast, slug="pairs", name="Pairs", kind="pairwise", aspects=[{"name": "better", "question": "?"}]),
        make_draft(
            cast, slug="turing", name="Turing", kind="turing", aspects=[{"name": "human", "question": "?"}],
            systems=[SYSTEMS[0]],
        ),
    ]  # fmt: skip
    from annotation.services.campaigns import open_campaign

    campaigns = [rating, *(open_campaign(campaign=row, user=cast.researcher) for row in others)]
    anna = Watched(cast.annotator)
    answers = {"likert": "4", "pairwise": "a", "turing": "cannot_decide"}
    for campaign in campaigns:
        verdict = answers[campaign.kind]
        for turn in range(4):
            answer = anna.ask("post", f"/api/v1/campaigns/{campaign.pk}/next/")
            if answer.status_code == 204:
                break
            wire = answer.json()
            public, name = wire["id"], wire["form"]["aspects"][0]["name"]
            anna.ask("get", f"/my/{campaign.pk}/")
            anna.ask("get", f"/my/{campaign.pk}/{public}/")
            anna.ask("get", f"/my/{campaign.pk}/next/", **{"HX-Request": "true"})
            anna.ask("patch", f"/api/v1/assignments/{public}/", {"version": 0, "draft": {"answer": {}}})
            if turn % 2:
                body = {"submission": str(uuid4()), "answer": {name: int(verdict) if verdict.isdigit() else verdict}}
                anna.ask("post", f"/api/v1/assignments/{public}/submit/", {**body, "next": True})
            else:
                form = {"submission": str(uuid4()), f"answer.{name}": verdict}
                anna.ask("post", f"/my/{campaign.pk}/{public}/", form)
            anna.ask("get", f"/api/v1/assignments/?campaign={campaign.pk}")
    for path in doors(rating.pk, public, "rating"):
        anna.ask("get", path)
    assert len(anna.seen) > 150
    anna.never_saw(*SYSTEMS, "provider", "hidden-model", "secret reason")
    for text in anna.seen:
        if text.startswith(("/api/v1/assignments", "/api/v1/campaigns")):
            assert not re.search(r'"(system|output|unit|control|expected|side|swapped|kind_of)\w*":', text), text[:400]


def outline(text: str, public: str) -> list[Any]:
    """The page without its texts and numbers: tags, attribute names, and values that are not texts of the item."""
    varying = {
        "value",
        "data-id",
        "data-csrf",
        "data-user",
        "action",
        "id",
        "href",
        "for",
        "name",
        "aria-describedby",
        "aria-labelledby",
        "nonce",
    }
    found: list[Any] = []
    for node in html.fromstring(text.replace(public, "ID")).iter():
        if isinstance(node.tag, str):
            kept = {key: re.sub(r"\d+", "0", value) for key, value in node.attrib.items() if key not in varying}
            found.append((node.tag, sorted(node.attrib), sorted(kept.items()) if node.tag != "body" else ""))
        else:
            found.append(("comment", node.text))
    return found


def shape(value: Any, key: str = "") -> Any:
    """The response without its texts: names, types, and the lengths of opaque values."""
    if isinstance(value, dict):
        return {name: shape(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [shape(part, key) for part in value]
    return (type(value).__name__, len(value) if key == "id" else 0)


def differing(control: Any, others: list[Any], part: int) -> Any:
    """The first difference from the most similar text."""
    if not isinstance(control, list):
        return control, others[0][part]

    def alike(other: list[Any]) -> int:
        return next((place for place, (a, b) in enumerate(zip(other, control, strict=False)) if a != b), len(control))

    nearest = max((other[part] for other in others), key=alike)
    start = alike(nearest)
    return control[start : start + 2], nearest[start : start + 2], len(control), len(nearest)


def begins_with_control(seed: int, user: Any) -> bool:
    """Whether a campaign with this seed gives this person a control item first."""
    standing = MemberCounts(draw(seed, "member", user.pk), 0, 0)
    return choose_step(standing, practice=0, controls=1, control_rate=0.4) == "control"


@pytest.mark.promise("blind")
def test_control_item_has_the_same_outline_as_others(cast: Cast) -> None:
    """Equal tags, attributes, members and lengths; and no stored order reveals it. A person's first text has no way
    back and no mean time yet, so a first control item is compared with another person's first text."""
    campaign = open_rating(cast, items=6, aspects=ONE, controls=[CONTROL], options={"control_rate": 0.4}, overlap=2)
    bert = person("bert")
    join(cast.project, bert, "annotator")
    seed = next(k for k in range(10_000) if begins_with_control(k, bert) and not begins_with_control(k, cast.annotator))
    Campaign.objects.filter(pk=campaign.pk).update(seed=seed)
    # Texts of equal length, so that sizes can also be compared.
    Output.objects.update(text="Text of equal length.")
    looks: dict[tuple[str, bool], list[Any]] = {}
    for user, texts in ((cast.annotator, 9), (bert, 1)):
        window = Watched(user)
        for place in range(texts):
            wire = window.ask("post", f"/api/v1/campaigns/{campaign.pk}/next/").json()
            kind = Unit.objects.get(assignments__public=wire["id"]).kind
            page = window.ask("get", f"/my/{campaign.pk}/").content.decode()
            seen = window.ask("get", f"/my/{campaign.pk}/{wire['id']}/").content.decode()
            wire.pop("draft"), wire.pop("lease_until")
            sent = {"submission": str(uuid4()), "answer": {"naturalness": 3}}
            done = window.ask("post", f"/api/v1/assignments/{wire['id']}/submit/", sent).json()
            looks.setdefault((kind, place == 0), []).append(
                (shape(wire), outline(page, wire["id"]), outline(seen, wire["id"]), shape(done))
            )
    assert {key: len(found) for key, found in looks.items()} == {
        ("normal", True): 1,
        ("normal", False): 7,
        ("control", True): 1,
        ("control", False): 1,
    }
    for first in (True, False):
        others = looks["normal", first]
        for control in looks["control", first]:
            for part, name in enumerate(("wire", "page", "page again", "answer")):
                alike = any(control[part] == other[part] for other in others)
                assert alike, (name, differing(control[part], others, part))
    numbers = list(
        Assignment.objects.filter(campaign=campaign).order_by("order_number").values_list("public", flat=True)
    )
    assert len({len(public) for public in numbers}) == 1
    assert numbers != sorted(numbers), "the opaque names follow no order"


@pytest.mark.promise("unseen")
def test_nobody_sees_other_answers_before_their_own(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bert has answered everything with a note; Anna, who judges after him, receives none."""
    fill_ports(monkeypatch)
    bert = person("bert")
    join(cast.project, bert, Role.ANNOTATOR)
    scale = open_rating(cast, items=2, aspects=ONE, overlap=2)
    pairs = make_draft(
        cast, slug="pairs", name="Pairs", kind="pairwise", aspects=[{"name": "q", "question": "?"}], overlap=2
    )
    from annotation.services.campaigns import open_campaign

    campaigns = [scale, open_campaign(campaign=pairs, user=cast.researcher)]
    his, hers = Watched(bert), Watched(cast.annotator)
    public = ""
    for campaign in campaigns:
        for who in (his, hers):
            for _ in range(3):
                answer = who.ask("post", f"/api/v1/campaigns/{campaign.pk}/next/")
                if answer.status_code == 204:
                    break
                wire = answer.json()
                value: Any = 5 if campaign is scale else "b"
                body = {"submission": str(uuid4()), "answer": {wire["form"]["aspects"][0]["name"]: value}}
                if who is his:
                    public = wire["id"]
                    his.ask("post", f"/api/v1/assignments/{public}/submit/", {**body, "note": "note of bert"})
                else:
                    hers.ask("get", f"/my/{campaign.pk}/")
                    break
    for path in (*doors(scale.pk, public, ""), f"/api/v1/assignments/?campaign={scale.pk}"):
        hers.ask("get", path)
    hers.ask("post", f"/api/v1/assignments/{public}/submit/", {"submission": str(uuid4()), "answer": {"q": "a"}})
    hers.never_saw("note of bert", "bert@example.org", "p-bert")


@pytest.mark.promise("unseen")
def test_writers_see_others_only_as_planned(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a campaign with one set per group, other groups cannot read it; a text to be confirmed does not reveal which
    of the two was written."""
    fill_ports(monkeypatch)
    bert = person("bert")
    join(cast.project, bert, Role.ANNOTATOR)
    campaign = start_constraint(cast, "better-than-original", confirmations=1)
    his, hers = Watched(bert), Watched(cast.annotator)
    task = his.ask("post", f"/api/v1/writing/{campaign.pk}/next/").json()["id"]
    sent = {"submission": str(uuid4()), "text": "Text that bert wrote."}
    his.ask("post", f"/api/v1/writing-tasks/{task}/submit/", sent)
    hers.ask("post", f"/api/v1/writing/{campaign.pk}/next/")
    hers.ask("get", f"/my/writing/{campaign.pk}/")
    hers.never_saw("Text that bert wrote.", "p-bert", "bert@")
    compared = hers.ask("post", f"/api/v1/writing/{campaign.pk}/next-confirmation/")
    if compared.status_code == 200:
        told = compared.content.decode()
        assert not re.search(r'"(written|original|swapped|annotator|author|set)\w*":', told), told
    hers.never_saw("p-bert", "bert@")
