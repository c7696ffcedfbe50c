from __future__ import annotations

import pytest

from annotation.models import Campaign, ItemFlag
from annotation.services.judging import get_next_assignment
from annotation.services.judging_acts import flag_assignment
from tests.annotation.services.judging_helpers import open_for, send
from tests.factories import make_items, make_outputs

PLAN = {"name": "Naturalness", "kind": "likert", "aspects": [{"name": "natural", "low": 1, "high": 6}], "overlap": 2}


@pytest.fixture
def rita(cast, client):
    make_outputs(cast.project, make_items(cast.project, 4))
    client.force_login(cast.researcher)
    return client


def call(client, method, path, body=None):
    return getattr(client, method)(f"/api/v1/{path}", body or {}, content_type="application/json")


def test_from_plan_to_end(rita):
    made = call(rita, "post", "projects/alpha/campaigns/", PLAN)
    assert made.status_code == 201
    row = made.json()
    assert (row["state"], row["slug"], row["plan"]["overlap"]) == ("draft", "naturalness", 2)
    path = f"campaigns/{row['id']}/"
    changed = call(rita, "patch", path, {"guidelines": "Read twice.", "overlap": 3}).json()
    assert (changed["guidelines"], changed["overlap"]) == ("Read twice.", 3)
    opened = call(rita, "post", path + "open/")
    assert (opened.status_code, opened.json()["state"], opened.json()["unit_count"]) == (200, "open", 8)
    assert call(rita, "post", path + "open/").status_code == 409
    assert call(rita, "patch", path, {"overlap": 1}).json()["errors"][0]["field"] == "overlap"
    assert call(rita, "post", path + "pause/").json()["state"] == "paused"
    assert call(rita, "post", path + "resume/").json()["state"] == "open"
    assert call(rita, "post", path + "close/").json()["state"] == "closed"
    listed = rita.get("/api/v1/projects/alpha/campaigns/").json()["results"]
    assert [entry["slug"] for entry in listed] == ["naturalness"]
    assert rita.delete(f"/api/v1/{path}").status_code == 204


def test_invalid_plans_are_refused_by_field(rita):
    refused = call(rita, "post", "projects/alpha/campaigns/", {**PLAN, "overlap": 0, "systems": ["nobody"]})
    assert refused.status_code == 400
    assert [error["field"] for error in refused.json()["errors"]] == ["overlap"]
    refused = call(rita, "post", "projects/alpha/campaigns/", {**PLAN, "systems": ["nobody"]})
    assert [error["field"] for error in refused.json()["errors"]] == ["systems"]


def test_roles(cast, client):
    campaign = open_for(cast)
    reads = [f"campaigns/{campaign.pk}/", f"campaigns/{campaign.pk}/progress/", f"campaigns/{campaign.pk}/flags/",
             f"campaigns/{campaign.pk}/judgements/", "projects/alpha/campaigns/"]  # fmt: skip
    writes = [("post", f"campaigns/{campaign.pk}/{move}/") for move in ("open", "pause", "resume", "close")]
    writes += [("patch", reads[0]), ("delete", reads[0]), ("post", reads[-1])]
    expected = {"viewer": (200, 403), "annotator": (403, 403), "stranger": (404, 404)}
    for name, (read, write) in expected.items():
        client.force_login(getattr(cast, name))
        assert {client.get(f"/api/v1/{path}").status_code for path in reads} == {read}, name
        assert {call(client, method, path).status_code for method, path in writes} == {write}, name
    client.logout()
    assert {client.get(f"/api/v1/{path}").status_code for path in reads} <= {401, 403}
    assert Campaign.objects.get().state == "open"


def test_progress_and_flags(cast, client, django_assert_max_num_queries):
    campaign = open_for(cast, overlap=2)
    for user, value in ((cast.annotator, 4), (cast.owner, 5)):
        turn = get_next_assignment(user=user, campaign_id=campaign.pk)
        flag_assignment(user=user, public=turn.shown.public, reason="broken", text="cut off")
        send(user, campaign, turn.shown.public, value, seconds=10)
    client.force_login(cast.researcher)
    with django_assert_max_num_queries(16):
        found = client.get(f"/api/v1/campaigns/{campaign.pk}/progress/").json()
    assert (found["units"], found["slots"], found["done"], found["open_flags"]) == (8, 16, 2, 2)
    assert sum(found["units_by_answers"].values()) == 8
    assert {row["rater"]: row["done"] for row in found["annotators"]} == {"p-anna": 1, "p-olga": 1}
    flags = client.get(f"/api/v1/campaigns/{campaign.pk}/flags/").json()["results"]
    assert [flag["reason"] for flag in flags] == ["broken", "broken"]
    resolved = call(client, "post", f"flags/{flags[0]['id']}/resolve/")
    assert resolved.json()["resolved_at"] is not None
    assert ItemFlag.objects.filter(resolved_at=None).count() == 1
    client.force_login(cast.annotator)
    assert call(client, "post", f"flags/{flags[1]['id']}/resolve/").status_code == 403
