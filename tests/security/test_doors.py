"""Protection of the entry points: forgery, sessions, redirects, hosts, headers, guessing, tokens, settings."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.test import Client
from django.urls import NoReverseMatch, reverse

from evalapp.accounts import limits
from evalapp.accounts.mails import wait_until_sent
from evalapp.accounts.models import AttemptCount, User
from evalapp.accounts.services import create_invitation, create_token
from evalapp.settings import env
from tests.architecture.routes import API, PAGES
from tests.architecture.test_permissions import addresses
from tests.cast import PASSWORD

pytestmark = pytest.mark.django_db
SIGN_IN = "/account/sign-in/"


def sign_in(client: Client, name: str = "rita", password: str = PASSWORD, **more: Any) -> HttpResponse:
    return client.post(SIGN_IN, {"username": name, "password": password, **more})


@pytest.fixture
def rita(cast: Any) -> Client:
    client = Client()
    client.force_login(cast.researcher)
    return client


# ---- forgery ----------------------------------------------------------------------------------------------


def unsafe() -> list[tuple[str, str]]:
    """(name, method) of every call that changes something."""
    found = [(name, rule.method) for name, rules in {**PAGES, **API}.items() for rule in rules]
    return sorted({(name, method) for name, method in found if method != "get"})


SAMPLES = {"slug": "alpha", "pk": 1, "number": 0, "public": "x" * 16, "move": "pause", "ending": "csv"}

FILLERS = ("name", 1, "csv", "size", "withdraw")


def _address(name: str) -> str:
    """An address with this name; its object need not exist, because the request must be refused earlier."""
    parts = sorted(addresses()[name][1])
    for values in product(*([SAMPLES.get(part, "name"), *FILLERS] for part in parts)):
        with suppress(NoReverseMatch):
            return reverse(name, kwargs=dict(zip(parts, values, strict=True)))
    raise AssertionError(f"no address for {name}")


@pytest.mark.promise("forgery")
@pytest.mark.parametrize("htmx", [False, True])
def test_no_change_without_the_csrf_token(cast, htmx):
    """Every unsafe call from a signed-in browser, without the token or with a foreign one."""
    client = Client(enforce_csrf_checks=True, headers={"HX-Request": "true"} if htmx else None)
    client.force_login(cast.owner)
    wrong = []
    for name, method in unsafe():
        options = {"content_type": "application/json", "data": "{}"} if name in API else {}
        answer = getattr(client, method)(_address(name), **options)
        if answer.status_code == 415:  # takes only files
            answer = getattr(client, method)(_address(name), {"name": "x"})
        # An API call without credentials refuses before it checks the token.
        if answer.status_code != 403 or (b"CSRF" not in answer.content and name in API):
            wrong.append(f"{method} {name}: {answer.status_code} {answer.content[:80]!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.promise("forgery")
def test_form_of_another_site_is_refused_and_cookies_stay_here(cast):
    client = Client(enforce_csrf_checks=True)
    page = client.get(SIGN_IN)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.content.decode())[1]
    form = {"username": "rita", "password": PASSWORD, "csrfmiddlewaretoken": token}
    elsewhere = client.post(SIGN_IN, form, headers={"Origin": "https://elsewhere.example"})
    assert elsewhere.status_code == 403
    words = elsewhere.content.decode()
    assert "another site sent the form" in words
    assert "<style" not in words, "Django's own page would break our policy"
    assert client.post(SIGN_IN, form).status_code == 302
    for name in ("sessionid", "csrftoken"):
        assert client.cookies[name]["samesite"] == "Lax"


# ---- sessions ---------------------------------------------------------------------------------------------


@pytest.mark.promise("sessions")
def test_session_key_set_beforehand_is_not_kept(cast):
    client = Client()
    client.get(SIGN_IN)
    session = client.session
    session["planted"] = "yes"
    session.save()
    given = session.session_key
    client.cookies["sessionid"] = given
    assert sign_in(client).status_code == 302
    own = client.cookies["sessionid"].value
    assert own != given
    assert not Session.objects.filter(session_key=given).exists()
    # An unknown key is not adopted either.
    invented = Client()
    invented.cookies["sessionid"] = "i" * 32
    sign_in(invented)
    assert invented.cookies["sessionid"].value != "i" * 32


@pytest.mark.promise("sessions")
def test_signing_out_and_a_new_password_end_sessions(cast):
    here, there = Client(), Client()
    sign_in(here)
    sign_in(there)
    key = here.cookies["sessionid"].value
    here.post("/account/sign-out/")
    assert not Session.objects.filter(session_key=key).exists()
    again = Client()
    again.cookies["sessionid"] = key
    assert again.get("/account/").status_code == 302
    new = "another-horse-battery"
    sign_in(here)
    words = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert here.post("/account/password/", words).status_code == 302
    assert here.get("/account/").status_code == 200
    assert there.get("/account/").status_code == 302, "the other browser is signed out"


@pytest.mark.promise("sessions")
def test_cookies_are_hidden_from_scripts_and_sent_over_tls_only(cast, settings):
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    client = Client()
    sign_in(client)
    cookie = client.cookies["sessionid"]
    assert (cookie["httponly"], cookie["secure"], cookie["samesite"], cookie["domain"]) == (True, True, "Lax", "")
    assert client.cookies["csrftoken"]["secure"]


# ---- redirects and hosts ----------------------------------------------------------------------------------

ELSEWHERE = (
    "https://elsewhere.example/", "//elsewhere.example", "///elsewhere.example", "/\\elsewhere.example",
    "\\\\elsewhere.example", "https:elsewhere.example", "javascript:alert(1)", "data:text/html,x",
    "//elsewhere.example@testserver/", " //elsewhere.example", "\t//elsewhere.example", "/%09/elsewhere\r\nX: y",
    "http://testserver@elsewhere.example/", "////elsewhere.example/..",
)  # fmt: skip


@pytest.mark.promise("redirects")
def test_no_redirect_leads_outside(cast):
    for target in ELSEWHERE:
        client = Client()
        answer = sign_in(client, next=target)
        location = answer.headers.get("Location", "/")
        assert re.match(r"/(?![/\\])", location), f"{target!r} led to {location!r}"
        assert not location.startswith("//")
        out = client.post("/account/sign-out/", {"next": target})
        assert re.match(r"/(?![/\\])", out.headers["Location"]), f"{target!r} led to {out.headers['Location']!r}"
    owner = Client()
    owner.force_login(cast.owner)
    for target in ELSEWHERE:
        wishes = {"role": "viewer", "days": 3, "max_uses": 1, "landing": target}
        body = owner.post(f"/projects/{cast.project.slug}/people/invite/", wishes)
        if body.status_code == 200:  # accepted as our own page, so it must lead to one
            secret = re.search(r"/invitations/([\w-]+)/", body.content.decode())[1]
            new = Client()
            new.force_login(cast.stranger)
            location = new.post(f"/invitations/{secret}/").headers["Location"]
            assert re.match(r"/(?![/\\])", location), f"{target!r} led to {location!r}"


def test_wrong_host_is_one_warning_in_the_log(cast, caplog):
    assert Client().get("/", headers={"Host": "elsewhere.example"}).status_code == 400
    (line,) = [record for record in caplog.records if record.name == "django.security.DisallowedHost"]
    assert (line.levelname, line.exc_info, "elsewhere.example" in line.getMessage()) == ("WARNING", None, True)


@pytest.mark.promise("redirects")
def test_wrong_host_is_refused_and_reaches_no_mail(cast):
    client = Client()
    for host in ("elsewhere.example", "testserver.elsewhere.example", "testserver@elsewhere.example", "a b"):
        assert client.get("/", headers={"Host": host}).status_code == 400
        refused = client.post("/account/reset/", {"email": "rita@example.org"}, headers={"Host": host})
        assert refused.status_code == 400
    wait_until_sent(60)
    assert mail.outbox == []
    forwarded = {"X-Forwarded-Host": "elsewhere.example", "X-Forwarded-Proto": "https", "Forwarded": "host=elsewhere"}
    assert client.post("/account/reset/", {"email": "rita@example.org"}, headers=forwarded).status_code == 302
    wait_until_sent(60)
    assert "http://testserver/account/reset/" in mail.outbox[0].body
    assert "elsewhere" not in mail.outbox[0].body


# ---- headers ----------------------------------------------------------------------------------------------


@pytest.mark.promise("headers")
def test_every_response_has_the_policies_and_private_ones_are_not_cached(cast, rita):
    asked = [
        (Client(), "/"), (Client(), SIGN_IN), (Client(), "/no/such/page"), (Client(), "/api/v1/tokens/"),
        (Client(), "/api/v1/docs/"), (Client(), "/health/live"),
        (rita, "/"), (rita, f"/projects/{cast.project.slug}/"), (rita, "/api/v1/projects/"), (rita, "/no/such/page"),
        (rita, f"/projects/{cast.project.slug}/people/invite/"), (rita, f"/projects/{cast.project.slug}/items/"),
    ]  # fmt: skip
    for client, path in asked:
        answer = client.get(path)
        found = answer.headers
        assert found["X-Content-Type-Options"] == "nosniff", path
        assert found["X-Frame-Options"] == "DENY", path
        assert found["Referrer-Policy"] == "same-origin", path
        assert found["Cross-Origin-Opener-Policy"] == "same-origin", path
        assert found["Cross-Origin-Resource-Policy"] == "same-origin", path
        assert "camera=()" in found["Permissions-Policy"], path
        assert "no-store" in found["Cache-Control"], path
        policy = found["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy, path
        assert "object-src 'none'" in policy
        assert "base-uri 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy
        assert not {"Server", "X-Powered-By"} & set(found)


@pytest.mark.promise("headers")
def test_behind_tls_everything_uses_tls(cast, settings):
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 31_536_000
    settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    client = Client()
    plain = client.get("/account/")
    assert (plain.status_code, plain.headers["Location"]) == (301, "https://testserver/account/")
    by_tls = client.get("/", headers={"X-Forwarded-Proto": "https"})
    assert by_tls.headers["Strict-Transport-Security"].startswith("max-age=31536000; includeSubDomains")


# ---- guessing ---------------------------------------------------------------------------------------------


def _same(text: str) -> str:
    return re.sub(r'csrf[^>]*|"X-CSRFToken": "[^"]*"|value="[^"]*"', "", text)


@pytest.mark.promise("attempts")
def test_accounts_cannot_be_discovered(cast):
    """Wrong passwords for an existing, a missing and a disabled account look the same; so do password resets."""
    User.objects.filter(username="vic").update(is_active=False)
    answers = [sign_in(Client(), name, "wrong-horse-battery") for name in ("rita", "nobody", "vic")]
    assert {answer.status_code for answer in answers} == {200}
    assert len({_same(answer.content.decode()) for answer in answers}) == 1
    resets = [
        Client().post("/account/reset/", {"email": mail_of}) for mail_of in ("rita@example.org", "no@example.org")
    ]
    assert len({(answer.status_code, answer.headers["Location"]) for answer in resets}) == 1
    stranger = Client()
    stranger.force_login(cast.stranger)
    theirs = stranger.get(f"/projects/{cast.project.slug}/").content.decode()
    invented = stranger.get("/projects/no-such-project/").content.decode()
    assert _same(theirs).replace(cast.project.slug, "x") == _same(invented).replace("no-such-project", "x")


@pytest.mark.promise("attempts")
def test_unknown_name_also_costs_a_password_check(cast, monkeypatch):
    """Otherwise the time would reveal who has an account."""
    from django.contrib.auth.hashers import MD5PasswordHasher

    counted: list[str] = []
    encode = MD5PasswordHasher.encode

    def counting(self: Any, *given: Any, **more: Any) -> str:
        counted.append("x")
        return encode(self, *given, **more)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counting)
    costs = []
    for name in ("rita", "nobody"):
        counted.clear()
        sign_in(Client(), name, "wrong-horse-battery")
        costs.append(len(counted))
    assert costs[0] == costs[1] == 1


@pytest.mark.promise("attempts")
def test_guessing_by_address_and_by_name_is_stopped(cast, monkeypatch):
    monkeypatch.setattr(limits, "SIGN_IN_BY_ADDRESS", limits.Limit("sign-in-ip", 5, 10**9))
    monkeypatch.setattr(limits, "SIGN_IN_BY_NAME", limits.Limit("sign-in-name", 4, 10**9))
    for number in range(5):
        assert sign_in(Client(), f"name-{number}", "x").status_code == 200
    assert sign_in(Client(), "rita").status_code == 429, "the right password, but the address has tried too much"
    assert sign_in(Client(REMOTE_ADDR="10.0.0.9"), "rita").status_code == 302
    for number, spelling in enumerate(("olga", " olga", "ｏlga", "OLGA ")):
        sign_in(Client(REMOTE_ADDR=f"10.1.0.{number}"), spelling, "x")
    assert sign_in(Client(REMOTE_ADDR="10.1.1.1"), "olga").status_code == 429
    assert not AttemptCount.objects.filter(key__contains="olga").exists(), "names are kept as digests"


@pytest.mark.promise("registration")
def test_there_is_no_account_without_an_invitation(cast, db):
    client = Client()
    page = client.get("/").content.decode() + client.get(SIGN_IN).content.decode()
    assert not re.search(r"sign.?up|register|create an account", page, re.I)
    before = User.objects.count()
    for path in ("/account/", "/account/register/", "/account/sign-up/", "/accounts/register/", "/admin/"):
        client.post(path, {"username": "new", "password": PASSWORD, "password1": PASSWORD, "password2": PASSWORD})
    assert client.post("/invitations/guessed/", {"username": "new", "password": PASSWORD}).status_code == 404
    _, secret = create_invitation(project=cast.project, role="viewer", actor=cast.owner)
    weak = client.post(f"/invitations/{secret}/", {"username": "new", "password": "password12"})
    assert weak.status_code == 422
    assert User.objects.count() == before


# ---- tokens -----------------------------------------------------------------------------------------------


@pytest.mark.promise("tokens")
def test_token_is_accepted_only_in_its_header(cast):
    _, secret = create_token(user=cast.owner, name="t", scopes=["read"])
    path = f"/api/v1/projects/{cast.project.slug}/items/"
    assert Client().get(path, headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    for query in ("token", "access_token", "api_key", "key", "auth", "Authorization"):
        assert Client().get(path, {query: secret}).status_code == 401
    for header in ("X-Api-Key", "Token", "X-Auth-Token", "Cookie"):
        assert Client().get(path, headers={header: f"token={secret}"}).status_code == 401
    basic = Client().get(path, headers={"Authorization": "Basic " + "eDp5"})
    assert basic.status_code == 401


@pytest.mark.promise("tokens")
def test_no_secret_is_stored_in_clear(cast):
    """Tokens, invitations and passwords cannot be read from the database."""
    from django.db import connection

    _, token = create_token(user=cast.owner, name="t", scopes=["read"])
    _, link = create_invitation(project=cast.project, role="viewer", actor=cast.owner)
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            rows = repr(cursor.fetchall())
            for secret in (token, link, PASSWORD):
                assert secret not in rows, table


@pytest.mark.promise("log")
def test_log_has_no_secret_no_name_and_no_forged_line(cast, caplog):
    """Input in a form or an address never starts a log line, and secrets are not logged."""
    caplog.set_level(logging.DEBUG)
    _, secret = create_token(user=cast.owner, name="t", scopes=["read"])
    sign_in(Client(), "rita\r\nERROR planted: line", "my-secret-password")
    sign_in(Client(), "rita", "my-secret-password")
    Client().get("/%0d%0aERROR%20planted:%20line", headers={"User-Agent": "x\r\nERROR planted: line"})
    Client().get("/api/v1/tokens/", headers={"Authorization": f"Bearer {secret}x"})
    Client().post("/account/reset/", {"email": "rita@example.org"})
    # Without the statements, which Django logs only at DEBUG.
    lines = [record.getMessage() for record in caplog.records if not record.name.startswith("django.db.backends")]
    assert not [line for line in lines if "\nERROR" in line or "\r" in line]
    for word in ("my-secret-password", secret, "rita@example.org"):
        assert not [line for line in lines if word in line], word


# ---- settings ---------------------------------------------------------------------------------------------

GOOD_KEY = "".join(chr(33 + (7 * n) % 90) for n in range(64))
DATABASE = ("DATABASE_URL", {"postgres", "postgresql", "sqlite"})
REDIS = ("REDIS_URL", {"redis", "rediss", "unix"})


@pytest.mark.promise("settings")
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("SECRET_KEY", "short", "secrets.token_urlsafe"),
        ("SECRET_KEY", "a" * 60, "secrets.token_urlsafe"),
        ("SECRET_KEY", "django-insecure-" + "xyzabc" * 10, "secrets.token_urlsafe"),
        ("ALLOWED_HOSTS", "*", "without wildcards"),
        ("ALLOWED_HOSTS", ".example.org", "without wildcards"),
        ("CSRF_TRUSTED_ORIGINS", "https://*.example.org", "without wildcard"),
        ("CSRF_TRUSTED_ORIGINS", "http://evalapp.example.org", "an https:// origin"),
        ("CSRF_TRUSTED_ORIGINS", "evalapp.example.org", "must be an origin"),
        ("DATABASE_URL", "postgres://evalapp:postgres@db.example.org:5432/evalapp", "well-known password"),
        ("REDIS_URL", "redis://:changeme@redis.example.org:6379/0", "well-known password"),
    ],
)
def test_dangerous_settings_are_refused_with_a_remedy(tmp_path, monkeypatch, name, value, words):
    """tests/architecture/test_house.py checks that the start reads these and ends with one line."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=re.escape(words)):
        read_all(tmp_path)


