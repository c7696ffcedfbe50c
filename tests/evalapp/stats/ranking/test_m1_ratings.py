"""Better-or-equal verdicts from ratings in which the reference is rated as a system."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalapp.stats.ranking.m1_ratings import compare_with_reference
from evalapp.stats.ranking.systems import rank_by_m1

DATA = Path(__file__).resolve().parents[5] / "shared/data"


def test_verdicts_by_hand():
    """Rater p: 3 and 2 against the reference's 3; q: 5 against 4; r did not rate the reference."""
    rows = [
        ("i", "human", "p", 3.0), ("i", "one", "p", 3.0), ("i", "two", "p", 2.0),
        ("i", "human", "q", 4.0), ("i", "two", "q", 5.0), ("i", "two", "r", 5.0),
    ]  # fmt: skip
    found = compare_with_reference(*map(list, zip(*rows, strict=True)), reference="human")
    assert list(zip(found.systems, found.verdicts, strict=True)) == [("one", "tie"), ("two", "b"), ("two", "a")]
    assert found.n_left_out == 1
    ranking = rank_by_m1(found.items, found.systems, found.verdicts)
    assert {row.system: row.estimate.value for row in ranking.systems} == {"one": 1.0, "two": 0.5}


def test_impossible_columns_are_refused():
    with pytest.raises(ValueError, match="twice"):
        compare_with_reference(["i", "i"], ["a", "a"], ["p", "p"], [1, 2], "a")
    with pytest.raises(ValueError, match="no rating is of the system 'human'"):
        compare_with_reference(["i"], ["a"], ["p"], [1], "human")
    with pytest.raises(ValueError, match="same length"):
        compare_with_reference(["i"], ["a"], ["p"], [], "a")


@pytest.mark.parametrize(
    ("name", "reference"),
    [("usr_topicalchat", "Original Ground Truth"), ("usr_personachat", "Original Ground Truth"),
     ("dailydialog_multiref", "human")],
)  # fmt: skip
def test_sets_in_which_the_reference_was_rated(name: str, reference: str):
    if not (DATA / name).is_dir():
        pytest.skip(f"the data set {name} is not here")
    from scoring.ml import read_dataset

    rows = [rating for rating in read_dataset(DATA / name).ratings if rating.aspect == "overall"]
    found = compare_with_reference(
        [row.item or "" for row in rows], [row.system or "" for row in rows], [row.rater for row in rows],
        [row.value for row in rows], reference,
    )  # fmt: skip
    assert found.n_left_out == 0
    n_reference = sum(row.system == reference for row in rows)
    assert len(found.items) == len(rows) - n_reference
    ranking = rank_by_m1(found.items, found.systems, found.verdicts)
    # Most generations are worse than what people wrote.
    assert all(0 <= row.estimate.value <= 1 for row in ranking.systems)
    assert min(row.estimate.value for row in ranking.systems) < 0.5
