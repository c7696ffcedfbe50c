"""Setting a password with the administrator's command revokes tokens, like changing it on the page."""

from __future__ import annotations

import io
import json

import pytest
from django.contrib.auth.management.commands import changepassword
from django.core.management import CommandError, call_command
from django.test import Client

from evalapp.accounts.services import create_token
from evalapp.common.models import AuditEvent

pytestmark = pytest.mark.django_db
NEW = "another-horse-battery"


@pytest.mark.parametrize("keeps", [False, True])
def test_tokens_end_with_the_old_password(cast, monkeypatch, keeps):
    monkeypatch.setattr(changepassword.getpass, "getpass", lambda prompt: NEW)
    _, secret = create_token(user=cast.annotator, name="script", scopes=["read"])
    headers = {"Authorization": f"Bearer {secret}"}
    browser = Client()
    browser.force_login(cast.annotator)
    assert Client().get("/api/v1/projects/", headers=headers).status_code == 200
    out = io.StringIO()
    call_command("changepassword", "anna", stdout=out, **({"keep_tokens": True} if keeps else {}))
    assert "Password changed successfully for user 'anna'." in out.getvalue()
    assert ("API tokens revoked: 1." in out.getvalue()) is not keeps
    assert Client().get("/api/v1/projects/", headers=headers).status_code == (200 if keeps else 401)
    assert browser.get("/account/").status_code == 302  # signed out
    cast.annotator.refresh_from_db()
    assert cast.annotator.check_password(NEW)
    assert AuditEvent.objects.filter(verb="account.password-changed", object="anna", actor=None).count() == 1
    assert AuditEvent.objects.filter(verb="token.revoked").count() == (0 if keeps else 1)


def test_json(cast, monkeypatch):
    monkeypatch.setattr(changepassword.getpass, "getpass", lambda prompt: NEW)
    create_token(user=cast.annotator, name="script", scopes=["read"])
    out = io.StringIO()
    call_command("changepassword", "anna", "--json", stdout=out, stderr=io.StringIO())
    assert json.loads(out.getvalue()) == {"username": "anna", "tokens_revoked": 1}


def test_refused_password_revokes_nothing(cast, monkeypatch):
    monkeypatch.setattr(changepassword.getpass, "getpass", lambda prompt: "123")
    _, secret = create_token(user=cast.annotator, name="script", scopes=["read"])
    with pytest.raises(CommandError, match="Aborting"):
        call_command("changepassword", "anna", stdout=io.StringIO(), stderr=io.StringIO())
    with pytest.raises(CommandError, match="does not exist"):
        call_command("changepassword", "nobody", stdout=io.StringIO(), stderr=io.StringIO())
    assert Client().get("/api/v1/projects/", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