def read_all(folder: Path) -> None:
    env.secret_key(folder)
    env.hosts(debug=False)
    env.origins()
    env.address(*DATABASE)
    env.address(*REDIS)


@pytest.mark.promise("settings")
def test_good_settings_are_accepted(tmp_path, monkeypatch):
    fine = {
        "SECRET_KEY": GOOD_KEY, "ALLOWED_HOSTS": "evalapp.example.org", "DEBUG": "0",
        "CSRF_TRUSTED_ORIGINS": "https://evalapp.example.org",
        "DATABASE_URL": "postgres://evalapp:jK3-nqZ9@db.example.org:5432/evalapp",
    }  # fmt: skip
    for name, value in fine.items():
        monkeypatch.setenv(name, value)
    read_all(tmp_path)
    assert not (tmp_path / "secret_key").exists()
    monkeypatch.delenv("SECRET_KEY")
    made = env.secret_key(tmp_path)
    assert env.secret_key(tmp_path) == made
    assert (tmp_path / "secret_key").stat().st_mode & 0o077 == 0, "no other user can read the key"


@pytest.mark.promise("settings")
def test_settings_required_in_production_are_set():
    from evalapp.settings import base

    assert base.PASSWORD_HASHERS[0].endswith("Argon2PasswordHasher")
    assert base.SESSION_COOKIE_HTTPONLY
    assert "django.contrib.admin" not in base.INSTALLED_APPS
    assert "django.middleware.csrf.CsrfViewMiddleware" in base.MIDDLEWARE
    assert os.environ["HF_HUB_OFFLINE"] == "1"
