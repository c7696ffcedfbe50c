"""Invitations by e-mail: sent, sent again, expired, revoked, used, by page and API, and what people read where the mail
server fails or the site sends no mail."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse, set_script_prefix
from django.utils import timezone
from rest_framework.test import APIClient

from evalapp.accounts import limits
from evalapp.accounts.models import Invitation, User
from evalapp.accounts.services import close_account, find_invitation, remove_member, revoke_invitation
from evalapp.accounts.services.mailed_invitations import MOST
from evalapp.common.errors import NotThere
from evalapp.common.mails import deliver_mail
from evalapp.common.models import AuditEvent, Mail
from tests.annotation.services.judging_helpers import open_for
from tests.cast import PASSWORD
from tests.pages import read_flashes, read_page

PEOPLE = "/projects/alpha/people/"
API = "/api/v1/projects/alpha/invitations/"


@pytest.fixture
def owner(client: Client, cast: Any) -> Client:
    client.force_login(cast.owner)
    return client


@pytest.fixture
def api(cast: Any) -> APIClient:
    client = APIClient()
    client.force_authenticate(cast.owner)
    return client


def send(client: Client, email: str, **values: Any) -> Any:
    form = {"role": "annotator", "label": "", "email": email, "max_uses": 1, "days": 7, "landing": "", **values}
    return client.post(f"{PEOPLE}invite/", form, follow=True)


def find_link(mail: Mail) -> str:
    return re.search(r"http://testserver(/invitations/\S+)", mail.body).group(1)


def is_open(link: str) -> bool:
    try:
        find_invitation(secret=link.split("/")[2])
    except NotThere:
        return False
    return True


def make_old(row: Invitation) -> None:
    """Let ten days pass, after which a link of seven days has expired."""
    past = timezone.now() - timedelta(days=10)
    Invitation.objects.filter(pk=row.pk).update(created_at=past, mailed_at=past, expires_at=past + timedelta(days=7))


def test_each_address_gets_one_mail_with_a_link_for_one_person(owner, cast, mailoutbox):
    page = send(owner, "nova@example.org, Eve@example.org\n\nNOVA@example.org", label="Class", max_uses=5)
    assert read_flashes(page) == [("success", "2 invitations are being sent by mail.")]
    rows = list(Invitation.objects.order_by("pk"))
    assert [(row.email, row.max_uses, row.label) for row in rows] == [
        ("nova@example.org", 1, "Class"),
        ("Eve@example.org", 1, "Class"),
    ]
    mails = list(Mail.objects.order_by("pk"))
    assert [mail.to for mail in mails] == ["nova@example.org", "Eve@example.org"]
    assert 'olga invites you to the project "Alpha" with the role annotator.' in mails[0].body
    link = find_link(mails[0])
    assert link != find_link(mails[1])
    deliver_mail(mails[0].pk)
    (mail,) = mailoutbox
    assert (mail.to, mail.subject) == (["nova@example.org"], "Invitation to Alpha")
    anonymous = Client()
    assert 'value="nova@example.org"' in read_page(anonymous.get(link))
    anonymous.post(link, {"username": "nova", "email": "nova@example.org", "password": PASSWORD})
    assert cast.project.memberships.get(user__username="nova").role == "annotator"
    assert not is_open(link)
    events = AuditEvent.objects.filter(verb="invitation.mailed")
    assert [event.detail for event in events] == [{"again": False}, {"again": False}]
    assert "nova@" not in str([event.object for event in events])


@pytest.mark.parametrize(
    ("account", "campaign", "words"),
    [("", "", "Join here"), ("", "fr", "Rejoignez"), ("de", "fr", "Treten Sie hier bei")],
)
def test_the_mail_is_in_the_language_of_the_invited_person(owner, cast, account, campaign, words):
    """That of their account, of the campaign, or of the installation; the sender reads Spanish."""
    User.objects.filter(pk=cast.owner.pk).update(preferences={"language": "es"})
    if account:
        User.objects.filter(pk=cast.stranger.pk).update(preferences={"language": account}, email="Nova@Example.org")
    options = {"language": campaign} if campaign else {}
    landing = reverse("annotation:judge", args=[open_for(cast, options=options).pk])
    send(owner, "nova@example.org", landing=landing)
    assert words in Mail.objects.get().body


def test_the_page_of_members_shows_the_state_of_each_mail(owner, cast):
    send(owner, "nova@example.org")
    mail = Mail.objects.get()

    def read_state(**changes: Any) -> str:
        Mail.objects.filter(pk=mail.pk).update(**changes)
        page = read_page(owner.get(PEOPLE))
        return re.search(r'<td><span class="status" data-state="\w+">([^<]+)</span>', page).group(1)

    assert read_state() == "Being sent"
    assert read_state(error="SMTPServerDisconnected") == "Delayed"
    assert "The mail server failed: SMTPServerDisconnected." in read_page(owner.get(PEOPLE))
    assert read_state(state="failed", error="SMTPRecipientsRefused (550)") == "Not delivered"
    assert read_state(state="sent", error="") == "Sent"
    Mail.objects.all().delete()  # after thirty days
    assert read_state() == "Sent"


def test_buttons_and_states_of_invitations_can_be_told_apart(owner, cast):
    """By screen readers, where there is no label, and in other languages."""
    send(owner, "nova@example.org")
    assert 'aria-label="Revoke the invitation nova@example.org"' in re.sub(r"\s+", " ", read_page(owner.get(PEOPLE)))
    Invitation.objects.update(expires_at=timezone.now() - timedelta(days=1))
    assert "Abgelaufen" in read_page(owner.get(PEOPLE, headers={"accept-language": "de"}))


def test_sending_again_makes_a_new_link_and_a_new_end(owner, cast):
    send(owner, "nova@example.org")
    row, first = Invitation.objects.get(), Mail.objects.get()
    make_old(row)
    assert not is_open(find_link(first))
    page = owner.post(f"{PEOPLE}invitations/{row.pk}/send/", follow=True)
    assert read_flashes(page) == [("success", "The invitation is being sent again. Its earlier link no longer works.")]
    first.refresh_from_db()
    assert (first.state, first.body) == (Mail.State.CANCELLED, "")
    second = Mail.objects.latest("pk")
    assert is_open(find_link(second))
    row.refresh_from_db()
    assert timedelta(days=6.9) < row.expires_at - timezone.now() < timedelta(days=7.1)
    assert AuditEvent.objects.filter(verb="invitation.mailed").latest("pk").detail == {"again": True}


@pytest.mark.parametrize("change", [{"uses": 1}, {"revoked_at": timezone.now()}, {"email": ""}])
def test_links_that_are_used_up_or_revoked_or_have_no_address_are_not_sent_again(owner, cast, change):
    send(owner, "nova@example.org")
    row = Invitation.objects.get()
    Invitation.objects.filter(pk=row.pk).update(**change)
    page = owner.post(f"{PEOPLE}invitations/{row.pk}/send/", follow=True)
    assert read_flashes(page)[0][0] == "error"
    assert f"invitations/{row.pk}/send/" not in read_page(page)
    assert Mail.objects.count() == 1


def test_a_revoked_invitation_is_not_mailed(owner, cast):
    send(owner, "nova@example.org\neve@example.org")
    first, second = Invitation.objects.order_by("pk")
    revoke_invitation(invitation=first, actor=cast.owner)
    assert list(Mail.objects.order_by("pk").values_list("state", flat=True)) == ["cancelled", "waiting"]
    cast.project.memberships.filter(user=cast.researcher).update(role="owner")
    remove_member(member=cast.project.memberships.get(user=cast.owner), actor=cast.researcher)
    assert set(Mail.objects.values_list("state", flat=True)) == {"cancelled"}
    second.refresh_from_db()
    assert second.revoked_at is not None


@pytest.mark.parametrize(
    ("email", "words"),
    [
        ("nova@example.org\nnova.example.org", "“nova.example.org” is not an e-mail address."),
        ("nova@example.org, ANNA@example.org", "ANNA@example.org belongs to a member of this project."),
        (" ".join(f"a{n}@example.org" for n in range(MOST + 1)), "Enter at most 100 addresses at once."),
    ],
)
def test_one_wrong_address_and_none_is_invited(owner, cast, email, words):
    page = send(owner, email)
    assert page.status_code == 422
    assert words in read_page(page)
    assert not Invitation.objects.exists()
    assert not Mail.objects.exists()


def test_a_mail_that_nobody_can_send_is_said_and_the_link_can_be_copied(owner, cast, api, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert "This site sends no mail: create a link and send it yourself" in read_page(owner.get(f"{PEOPLE}invite/"))
    assert "http://testserver/invitations/" in read_page(send(owner, ""))
    answer = api.post(API, {"role": "annotator", "email": "nova@example.org"}, format="json")
    assert answer.status_code == 409
    assert answer.json()["errors"][0]["field"] == "email"
    assert "EMAIL_URL is not set. Create a link and send it yourself." in answer.json()["detail"]
    assert Invitation.objects.count() == 1


def test_mails_to_strangers_are_limited(owner, cast, monkeypatch):
    monkeypatch.setattr(limits, "INVITATIONS_BY_USER", limits.Limit("invitation-mail", 2, 3600))
    send(owner, "a@example.org b@example.org")
    assert "Too many attempts" in read_page(send(owner, "c@example.org"))
    assert Invitation.objects.count() == 2


def test_the_api_sends_shows_and_sends_again(api, cast):
    made = api.post(API, {"role": "viewer", "email": "nova@example.org", "days": 3}, format="json")
    assert made.status_code == 201, made.json()
    body = made.json()
    assert (body["email"], body["max_uses"], body["mail"], body["state"]) == ("nova@example.org", 1, "waiting", "open")
    assert body["link"].endswith(find_link(Mail.objects.get()))
    again = api.post(f"/api/v1/invitations/{body['id']}/send/")
    assert again.status_code == 200
    assert again.headers["Cache-Control"] == "no-store"
    assert again.json()["link"] != body["link"]
    assert api.get(f"/api/v1/invitations/{body['id']}/").json()["mail"] == "waiting"
    link = api.post(API, {"role": "viewer"}, format="json").json()
    assert (link["email"], link["mail"], link["mailed_at"]) == ("", None, None)
    assert api.post(f"/api/v1/invitations/{link['id']}/send/").status_code == 409


def test_the_api_mails_to_one_person(api, cast):
    answer = api.post(API, {"role": "viewer", "email": "nova@example.org", "max_uses": 2}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "max_uses")
    answer = api.post(API, {"role": "viewer", "email": "nova@"}, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "email")


def test_closing_an_account_removes_its_address_from_invitations_and_mails(owner, cast):
    send(owner, "nova@example.org")
    link = find_link(Mail.objects.get())
    Client().post(link, {"username": "nova", "email": "Nova@example.org", "password": PASSWORD})
    close_account(user=User.objects.get(username="nova"), password=PASSWORD)
    assert Invitation.objects.get().email == ""
    assert not Mail.objects.exists()


def test_links_begin_with_the_path_of_the_site(owner, cast, api, settings):
    settings.FORCE_SCRIPT_NAME = "/sub"
    try:
        set_script_prefix("/sub/")
        send(owner, "nova@example.org")
        made = api.post(API, {"role": "viewer"}, format="json").json()
    finally:
        set_script_prefix("/")
    assert "http://testserver/sub/invitations/" in Mail.objects.get().body
    assert made["link"].startswith("http://testserver/sub/invitations/")
