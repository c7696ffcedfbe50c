"""Evaluators at the level of dialogues: their mean over turns against ratings of whole dialogues."""

from __future__ import annotations

import numpy as np
import pytest

from annotation.models import Aspect, Dialogue, Item, Output, Rating, System
from evalapp.common.errors import BadInput
from evalapp.stats.correlation.dialogue import dialogue_correlations
from scoring.boards.matrix.query import MatrixQuery
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.models import Score
from scoring.selectors.leaderboards import parse_query
from tests.scoring.boards.computing import compute_table

pytestmark = pytest.mark.django_db


@pytest.fixture
def talks(cast, score):
    """Eight dialogues by the same system with three turns each, rated by two people; also outputs of another system."""
    mine, other = (System.objects.create(project=cast.project, name=name) for name in ("mine", "other"))
    aspect = Aspect.objects.create(project=cast.project, name="overall", low=1, high=5)
    rng = np.random.default_rng(5)
    for number in range(8):
        dialogue = Dialogue.objects.create(project=cast.project, key=f"d{number}", turns=["a", "b"], system=mine)
        for turn in range(3):
            item = Item.objects.create(project=cast.project, key=f"d{number}-{turn}", context=["?"], group=f"d{number}")
            for system in (mine, other):
                text = "word " * int(rng.integers(1, 9) + number * (system == mine))
                Output.objects.create(project=cast.project, item=item, system=system, text=text)
        for rater in ("x", "y"):
            value = 1 + (number + (rater == "y")) % 5
            Rating.objects.create(project=cast.project, dialogue=dialogue, aspect=aspect, rater=rater, value=value)
    score(cast.project, "length")
    return cast


def test_mean_over_turns_against_ratings_of_whole_dialogues(talks):
    table = compute_table(talks.project, parse_query(EvaluatorsQuery, {"level": "dialogue"}))
    row = next(row for row in table["rows"] if row["evaluator"] == "length")
    turns = Score.objects.filter(output__system__name="mine").values_list("value", "output__item__group")
    ratings = Rating.objects.values_list("value", "dialogue__key")
    said = dialogue_correlations(*zip(*turns, strict=True), *zip(*ratings, strict=True), ["overall"] * 16)
    assert row["spearman"]["value"] == pytest.approx(said["overall"].value)
    assert (row["spearman"]["n"], table["n_outputs"], table["n_ratings"]) == (8, 8, 16)
    assert table["level"] == "dialogue"
    assert table["signature"].startswith("level:dialogue|of:mean-over-turns|")
    assert table["ceiling"]["n"] == 8
    assert "accuracy" not in row


def test_missing_parts_of_a_dialogue_are_reported(talks, cast):
    Item.objects.update(group="elsewhere")
    table = compute_table(talks.project, EvaluatorsQuery(level="dialogue"))
    assert "the id of the dialogue as `group`" in table["note"]
    Rating.objects.all().delete()
    with pytest.raises(BadInput, match="ratings of dialogues"):
        compute_table(talks.project, EvaluatorsQuery(level="dialogue"))
    with pytest.raises(BadInput, match="grouping none"):
        parse_query(EvaluatorsQuery, {"level": "dialogue", "grouping": "item"})
    with pytest.raises(BadInput, match="main leaderboard"):
        parse_query(MatrixQuery, {"level": "dialogue"})
