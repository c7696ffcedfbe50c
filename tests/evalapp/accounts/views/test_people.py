"""Members and invitations on pages, from the link to the first task."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalapp.accounts.models import AttemptCount, Invitation, Membership
from evalapp.accounts.services import create_invitation
from tests.cast import PASSWORD

PEOPLE = "/projects/alpha/people/"


def make_link(client, **wishes) -> str:
    form = {"role": "annotator", "label": "Class", "max_uses": 1, "days": 7, "landing": "", **wishes}
    page = client.post(f"{PEOPLE}invite/", form).content.decode()
    return re.search(r"http://testserver(/invitations/[^\"]+)", page).group(1)


def test_only_owners_see_mail_and_change_people(client, cast):
    client.force_login(cast.researcher)
    page = client.get(PEOPLE).content.decode()
    assert "anna" in page
    assert "anna@example.org" not in page
    assert "p-anna" not in page, "who judged what stays between the owner and the annotator"
    assert client.get(f"{PEOPLE}invite/").status_code == 403
    client.force_login(cast.owner)
    assert "anna@example.org" in client.get(PEOPLE).content.decode()


def test_roles_change_and_people_leave(client, cast):
    client.force_login(cast.owner)
    vic = Membership.objects.get(user=cast.viewer)
    client.post(f"{PEOPLE}{vic.pk}/role/", {"role": "researcher"})
    vic.refresh_from_db()
    assert vic.role == "researcher"
    client.post(f"{PEOPLE}{vic.pk}/remove/")
    assert not Membership.objects.filter(pk=vic.pk).exists()
    mine = Membership.objects.get(project=cast.project, user=cast.owner)
    page = client.post(f"{PEOPLE}{mine.pk}/remove/", follow=True).content.decode()
    assert "only owner" in page
    assert Membership.objects.filter(pk=mine.pk).exists()


def test_owner_who_demotes_herself_is_sent_to_the_home_page(client, cast):
    client.force_login(cast.owner)
    Membership.objects.filter(user=cast.researcher).update(role="owner")
    mine = Membership.objects.get(project=cast.project, user=cast.owner)
    assert client.post(f"{PEOPLE}{mine.pk}/role/", {"role": "annotator"}).url == "/"


def test_newcomer_follows_a_link(client, cast):
    client.force_login(cast.owner)
    link = make_link(client, landing="/account/")
    client.logout()
    page = client.get(link).content.decode()
    assert "Alpha" in page
    assert "annotator" in page
    answer = client.post(link, {"username": "neu", "email": "", "password": "short"})
    assert answer.status_code == 422
    assert 'value="neu"' in answer.content.decode()
    answer = client.post(link, {"username": "neu", "email": "", "password": PASSWORD})
    assert answer.url == "/account/"
    assert Membership.objects.get(user__username="neu").role == "annotator"
    assert client.get("/account/").status_code == 200
    assert client.get(link).url == "/account/", "who follows it again, or goes back, has joined already"
    assert not AttemptCount.objects.filter(limit="link").exists(), "nor is that a failure of their address"
    client.logout()
    gone = client.get(link)
    assert gone.status_code == 404, "one use is used up"
    assert "no longer valid" in gone.content.decode()
    assert AttemptCount.objects.get(limit="link").count == 1


def test_signed_in_person_joins_with_one_click(client, cast):
    client.force_login(cast.owner)
    link = make_link(client)
    client.force_login(cast.stranger)
    assert "Join as sam" in client.get(link).content.decode()
    assert client.post(link).url == "/"
    assert Membership.objects.filter(project=cast.project, user=cast.stranger, role="annotator").exists()


def test_revoked_link_is_dead(client, cast):
    client.force_login(cast.owner)
    link = make_link(client)
    client.post(f"{PEOPLE}invitations/{Invitation.objects.get().pk}/revoke/")
    assert client.get(link).status_code == 404


def test_link_of_a_former_maker_is_not_shown_as_open(client, cast):
    """Such links date from before leaving revoked them. They no longer work, so the page must not show them as open."""
    made, _ = create_invitation(project=cast.project, role="annotator", actor=cast.researcher, label="old class")
    client.force_login(cast.owner)
    assert 'data-invitation="open"' in client.get(PEOPLE).content.decode()
    queries = CaptureQueriesContext(connection)
    Membership.objects.filter(project=cast.project, user=cast.researcher).delete()
    with queries:
        page = client.get(PEOPLE).content.decode()
    assert re.findall(r'data-invitation="(\w+)"', page) == ["ended"]
    for _ in range(3):
        create_invitation(project=cast.project, role="viewer", actor=cast.researcher)
    with CaptureQueriesContext(connection) as more:
        client.get(PEOPLE)
    assert len(more) == len(queries)
    states = [row["state"] for row in client.get("/api/v1/projects/alpha/invitations/").json()["results"]]
    assert states == ["ended"] * 4
    assert client.get(f"/api/v1/invitations/{made.pk}/").json()["state"] == "ended"


@pytest.mark.promise("attempts")
def test_failures_of_others_at_an_address_block_no_valid_link(client, cast, one_window):
    client.force_login(cast.owner)
    link = make_link(client)
    client.logout()
    while client.get("/invitations/guess/").status_code == 404:
        pass
    assert client.get("/invitations/guess/").status_code == 429
    assert client.get(link).status_code == 200


def test_guessing_links_is_limited(client, cast, one_window):
    answers = [client.get(f"/invitations/guess-{n}/") for n in range(31)]
    assert {answer.status_code for answer in answers} == {404, 429}
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 300
