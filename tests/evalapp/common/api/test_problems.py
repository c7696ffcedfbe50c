"""What the framework refuses is told as everything else: a title of its kind, and what to do."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

pytestmark = pytest.mark.django_db


def test_a_method_that_is_not_there_has_a_title_without_patterns(cast):
    client = APIClient()
    client.force_authenticate(cast.viewer)
    told = client.delete("/api/v1/evaluators/chrf/score/").json()
    assert (told["status"], told["title"]) == (405, "Method Not Allowed.")
    assert told["detail"] == 'Method "DELETE" not allowed.'


def test_a_media_type_that_is_not_read_has_a_title_without_patterns(cast):
    client = APIClient()
    client.force_authenticate(cast.researcher)
    told = client.post("/api/v1/projects/alpha/runs/", "<run/>", content_type="application/xml").json()
    assert (told["status"], told["title"]) == (415, "Unsupported Media Type.")
    assert "application/xml" in told["detail"]


def test_without_a_token_the_way_to_one_is_told():
    told = APIClient().get("/api/v1/projects/").json()
    assert told["status"] == 401
    assert told["detail"] != told["title"]
    assert "make one under Account, Tokens" in told["detail"]
