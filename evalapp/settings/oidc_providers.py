"""Read and validate OIDC_PROVIDERS: servers of OpenID Connect with whose accounts people sign in."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from . import env

LOCAL = {"127.0.0.1", "localhost", "::1"}
#: When the first sign-in creates an account.
CREATE = ("invited", "always", "never")


@dataclass(frozen=True)
class OidcProvider:
    """A provider of OpenID Connect.

    issuer: its address, exactly as in its tokens.
    match_email: whether the first sign-in opens the account with the same, verified e-mail address.
    create_accounts: when the first sign-in creates an account: `invited` (with an open invitation), `always`, `never`.
    roles_claim: the claim with groups or roles; a dot leads into an object, such as `realm_access.roles`.
    administrators, researchers: values of it that make a user administrator of the site, or allow to create projects.
        While a list is empty, the provider decides nothing about it."""

    name: str
    label: str
    issuer: str
    client_id: str
    secret: str = field(default="", repr=False)
    scope: str = "openid email profile"
    match_email: bool = False
    create_accounts: str = "invited"
    roles_claim: str = ""
    administrators: frozenset[str] = frozenset()
    researchers: frozenset[str] = frozenset()


#: Members of a provider in OIDC_PROVIDERS with their types; the first three must be given.
_MEMBERS: dict[str, type] = {
    "label": str, "issuer": str, "client_id": str, "secret_env": str, "secret_file": str, "scope": str,
    "match_email": bool, "create_accounts": str, "roles_claim": str, "administrators": list, "researchers": list,
}  # fmt: skip


def read_providers() -> dict[str, OidcProvider]:
    """Return the providers of OIDC_PROVIDERS by name."""
    content = env.json_object("OIDC_PROVIDERS", '{"name": {"label": ..., "issuer": ..., "client_id": ...}}')
    providers = {name: _read_provider(name, row) for name, row in content.items()}
    issuers = [provider.issuer for provider in providers.values()]
    if len(set(issuers)) < len(issuers):
        raise ImproperlyConfigured("OIDC_PROVIDERS has two providers with the same issuer.")
    return providers


def read_password_sign_in(providers: dict[str, OidcProvider]) -> bool:
    """Return PASSWORD_SIGN_IN. Without passwords and providers, people could not sign in."""
    allowed = env.flag("PASSWORD_SIGN_IN", "1")
    if not allowed and not providers:
        raise ImproperlyConfigured("PASSWORD_SIGN_IN=0 requires OIDC_PROVIDERS; otherwise people cannot sign in.")
    return allowed


def _read_provider(name: str, row: Any) -> OidcProvider:
    place = f"OIDC_PROVIDERS, provider {name!r}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name):
        raise ImproperlyConfigured(f"{place}: a name has a-z, 0-9 and hyphens, at most 40 characters.")
    if not isinstance(row, dict):
        raise ImproperlyConfigured(f"{place} must be an object with label, issuer and client_id.")
    if missing := [key for key in list(_MEMBERS)[:3] if not row.get(key)]:
        raise ImproperlyConfigured(f"{place} has no {' and no '.join(missing)}.")
    if "secret" in row or "client_secret" in row:
        text = f"{place}: put the secret into a variable or file, and name it by secret_env or secret_file."
        raise ImproperlyConfigured(text)
    if unknown := sorted(set(row) - set(_MEMBERS)):
        raise ImproperlyConfigured(f"{place}: {unknown[0]!r} is unknown. Known: {', '.join(_MEMBERS)}.")
    for key, value in row.items():
        if not isinstance(value, _MEMBERS[key]):
            kind = {str: "a text", bool: "true or false", list: "a list"}[_MEMBERS[key]]
            raise ImproperlyConfigured(f"{place}: {key} must be {kind}.")
    row = dict(row)
    row["secret"] = _read_secret(place, row.pop("secret_env", ""), row.pop("secret_file", ""))
    for key in ("administrators", "researchers"):
        if not all(isinstance(value, str) and value for value in row.get(key, [])):
            raise ImproperlyConfigured(f"{place}: {key} must be a list of texts.")
        if row.get(key) and not row.get("roles_claim"):
            raise ImproperlyConfigured(f"{place}: {key} requires roles_claim.")
        row[key] = frozenset(row.get(key, []))
    if row.get("create_accounts", CREATE[0]) not in CREATE:
        raise ImproperlyConfigured(f"{place}: create_accounts must be one of {', '.join(CREATE)}.")
    if "openid" not in row.get("scope", "openid").split():
        raise ImproperlyConfigured(f"{place}: scope must contain openid.")
    _check_issuer(place, row["issuer"])
    return OidcProvider(name=name, **row)


def _read_secret(place: str, variable: str, path: str) -> str:
    """Return the client secret from a variable or file; empty for a public client, which has PKCE only."""
    if variable and path:
        raise ImproperlyConfigured(f"{place}: give secret_env or secret_file, not both.")
    if variable and not (secret := os.environ.get(variable, "").strip()):
        raise ImproperlyConfigured(f"{place}: the variable {variable} is empty.")
    if path:
        try:
            secret = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ImproperlyConfigured(f"{place}: {path} cannot be read: {why}.") from error
        if not secret:
            raise ImproperlyConfigured(f"{place}: {path} is empty.")
    return secret if variable or path else ""


def _check_issuer(place: str, issuer: str) -> None:
    try:
        parts = urlsplit(issuer)
        parts.port  # noqa: B018 - reading it validates it
    except ValueError:
        raise ImproperlyConfigured(f"{place}: issuer is not a valid address.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ImproperlyConfigured(f"{place}: issuer must be an address such as https://login.example.org.")
    if parts.scheme == "http" and parts.hostname not in LOCAL:
        raise ImproperlyConfigured(f"{place}: issuer must begin with https://.")
