"""OIDC_PROVIDERS: what is read, and what is refused at the start with a message that says how to correct it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from evalapp.settings.oidc_providers import OidcProvider, read_password_sign_in, read_providers

ROW = {"label": "Uni", "issuer": "https://login.example.org", "client_id": "evalapp"}


def read(monkeypatch: pytest.MonkeyPatch, **rows: Any) -> dict[str, OidcProvider]:
    monkeypatch.setenv("OIDC_PROVIDERS", json.dumps(rows))
    return read_providers()


def test_defaults_open_no_existing_account(monkeypatch):
    provider = read(monkeypatch, uni=ROW)["uni"]
    assert provider == OidcProvider("uni", "Uni", "https://login.example.org", "evalapp")
    assert (provider.match_email, provider.create_accounts, provider.roles_claim) == (False, "invited", "")


def test_providers_may_be_in_a_file_and_secrets_in_another(monkeypatch, tmp_path):
    monkeypatch.setenv("UNI_SECRET", "first")
    (tmp_path / "secret").write_text("second\n")
    rows = {
        "a": {**ROW, "secret_env": "UNI_SECRET", "match_email": True},
        "b": {**ROW, "issuer": "https://b.example.org/", "secret_file": str(tmp_path / "secret"),
              "roles_claim": "groups", "administrators": ["admins"]},
    }  # fmt: skip
    (tmp_path / "providers.json").write_text(json.dumps(rows))
    monkeypatch.setenv("OIDC_PROVIDERS", str(tmp_path / "providers.json"))
    a, b = read_providers().values()
    assert (a.secret, a.match_email, b.secret) == ("first", True, "second")
    # The slash belongs to the issuer as its tokens name it.
    assert (b.issuer, b.administrators) == ("https://b.example.org/", {"admins"})
    assert "second" not in repr(b)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"issuer": ""}, "has no issuer"),
        ({"issuer": "http://login.example.org"}, "must begin with https://"),
        ({"issuer": "login.example.org"}, "must be an address"),
        ({"issuer": "https://login.example.org:port"}, "is not a valid address"),
        ({"client_secret": "x"}, "put the secret into a variable or file"),
        ({"secret_env": "NOT_SET"}, "the variable NOT_SET is empty"),
        ({"secret_file": "/not/there"}, "cannot be read: No such file"),
        ({"secret_env": "A", "secret_file": "b"}, "not both"),
        ({"match_email": "no"}, "match_email must be true or false"),
        ({"label": 7}, "label must be a text"),
        ({"create_accounts": "sometimes"}, "must be one of invited, always, never"),
        ({"administrators": ["admins"]}, "administrators requires roles_claim"),
        ({"researchers": [7], "roles_claim": "groups"}, "researchers must be a list of texts"),
        ({"scope": "email"}, "scope must contain openid"),
        ({"colour": "red"}, "'colour' is unknown"),
    ],
)
def test_wrong_members_are_refused(monkeypatch, change, words):
    with pytest.raises(ImproperlyConfigured, match=words):
        read(monkeypatch, uni={**ROW, **change})


def test_names_and_issuers_are_checked(monkeypatch):
    with pytest.raises(ImproperlyConfigured, match="at most 40 characters"):
        read(monkeypatch, **{"Uni Köln": ROW})
    with pytest.raises(ImproperlyConfigured, match="must be an object"):
        read(monkeypatch, uni="https://login.example.org")
    with pytest.raises(ImproperlyConfigured, match="two providers with the same issuer"):
        read(monkeypatch, a=ROW, b=ROW)


@pytest.mark.parametrize("value", ["{", "[]x", "/not/there"])
def test_a_setting_that_cannot_be_read_is_refused(monkeypatch, value):
    monkeypatch.setenv("OIDC_PROVIDERS", value)
    with pytest.raises(ImproperlyConfigured, match="OIDC_PROVIDERS"):
        read_providers()


def test_passwords_can_be_switched_off_only_with_a_provider(monkeypatch):
    monkeypatch.setenv("PASSWORD_SIGN_IN", "0")
    with pytest.raises(ImproperlyConfigured, match="requires OIDC_PROVIDERS"):
        read_password_sign_in({})
    assert read_password_sign_in(read(monkeypatch, uni=ROW)) is False
