"""The API of agreement, filters and the planner."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from evalapp.versions import signed
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.django_db
BASE = "/api/v1/projects/alpha/"


@pytest.fixture
def api(cast):
    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project, 6)))
    client = APIClient()
    client.force_authenticate(cast.researcher)
    return client


def test_every_aspect_and_one_in_detail(api):
    whole = api.get(BASE + "agreement/").json()
    assert [row["aspect"] for row in whole["rows"]] == ["quality"]
    one = api.get(BASE + "agreement/?aspect=quality").json()
    assert [row["name"] for row in one["rows"]][:2] == ["alpha", "percent"]
    assert [row["rater"] for row in one["raters"]] == ["r0", "r1"]
    assert {row["system"] for row in one["calibration"]["systems"]} == {"sys-a", "sys-b"}
    assert api.get(BASE + "agreement/?aspect=nonsense").status_code == 404
    assert api.get(BASE + "agreement/?aspekt=quality").json()["errors"][0]["field"] == "aspekt"
    assert api.get(BASE + "power/?efect=0.7").json()["errors"][0]["field"] == "efect"


def test_filter_from_creation_to_withdrawal(api):
    refused = api.post(BASE + "rater-filters/", {"name": "x", "raters": ["nobody"], "reason": "why"}, format="json")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "raters")
    made = api.post(BASE + "rater-filters/", {"name": "x", "raters": ["r1"], "reason": "why"}, format="json")
    assert (made.status_code, made.json()["active"]) == (201, True)
    found = api.get(BASE + "agreement/?aspect=quality&filter=x").json()
    assert (found["n_filtered"], found["filter"]["reason"]) == (12, "why")
    assert found["signature"].endswith(signed(f"|filter:x@{made.json()['digest']}"))
    assert api.patch(BASE + "rater-filters/x/", {"active": False}, format="json").json()["active"] is False
    assert api.get(BASE + "agreement/?filter=x").status_code == 409
    assert [row["name"] for row in api.get(BASE + "rater-filters/").json()["results"]] == ["x"]


def test_power(api):
    found = api.get(BASE + "power/?test=correlation&effect=.3").json()
    assert (found["needed"], found["pilot"]["n"]) == (85, 12)
    assert api.get(BASE + "power/?test=correlation&effect=2").status_code == 400
