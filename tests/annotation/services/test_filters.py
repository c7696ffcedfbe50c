"""Named rater exclusions: each has a reason, keeps its meaning, and deletes nothing."""

from __future__ import annotations

import pytest

from annotation.models import Rating
from annotation.selectors.filters import get_active_filter, get_filter, make_filter_signature
from annotation.services.filters import create_filter, restore_filter, withdraw_filter
from evalapp.common.errors import BadInput, Conflict, NotThere
from evalapp.common.models import AuditEvent
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.django_db


@pytest.fixture
def rated(cast):
    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project, 3)), raters=3)
    return cast


def test_filter_is_created_withdrawn_and_restored(rated):
    made = create_filter(project=rated.project, user=rated.owner, name="hasty", raters=["r1", "r0"], reason="2 s each")
    assert made.raters == ["r0", "r1"]
    assert made.is_active
    assert make_filter_signature(made) == f"|filter:hasty@{made.digest}"
    assert Rating.objects.filter(project=rated.project).count() == 18
    withdraw_filter(row=made, user=rated.owner)
    with pytest.raises(Conflict, match="was withdrawn on"):
        get_active_filter(rated.project, "hasty")
    restore_filter(row=get_filter(rated.project, "hasty"), user=rated.owner)
    assert get_active_filter(rated.project, "hasty").digest == made.digest
    verbs = AuditEvent.objects.filter(object="hasty").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["filter.created", "filter.withdrawn", "filter.restored"]


def test_repeats_follow_their_rater(rated):
    made = create_filter(project=rated.project, user=None, name="one", raters=["r1"], reason="always 5")
    assert made.covers("r1")
    assert made.covers("r1#2")
    assert not made.covers("r10")
    assert made.covers("r1@7#2")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": "No Spaces"}, "name"),
        ({"reason": "  "}, "reason"),
        ({"raters": []}, "raters"),
        ({"raters": ["nobody"]}, "raters"),
    ],
)
def test_errors_name_the_field(rated, given, field):
    whole = {"name": "x", "raters": ["r0"], "reason": "why", **given}
    with pytest.raises(BadInput) as caught:
        create_filter(project=rated.project, user=None, **whole)
    assert [fault.field for fault in caught.value.faults] == [field]


def test_name_is_used_once_and_hidden_from_strangers(rated):
    create_filter(project=rated.project, user=None, name="x", raters=["r0"], reason="why")
    with pytest.raises(Conflict, match="Choose another name"):
        create_filter(project=rated.project, user=None, name="x", raters=["r1"], reason="why")
    with pytest.raises(NotThere, match="Existing filters: x"):
        get_filter(rated.project, "y")
