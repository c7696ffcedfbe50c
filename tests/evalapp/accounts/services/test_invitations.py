"""Invitation links: created, used, used up, expired, revoked."""

from __future__ import annotations

import contextlib
from datetime import timedelta

import pytest
from django.utils import timezone

from evalapp.accounts.models import Invitation, Membership, User
from evalapp.accounts.services import (
    accept_invitation,
    change_role,
    create_invitation,
    find_invitation,
    join_with_new_account,
    remove_member,
    revoke_invitation,
)
from evalapp.common.errors import BadInput, Conflict, NotThere
from evalapp.common.models import AuditEvent
from tests.cast import PASSWORD, person

ROLES = ["owner", "researcher", "annotator", "viewer"]


def invite(cast, **more):
    return create_invitation(project=cast.project, role="annotator", actor=cast.owner, **more)


def usable(secrets: dict[str, str]) -> list[str]:
    """The roles whose links are valid now."""
    works = []
    for role, secret in secrets.items():
        with contextlib.suppress(NotThere):
            works.append(find_invitation(secret=secret).role)
            assert works[-1] == role
    return works


def test_only_a_digest_of_the_secret_is_stored(cast):
    invitation, secret = invite(cast)
    assert len(secret) >= 32
    assert secret not in str(vars(Invitation.objects.get(pk=invitation.pk)))
    assert find_invitation(secret=secret) == invitation


@pytest.mark.parametrize(
    ("wishes", "field"),
    [
        ({"days": 0}, "days"),
        ({"days": 366}, "days"),
        ({"max_uses": 0}, "max_uses"),
        ({"landing": "https://evil.example/"}, "landing"),
        ({"landing": "//evil.example/"}, "landing"),
        ({"landing": "/\\evil.example/"}, "landing"),
    ],
)
def test_invalid_invitations_are_refused(cast, wishes, field):
    with pytest.raises(BadInput) as error:
        invite(cast, **wishes)
    assert error.value.faults[0].field == field


def test_each_use_counts_up_to_the_limit(cast):
    _, secret = invite(cast, max_uses=2)
    for name in ("ugo", "una"):
        made, _ = accept_invitation(secret=secret, user=person(name))
        assert made.role == "annotator"
    with pytest.raises(NotThere, match="ask for a new one"):
        accept_invitation(secret=secret, user=person("uwe"))


def test_members_keep_their_role_and_use_nothing_up(cast):
    invitation, secret = invite(cast)
    kept, _ = accept_invitation(secret=secret, user=cast.researcher)
    assert kept.role == "researcher"
    assert Invitation.objects.get(pk=invitation.pk).uses == 0


def test_use_taken_meanwhile_is_not_given_twice(cast, monkeypatch):
    """Two people pass the check at the same time; the conditional update admits only one."""
    from evalapp.accounts.services import invitations

    invitation, secret = invite(cast)
    look = invitations.find_invitation

    def slow(*, secret):
        found = look(secret=secret)
        Invitation.objects.filter(pk=invitation.pk).update(uses=1)
        return found

    monkeypatch.setattr(invitations, "find_invitation", slow)
    with pytest.raises(NotThere):
        accept_invitation(secret=secret, user=cast.stranger)
    assert not Membership.objects.filter(project=cast.project, user=cast.stranger).exists()


def test_expired_revoked_and_invented_links_look_alike(cast):
    expired, first = invite(cast)
    Invitation.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    revoked, second = invite(cast)
    revoke_invitation(invitation=revoked, actor=cast.owner)
    texts = set()
    for secret in (first, second, "invented"):
        with pytest.raises(NotThere) as error:
            find_invitation(secret=secret)
        texts.add(error.value.detail)
    assert len(texts) == 1


def test_account_comes_with_an_invitation(cast):
    _, secret = invite(cast, landing="/my/")
    made, invitation = join_with_new_account(secret=secret, username="neu", password=PASSWORD)
    assert (made.user.username, invitation.landing) == ("neu", "/my/")
    assert User.objects.get(username="neu").check_password(PASSWORD)


@pytest.mark.parametrize(
    ("username", "password", "field"),
    [("neu", "short", "password"), ("neu!!", PASSWORD, "username"), ("", PASSWORD, "username")],
)
def test_invalid_account_is_refused_as_a_whole(cast, username, password, field):
    _, secret = invite(cast)
    with pytest.raises(BadInput) as error:
        join_with_new_account(secret=secret, username=username, password=password)
    assert field in {fault.field for fault in error.value.faults}
    assert not User.objects.filter(username=username).exists()


