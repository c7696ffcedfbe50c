"""Answers are sent while the web process dies and restarts, and while another process locks the database: acknowledged
answers are stored, repeated ones are stored once, and drafts are unchanged."""

from __future__ import annotations

import http.client
import json
import random
import sqlite3
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test import Client

from annotation.models import Assignment, CampaignMember, Judgement, Rating, Slot
from evalapp.accounts.services import create_token
from tests.annotation.services.judging_helpers import open_for
from tests.cast import make_cast

from .stack import Stack

ITEMS, KILLS = 40, 2
#: Errors of a request without response: refused, timed out, or cut before or during the response.
LOST = OSError, http.client.HTTPException


@dataclass
class PatientClient:
    """A client that resends unanswered requests unchanged, like the outbox of the page."""

    url: str
    secret: str
    timeout: float = 1.0
    lost: int = 0  # requests without response

    def call(self, method: str, path: str, body: Any = None, timeout: float | None = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout or self.timeout) as response:
                return response.status, json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def call_until_answered(self, method: str, path: str, body: Any = None) -> Any:
        for _ in range(200):
            try:
                status, answer = self.call(method, path, body)
            except LOST:
                self.lost += 1
                continue
            assert status in (200, 204), (status, answer)
            return answer
        raise AssertionError(f"no answer to {method} {path}")


def judge(client: PatientClient, shown: Any, acknowledged: list[dict[str, Any]], errors: list[str]) -> None:
    """Judge all remaining units."""
    try:
        while shown is not None:
            body = {"submission": str(uuid4()), "answer": {"likert-quality": 1 + len(acknowledged) % 5}, "next": True}
            answer = client.call_until_answered("POST", f"assignments/{shown['id']}/submit/", body)
            assert (answer["id"], answer["version"]) == (shown["id"], 1)
            acknowledged.append(body)
            shown = answer["next"]
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.promise("draft", "submission")
def test_web_process_is_killed_between_draft_and_answer_and_between_answers(stack: Stack) -> None:
    cast = make_cast()
    campaign = open_for(cast, items=ITEMS, systems=("sys-a",))
    _, secret = create_token(user=cast.annotator, name="pages", scopes=["annotate"])
    client = PatientClient(stack.url, secret)

    stack.start("web")
    shown = client.call_until_answered("POST", f"campaigns/{campaign.pk}/next/")
    path = f"assignments/{shown['id']}/"
    draft = {"answer": {"likert-quality": 2}, "note": "half a thought"}
    assert client.call_until_answered("PATCH", path, {"version": 0, "draft": draft})["draft_version"] == 1

    stack.kill("web")
    with pytest.raises(LOST):
        client.call("PATCH", path, {"version": 1, "draft": {**draft, "note": "typed during the outage"}})
    stack.start("web")
    again = client.call_until_answered("POST", f"campaigns/{campaign.pk}/next/")
    assert (again["id"], again["draft"]["answer"]) == (shown["id"], {"likert-quality": 2})
    # A request sent to the dead process may have waited in the socket; then the draft has two versions.
    assert again["draft"]["note"] in ("half a thought", "typed during the outage")
    body = {"version": 1, "draft": {**draft, "note": "the whole thought"}}
    status, answer = client.call("PATCH", path, body, timeout=60)
    assert (status, answer.get("stored", {}).get("version")) in ((200, None), (409, 2))

    acknowledged: list[dict[str, Any]] = []
    errors: list[str] = []
    annotator = threading.Thread(target=judge, args=(client, again, acknowledged, errors))
    annotator.start()
    rng = random.Random(7)
    for _ in range(KILLS):
        annotator.join(rng.uniform(0.05, 0.3))
        stack.kill("web")
        stack.start("web")
    annotator.join(300)
    assert errors == []
    assert client.lost >= 1
    rows = Judgement.objects.filter(campaign=campaign).order_by("created_at")
    sent = [(UUID(body["submission"]), body["answer"]) for body in acknowledged]
    assert list(rows.values_list("submission", "answer")) == sent
    assert len(sent) == Rating.objects.count() == CampaignMember.objects.get().done == ITEMS
    assert Slot.objects.filter(state="taken").count() == Assignment.objects.filter(slot__isnull=False).count() == ITEMS
    assert client.call("POST", f"campaigns/{campaign.pk}/next/", timeout=60)[0] == 204


@pytest.mark.promise("submission", "draft")
def test_database_file_is_locked_for_too_long(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that does not end, such as a large import on a slow disk: waiting requests get a `Retry-After`, and
    repeated answers are stored once."""
    cast = make_cast()
    campaign = open_for(cast, systems=("sys-a",))
    client = Client(raise_request_exception=False)
    client.force_login(cast.annotator)
    kind = {"content_type": "application/json"}
    shown = client.post(f"/api/v1/campaigns/{campaign.pk}/next/", {}, **kind).json()
    body = {"submission": str(uuid4()), "answer": {"likert-quality": 4}}
    form = {"submission": str(uuid4()), "answer.likert-quality": "4"}
    here = f"/api/v1/assignments/{shown['id']}/"

    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.1)
    connection.close()
    holder = sqlite3.connect(stack.folder / "evalapp.sqlite3", isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        answers = [
            client.post(f"{here}submit/", body, **kind),
            client.patch(here, {"version": 0, "draft": {"note": "x"}}, **kind),
            client.post(f"/api/v1/campaigns/{campaign.pk}/next/", {}, **kind),
            client.get(f"/my/{campaign.pk}/"),
            client.post(f"/my/{campaign.pk}/{shown['id']}/", form),
        ]
        reads = client.get(here)
    finally:
        holder.close()
    assert [answer.status_code for answer in answers] == [503] * 5
    assert [answer["Retry-After"].isdigit() for answer in answers] == [True] * 5
    assert not [answer for answer in answers if "locked" in answer.content.decode().lower()]
    assert (reads.status_code, reads.json()["state"]) == (200, "open")
    assert not Judgement.objects.exists()
    for _ in range(2):
        assert client.post(f"{here}submit/", body, **kind).json()["version"] == 1
    assert Judgement.objects.count() == Rating.objects.count() == 1
