"""What no database of ours takes is refused in words, by pages and by the API."""

from __future__ import annotations

import base64

import pytest

from tests.cast import make_cast


@pytest.mark.server("postgres")
def test_the_character_nul_is_a_fault_of_the_request(postgres_db, client):
    cast = make_cast()
    client.force_login(cast.researcher)
    assert client.get("/projects/alpha/references/x%00/").status_code == 400
    assert client.get("/api/v1/projects/alpha/scores/?system=%00").status_code == 400
    wishes = {"kind": "score", "evaluator": "\0"}
    refused = client.post("/api/v1/projects/alpha/runs/", wishes, content_type="application/json")
    assert (refused.status_code, refused.json()["type"]) == (400, "/docs/errors#bad-input")
    assert "NUL" in refused.json()["detail"]


@pytest.mark.django_db
def test_half_a_character_in_a_cursor_is_a_fault_of_the_request(client):
    client.force_login(make_cast().researcher)
    cursor = base64.urlsafe_b64encode(b'[0,"\\ud800"]').decode()
    refused = client.get("/api/v1/projects/", {"cursor": cursor})
    assert (refused.status_code, refused.json()["type"]) == (400, "/docs/errors#bad-input")
