"""What raters are called in an export: the people of an installation stay who they are, others cannot be told."""

from __future__ import annotations

import pytest

from annotation.exporters.people import naming
from evalapp.accounts.models import Membership, Project

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("how", ["kept", "pseudonyms"])
def test_somebody_of_here_is_the_same_rater_in_a_later_campaign(cast, how):
    """A campaign that asks once more what an earlier one asked stores `PSEUDONYM@NUMBER`, a repeat of it `...#2`."""
    own = Membership.objects.get(project=cast.project, user=cast.annotator).pseudonym
    called = naming(cast.project, how)
    names = [own, f"{own}@12", f"{own}@12#2"]
    assert [called(name) for name in names] == names


def test_the_number_of_a_campaign_makes_no_address(cast):
    called = naming(Project.objects.create(slug="twin", name="twin"), "kept")
    assert [called(name) for name in ("w7", "w7@12", "w7@12#2")] == ["w7", "w7@12", "w7@12#2"]
    assert called("eva@example.org").startswith("rater-")
    assert naming(cast.project, "kept")(f"{cast.annotator.username}@12").startswith("rater-")


def test_a_made_name_keeps_the_number_and_is_made_once(cast):
    called = naming(cast.project, "pseudonyms")
    plain, later = called("w7"), called("w7@12#2")
    assert plain.startswith("rater-")
    assert later == f"{plain}@12#2"
    assert called(later) == later
