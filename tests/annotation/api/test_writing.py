"""Reference writing through the API: plan, write and watch, and which facts annotators can see."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client

from annotation.selectors.writing import TAKEN_BACK
from evalapp.accounts.roles import Role
from tests.cast import join, person
from tests.writing import fill_ports, open_task_view, send, start_constraint, start_writing

pytestmark = pytest.mark.django_db
BASE = "/api/v1"


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    return fill_ports(monkeypatch)


def door(user):
    client = Client()
    client.force_login(user)

    def call(method, path, body=None, status=200):
        more = {} if method == "get" else {"data": body or {}, "content_type": "application/json"}
        response = getattr(client, method)(f"{BASE}{path}", **more)
        assert response.status_code == status, response.content[:2000]
        return response.json() if response.content else None

    return call


def test_from_plan_to_watch(cast):
    rita, anna = door(cast.researcher), door(cast.annotator)
    start_writing(cast, items=1)  # items and ports
    made = rita("post", "/projects/alpha/writing/", {"name": "Second", "evaluator": "ream-1"}, 201)
    assert (made["slug"], made["state"], made["plan"]["options"]["target"]) == ("second", "draft", 10)
    path = f"/writing/{made['id']}/"
    assert rita("patch", path, {"options": {"target": 3}})["plan"]["options"]["target"] == 3
    assert anna("post", f"{path}next/", status=409)["type"].endswith("#campaign-not-open")
    assert rita("post", f"{path}open/")["unit_count"] == 1
    view = anna("post", f"{path}next/")
    assert (view["state"], view["references"][0]["text"]) == ("write", "Answer 0 to i000.")
    task = f"/writing-tasks/{view['id']}/"
    body = {"submission": str(uuid4()), "text": "A good one.", "seconds": 3}
    outcome = anna("post", f"{task}submit/", body)
    assert (outcome["decision"], outcome["score_after"], outcome["repeated"]) == ("accept", 0.125, False)
    assert anna("post", f"{task}submit/", body)["repeated"]
    anna("post", f"{task}submit/", {**body, "text": "Other."}, 409)
    last = anna("get", task)["last"]
    assert (last["task"], last["text"]) == (view["id"], "A good one.")
    taken = anna("post", f"{task}back/", {"reference": last["reference"]})
    assert (len(taken["references"]), taken["last"], taken["draft"]["text"]) == (1, None, "A good one.")
    anna("post", f"{task}back/", {"reference": "another"}, 400)
    anna("post", f"{task}submit/", {**body, "submission": str(uuid4())})
    assert anna("patch", task, {"version": 3, "draft": {"text": "x"}})["draft_version"] == 4
    assert anna("get", task)["draft"] == {"text": "x"}
    anna("post", f"{task}drop/", {"submission": str(uuid4()), "seconds": 2.5})
    assert anna("post", f"{task}done/")["state"] == "done"
    anna("post", f"{path}next/", status=204)
    progress = rita("get", f"{path}progress/")
    assert progress["figures"]["references"] == 1
    assert progress["by_person"]["p-anna"][1]["mean"] == 0.125
    attempts = rita("get", f"{path}attempts/")["results"]
    assert [row["decision"] for row in attempts] == ["drop", "accept", "accept"]
    assert attempts[0]["seconds"] == 2.5
    row, before = rita("get", f"{path}references/")["results"]
    assert (before["written"]["state"], before["written"]["reason"]) == ("withdrawn", TAKEN_BACK)
    assert (row["written"]["annotator"], row["written"]["signature"]) == ("p-anna", "fake|1")
    rita("post", f"/written/{row['id']}/withdraw/", {"reason": "A name."}, 204)
    assert rita("get", f"{path}references/")["results"][0]["written"]["state"] == "withdrawn"
    rita("post", f"/written/{row['id']}/restore/", status=204)
    for move in ("pause", "resume", "close"):
        rita("post", f"{path}{move}/")
    rita("delete", path, status=409)
    assert [one["slug"] for one in rita("get", "/projects/alpha/writing/")["results"]] == ["second", "more-replies"]


def test_flags_are_listed_and_resolved(cast):
    rita, anna = door(cast.researcher), door(cast.annotator)
    campaign = start_writing(cast, items=1)
    task = f"/writing-tasks/{open_task_view(cast.annotator, campaign).public}/"
    anna("post", f"{task}flag/", {"reason": "broken", "text": "cut off"}, 201)
    (flag,) = rita("get", f"/writing/{campaign.pk}/flags/")["results"]
    assert (flag["item"], flag["reason"], flag["text"], flag["resolved_at"]) == ("i000", "broken", "cut off", None)
    anna("post", f"/writing-flags/{flag['id']}/resolve/", status=403)
    assert rita("post", f"/writing-flags/{flag['id']}/resolve/")["resolved_at"]
    assert rita("get", f"/writing/{campaign.pk}/flags/")["results"][0]["resolved_at"]
    rita("post", f"/writing-flags/{2**63}/resolve/", status=404)


def test_invalid_bodies_are_refused_by_field(cast):
    anna = door(cast.annotator)
    view = open_task_view(cast.annotator, start_writing(cast))
    task = f"/writing-tasks/{view.public}/"
    for body in (
        {"text": "x"},
        {"submission": "no", "text": "x"},
        {"submission": str(uuid4())},
        {"submission": str(uuid4()), "text": 7},
        {"submission": str(uuid4()), "text": "x", "relevant": "yes"},
        {"submission": str(uuid4()), "text": "x", "candidate": "made-up"},
    ):
        anna("post", f"{task}submit/", body, 400)
    anna("patch", task, {"draft": {}}, 400)
    anna("post", f"{task}skip/", {"reason": "unclear"})


def test_confirming_through_the_api(cast):
    ben = person("ben")
    join(cast.project, ben, Role.ANNOTATOR)
    campaign = start_constraint(cast, "better-than-original")
    send(cast.annotator, open_task_view(cast.annotator, campaign), "A better ending.")
    found = door(ben)("post", f"/writing/{campaign.pk}/next-confirmation/")
    better = next(text["id"] for text in found["texts"] if text["text"] == "A better ending.")
    door(ben)("post", f"/confirmations/{found['id']}/", {"submission": str(uuid4()), "better": better}, 204)
    door(ben)("post", f"/writing/{campaign.pk}/next-confirmation/", status=204)


def test_annotators_see_no_arm_score_or_set_name(cast):
    campaign = start_writing(cast, items=1, options={"arms": ["control"]})
    anna = door(cast.annotator)
    view = anna("post", f"/writing/{campaign.pk}/next/")
    outcome = anna("post", f"/writing-tasks/{view['id']}/submit/", {"submission": str(uuid4()), "text": "A good one."})
    told = str(outcome)
    assert (outcome["score_before"], outcome["score_after"], outcome["improved"]) == (None, None, None)
    for hidden in ("control", "more-replies", "0.125", "fake|1", "ream-1"):
        assert hidden not in told
    anna("get", f"/writing/{campaign.pk}/progress/", status=403)
    anna("get", f"/writing/{campaign.pk}/attempts/", status=403)
