"""The API of runs."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from tests.evalapp.common import run_jobs


@pytest.fixture
def api(cast):
    client = APIClient()
    client.force_authenticate(cast.researcher)
    return client


@pytest.fixture(autouse=True)
def _askable(monkeypatch):
    run_jobs.put_asked_job(monkeypatch)


def test_start_show_cancel_and_retry(api):
    made = api.post("/api/v1/projects/alpha/runs/", {"kind": "test-asked", "steps": 2}, format="json")
    assert made.status_code == 202
    url = made.headers["Location"]
    again = api.post("/api/v1/projects/alpha/runs/", {"kind": "test-asked", "steps": 2}, format="json")
    assert again.json()["id"] == made.json()["id"]
    run = api.get(url).json()
    assert (run["state"], run["queue_place"], run["project"], run["log"]) == ("queued", 1, "alpha", [])
    assert run["progress"] == {"done": 0, "total": None, "unit": "", "rate": None, "seconds_left": None}
    assert api.post(f"{url}cancel/").json()["state"] == "cancelled"
    answer = api.post(f"{url}cancel/")
    assert (answer.status_code, answer.json()["type"].split("#")[1]) == (409, "conflict")
    assert api.post(f"{url}retry/").json()["state"] == "queued"
    assert len(api.get("/api/v1/projects/alpha/runs/").json()["results"]) == 1


@pytest.mark.parametrize("body", [{}, {"kind": "bake"}, {"kind": ["x"]}, {"kind": "test-count"}, [1]])
def test_internal_kind_is_refused(api, body):
    answer = api.post("/api/v1/projects/alpha/runs/", body, format="json")
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
