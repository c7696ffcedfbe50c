"""Rater names in an export: people of this installation keep theirs, other raters cannot be identified."""

from __future__ import annotations

import pytest

from annotation.exporters.people import naming
from annotation.models import Rating
from evalapp.accounts.models import Membership, Project
from evalapp.accounts.services import remove_member
from evalapp.stats.agreement.judged import resolve_raters
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("how", ["kept", "pseudonyms"])
def test_member_is_the_same_rater_in_a_later_campaign(cast, how):
    """A second campaign on the same units stores its raters as `PSEUDONYM@NUMBER`, and repeats as `...#2`."""
    own = Membership.objects.get(project=cast.project, user=cast.annotator).pseudonym
    called = naming(cast.project, how)
    names = [own, f"{own}@12", f"{own}@12#2"]
    assert [called(name) for name in names] == names


def test_campaign_number_is_not_mistaken_for_an_address(cast):
    called = naming(Project.objects.create(slug="twin", name="twin"), "kept")
    assert [called(name) for name in ("w7", "w7@12", "w7@12#2")] == ["w7", "w7@12", "w7@12#2"]
    assert called("eva@example.org").startswith("rater-")
    assert naming(cast.project, "kept")(f"{cast.annotator.username}@12").startswith("rater-")


def test_uploaded_name_does_not_identify_a_former_member(cast):
    remove_member(member=Membership.objects.get(project=cast.project, user=cast.annotator), actor=cast.owner)
    called = naming(cast.project, "kept")
    assert called(cast.annotator.username).startswith("rater-")
    assert called("p-anna@3") == "p-anna@3"


def rated_by(project: Project, *raters: str) -> None:
    aspect = make_ratings(project, make_outputs(project, make_items(project, 1, 1), ["sys-a"]), raters=1)
    first = Rating.objects.get(aspect=aspect)
    for rater in raters:
        first.pk, first.rater = None, rater
        first.save(force_insert=True)


def test_export_and_statistics_count_the_same_raters(cast):
    """`a#1` and `a#2` are two raters if there is no rater `a`; `r0#2` is a repeat of `r0`."""
    keys = ("r0", "r0#2", "a#1", "a#2", "b@7", "b@7#2")
    rated_by(cast.project, *keys[1:])
    kept, made = naming(cast.project, "kept"), naming(cast.project, "pseudonyms")
    assert [kept(key) for key in keys] == list(keys)
    names = [made(key) for key in keys]
    assert all(name.startswith("rater-") for name in names)
    before, after = resolve_raters(keys)[0], resolve_raters(names)[0]
    groups = [[people[key] for key in row] for people, row in ((before, keys), (after, names))]
    assert [[row.index(person) for person in row] for row in groups] == [[0, 0, 2, 3, 4, 4]] * 2
    assert [made(name) for name in names] == names


def test_generated_name_keeps_the_number_and_is_made_once(cast):
    rated_by(cast.project, "w7", "w7@12#2")
    called = naming(cast.project, "pseudonyms")
    plain, later = called("w7"), called("w7@12#2")
    assert plain.startswith("rater-")
    assert later == f"{plain}@12#2"
    assert called(later) == later
