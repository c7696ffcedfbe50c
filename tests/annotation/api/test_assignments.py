from __future__ import annotations

from uuid import uuid4

import pytest

from annotation.models import Assignment, Judgement
from annotation.services.campaigns import pause_campaign
from tests.annotation.services.judging_helpers import answer_to, open_for


@pytest.fixture
def campaign(cast):
    return open_for(cast)


@pytest.fixture
def anna(cast, client):
    client.force_login(cast.annotator)
    return client


def post(client, path, body=None):
    return client.post(f"/api/v1/{path}", body or {}, content_type="application/json")


def next_one(client, campaign, query=""):
    return post(client, f"campaigns/{campaign.pk}/next/{query}")


def make_body(campaign, **more):
    return {"submission": str(uuid4()), "answer": answer_to(campaign), **more}


def test_judging_from_start_to_end(anna, campaign):
    answer = next_one(anna, campaign)
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    first = answer.json()
    assert set(first) == {
        "id", "campaign", "kind", "number", "state", "version", "practice", "context", "source", "texts", "form",
        "draft", "draft_version", "lease_until", "progress",
    }  # fmt: skip
    assert first["context"] == ["Hello number " + first["context"][0].split()[2], "Yes?"]
    assert [text["id"] for text in first["texts"]] == ["a"]
    assert first["form"]["aspects"][0]["points"][4] == {"value": 5, "label": "", "key": "5"}
    assert first["form"]["options"] == {
        "answer_on_key": False, "allow_note": True, "allow_skip": True, "allow_revise": True, "show_clock": True,
    }  # fmt: skip
    address = f"/api/v1/assignments/{first['id']}/"
    saved = anna.patch(address, {"version": 0, "draft": {"answer": {}}}, content_type="application/json")
    assert saved.json()["draft_version"] == 1
    sent = post(anna, f"assignments/{first['id']}/submit/", make_body(campaign, next=True, seconds=3)).json()
    assert (sent["version"], sent["feedback"], sent["why"]) == (1, None, "")
    assert sent["next"]["id"] != first["id"]
    assert sent["progress"] == {
        "done": 1, "goal": 8, "skipped": 0, "seconds": 3.0, "mean_seconds": 3.0, "practised": 0, "practice": 0,
    }  # fmt: skip
    own = anna.get(address).json()
    assert (own["state"], own["answer"], own["draft"]) == ("submitted", answer_to(campaign), None)
    assert own["form"]["kind"] == "likert"
    listed = anna.get(f"/api/v1/assignments/?campaign={campaign.pk}").json()
    assert [row["state"] for row in listed["results"]] == ["open", "submitted"]
    only = anna.get(f"/api/v1/assignments/?campaign={campaign.pk}&state=submitted").json()["results"]
    assert [row["id"] for row in only] == [first["id"]]


def test_prefetch(anna, campaign):
    first = next_one(anna, campaign).json()
    ahead = next_one(anna, campaign, "?prefetch=1").json()
    assert ahead["id"] != first["id"]
    sent = post(anna, f"assignments/{first['id']}/submit/", make_body(campaign, next="ahead")).json()
    assert sent["next"]["id"] not in {first["id"], ahead["id"]}


def test_nothing_left_is_204_and_paused_is_409(anna, cast):
    campaign = open_for(cast, max_per_annotator=1)
    first = next_one(anna, campaign).json()
    sent = post(anna, f"assignments/{first['id']}/submit/", make_body(campaign, next=True)).json()
    assert (sent["next"], sent["why"]) == (None, "limit")
    assert next_one(anna, campaign).status_code == 204
    pause_campaign(campaign=campaign, user=cast.researcher)
    refused = next_one(anna, campaign)
    assert refused.status_code == 409
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json()["type"].endswith("campaign-not-open")


