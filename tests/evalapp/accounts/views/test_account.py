"""A user's own account."""

from __future__ import annotations

import re

import pytest

from evalapp.accounts.models import ApiToken
from evalapp.accounts.services import create_token
from evalapp.common.models import AuditEvent
from tests.cast import PASSWORD
from tests.pages import read_flashes


def test_name(client, cast):
    client.force_login(cast.viewer)
    client.post("/account/", {"first_name": "Victor", "email": "v@example.org"})
    page = client.get("/").content.decode()
    assert "Victor" in page


def test_errors_keep_the_input(client, cast):
    client.force_login(cast.viewer)
    answer = client.post("/account/", {"first_name": "V", "email": "no address"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="no address"' in page
    assert 'aria-invalid="true"' in page


def test_password_change_needs_the_old_one(client, cast):
    client.force_login(cast.viewer)
    new = {"new_password1": "nine-lives-left", "new_password2": "nine-lives-left"}
    assert client.post("/account/password/", {"old_password": "wrong", **new}).status_code == 422
    assert client.post("/account/password/", {"old_password": PASSWORD, **new}).status_code == 302
    assert client.get("/account/").status_code == 200, "this browser stays signed in"
    cast.viewer.refresh_from_db()
    assert cast.viewer.check_password("nine-lives-left")


@pytest.mark.parametrize("keep", [False, True])
def test_new_password_revokes_tokens_unless_deselected(client, cast, keep):
    """Revokes the person's valid tokens; the page asks only if there are any, and reports what it did."""
    client.force_login(cast.viewer)
    assert "keep_tokens" not in client.get("/account/password/").content.decode()
    mine = [create_token(user=cast.viewer, name=name, scopes=["read"])[0] for name in "ab"]
    others, _ = create_token(user=cast.owner, name="c", scopes=["read"])
    assert 'name="keep_tokens"' in client.get("/account/password/").content.decode()
    form = {"old_password": PASSWORD, "new_password1": "nine-lives-left", "new_password2": "nine-lives-left"}
    page = client.post("/account/password/", {**form, **({"keep_tokens": "on"} if keep else {})}, follow=True)
    assert any("2" in words for _, words in read_flashes(page)) is not keep
    working = set(ApiToken.objects.filter(revoked_at=None).values_list("pk", flat=True))
    assert working == {others.pk, *([token.pk for token in mine] if keep else [])}
    revoked = AuditEvent.objects.filter(verb="token.revoked").values_list("object", flat=True)
    assert sorted(revoked) == ([] if keep else sorted(token.prefix for token in mine))


def test_token_is_shown_once(client, cast):
    client.force_login(cast.researcher)
    answer = client.post("/account/tokens/", {"name": "script", "scopes": ["read"], "days": 30})
    secret = re.search(r"ea_[\w-]{30,}", answer.content.decode()).group()
    assert answer.headers["Cache-Control"] == "no-store"
    assert secret not in client.get("/account/tokens/").content.decode()
    token = ApiToken.objects.get()
    client.post(f"/account/tokens/{token.pk}/revoke/")
    assert "Revoked" in client.get("/account/tokens/").content.decode()


def test_token_of_a_foreign_project_or_another_person(client, cast):
    client.force_login(cast.stranger)
    wishes = {"name": "x", "scopes": ["read"], "days": 30, "project": cast.project.pk}
    assert client.post("/account/tokens/", wishes).status_code == 422
    client.post("/account/tokens/", {**wishes, "project": cast.foreign.pk})
    client.force_login(cast.owner)
    assert client.post(f"/account/tokens/{ApiToken.objects.get().pk}/revoke/").status_code == 404
