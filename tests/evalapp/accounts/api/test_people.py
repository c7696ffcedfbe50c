"""The API of projects, members and invitations."""

from __future__ import annotations

import re

import pytest
from rest_framework.test import APIClient

from evalapp.accounts.api import people
from evalapp.accounts.models import Membership


@pytest.fixture
def api(cast):
    client = APIClient()
    client.force_authenticate(cast.owner)
    return client


def test_projects(api, cast):
    made = api.post("/api/v1/projects/", {"slug": "beta", "name": "Beta"}, format="json")
    assert made.status_code == 201
    assert made.headers["Location"] == "http://testserver/api/v1/projects/beta/"
    assert made.json()["role"] == "owner"
    assert [row["slug"] for row in api.get("/api/v1/projects/").json()["results"]] == ["alpha", "beta"]
    changed = api.patch("/api/v1/projects/beta/", {"notes": "n", "slug": "gamma"}, format="json")
    assert (changed.json()["notes"], changed.json()["slug"]) == ("n", "beta")
    assert api.delete("/api/v1/projects/beta/").status_code == 400
    assert api.delete("/api/v1/projects/beta/?confirm=beta").status_code == 204


def test_errors_name_their_field(api):
    answer = api.post("/api/v1/projects/", {"slug": "alpha"}, format="json")
    assert answer.status_code == 409
    assert answer.json()["errors"][0]["field"] == "slug"
    assert api.post("/api/v1/projects/", {}, format="json").json()["errors"][0]["field"] == "slug"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("projects/", {"slug": "beta"}),
        ("projects/alpha/invitations/", {"role": "annotator"}),
        ("tokens/", {"name": "n", "scopes": ["read"]}),
    ],
)
def test_misspelt_member_is_named_and_nothing_is_created(api, path, body):
    answer = api.post(f"/api/v1/{path}", {**body, "licnece": "CC0"}, format="json")
    assert answer.status_code == 400, answer.json()
    [fault] = answer.json()["errors"]
    assert fault["field"] == "licnece"
    assert {"licnece", *body} <= set(re.findall(r"\w+", fault["message"]))
    assert api.post(f"/api/v1/{path}", body, format="json").status_code == 201


def test_misspelt_field_of_a_change_is_named(api, cast):
    vic = Membership.objects.get(user=cast.viewer)
    for path, body in (("alpha/", {"notes": "n"}), (f"alpha/members/{vic.pk}/", {"role": "annotator"})):
        answer = api.patch(f"/api/v1/projects/{path}", {**body, "licnece": "CC0"}, format="json")
        assert answer.status_code == 400, path
        assert answer.json()["errors"][0]["field"] == "licnece"
    vic.refresh_from_db()
    assert vic.role == "viewer"


def test_members_are_paged_and_changed(api, cast):
    first = api.get("/api/v1/projects/alpha/members/?limit=3").json()
    second = api.get(first["next"]).json()
    names = [row["username"] for row in first["results"] + second["results"]]
    assert names == ["olga", "rita", "anna", "vic"]
    assert second["next"] is None
    vic = Membership.objects.get(user=cast.viewer)
    url = f"/api/v1/projects/alpha/members/{vic.pk}/"
    assert api.patch(url, {"role": "annotator"}, format="json").json()["role"] == "annotator"
    assert api.delete(url).status_code == 204
    mine = Membership.objects.get(project=cast.project, user=cast.owner)
    assert api.delete(f"/api/v1/projects/alpha/members/{mine.pk}/").status_code == 409


def test_readers_get_no_mail_addresses_or_pseudonyms(api, cast):
    api.force_authenticate(cast.viewer)
    rows = api.get("/api/v1/projects/alpha/members/").json()["results"]
    assert {(row["email"], row["pseudonym"]) for row in rows} == {(None, None)}


def test_invitation_returns_its_link_once(api, client):
    made = api.post("/api/v1/projects/alpha/invitations/", {"role": "viewer", "max_uses": 2}, format="json")
    assert made.status_code == 201
    link = made.json()["link"]
    assert client.get(link).status_code == 200
    listed = api.get("/api/v1/projects/alpha/invitations/").json()["results"]
    assert "link" not in listed[0]
    assert api.delete(f"/api/v1/invitations/{listed[0]['id']}/").status_code == 204
    assert client.get(link).status_code == 404


def test_member_removed_meanwhile_by_another_owner(api, cast, monkeypatch):
    gone = Membership.objects.get(user=cast.viewer)
    monkeypatch.setattr(people, "get_member", lambda project, pk: gone)
    Membership.objects.filter(pk=gone.pk).delete()
    address = f"/api/v1/projects/alpha/members/{gone.pk}/"
    answers = [api.delete(address), api.patch(address, {"role": "annotator"}, format="json")]
    assert [answer.status_code for answer in answers] == [404, 404]
