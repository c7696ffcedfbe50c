"""Gold reliability, sampled sets, the paper's counts, negatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from scoring.ml.evaluators.ream.gold import (
    TEST_SIZES,
    ItemGold,
    Sample,
    count_sets,
    draw_foreign,
    draw_sets,
    pearson_columns,
    worse_by_removal,
)
from scoring.ml.evaluators.ream.training import QueryItem, foreign_answers
from scoring.ml.registry import load
from scoring.ml.types import Record


def item(n_outputs: int = 14, n_references: int = 6, n_foreign: int = 3, seed: int = 1) -> ItemGold:
    rng = np.random.default_rng(seed)
    return ItemGold(rng.random((n_outputs, n_references + n_foreign)), rng.random(n_outputs), n_references)


def test_reliability_is_pearson_of_the_best_reference() -> None:
    one = item()
    for nodes in ((0,), (1, 4), (0, 1, 2, 3, 4, 5)):
        wanted = stats.pearsonr(one.metric[:, nodes].max(axis=1), one.human).statistic
        assert one.reliabilities([nodes])[0] == pytest.approx(wanted, abs=1e-12)
    together = one.reliabilities([(0,), (1, 4), (2,)])
    np.testing.assert_allclose(together, [one.reliabilities([n])[0] for n in ((0,), (1, 4), (2,))])


@pytest.mark.parametrize("name", ["token-f1", "chrf", "rouge-l", "bleu-star"])
def test_metric_over_more_references_never_falls(name: str) -> None:
    """It equals the value of the best reference alone, as assumed by the reliability (equation 1)."""
    text, references = "the cat sat on the mat", ("no dog ran", "the cat sat", "a cat sat on the mat", "tea")
    metric = load(name)
    growing = [metric.score([Record(text, references[:n])])[0] for n in (1, 2, 3, 4)]
    alone = [metric.score([Record(text, (reference,))])[0] for reference in references]
    np.testing.assert_allclose(growing, np.maximum.accumulate(alone), atol=1e-12)
    assert growing[0] < growing[1] < growing[2] == growing[3]


def test_constant_scores_have_no_reliability() -> None:
    columns = np.column_stack([np.full(5, 0.3), np.arange(5.0), np.full(5, 0.1) + 1e-17])
    found = pearson_columns(columns, np.array([1.0, 2, 3, 4, 6]))
    assert math.isnan(found[0])
    assert found[1] == pytest.approx(stats.pearsonr(np.arange(5), [1, 2, 3, 4, 6]).statistic)
    assert math.isnan(found[2])
    assert np.isnan(pearson_columns(columns, np.ones(5))).all()
    assert np.isnan(pearson_columns(columns[:2], np.array([1.0, 2]))).all()


def test_counts_reproduce_the_sets_of_the_paper() -> None:
    # docs/explanation/evaluators/ream.md#training-sets: 400,000 = 4,000 x 25 x 4 sizes; 3,000 = 500 x 6 sizes.
    assert count_sets(4000, 200, (3, 5, 7, 10), 25) == 400_000
    assert count_sets(500, 200, TEST_SIZES, 1) == 3_000
    assert count_sets(1, 3, (1, 2, 3, 5), 25) == 3 + 3 + 1


def test_sets_are_distinct_and_of_available_sizes() -> None:
    found = draw_sets(7, (1, 3, 7, 10), 25, np.random.default_rng(2))
    assert len(found) == len(set(found)) == 7 + 25 + 1
    assert {len(nodes) for nodes in found} == {1, 3, 7}
    assert all(len(set(nodes)) == len(nodes) and max(nodes) < 7 for nodes in found)
    assert len(found) == count_sets(1, 7, (1, 3, 7, 10), 25)


def test_only_removals_that_lower_the_gold_are_negatives() -> None:
    one = item(seed=4)
    for nodes in ((0, 1, 2), (1, 2, 3, 5)):
        sample = Sample(0, nodes, float(one.reliabilities([nodes])[0]))
        found = worse_by_removal(sample, one)
        every = [nodes[:k] + nodes[k + 1 :] for k in range(len(nodes))]
        assert [n for n, _ in found] == [n for n in every if one.reliabilities([n])[0] < sample.gold]
        assert all(gold < sample.gold for _, gold in found)
    assert worse_by_removal(Sample(0, (1,), 0.5), one) == []


def test_item_with_nearly_all_references_gets_answers_of_others() -> None:
    def query(name: str, n: int) -> QueryItem:
        texts = tuple(f"{name}{k}" for k in range(n))
        return QueryItem(Record("", item=name), texts, ("x", "y", "z"), np.array([1.0, 2.0, 3.0]))

    rich, *others = foreign_answers([query("rich", 500), query("a", 1), query("b", 1)], 2, np.random.default_rng(1))
    assert set(rich) == {"a0", "b0"}
    assert [len(chosen) for chosen in others] == [2, 2]


def test_foreign_answers_are_added_or_replace_one() -> None:
    one, rng = item(), np.random.default_rng(3)
    sample = Sample(0, (0, 2, 5), 0.3)
    added = draw_foreign("add", sample, one, rng)
    replaced = draw_foreign("replace", sample, one, rng, gold=False)
    assert added is not None
    assert replaced is not None
    assert added[0][:3] == (0, 2, 5)
    assert added[0][3] >= 6
    assert added[1] == pytest.approx(float(one.reliabilities([added[0]])[0]))
    assert len(replaced[0]) == 3
    assert len(set(replaced[0]) & {0, 2, 5}) == 2
    assert math.isnan(replaced[1])
    assert draw_foreign("add", sample, item(n_foreign=0), rng) is None
