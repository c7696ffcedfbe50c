"""Sign-in with a provider of OpenID Connect, against a real one over HTTP: which account opens, what is refused, and
with which message."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from django.conf import settings as configuration
from django.db import connection
from django.test import Client
from django.urls import reverse, set_script_prefix

from evalapp.accounts import oidc
from evalapp.accounts.limits import OIDC_BY_ADDRESS
from evalapp.accounts.models import ApiToken, Identity, User
from evalapp.accounts.services import create_invitation, create_token, sign_in_with_identity
from evalapp.common.errors import Conflict
from evalapp.common.models import AuditEvent
from evalapp.settings.oidc_providers import OidcProvider
from tests.cast import PASSWORD
from tests.evalapp.accounts.oidc_server import CLIENT, SECRET, OidcServer, oidc_server
from tests.pages import read_flashes, read_page


@pytest.fixture(scope="module")
def shared_server():
    with oidc_server() as server:
        yield server


@pytest.fixture
def server(shared_server: OidcServer, monkeypatch: pytest.MonkeyPatch) -> OidcServer:
    monkeypatch.setattr(oidc, "clients", {})
    shared_server.claims = {"sub": "42", "email": "rita@example.org", "email_verified": True}
    shared_server.info, shared_server.fault, shared_server.asked = {}, "", []
    return shared_server


@pytest.fixture
def provider(server: OidcServer, settings: Any):
    """A function that sets the provider, with other values than the defaults."""

    def change(**values: Any) -> OidcProvider:
        row = OidcProvider("uni", "Uni Köln", server.issuer, CLIENT, SECRET, **values)
        settings.OIDC_PROVIDERS = {"uni": row}
        return row

    change()
    return change


def begin(client: Client, query: str = "") -> str:
    """Return the address of the provider to which a click on its button leads."""
    response = client.get(f"{reverse('accounts:oidc-start', args=['uni'])}{query}")
    assert response.status_code == 302, read_flashes(response)
    return response["Location"]


def return_from(address: str) -> str:
    """Sign in at the provider; return path and query to which it sends the browser."""
    parts = urlsplit(httpx.get(address).headers["Location"])
    return f"{parts.path}?{parts.query}"


def sign_in(client: Client, query: str = "") -> Any:
    return client.get(return_from(begin(client, query)))


def signed_in(client: Client) -> User | None:
    return User.objects.filter(pk=client.session.get("_auth_user_id")).first()


def read_refusal(client: Client, response: Any) -> str:
    """Return the only message of a refused sign-in, which is shown above the form to sign in."""
    assert signed_in(client) is None
    assert response.status_code in (400, 403, 409, 503)
    assert "Sign in with Uni Köln" in read_page(response)
    ((level, text),) = read_flashes(response)
    assert level == "error"
    return text


def invite(cast: Any) -> str:
    _row, secret = create_invitation(project=cast.project, role="annotator", actor=cast.owner)
    return secret


# ---- which account ------------------------------------------------------------------------------------------------


def test_the_button_leads_to_the_provider_with_pkce_state_and_nonce(client, db, provider, server):
    page = read_page(client.get("/account/sign-in/?next=/my/"))
    assert f'href="{reverse("accounts:oidc-start", args=["uni"])}?next=%2Fmy%2F">' in page
    assert "Sign in with Uni Köln" in page
    asked = dict(parse_qsl(urlsplit(begin(client)).query))
    assert asked["redirect_uri"] == "http://testserver/account/oidc/uni/callback/"
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["code_challenge"]) == 43
    assert len(asked["state"]) >= 20
    assert len(asked["nonce"]) >= 20
    assert asked["scope"] == "openid email profile"
    assert asked != dict(parse_qsl(urlsplit(begin(client)).query))


def test_a_connected_identity_opens_its_account_and_nothing_else(client, cast, provider):
    Identity.objects.create(user=cast.annotator, issuer=provider().issuer, subject="42")
    response = sign_in(client, "?next=/account/tokens/")
    assert (response.status_code, response["Location"]) == (302, "/account/tokens/")
    # Not Rita's account, although the address is hers.
    assert signed_in(client) == cast.annotator
    event = AuditEvent.objects.get(verb="account.signed-in")
    assert (event.actor, event.detail) == (cast.annotator, {"provider": "uni"})
    assert Identity.objects.get().last_used_at is not None


def test_the_address_after_signing_in_is_on_this_site(client, cast, provider):
    Identity.objects.create(user=cast.annotator, issuer=provider().issuer, subject="42")
    assert sign_in(client, "?next=https://evil.example.org/")["Location"] == "/"


def test_the_same_address_does_not_open_an_account(client, cast, provider):
    text = read_refusal(client, sign_in(client))
    assert "rita@example.org" in text
    assert "connect Uni Köln under Account" in text
    assert not Identity.objects.exists()


def test_where_addresses_may_match_the_owner_of_the_address_alone_has_the_account(client, cast, provider, server):
    provider(match_email=True)
    server.claims["email"] = "Rita@Example.org"
    other = Client()
    other.force_login(cast.researcher)
    create_token(user=cast.researcher, name="t", scopes=["read"])
    sign_in(client)
    assert signed_in(client) == cast.researcher
    cast.researcher.refresh_from_db()
    assert not cast.researcher.has_usable_password()
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    assert other.get("/account/").status_code == 302
    again = Client()
    sign_in(again)
    assert signed_in(again) == cast.researcher
    assert Identity.objects.count() == 1
    assert list(AuditEvent.objects.filter(verb="account.connected").values_list("object", flat=True)) == ["rita"]


@pytest.mark.parametrize("verified", [False, None, "no", 1.5])
def test_an_address_that_is_not_verified_is_ignored(client, cast, provider, server, verified):
    provider(match_email=True, create_accounts="always")
    server.claims["email_verified"] = verified
    sign_in(client)
    assert signed_in(client) not in (None, cast.researcher)
    assert signed_in(client).email == ""


def test_an_address_of_two_accounts_opens_none(client, cast, provider):
    provider(match_email=True)
    User.objects.filter(pk=cast.annotator.pk).update(email="RITA@example.org")
    assert "Several accounts have the address rita@example.org" in read_refusal(client, sign_in(client))


def test_accounts_of_participants_are_never_opened(client, cast, provider):
    provider(match_email=True)
    User.objects.filter(pk=cast.researcher.pk).update(is_participant=True)
    assert "No account belongs to this sign-in" in read_refusal(client, sign_in(client))
    Identity.objects.create(user=cast.researcher, issuer=provider().issuer, subject="42")
    assert "deactivated" in read_refusal(client, sign_in(client))


@pytest.mark.parametrize("connected", [True, False])
def test_a_deactivated_account_stays_closed(client, cast, provider, connected):
    provider(match_email=True, create_accounts="always")
    User.objects.filter(pk=cast.researcher.pk).update(is_active=False)
    if connected:
        Identity.objects.create(user=cast.researcher, issuer=provider().issuer, subject="42")
        provider(match_email=True, create_accounts="always")
    assert "deactivated" in read_refusal(client, sign_in(client))
    assert User.objects.count() == 5


def test_without_an_invitation_there_is_no_account(client, cast, provider, server):
    server.claims["email"] = "new@example.org"
    assert "Open the link of your invitation and choose Uni Köln there" in read_refusal(client, sign_in(client))
    assert User.objects.count() == 5


def test_an_invitation_leads_to_an_account_without_password_and_to_the_project(client, cast, provider, server):
    server.claims |= {"email": "new@example.org", "preferred_username": "ｎｏｖａ Née", "name": "Nova Née"}
    link = reverse("accounts:invitation", args=[invite(cast)])
    assert f"?next={link.replace('/', '%2F')}" in read_page(client.get(link))
    assert sign_in(client, f"?{urlencode({'next': link})}")["Location"] == link
    user = signed_in(client)
    assert (user.username, user.first_name, user.email) == ("nova-Née", "Nova Née", "new@example.org")
    assert not user.has_usable_password()
    assert not cast.project.memberships.filter(user=user).exists()  # joining is a click of its own
    client.post(link)
    assert cast.project.memberships.get(user=user).role == "annotator"


def test_a_used_invitation_leads_to_no_account(client, cast, provider, server):
    server.claims["email"] = "new@example.org"
    secret = invite(cast)
    cast.project.invitations.update(uses=1)
    link = reverse("accounts:invitation", args=[secret])
    response = sign_in(client, f"?{urlencode({'next': link})}")
    assert "No account belongs to this sign-in" in read_refusal(client, response)


def test_new_user_names_are_free_and_do_not_look_like_others(client, cast, provider, server):
    provider(create_accounts="always")
    server.claims |= {"email": "new@example.org", "preferred_username": "Rita"}
    sign_in(client)
    assert signed_in(client).username == "Rita-2"


def test_nobody_gets_an_account_where_the_provider_creates_none(client, cast, provider, server):
    provider(create_accounts="never")
    server.claims["email"] = "new@example.org"
    link = reverse("accounts:invitation", args=[invite(cast)])
    sign_in(client, f"?{urlencode({'next': link})}")
    assert signed_in(client) is None


# ---- roles --------------------------------------------------------------------------------------------------------


def test_groups_make_administrators_and_researchers_and_take_it_again(client, cast, provider, server):
    User.objects.filter(pk=cast.owner.pk).update(is_superuser=True)
    provider(roles_claim="realm_access.roles", administrators=frozenset({"admins"}), researchers=frozenset({"staff"}))
    server.claims |= {"email": "new@example.org"}
    server.info = {"realm_access": {"roles": ["admins", "staff"]}}  # from the user info
    sign_in(client)
    user = signed_in(client)
    assert (user.is_superuser, user.is_researcher) == (True, True)
    server.info = {"realm_access": {"roles": ["staff"]}}
    sign_in(client)
    user.refresh_from_db()
    assert (user.is_superuser, user.is_researcher) == (False, True)
    assert client.get("/projects/new/").status_code == 200
    server.info = {}
    sign_in(client)
    user.refresh_from_db()
    assert (user.is_superuser, user.is_researcher) == (False, False)
    assert client.get("/projects/new/").status_code == 403
    changes = AuditEvent.objects.filter(verb="account.role-changed", by=user.pk).order_by("pk")
    assert [event.detail for event in changes] == [
        {"provider": "uni", "is_superuser": True, "is_researcher": True},
        {"provider": "uni", "is_superuser": False},
        {"provider": "uni", "is_researcher": False},
    ]


def test_the_last_administrator_remains_one(client, cast, provider):
    User.objects.filter(pk=cast.researcher.pk).update(is_superuser=True)
    row = provider(roles_claim="groups", administrators=frozenset({"admins"}))
    Identity.objects.create(user=cast.researcher, issuer=row.issuer, subject="42")
    sign_in(client)
    assert signed_in(client).is_superuser


def test_without_lists_of_roles_the_provider_changes_none(client, cast, provider, server):
    User.objects.filter(pk=cast.owner.pk).update(is_superuser=True)
    User.objects.filter(pk=cast.researcher.pk).update(is_superuser=True, is_researcher=True)
    Identity.objects.create(user=cast.researcher, issuer=provider().issuer, subject="42")
    sign_in(client)
    assert (signed_in(client).is_superuser, signed_in(client).is_researcher) == (True, True)


# ---- responses that are refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    ["nonce", "no nonce", "audience", "issuer", "expired", "signature", "unsigned", "no ID token", "subject",
     "refused", "issuer of metadata"],
)  # fmt: skip
def test_a_response_that_is_not_valid_signs_nobody_in(client, cast, provider, server, fault, caplog):
    Identity.objects.create(user=cast.annotator, issuer=provider().issuer, subject="42")
    server.fault = fault
    response = client.get(reverse("accounts:oidc-start", args=["uni"]))
    if fault != "issuer of metadata":
        response = client.get(return_from(response["Location"]))
    text = read_refusal(client, response)
    assert text.startswith("Uni Köln has refused the sign-in, or its response is not valid.")
    (record,) = [record for record in caplog.records if record.name == "evalapp.accounts.oidc"]
    assert record.exc_info is None
    assert "\n" not in record.getMessage()


def test_user_info_of_another_person_is_refused(client, cast, provider, server):
    Identity.objects.create(user=cast.annotator, issuer=provider().issuer, subject="42")
    server.claims = {"sub": "42"}  # without address, which the user info may have
    server.fault = "user info of another"
    assert "is not valid" in read_refusal(client, sign_in(client))


@pytest.mark.parametrize("fault", ["down", "not JSON"])
def test_a_provider_that_is_down_is_named_with_a_way_out(client, cast, provider, server, fault):
    server.fault = fault
    response = client.get(reverse("accounts:oidc-start", args=["uni"]) + "?next=/my/")
    assert response.status_code == 503
    assert 'name="next" value="/my/"' in read_page(response)
    assert "Uni Köln does not respond as it should. Try again later" in read_refusal(client, response)
    server.fault = ""
    assert begin(client)


def test_an_address_without_a_server_is_named_too(client, db, settings):
    settings.OIDC_PROVIDERS = {"uni": OidcProvider("uni", "Uni Köln", "http://127.0.0.1:1", CLIENT)}
    response = client.get(reverse("accounts:oidc-start", args=["uni"]))
    assert "Uni Köln does not respond" in read_refusal(client, response)


def test_a_token_endpoint_that_is_down_is_named(client, cast, provider, server):
    address = return_from(begin(client))
    server.fault = "token endpoint down"
    assert "Uni Köln" in read_refusal(client, client.get(address))


def test_a_response_belongs_to_one_browser_and_is_used_once(client, cast, provider):
    Identity.objects.create(user=cast.annotator, issuer=provider().issuer, subject="42")
    address = return_from(begin(client))
    other = Client()
    assert "does not belong to a sign-in of this browser" in read_refusal(other, other.get(address))
    changed = address.replace("state=", "state=x")
    assert "does not belong to a sign-in of this browser" in read_refusal(client, client.get(changed))
    assert client.get(address)["Location"] == "/"
    client.post("/account/sign-out/")
    assert "does not belong" in read_refusal(client, client.get(address))


def test_new_keys_of_the_provider_are_read(client, cast, provider, server):
    Identity.objects.create(user=cast.annotator, issuer=provider().issuer, subject="42")
    sign_in(client)
    server.rotate_key("second")  # a new name: read at once
    sign_in(Client())
    server.rotate_key("second")  # the same name: after one failure
    refused, accepted = Client(), Client()
    assert "is not valid" in read_refusal(refused, sign_in(refused))
    sign_in(accepted)
    assert signed_in(accepted) == cast.annotator


def test_an_unknown_provider_is_not_found(client, db, provider):
    assert client.get("/account/oidc/other/").status_code == 404
    assert client.get("/account/oidc/other/callback/").status_code == 404


def test_beginnings_are_limited(client, db, provider, one_window):
    path = reverse("accounts:oidc-start", args=["uni"])
    *earlier, last = [client.get(path).status_code for _ in range(OIDC_BY_ADDRESS.most + 1)]
    assert set(earlier) == {302}
    assert last == 429


# ---- connecting ---------------------------------------------------------------------------------------------------


def test_a_user_connects_an_identity_after_a_confirmation(client, cast, provider):
    client.force_login(cast.annotator)
    assert "Connect Uni Köln" in read_page(client.get("/account/"))
    response = sign_in(client, "?connect=1")
    assert response["Location"] == reverse("accounts:identity-confirm")
    assert not Identity.objects.exists()  # a foreign page could have come so far
    assert "rita@example.org" in read_page(client.get(response["Location"]))
    assert Client(enforce_csrf_checks=True).post(response["Location"]).status_code == 403
    client.post(response["Location"])
    assert Identity.objects.get().user == cast.annotator
    assert "rita@example.org" in read_page(client.get("/account/"))
    other = Client()
    sign_in(other)
    assert signed_in(other) == cast.annotator
    cast.annotator.refresh_from_db()
    assert cast.annotator.has_usable_password()


def test_an_identity_has_one_account(client, cast, provider):
    Identity.objects.create(user=cast.researcher, issuer=provider().issuer, subject="42")
    client.force_login(cast.annotator)
    sign_in(client, "?connect=1")
    response = client.post(reverse("accounts:identity-confirm"))
    assert response.status_code == 409
    assert "already opens another account" in read_page(response)
    assert Identity.objects.get().user == cast.researcher


def test_another_user_of_the_browser_connects_nothing(client, cast, provider):
    client.force_login(cast.annotator)
    address = return_from(begin(client, "?connect=1"))
    session = dict(client.session)
    client.logout()
    client.force_login(cast.viewer)
    changed = client.session
    changed.update({key: value for key, value in session.items() if not key.startswith("_auth")})
    changed.save()
    client.get(address)
    assert "another account in the meantime" in read_flashes(client.get("/account/"))[0][1]
    assert not Identity.objects.exists()


def test_participants_connect_nothing(client, cast, provider):
    User.objects.filter(pk=cast.annotator.pk).update(is_participant=True)
    client.force_login(cast.annotator)
    assert client.get(reverse("accounts:oidc-start", args=["uni"]) + "?connect=1").status_code == 403
    session = client.session
    session["oidc_claimed"] = {"provider": "uni", "subject": "42", "email": ""}
    session.save()
    assert client.post(reverse("accounts:identity-confirm")).status_code == 403
    assert not Identity.objects.exists()


def test_the_last_way_to_sign_in_cannot_be_removed(client, cast, provider, settings):
    row = Identity.objects.create(user=cast.annotator, issuer=provider().issuer, subject="42")
    client.force_login(cast.annotator)
    remove = reverse("accounts:identity-disconnect", args=[row.pk])
    settings.PASSWORD_SIGN_IN = False
    client.post(remove)
    assert read_flashes(client.get("/account/"))[0][0] == "error"
    settings.PASSWORD_SIGN_IN = True
    client.post(remove)
    assert not Identity.objects.exists()
    assert AuditEvent.objects.get(verb="account.disconnected").object == "anna"


def test_own_data_have_the_identities_and_closing_deletes_them(client, cast, provider):
    user = cast.annotator
    Identity.objects.create(user=user, issuer=provider().issuer, subject="42", email="anna@example.org")
    user.set_unusable_password()
    user.save()
    client.force_login(user)
    assert client.get("/account/data/file/").json()["sign-ins"][0]["subject"] == "42"
    assert "Your user name" in read_page(client.get("/account/data/"))
    assert client.post("/account/data/", {"act": "close", "password": "wrong"}).status_code == 422
    client.post("/account/data/", {"act": "close", "password": "anna"})
    assert not Identity.objects.exists()
    assert not User.objects.get(pk=user.pk).is_active


# ---- signing out, passwords, addresses ----------------------------------------------------------------------------


def test_signing_out_offers_to_sign_out_at_the_provider(client, cast, provider, server):
    Identity.objects.create(user=cast.annotator, issuer=provider().issuer, subject="42")
    sign_in(client)
    page = read_page(client.post("/account/sign-out/"))
    assert signed_in(client) is None
    assert f'href="{server.issuer}/end?id_token_hint=' in page
    assert urlencode({"post_logout_redirect_uri": "http://testserver/"}) in page
    assert "Sign out at Uni Köln" in page


def test_signing_out_after_a_password_does_not(client, cast, provider):
    client.force_login(cast.annotator)
    assert client.post("/account/sign-out/").status_code == 302


def test_without_passwords_only_the_provider_is_offered_and_accepted(client, cast, provider, settings):
    settings.PASSWORD_SIGN_IN = False
    link = reverse("accounts:invitation", args=[invite(cast)])
    for path in ("/", "/account/sign-in/", link):
        page = read_page(client.get(path))
        assert "Sign in with Uni Köln" in page
        assert 'type="password"' not in page
    assert client.post("/account/sign-in/", {"username": "anna", "password": PASSWORD}).status_code == 403
    assert client.post(link, {"username": "eve", "password": PASSWORD}).status_code == 403
    for path in ("/account/reset/", "/account/reset/sent/", "/account/reset/MQ/set-password/"):
        response = client.get(path)
        assert response.status_code == 403
        assert "Sign in with your institution" in read_page(response)
    assert User.objects.count() == 5
    client.force_login(cast.annotator)
    assert client.get("/account/password/").status_code == 403
    assert "/account/password/" not in read_page(client.get("/account/"))


def test_without_providers_the_pages_are_as_before(client, cast):
    assert configuration.OIDC_PROVIDERS == {}
    assert "Sign in with" not in read_page(client.get("/account/sign-in/"))
    client.force_login(cast.annotator)
    assert "institution" not in read_page(client.get("/account/"))


def test_below_a_path_and_behind_a_proxy_the_provider_gets_the_public_address(db, provider, settings):
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.FORCE_SCRIPT_NAME = "/sub"
    client = Client(headers={"x-forwarded-proto": "https"})
    try:
        set_script_prefix("/sub/")
        response = client.get("/account/oidc/uni/", SERVER_PORT="443")
    finally:
        set_script_prefix("/")
    asked = dict(parse_qsl(urlsplit(response["Location"]).query))
    assert asked["redirect_uri"] == "https://testserver/sub/account/oidc/uni/callback/"


@pytest.mark.server("postgres")
def test_a_first_sign_in_in_two_tabs_makes_one_account(postgres_db: str) -> None:
    """The second one waits for the row of the first, and then finds it or is asked to try again; nothing is left."""
    row = OidcProvider("uni", "Uni Köln", "https://uni.example.org", CLIENT, create_accounts="always")
    claimed = oidc.ClaimedIdentity(provider=row, subject="42", email="nova@example.org", username="nova")
    barrier = threading.Barrier(8)

    def enter(_number: int) -> str:
        try:
            barrier.wait(60)
            return sign_in_with_identity(claimed=claimed).username
        except Conflict:
            return "again"
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        outcomes = set(pool.map(enter, range(8)))
    assert outcomes <= {"nova", "again"}
    assert "nova" in outcomes
    assert list(User.objects.values_list("username", flat=True)) == ["nova"]
    assert Identity.objects.count() == 1
