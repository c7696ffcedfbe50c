"""Median, pooling, ceiling, threshold, by hand: docs/explanation/evaluators/shared-bert.md#labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scoring.ml.evaluators.shared_bert.labels import (
    BETA_GRID,
    Rule,
    default_threshold,
    label_outputs,
    make_rule,
    pairs_with_references,
    share_of_negatives,
)
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating


def dataset(outputs: dict[str, tuple[str, list[float]]], scale: tuple[float, float] = (1, 6)) -> Dataset:
    """One item; each system's text and its ratings."""
    return Dataset(
        "hand",
        aspects=(Aspect("quality", *scale),),
        items=(Item("i", references=("a b", " ", "c")),),
        outputs=tuple(Output("i", system, text) for system, (text, _) in outputs.items()),
        ratings=tuple(
            Rating(f"r{n}", "quality", value, "i", system)
            for system, (_, values) in outputs.items()
            for n, value in enumerate(values)
        ),
    )


def test_medians_are_rounded_up_and_capped_at_five() -> None:
    data = dataset({"a": ("x", [4, 5]), "b": ("y", [4, 4, 6]), "c": ("z", [5]), "d": ("w", [3, 4])})
    found = label_outputs(data, ["quality"])
    assert found.thresholds == (5.0,)
    # Medians 4.5 -> 5, 4, 5, 3.5 -> 4.
    assert found.labels[:, 0].tolist() == [1, 0, 1, 0]
    assert share_of_negatives(found.labels).tolist() == [0.5]


def test_only_whole_and_half_point_scales_are_rounded_up() -> None:
    """On a fine scale from 0 to 1, all but 0 would be good: ceil(.3) = 1."""
    data = dataset({"a": ("x", [0.31, 0.3]), "b": ("y", [0.72, 0.7]), "c": ("z", [0.69])}, (0, 1))
    found = label_outputs(data, ["quality"])
    assert found.thresholds == (0.7,)
    assert found.labels[:, 0].tolist() == [0, 1, 0]
    halves = label_outputs(dataset({"a": ("x", [4.5]), "b": ("y", [4])}), ["quality"])
    assert halves.labels[:, 0].tolist() == [1, 0]
    assert make_rule(data, "quality", "raw", 0.3) == Rule(0.3, False, 0, 1)


def test_share_of_bad_instances_uses_pairs_on_request() -> None:
    """The paper's ratio of negatives counts (output, reference) pairs, like its loss."""
    found = label_outputs(dataset({"a": ("x", [5]), "b": ("y", [1])}), ["quality"])
    assert share_of_negatives(found.labels[np.array([0, 1, 1, 1])]).tolist() == [0.75]


def test_ratings_of_identical_texts_are_pooled() -> None:
    data = dataset({"a": ("same", [6, 6]), "b": ("same", [2, 2, 2]), "c": ("other", [6])})
    found = label_outputs(data, ["quality"])
    assert [record.system for record in found.records] == ["a", "c"]
    # The median of 6 6 2 2 2 is 2.
    assert found.labels[:, 0].tolist() == [0, 1]
    assert found.n_merged == 1


def test_output_without_ratings_for_an_aspect_is_unknown() -> None:
    data = dataset({"a": ("x", [5]), "b": ("y", [1])})
    more = Rating("r0", "style", 3.0, "i", "b", simulated=True)
    data = Dataset(**{**{f: getattr(data, f) for f in data.__dataclass_fields__}, "ratings": (*data.ratings, more)})
    found = label_outputs(data, ["quality", "style"])
    np.testing.assert_array_equal(found.labels, [[1, np.nan], [0, 1]])
    assert found.simulated == 1
    np.testing.assert_array_equal(share_of_negatives(found.labels), [0.5, 0.0])


@pytest.mark.parametrize(("scale", "threshold"), [((1, 6), 5), ((1, 5), 4), ((0, 1), 1), ((1, 3), 3), ((0, 100), 70)])
def test_default_threshold_is_at_seven_tenths_of_the_scale(scale: tuple[float, float], threshold: float) -> None:
    assert default_threshold(dataset({"a": ("x", [1])}, scale), "quality", "raw") == threshold


def test_outputs_without_text_are_excluded_and_counted() -> None:
    """Once, an empty text was silently paired with each reference in training."""
    data = dataset({"a": ("x", [5]), "b": (" \n", [1]), "c": ("", [6])})
    found = label_outputs(data, ["quality"])
    assert [record.system for record in found.records] == ["a"]
    assert found.labels[:, 0].tolist() == [1]
    assert (found.n_empty, found.n_alone, found.n_merged) == (2, 0, 0)
    bare = replace(data, items=(Item("i", references=(" ",)),))
    found = label_outputs(bare, ["quality"])
    assert (found.records, found.n_empty, found.n_alone) == ([], 2, 1)


def test_instances_are_pairs_of_output_and_reference() -> None:
    found = label_outputs(dataset({"a": ("x", [5]), "b": ("y", [1])}), ["quality"])
    assert pairs_with_references(found) == [(0, "a b"), (0, "c"), (1, "a b"), (1, "c")]


def test_published_betas_are_on_the_grid() -> None:
    # Reddy 2022, tables 2 and 3: negatives 3450, 3904, 1920 of 11,222; beta / ratio = 1.15, .90, .85.
    for negatives, beta, factor in ((3450, 0.3535, 1.15), (3904, 0.3130, 0.90), (1920, 0.1454, 0.85)):
        assert beta == pytest.approx(negatives / 11222 * factor, abs=1.1e-4)
        assert factor in BETA_GRID


def test_grades_are_mean_ratings_as_shares_of_the_scale() -> None:
    data = dataset({"a": ("x", [1, 6]), "b": ("y", [6, 6]), "c": ("z", [2]), "d": ("w", [1])})
    np.testing.assert_allclose(label_outputs(data, ["quality"]).grades[:, 0], [0.5, 1.0, 0.2, 0.0])


def test_grades_of_standardised_ratings_are_normal_probabilities() -> None:
    """A rater with 2 and 4 has z = -.7071 and .7071 (their SD is 1.4142)."""
    data = dataset({"a": ("x", [2]), "b": ("y", [4])})
    found = label_outputs(data, ["quality"], method="z")
    np.testing.assert_allclose(found.grades[:, 0], [0.23975, 0.76025], atol=1e-6)


def test_grades_of_ranks_are_mean_ranks() -> None:
    """Within the item, 2, 4 and 4 have the ranks 1, 2.5 and 2.5 of 3, at (rank - 1/2) / 3 of the way."""
    data = dataset({"a": ("x", [2]), "b": ("y", [4]), "c": ("z", [4])})
    assert label_outputs(data, ["quality"], method="rank").grades[:, 0].tolist() == pytest.approx([1 / 6, 2 / 3, 2 / 3])


def test_grades_without_a_scale_lie_between_the_lowest_and_the_highest_rating() -> None:
    data = replace(dataset({"a": ("x", [2]), "b": ("y", [4]), "c": ("z", [3])}), aspects=(Aspect("quality"),))
    assert label_outputs(data, ["quality"]).grades[:, 0].tolist() == [0.0, 1.0, 0.5]
    alike = replace(dataset({"a": ("x", [2]), "b": ("y", [2])}), aspects=(Aspect("quality"),))
    assert label_outputs(alike, ["quality"]).grades[:, 0].tolist() == [0.5, 0.5]