def test_taken_name_or_dead_link_creates_no_account(cast):
    _, secret = invite(cast)
    with pytest.raises(Conflict, match="taken"):
        join_with_new_account(secret=secret, username="olga", password=PASSWORD)
    with pytest.raises(NotThere):
        join_with_new_account(secret="invented", username="neu", password=PASSWORD)
    assert not User.objects.filter(username="neu").exists()


#: olga, rita and anna are members. Variants: capitals, Cyrillic o, a and i, Greek capital alpha, digit one and capital
#: i for l.
ALIKE = ("OLGA", "Olga", "\u043elga", "\u0430nn\u0430", "\u0391NNA", "r\u0456ta", "o1ga", "oIga")


@pytest.mark.parametrize("name", ALIKE)
def test_name_that_resembles_an_account_is_refused(cast, name):
    _, secret = invite(cast)
    with pytest.raises(Conflict, match="look alike") as refused:
        join_with_new_account(secret=secret, username=name, password=PASSWORD)
    assert [fault.field for fault in refused.value.faults] == ["username"]
    assert not User.objects.filter(username=name).exists()


def test_old_lookalike_account_names_stay(client, cast):
    person("OLGA")
    for name in ("olga", "OLGA"):
        client.logout()
        assert client.post("/account/sign-in/", {"username": name, "password": PASSWORD}).status_code == 302
    for name in ("olg", "olga2", "r1ta", "\u043d\u0438\u043d\u0430"):
        join_with_new_account(secret=invite(cast)[1], username=name, password=PASSWORD)


def test_person_can_sign_in_with_the_name_they_joined_with(client, cast):
    """Full-width letters of a Japanese keyboard, and a ligature: the sign-in form normalises both."""
    _, secret = invite(cast, max_uses=2)
    for typed in ("ｎｅｕ", "ﬁnn"):
        client.logout()
        join_with_new_account(secret=secret, username=typed, password=PASSWORD)
        assert client.post("/account/sign-in/", {"username": typed, "password": PASSWORD}).status_code == 302


def test_links_of_a_removed_member_are_no_way_back(cast):
    change_role(
        member=Membership.objects.get(project=cast.project, user=cast.researcher), role="owner", actor=cast.owner
    )
    gone, secret = create_invitation(project=cast.project, role="owner", actor=cast.researcher)
    kept, _ = invite(cast)
    remove_member(member=Membership.objects.get(project=cast.project, user=cast.researcher), actor=cast.owner)
    with pytest.raises(NotThere):
        accept_invitation(secret=secret, user=cast.researcher)
    gone.refresh_from_db()
    kept.refresh_from_db()
    assert gone.revoked_at
    assert not kept.revoked_at


def test_link_gives_no_more_than_its_maker_could_give_now(cast):
    """Also without a revocation: the maker left under an older version, or while the link was being created."""
    rita = Membership.objects.filter(project=cast.project, user=cast.researcher)
    secrets = {role: create_invitation(project=cast.project, role=role, actor=cast.researcher)[1] for role in ROLES}
    for role, works in (("owner", ROLES), ("researcher", ["annotator"]), ("annotator", []), ("viewer", [])):
        rita.update(role=role)
        assert usable(secrets) == works
    rita.delete()
    assert usable(secrets) == []
    User.objects.filter(pk=cast.researcher.pk).update(is_superuser=True)
    assert usable(secrets) == ROLES
    User.objects.filter(pk=cast.researcher.pk).update(is_active=False)
    assert usable(secrets) == []
    Invitation.objects.update(created_by=None)
    assert usable(secrets) == ROLES


def test_demoted_member_loses_links_beyond_the_new_role(cast):
    rita = Membership.objects.get(project=cast.project, user=cast.researcher)
    change_role(member=rita, role="owner", actor=cast.owner)
    made = {role: create_invitation(project=cast.project, role=role, actor=cast.researcher)[0] for role in ROLES}
    other, _ = create_invitation(project=cast.project, role="owner", actor=cast.owner)
    change_role(member=rita, role="researcher", actor=cast.owner)
    assert [row.role for row in Invitation.objects.filter(revoked_at=None).order_by("pk")] == ["annotator", "owner"]
    assert not Invitation.objects.get(pk=other.pk).revoked_at
    told = AuditEvent.objects.filter(verb="invitation.revoked").values_list("object", flat=True)
    assert set(told) == {str(row.pk) for role, row in made.items() if role != "annotator"}
