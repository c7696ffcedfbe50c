"""Talk to a provider of OpenID Connect: authorisation code flow with PKCE, state and nonce, by Authlib. Which account
an identity opens is decided in `services.identities`.

https://openid.net/specs/openid-connect-core-1_0.html"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client.errors import MismatchingStateError
from authlib.integrations.django_client import OAuth
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from joserfc.errors import BadSignatureError, JoseError
from requests import RequestException

from evalapp.common.errors import BadInput, EvalappError, NotThere, Unavailable
from evalapp.settings.oidc_providers import OidcProvider

log = logging.getLogger(__name__)

TIMEOUT = 10  # seconds per request to a provider
#: Metadata and keys of a provider are read again after this time.
MAX_AGE = 3600
#: Signatures by keys that only the provider has; the others would accept tokens that its clients can make.
ALGORITHMS = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
]  # fmt: skip
clients: dict[OidcProvider, tuple[float, Any]] = {}


@dataclass(frozen=True)
class ClaimedIdentity:
    """A person as a verified ID token describes them. `email` is empty unless the provider has verified it. `roles` is
    None if the provider has no `roles_claim`."""

    provider: OidcProvider
    subject: str
    email: str = ""
    name: str = ""
    username: str = ""
    roles: frozenset[str] | None = None
    sign_out: str = field(default="", repr=False)


def get_provider(name: str) -> OidcProvider:
    if name not in settings.OIDC_PROVIDERS:
        raise NotThere(_("There is no way to sign in with “%(name)s”.") % {"name": name})
    provider: OidcProvider = settings.OIDC_PROVIDERS[name]
    return provider


def start_sign_in(request: HttpRequest, provider: OidcProvider) -> HttpResponse:
    """Return the redirect to the provider. State, nonce and PKCE verifier are in the session."""
    address = request.build_absolute_uri(reverse("accounts:oidc-callback", args=[provider.name]))
    with _explain_errors(provider):
        return _get_client(provider).authorize_redirect(request, address)


def finish_sign_in(request: HttpRequest, provider: OidcProvider) -> ClaimedIdentity:
    """Return the identity for the response of the provider that this request brings.

    Raises `BadInput` for a response that does not belong to this browser or is not valid, and `Unavailable` if the
    provider does not respond."""
    with _explain_errors(provider):
        client = _get_client(provider)
        options = {
            "iss": {"essential": True, "value": provider.issuer},
            "aud": {"essential": True, "value": provider.client_id},
        }
        try:
            token = client.authorize_access_token(request, claims_options=options)
        except BadSignatureError:
            # The provider may have changed its keys. The next attempt reads them again.
            clients.pop(provider, None)
            raise
        if not token.get("userinfo"):
            raise ValueError("there is no ID token")
        claims = dict(token["userinfo"])
        if "userinfo_endpoint" in client.server_metadata and not _list_needed_claims(provider) <= set(claims):
            info = dict(client.userinfo(token=token))
            if info.get("sub") != claims["sub"]:
                raise ValueError("the user info is about another subject")
            claims = {**info, **claims}
        home = request.build_absolute_uri(reverse("home"))
        return _read_claims(provider, claims, _make_sign_out(client, token["id_token"], home))


def _get_client(provider: OidcProvider) -> Any:
    """Return Authlib's client with the metadata of the provider."""
    made, client = clients.get(provider, (0.0, None))
    if client is not None and time.monotonic() - made < MAX_AGE:
        return client
    client = OAuth().register(
        name=provider.name,
        client_id=provider.client_id,
        client_secret=provider.secret or None,
        server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
        # leeway: by default, Authlib takes a token of one minute for expired.
        client_kwargs={
            "scope": provider.scope,
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT,
            "leeway": 0,
        },
    )
    metadata = client.load_server_metadata()
    if metadata.get("issuer") != provider.issuer:
        raise ValueError(f"its metadata name the issuer {str(metadata.get('issuer'))[:200]!r}")
    offered = metadata.get("id_token_signing_alg_values_supported", ["RS256"])
    metadata["id_token_signing_alg_values_supported"] = [name for name in offered if name in ALGORITHMS]
    methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    if provider.secret and "client_secret_basic" not in methods and "client_secret_post" in methods:
        client.client_kwargs["token_endpoint_auth_method"] = "client_secret_post"
    clients[provider] = (time.monotonic(), client)
    return client


def _list_needed_claims(provider: OidcProvider) -> set[str]:
    return {"email", *([provider.roles_claim.partition(".")[0]] if provider.roles_claim else [])}


def _read_claims(provider: OidcProvider, claims: dict[str, Any], sign_out: str) -> ClaimedIdentity:
    def read_text(name: str, most: int) -> str:
        value = claims.get(name)
        return value.strip()[:most] if isinstance(value, str) and value.isprintable() else ""

    subject = claims["sub"]
    if not isinstance(subject, str) or not 1 <= len(subject) <= 255:
        raise ValueError("the subject is not a text of at most 255 characters")
    is_verified = claims.get("email_verified") in (True, "true")
    return ClaimedIdentity(
        provider=provider,
        subject=subject,
        email=read_text("email", 254) if is_verified else "",
        name=read_text("name", 150),
        username=read_text("preferred_username", 150),
        roles=_read_roles(claims, provider.roles_claim) if provider.roles_claim else None,
        sign_out=sign_out,
    )


def _read_roles(claims: dict[str, Any], path: str) -> frozenset[str]:
    """Return the values of the claim of roles; none if it is missing, such as for people without a group. A claim that
    has the whole name goes before a path: some providers use web addresses as names."""
    value: Any = claims.get(path)
    if value is None:
        value = claims
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    values = value if isinstance(value, list) else [value]
    return frozenset(one for one in values if isinstance(one, str))


def _make_sign_out(client: Any, id_token: str, home: str) -> str:
    """Return the address that ends the session at the provider; empty if it has none."""
    if "end_session_endpoint" not in client.server_metadata:
        return ""
    asked = client.create_logout_url(post_logout_redirect_uri=home, id_token_hint=id_token, client_id=client.client_id)
    address = str(asked["url"])
    return address if address.startswith(("https://", "http://")) else ""


@contextmanager
def _explain_errors(provider: OidcProvider) -> Iterator[None]:
    """Replace errors of the provider by messages for people; the log has what an operator needs."""
    values = {"provider": provider.label}
    try:
        yield
    except EvalappError:
        raise
    except MismatchingStateError as error:
        text = _(
            "This response of %(provider)s does not belong to a sign-in of this browser, or is too old. Try again."
        )
        raise BadInput(text % values) from error
    except RequestException as error:
        log.error("provider %s cannot be reached: %s", provider.name, type(error).__name__)
        text = _("%(provider)s does not respond as it should. Try again later, or tell the administrator of this site.")
        raise Unavailable(text % values) from error
    except (AuthlibBaseError, JoseError, ValueError, KeyError, TypeError, RuntimeError) as error:
        log.error("sign-in with provider %s failed: %s: %r", provider.name, type(error).__name__, str(error)[:300])
        text = _(
            "%(provider)s has refused the sign-in, or its response is not valid. Try again or tell an administrator."
        )
        raise BadInput(text % values) from error
