"""API tokens: scopes, project, expiry, revocation, too many failures."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from evalapp.accounts.limits import TOKEN_FAILURES
from evalapp.accounts.models import ApiToken
from evalapp.accounts.services import create_token, revoke_token


def client(secret: str) -> APIClient:
    made = APIClient()
    made.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return made


def token(user, *scopes, **more):
    return create_token(user=user, name="t", scopes=scopes, **more)


def test_token_reads_and_records_its_use(cast):
    made, secret = token(cast.researcher, "read")
    assert client(secret).get("/api/v1/projects/alpha/").status_code == 200
    made.refresh_from_db()
    assert made.last_used_at is not None
    assert secret not in str(list(ApiToken.objects.values()))


def test_scopes_restrict_access(cast):
    _, secret = token(cast.owner, "read")
    answer = client(secret).patch("/api/v1/projects/alpha/", {"name": "X"}, format="json")
    assert answer.status_code == 403
    assert "“manage”" in answer.json()["detail"]
    _, secret = token(cast.owner, "annotate")
    assert client(secret).get("/api/v1/projects/alpha/runs/").status_code == 403


def test_token_has_no_more_rights_than_its_user(cast):
    _, secret = token(cast.viewer, "manage", "write", "read")
    assert client(secret).patch("/api/v1/projects/alpha/", {"name": "X"}, format="json").status_code == 403


def test_project_token_sees_one_project_even_for_a_superuser(cast):
    cast.owner.is_superuser = True
    cast.owner.save()
    _, secret = token(cast.owner, "read", project=cast.project)
    found = client(secret).get("/api/v1/projects/").json()["results"]
    assert [row["slug"] for row in found] == ["alpha"]
    assert client(secret).get("/api/v1/projects/alpha-foreign/").status_code == 404


def test_token_cannot_create_a_wider_one(cast):
    body = {"name": "wider", "scopes": ["manage"]}
    for scopes, more in ((("read", "write"), {}), (("manage",), {"project": cast.project})):
        _, secret = token(cast.owner, *scopes, **more)
        assert client(secret).post("/api/v1/tokens/", body, format="json").status_code == 403
    _, secret = token(cast.owner, "manage")
    answer = client(secret).post("/api/v1/tokens/", body, format="json")
    assert answer.status_code == 201
    assert answer.json()["token"].startswith("ea_")
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("end", ["revoked", "expired", "inactive", "invented"])
def test_dead_token_is_refused(cast, end):
    made, secret = token(cast.researcher, "read")
    if end == "revoked":
        revoke_token(token=made, actor=cast.researcher)
    elif end == "expired":
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif end == "inactive":
        cast.researcher.is_active = False
        cast.researcher.save()
    else:
        secret = "ea_invented"
    answer = client(secret).get("/api/v1/projects/")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_too_many_wrong_tokens_block_the_address(cast, one_window):
    for _ in range(TOKEN_FAILURES.most):
        assert client("ea_wrong").get("/api/v1/projects/").status_code == 401
    answer = client("ea_wrong").get("/api/v1/projects/")
    assert answer.status_code == 429
    assert "Try again in" in answer.json()["detail"]
    assert 0 < int(answer.headers["Retry-After"]) <= TOKEN_FAILURES.seconds


@pytest.mark.promise("attempts")
def test_failures_of_others_at_an_address_block_no_valid_token(cast, one_window):
    """A class, an institute, a proxy: many people share an address. Invalid tokens get the same response before and
    after."""
    dead, revoked = token(cast.viewer, "read")
    revoke_token(token=dead, actor=cast.viewer)
    _, works = token(cast.researcher, "read")
    wrong = ("ea_wrong", revoked)
    assert [client(secret).get("/api/v1/projects/").status_code for secret in wrong] == [401, 401]
    for _ in range(TOKEN_FAILURES.most - 2):
        client("ea_wrong").get("/api/v1/projects/")
    answers = [client(secret).get("/api/v1/projects/") for secret in wrong]
    assert [answer.status_code for answer in answers] == [429, 429]
    assert answers[0].json() == answers[1].json()
    assert client(works).get("/api/v1/projects/").status_code == 200
    assert client("ea_wrong").get("/api/v1/projects/").status_code == 429