def test_conflicts_carry_both_versions(anna, campaign):
    first = next_one(anna, campaign).json()
    path = f"assignments/{first['id']}/submit/"
    body = make_body(campaign, note="first")
    assert post(anna, path, body).status_code == 200
    assert post(anna, path, body).status_code == 200
    assert Judgement.objects.count() == 1
    refused = post(anna, path, {**body, "note": "second"})
    assert refused.status_code == 409
    assert (refused.json()["stored"]["note"], refused.json()["yours"]["note"]) == ("first", "second")
    stale = post(anna, path, make_body(campaign))
    assert (stale.status_code, stale.json()["stored"]["version"]) == (409, 1)
    assert post(anna, path, make_body(campaign, replaces=1)).json()["version"] == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"submission": "no uuid"}, "submission"),
        ({"submission": None}, "submission"),
        ({"answer": {}}, "answer.likert-quality"),
        ({"answer": "x"}, "answer"),
        ({"note": 3}, "note"),
        ({"note": "a\x00b"}, "note"),
        ({"note": "half \ud83d"}, "note"),
        ({"seconds": -1}, "seconds"),
        ({"seconds": "long"}, "seconds"),
        ({"seconds": 10**400}, "seconds"),
        ({"replaces": 1.5}, "replaces"),
        ({"next": "perhaps"}, "next"),
    ],
)
def test_errors_are_listed_by_field(anna, campaign, change, field):
    first = next_one(anna, campaign).json()
    refused = post(anna, f"assignments/{first['id']}/submit/", {**make_body(campaign), **change})
    assert refused.status_code == 400
    assert [error["field"] for error in refused.json()["errors"]] == [field]
    assert not Judgement.objects.exists()


def test_skip_and_flag(anna, campaign):
    first = next_one(anna, campaign).json()
    flagged = post(anna, f"assignments/{first['id']}/flag/", {"reason": "broken", "text": "cut"})
    assert flagged.status_code == 201
    skipped = post(anna, f"assignments/{first['id']}/skip/", {"reason": "cannot read it", "next": True}).json()
    assert (skipped["state"], skipped["progress"]["skipped"]) == ("skipped", 1)
    assert skipped["next"]["id"] != first["id"]
    assert post(anna, f"assignments/{first['id']}/flag/", {"reason": "dull"}).status_code == 400


def test_unauthorised_users_are_refused(cast, client, campaign):
    assert next_one(client, campaign).status_code in (401, 403)
    client.force_login(cast.annotator)
    first = next_one(client, campaign).json()
    for user, status in ((cast.viewer, 403), (cast.stranger, 404)):
        client.force_login(user)
        assert next_one(client, campaign).status_code == status
        assert client.get(f"/api/v1/assignments/?campaign={campaign.pk}").status_code == status
    for user in (cast.owner, cast.viewer, cast.stranger):
        client.force_login(user)
        assert client.get(f"/api/v1/assignments/{first['id']}/").status_code == 404
        for act in ("submit", "skip", "flag"):
            body = {**make_body(campaign), "reason": "broken"}
            assert post(client, f"assignments/{first['id']}/{act}/", body).status_code == 404
    assert Assignment.objects.get(public=first["id"]).state == "open"


def test_history_needs_few_queries(anna, cast, django_assert_max_num_queries):
    campaign = open_for(cast, "pairwise", items=15)
    first = next_one(anna, campaign).json()
    while first is not None:
        first = post(anna, f"assignments/{first['id']}/submit/", make_body(campaign, next=True)).json()["next"]
    with django_assert_max_num_queries(10):
        assert len(anna.get(f"/api/v1/assignments/?campaign={campaign.pk}").json()["results"]) == 15


def test_unusual_query_parameters(anna, campaign):
    for query in ("", "?campaign=x", f"?campaign={campaign.pk}&state=lost", f"?campaign={campaign.pk}&cursor=zz"):
        assert anna.get(f"/api/v1/assignments/{query}").status_code == 400
    assert anna.get("/api/v1/assignments/?campaign=999999").status_code == 404
    for number in (999999, 10**30):
        assert post(anna, f"campaigns/{number}/next/").status_code == 404
    assert anna.get("/api/v1/assignments/a%00b/").status_code == 404
