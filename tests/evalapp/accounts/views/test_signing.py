"""Signing in and out, and password recovery."""

from __future__ import annotations

import re
from smtplib import SMTPDataError, SMTPRecipientsRefused
from unittest.mock import Mock

import pytest
from django.core import mail
from django.urls import reverse

from evalapp.accounts.mails import wait_until_sent
from evalapp.accounts.models import ApiToken, User
from evalapp.accounts.services import create_token
from evalapp.common.models import AuditEvent
from evalapp.settings import base
from tests.cast import PASSWORD, person
from tests.pages import is_refused_sign_in, read_flashes

LOGIN = "/account/sign-in/"


def sign_in(client, name="rita", password=PASSWORD, **more):
    return client.post(LOGIN, {"username": name, "password": password, **more})


def test_home_page_signs_in(client, cast):
    page = client.get("/").content.decode()
    assert f'action="{LOGIN}"' in page
    answer = sign_in(client)
    assert (answer.status_code, answer.url) == (302, "/")
    page = client.get("/").content.decode()
    assert "Alpha" in page
    assert "Foreign" not in page


def test_account_with_an_unnormalised_name_can_sign_in(client, cast):
    """The name was stored with a ligature, before the form normalised its input."""
    User.objects.filter(pk=person("old").pk).update(username="ﬁona")
    assert sign_in(client, "ﬁona").status_code == 302
    client.logout()
    other = person("fiona")
    other.set_password("another-long-word")
    other.save()
    assert sign_in(client, "ﬁona").status_code == 302
    client.logout()
    assert sign_in(client, "fiona").status_code == 200
    assert sign_in(client, "fiona", "another-long-word").status_code == 302


def test_sign_in_returns_to_the_page_but_never_elsewhere(client, cast):
    assert client.get("/projects/alpha/runs/").url == f"{LOGIN}?next=/projects/alpha/runs/"
    assert sign_in(client, next="/projects/alpha/runs/").url == "/projects/alpha/runs/"
    client.logout()
    assert sign_in(client, next="https://evil.example/").url == "/"


def test_wrong_password_is_reported_and_ten_lock(client, cast):
    page = sign_in(client, password="wrong")
    assert is_refused_sign_in(page)
    assert 'value="rita"' in page.content.decode(), "what was typed is kept"
    for _ in range(9):
        answer = sign_in(client, password="wrong")
    assert answer.status_code == 429
    assert "15 minutes" in answer.content.decode()
    assert sign_in(client).status_code == 429, "the right password does not help now"
    assert sign_in(client, name="olga").status_code == 302, "others are not locked out"


def test_sign_out_is_a_post(client, cast):
    client.force_login(cast.researcher)
    assert client.get("/account/sign-out/").status_code == 405
    assert client.post("/account/sign-out/").url == "/"
    assert client.get("/account/").status_code == 302


def test_forgotten_password(client, cast):
    answer = client.post("/account/reset/", {"email": "rita@example.org"}, follow=True)
    assert "Check your e-mail" in answer.content.decode()
    wait_until_sent(60)
    link = re.search(r"http://testserver(\S+)", mail.outbox[0].body).group(1)
    create_token(user=cast.researcher, name="t", scopes=["read"])
    page = client.get(link, follow=True)
    assert 'name="keep_tokens"' in page.content.decode()
    answer = client.post(
        page.redirect_chain[-1][0], {"new_password1": "nine-lives-left", "new_password2": "nine-lives-left"}
    )
    assert answer.status_code == 302
    assert any("1" in words for _, words in read_flashes(client.get("/account/")))
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    assert AuditEvent.objects.get(verb="account.password-reset").actor == cast.researcher
    client.logout()
    assert sign_in(client, password="nine-lives-left").status_code == 302
    used = client.get(link, follow=True).content.decode()
    assert 'name="new_password1"' not in used
    assert f'class="button primary" href="{reverse("accounts:password-reset")}"' in used


@pytest.mark.parametrize(("account", "subject"), [("es", "Nueva contraseña"), ("browser", "Ein neues Passwort")])
def test_the_mail_has_the_language_of_the_account_or_the_browser(client, cast, mailoutbox, account, subject):
    User.objects.filter(pk=cast.researcher.pk).update(preferences={"language": account})
    client.post("/account/reset/", {"email": "rita@example.org"}, headers={"Accept-Language": "de"})
    wait_until_sent(60)
    assert mailoutbox[0].subject.startswith(subject)


def test_unknown_address_looks_the_same_and_gets_no_mail(client, cast):
    answer = client.post("/account/reset/", {"email": "nobody@example.org"}, follow=True)
    assert "Check your e-mail" in answer.content.decode()
    wait_until_sent(60)
    assert mail.outbox == []


@pytest.mark.promise("log")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SMTPRecipientsRefused({"rita@example.org": (550, b"rita@example.org: no such person")}), "no code"),
        (SMTPDataError(451, "rita@example.org: later"), "451"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
    ],
)
def test_failed_mail_is_logged_without_its_address(client, cast, caplog, monkeypatch, error, code):
    monkeypatch.setattr(mail.EmailMessage, "send", Mock(side_effect=error))
    client.post("/account/reset/", {"email": "rita@example.org"})
    wait_until_sent(60)
    (record,) = [record for record in caplog.records if record.name == "evalapp.accounts.mails"]
    told = f"A mail to account {cast.researcher.pk} was not sent: {type(error).__name__} ({code})"
    assert (record.getMessage(), record.exc_info) == (told, None)
    assert "rita@" not in caplog.text


def test_slow_mail_server_is_waited_for():
    """Only the mail thread waits: many servers delay their greeting by ten seconds or more against spam."""
    assert base.EMAIL_TIMEOUT >= 30


def test_mails_are_limited_by_address(client, cast, one_window):
    codes = [client.post("/account/reset/", {"email": "rita@example.org"}).status_code for _ in range(4)]
    assert codes == [302, 302, 302, 429]
    wait_until_sent(60)
    assert len(mail.outbox) == 3


@pytest.mark.parametrize("name", ["account", "password", "token-list", "project-create"])
def test_account_pages_need_sign_in(client, db, name):
    url = reverse(f"accounts:{name}")
    assert client.get(url).url == f"{LOGIN}?next={url}"
