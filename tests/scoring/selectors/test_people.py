"""What people said, as columns: steps are systems of their own, dialogues are left out, the order is stable."""

from __future__ import annotations

import numpy as np
import pytest

from annotation.models import Aspect, Dialogue, Output, Rating
from evalapp.common.errors import BadInput, NotThere
from scoring.selectors.aspects import choose_aspect
from scoring.selectors.people import load_ratings
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.django_db


@pytest.fixture
def aspect(cast):
    outputs = make_outputs(cast.project, make_items(cast.project, 3))
    return make_ratings(cast.project, outputs)


def test_columns(cast, aspect):
    ratings = load_ratings(cast.project, aspect)
    assert len(ratings) == 12
    assert [unit.label for unit in ratings.units.units] == ["sys-a", "sys-b"]
    assert set(ratings.cluster) == {0, 1, 2}
    assert list(ratings.output) == sorted(ratings.output)
    assert list(ratings.rater[:2]) == [0, 1]


def test_a_system_at_a_step_is_a_system_of_its_own(cast, aspect):
    output = Output.objects.filter(system__name="sys-a").first()
    later = Output.objects.create(project=cast.project, item=output.item, system=output.system, step=900, text="x")
    Rating.objects.create(project=cast.project, output=later, aspect=aspect, rater="r0", value=2)
    labels = [unit.label for unit in load_ratings(cast.project, aspect).units.units]
    assert sorted(labels) == ["sys-a", "sys-a @ 900", "sys-b"]


def test_ratings_of_dialogues_are_left_out(cast, aspect):
    dialogue = Dialogue.objects.create(project=cast.project, key="d1", turns=["a", "b"])
    Rating.objects.create(project=cast.project, dialogue=dialogue, aspect=aspect, rater="r0", value=2)
    assert len(load_ratings(cast.project, aspect)) == 12


def test_no_ratings_at_all(cast):
    empty = Aspect.objects.create(project=cast.project, name="empty", low=1, high=5)
    ratings = load_ratings(cast.project, empty)
    assert len(ratings) == 0
    assert ratings.units.wanted("machine").shape == (0,)
    assert ratings.value.dtype == np.float64


def test_choosing_an_aspect(cast, aspect):
    Aspect.objects.create(project=cast.project, name="first but unrated", low=1, high=5, position=0)
    Aspect.objects.filter(pk=aspect.pk).update(position=1)
    assert choose_aspect(cast.project, "", judged_by="ratings") == aspect
    with pytest.raises(NotThere, match="There are: first but unrated, quality"):
        choose_aspect(cast.project, "nonsense", judged_by="ratings")
    with pytest.raises(BadInput, match="Nobody has made comparisons"):
        choose_aspect(cast.project, "", judged_by="comparisons")
