"""Blindness by poisoning: every text of every row in a project carries a unique mark, an annotator requests every
address and judges while leases expire, and only marks of judged texts may come back. New columns are covered because
the models list their fields. A unit without a slot must look like one with a slot."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.db import models
from django.test import Client
from django.utils import timezone

from annotation.models import Assignment, Campaign, Slot, Unit
from annotation.services.campaigns import create_campaign, open_campaign
from annotation.services.judging_handout import return_expired_slots
from tests.architecture.world import World, make_world
from tests.cast import join, person
from tests.remembered import make_once
from tests.security.poison import OURS, READ_BY_PROGRAMS
from tests.security.test_blind import ONE, Watched, doors

pytestmark = [pytest.mark.django_db, pytest.mark.promise("blind")]

#: Texts that an annotator may see: texts to judge, the campaign's wording, the project's name.
SEEN = {
    "Project.name", "Item.context", "Item.source", "Output.text", "Reference.text", "Campaign.name",
    "WrittenReference.text",
    "Campaign.guidelines", "CampaignAspect.question", "CampaignAspect.labels", "WritingCampaign.name",
    "WritingCampaign.guidelines", "WritingCampaign.options", "WritingCandidate.text", "CorpusPair.query",
    "CorpusPair.response",
}  # fmt: skip
#: Annotators see everything in their own rows.
OWN = {
    "Assignment",
    "Judgement",
    "User",
    "Identity",
    "ApiToken",
    "WritingTask",
    "WritingAttempt",
    "ItemFlag",
    "WritingFlag",
}
#: Columns with content for programs: their strings are marked, and no member is added.
CLOSED_JSON = {
    "CampaignAspect.labels", "Unit.expected", "Unit.options", "User.preferences", "ApiToken.scopes",
    "Evaluator.manifest", "Run.params", "WorkerBeat.queues", "IdempotencyKey.headers",
}  # fmt: skip
#: Free text in a column whose name is used for programs elsewhere.
ALSO = {"Item.key", "Unit.why"}
#: Tables without project data.
ELSEWHERE = {"User", "ApiToken", "AttemptCount", "WorkerBeat", "AuditHead", "IdempotencyKey", "AuditEvent"}


def mark(model: Any, field: Any) -> str:
    return f"zq{model.__name__}-{field.name}-qz"


def marked(model: Any, field: Any, value: Any, pk: Any) -> Any:
    word = mark(model, field)
    if isinstance(field, models.JSONField):
        if isinstance(value, dict):
            more = {} if f"{model.__name__}.{field.name}" in CLOSED_JSON else {"zq": word}
            return {key: f"{part} {word}" if isinstance(part, str) else part for key, part in value.items()} | more
        if isinstance(value, list):
            return [f"{part} {word}" if isinstance(part, str) else part for part in value]
        return value
    room = field.max_length or 10_000
    return f"{word} {pk}"[:room]


def poison_each() -> set[str]:
    """Marks every free text of every row; returns the columns."""
    done = set()
    for model in apps.get_models():
        if model._meta.app_label not in OURS or not model._meta.managed or model.__name__ in ELSEWHERE:
            continue
        columns = [
            field
            for field in model._meta.concrete_fields
            if isinstance(field, models.JSONField)
            or (
                type(field) in (models.CharField, models.TextField, models.EmailField)
                and not field.choices
                and not field.unique
                and (field.name not in READ_BY_PROGRAMS or f"{model.__name__}.{field.name}" in ALSO)
                and (model.__name__, field.name)
                not in {("ReferenceSet", "name"), ("Corpus", "name"), ("Aspect", "name")}
            )
        ]
        rows = list(model._default_manager.all())
        for row in rows:
            for field in columns:
                setattr(row, field.attname, marked(model, field, getattr(row, field.attname), row.pk))
        if rows and columns:
            model._base_manager.bulk_update(rows, [field.attname for field in columns])
            done |= {f"{model.__name__}.{field.name}" for field in columns}
    return done


def open_blind(world: World) -> Campaign:
    expected = {"expected": {"naturalness": [6, 6]}, "why": "because"}
    plan = {
        "name": "Blind", "kind": "likert", "aspects": ONE, "overlap": 1, "lease_minutes": 30, "guidelines": "Rate.",
        "controls": [{"item": "i000", "system": "sys-a", **expected}],
        "practice": [{"item": "i001", "system": "sys-a", **expected}],
        "options": {"control_rate": 0.5, "repeat_share": 0.3, "repeat_gap": 1},
    }  # fmt: skip
    project, owner = world.cast.project, world.cast.owner
    return open_campaign(campaign=create_campaign(project=project, user=owner, plan=plan), user=owner)


def end_leases() -> None:
    Assignment.objects.filter(state="open").update(lease_until=timezone.now() - timedelta(seconds=5))
    return_expired_slots()


def test_only_marks_of_judged_texts_reach_an_annotator():
    world = make_once("world of roles", make_world)
    campaign = open_blind(world)
    columns = poison_each()
    assert {
        "Project.notes",
        "Project.meta",
        "Item.key",
        "Item.meta",
        "System.name",
        "Unit.why",
        "Campaign.options",
    } <= columns
    bert = person("bert")
    join(world.cast.project, bert, "annotator")
    anna, his = Watched(world.cast.annotator), Watched(bert)
    public = ""
    for turn in range(10):
        answer = anna.ask("post", f"/api/v1/campaigns/{campaign.pk}/next/")
        if answer.status_code == 204:
            break
        public = answer.json()["id"]
        for path in (f"/my/{campaign.pk}/", f"/my/{campaign.pk}/{public}/", f"/api/v1/assignments/{public}/"):
            anna.ask("get", path)
        if turn % 2:
            end_leases()
            his.ask("post", f"/api/v1/campaigns/{campaign.pk}/next/")
        anna.ask("patch", f"/api/v1/assignments/{public}/", {"version": 0, "draft": {"answer": {}}})
        for state in ("", "&state=open", "&state=expired"):
            anna.ask("get", f"/api/v1/assignments/?campaign={campaign.pk}{state}")
        if Unit.objects.get(assignments__public=public).kind != "practice":
            body = {"submission": str(uuid4()), "answer": {"naturalness": 3}, "next": True}
            anna.ask("post", f"/api/v1/assignments/{public}/submit/", body)
        else:
            anna.ask("post", f"/api/v1/assignments/{public}/skip/", {"reason": "r"})
    for number, opaque in ((campaign.pk, public), (world.own.values["campaign"], world.own.values["assignment"])):
        for path in doors(number, opaque, "rating"):
            anna.ask("get", path)
            anna.ask("get", path, **{"HX-Request": "true"})
    writing = world.own.values["writing campaign"]
    anna.ask("get", f"/my/writing/{writing}/")
    anna.ask("post", f"/api/v1/writing/{writing}/next/")
    assert len(anna.seen) > 300
    found: dict[str, str] = {}
    for text in anna.seen:
        for model, name in re.findall(r"zq(\w+)-(\w+)-qz", text):
            if model not in OWN:
                found.setdefault(f"{model}.{name}", text[:200])
    assert "Output.text" in found, "the marks come through where they may"
    assert {name: path for name, path in found.items() if name not in SEEN} == {}


def test_project_list_shows_only_their_names():
    world = make_once("world of roles", make_world)
    world.cast.project.meta = {"systems": "GPT against humans"}
    world.cast.project.save()
    for name, members in (("annotator", {"slug", "name", "role"}), ("viewer", None), ("researcher", None)):
        client = Client()
        client.force_login(getattr(world.cast, name))
        [row] = client.get("/api/v1/projects/").json()["results"]
        whole = client.get("/api/v1/projects/alpha/")
        assert whole.status_code == (403 if members else 200)
        assert set(row) == (members or set(whole.json()))
        assert row["role"] == name


def looks(window: Watched, campaign: Campaign, public: str) -> list[Any]:
    """All information for the holder of an assignment whose lease has expired, without numbers and texts."""
    found: list[Any] = []

    def outline(answer: Any) -> None:
        body = answer.json()
        kept = {
            key: body[key]
            for key in sorted(body)
            if key not in ("id", "number", "context", "source", "texts", "lease_until", "saved_at", "progress", "next")
        }
        found.append((answer.status_code, sorted(body), kept))

    def states() -> None:
        for state in ("", "open", "expired", "submitted"):
            address = f"/api/v1/assignments/?campaign={campaign.pk}&state={state}"
            rows = window.ask("get", address).json()["results"]
            found.append((state, [row["state"] for row in rows if row["id"] == public]))

    path = f"/api/v1/assignments/{public}/"
    states()
    outline(window.ask("get", path))
    outline(window.ask("patch", path, {"version": 0, "draft": {"note": "x"}}))
    states()
    outline(window.ask("get", path))
    again = window.ask("post", f"/api/v1/campaigns/{campaign.pk}/next/").json()
    found.append((again["id"] == public, again["state"], again["draft"]))
    body = {"submission": str(uuid4()), "answer": {"naturalness": 3}}
    outline(window.ask("post", f"{path}submit/", body))
    outline(window.ask("post", f"{path}submit/", body))
    outline(window.ask("get", path))
    states()
    page = window.ask(
        "post", f"/my/{campaign.pk}/{public}/submit/", {**body, "submission": str(uuid4()), "replaces": 1}
    )
    found.append((page.status_code, sorted(page.json())))
    return found


def test_unit_without_a_slot_looks_the_same_when_leases_expire():
    """A unit with a free slot, one whose slot another person has, a control and a repeat: the same responses
    throughout, although only the second one is stored as extra."""
    world = make_once("world of roles", make_world)
    campaign = open_blind(world)
    Campaign.objects.filter(pk=campaign.pk).update(
        options={**campaign.options, "practice": [], "repeat_share": 1.0}  # otherwise a repeat may not come in time
    )
    anna = Watched(world.cast.annotator)
    told: dict[str, list[Any]] = {}
    for _ in range(60):
        answer = anna.ask("post", f"/api/v1/campaigns/{campaign.pk}/next/")
        if answer.status_code == 204 or len(told) == 4:
            break
        public = answer.json()["id"]
        row = Assignment.objects.get(public=public)
        kind = "repeat" if row.repeat_number else row.unit.kind
        if kind == "practice":
            anna.ask("post", f"/api/v1/assignments/{public}/skip/", {"reason": "r"})
            continue
        if kind == "normal" and "normal" in told:
            kind = "normal, slot gone"
        if kind in told:
            sent = {"submission": str(uuid4()), "answer": {"naturalness": 3}}
            anna.ask("post", f"/api/v1/assignments/{public}/submit/", sent)
            continue
        end_leases()
        if kind == "normal, slot gone":
            Slot.objects.filter(unit=row.unit_id).update(state="taken")
        told[kind] = looks(anna, campaign, public)
        row.refresh_from_db()
        assert row.judgements.get(version=1).extra is (kind == "normal, slot gone")
    assert set(told) == {"normal", "normal, slot gone", "control", "repeat"}
    for kind, found in told.items():
        assert found == told["normal"], kind


def test_practice_waits_and_ends_like_the_rest():
    world = make_once("world of roles", make_world)
    campaign = open_blind(world)
    anna = Watched(world.cast.annotator)
    first = anna.ask("post", f"/api/v1/campaigns/{campaign.pk}/next/").json()
    assert first["practice"]
    end_leases()
    assert anna.ask("get", f"/api/v1/assignments/{first['id']}/").json()["state"] == "expired"
    assert anna.ask("post", f"/api/v1/campaigns/{campaign.pk}/next/").json()["id"] == first["id"]
