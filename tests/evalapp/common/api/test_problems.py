"""Refusals of the framework have the same form as others: a title of their kind, and a way out."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

pytestmark = pytest.mark.django_db


def test_unsupported_method_has_a_generic_title(cast):
    client = APIClient()
    client.force_authenticate(cast.viewer)
    told = client.delete("/api/v1/evaluators/chrf/score/").json()
    assert (told["status"], told["title"]) == (405, "Method Not Allowed.")
    assert "DELETE" in told["detail"]


def test_unsupported_media_type_has_a_generic_title(cast):
    client = APIClient()
    client.force_authenticate(cast.researcher)
    told = client.post("/api/v1/projects/alpha/runs/", "<run/>", content_type="application/xml").json()
    assert (told["status"], told["title"]) == (415, "Unsupported Media Type.")
    assert "application/xml" in told["detail"]


def test_missing_token_says_how_to_get_one():
    told = APIClient().get("/api/v1/projects/").json()
    assert told["status"] == 401
    assert told["detail"] != told["title"]
    assert "under Account, Tokens" in told["detail"]
