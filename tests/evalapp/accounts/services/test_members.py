"""Members: pseudonyms, roles, and a project that always has an owner."""

from __future__ import annotations

import pytest
from django.utils import timezone

from evalapp.accounts.models import Membership, User
from evalapp.accounts.roles import Role
from evalapp.accounts.selectors import rater_names
from evalapp.accounts.services import add_member, change_role, members, remove_member
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import AuditEvent
from tests.cast import person


def member(cast, user):
    return Membership.objects.get(project=cast.project, user=user)


def test_pseudonym_of_a_new_member_reveals_nothing(cast):
    made = add_member(project=cast.project, user=person("ugo"), role=Role.VIEWER, actor=cast.owner)
    assert made.pseudonym.startswith("r-")
    assert "ugo" not in made.pseudonym
    assert AuditEvent.objects.get(verb="member.added").detail == {"role": "viewer"}


def test_taken_pseudonym_is_drawn_again(cast, monkeypatch):
    names = iter(["p-olga", "p-rita", "r-free"])
    monkeypatch.setattr(members, "new_pseudonym", lambda: next(names))
    made = add_member(project=cast.project, user=person("ugo"), role=Role.VIEWER, actor=None)
    assert made.pseudonym == "r-free"


def test_returning_member_is_the_same_rater(cast):
    before = member(cast, cast.annotator)
    remove_member(member=before, actor=cast.owner)
    assert rater_names(cast.project.pk)[cast.annotator.pk] == before.pseudonym
    back = add_member(project=cast.project, user=cast.annotator, role=Role.ANNOTATOR, actor=cast.owner)
    assert back.pseudonym == before.pseudonym
    remove_member(member=back, actor=cast.owner)
    # An account created later under the same name belongs to another person.
    User.objects.filter(pk=cast.annotator.pk).update(date_joined=timezone.now())
    new = add_member(project=cast.project, user=cast.annotator, role=Role.ANNOTATOR, actor=cast.owner)
    assert new.pseudonym != before.pseudonym


def test_nobody_joins_twice_and_roles_must_exist(cast):
    with pytest.raises(Conflict, match="already a member of this project"):
        add_member(project=cast.project, user=cast.viewer, role=Role.OWNER, actor=cast.owner)
    with pytest.raises(BadInput, match="Unknown role"):
        add_member(project=cast.project, user=cast.stranger, role="king", actor=cast.owner)


def test_last_owner_cannot_leave(cast):
    only = member(cast, cast.owner)
    with pytest.raises(Conflict, match="only owner"):
        change_role(member=only, role=Role.VIEWER, actor=cast.owner)
    with pytest.raises(Conflict, match="only owner"):
        remove_member(member=only, actor=cast.owner)
    change_role(member=member(cast, cast.researcher), role=Role.OWNER, actor=cast.owner)
    remove_member(member=only, actor=cast.owner)
    with pytest.raises(Conflict, match="only owner"):
        remove_member(member=member(cast, cast.researcher), actor=cast.researcher)


def test_owner_who_cannot_sign_in_does_not_count(cast):
    change_role(member=member(cast, cast.researcher), role=Role.OWNER, actor=cast.owner)
    cast.researcher.is_active = False
    cast.researcher.save()
    with pytest.raises(Conflict, match="only owner"):
        remove_member(member=member(cast, cast.owner), actor=cast.owner)


def test_only_real_changes_are_recorded(cast):
    change_role(member=member(cast, cast.viewer), role=Role.VIEWER, actor=cast.owner)
    assert not AuditEvent.objects.filter(verb="member.changed").exists()
    change_role(member=member(cast, cast.viewer), role=Role.ANNOTATOR, actor=cast.owner)
    event = AuditEvent.objects.get(verb="member.changed")
    assert (event.actor, event.object, event.detail) == (cast.owner, "vic", {"before": "viewer", "role": "annotator"})
