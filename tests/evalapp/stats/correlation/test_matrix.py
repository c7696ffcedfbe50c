"""Correlations between evaluators: equal to NumPy and SciPy, with reproducible intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from evalapp.stats.correlation import matrix
from evalapp.stats.correlation.coefficients import midranks
from evalapp.stats.correlation.matrix import correlation_matrix
from evalapp.stats.correlation.slices import slice_estimates
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.aspects.compute import aspects_table
from scoring.boards.data.columns import MISSING
from scoring.boards.matrix.compute import matrix_table
from scoring.boards.metrics.people import ScoredSets
from scoring.boards.slices.compute import OTHERS, largest_parts, slices_table
from tests.scoring.boards.test_evaluator_tables import SETTINGS, evaluators_table, world  # noqa: F401


def scores(n=120, k=4, seed=2):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    return np.stack([common * weight + rng.normal(size=n) for weight in (2.0, 1.0, 0.0, -1.0)[:k]], axis=1)


def test_values_equal_numpy_and_scipy():
    columns = scores()
    found = correlation_matrix(columns, bootstrap=Bootstrap(cluster=np.arange(120) // 3))
    np.testing.assert_allclose(found.values, np.corrcoef(columns.T), atol=1e-12)
    ranked = correlation_matrix(
        columns, coefficient="spearman", bootstrap=Bootstrap(cluster=np.arange(120) // 3, resamples=0)
    )
    np.testing.assert_allclose(ranked.values, spearmanr(columns).statistic, atol=1e-12)
    assert found[1, 0] == found[0, 1]
    assert found[0, 1].low < found[0, 1].value < found[0, 1].high
    assert not ranked[0, 1].has_interval


def test_each_pair_has_its_own_rows_and_the_order_of_rows_does_not_matter():
    columns = scores()
    columns[:20, 0] = np.nan
    cluster = np.arange(120) // 3
    found = correlation_matrix(columns, bootstrap=Bootstrap(cluster=cluster))
    assert found[0, 1].n == 100
    assert found[1, 2].n == 120
    assert found[0, 1].value == pytest.approx(np.corrcoef(columns[20:, 0], columns[20:, 1])[0, 1])
    order = np.random.default_rng(0).permutation(120)
    again = correlation_matrix(columns[order], bootstrap=Bootstrap(cluster=cluster[order]))
    assert again[0, 1].low == pytest.approx(found[0, 1].low, abs=1e-12)
    scaled = correlation_matrix(columns * [1e6, 1e-6, 3, 1] + [5, 0, -1e3, 2], bootstrap=Bootstrap(cluster=cluster))
    assert scaled[0, 1].high == pytest.approx(found[0, 1].high, abs=1e-9)


def test_columns_are_ranked_once_for_all_pairs(monkeypatch):
    """Earlier, each pair ranked both columns again: 870 times a million values for 30 evaluators."""
    ranked = []
    monkeypatch.setattr(matrix, "midranks", lambda x: ranked.append(len(x)) or midranks(x))
    columns = scores()
    correlation_matrix(columns, coefficient="spearman", bootstrap=Bootstrap(cluster=np.arange(120), resamples=0))
    assert ranked == [120] * 4
    ranked.clear()
    columns[:20, 0] = np.nan
    found = correlation_matrix(
        columns, coefficient="spearman", bootstrap=Bootstrap(cluster=np.arange(120), resamples=0)
    )
    assert sorted(ranked) == [100] * 4 + [120] * 3
    assert found[0, 1].value == pytest.approx(spearmanr(columns[20:, 0], columns[20:, 1]).statistic, abs=1e-12)
    assert found[1, 2].value == pytest.approx(spearmanr(columns[:, 1], columns[:, 2]).statistic, abs=1e-12)


def test_undefined_pairs_have_a_reason():
    columns = scores()
    columns[:, 2] = 1.0
    columns[2:, 3] = np.nan
    found = correlation_matrix(columns, bootstrap=Bootstrap(cluster=np.arange(120)))
    assert found[0, 2].note == "one of the two gives the same score to all"
    assert found[0, 3].note == "only 2 outputs have both scores"
    assert np.isnan(found.values[0, 2])
    with pytest.raises(ValueError, match="pearson or spearman"):
        correlation_matrix(columns, coefficient="kendall", bootstrap=Bootstrap(cluster=np.arange(120)))


def test_table_puts_similar_evaluators_next_to_each_other(world):  # noqa: F811
    _, people, metrics, scored = world
    columns = np.stack(list(metrics.values()), axis=1)
    settings = {**SETTINGS, "coefficient": "pearson"}
    table = matrix_table(scored, columns, people.cluster, people.system, settings)
    names = [row["evaluator"] for row in table["rows"]]
    assert {names[0], names[1]} == {"good", "twin"}
    assert table["rows"][0]["cells"][0] is None
    assert table["rows"][0]["cells"][1]["value"] == pytest.approx(np.corrcoef(columns.T)[0, 1])
    systems = matrix_table(scored, columns, people.cluster, people.system, {**settings, "level": "system"})
    assert systems["rows"][0]["cells"][1]["n"] == 7


def test_slices_equal_their_function(world):  # noqa: F811
    _, people, metrics, scored = world
    part = np.where(people.item % 3 == 0, "a", np.where(people.item % 3 == 1, "b", MISSING))
    settings = {**SETTINGS, "key": "topic"}
    outside = people.item >= 6
    table = slices_table(people, scored, part, settings, aspect="q", outside=outside)
    mine = next(row for row in table["rows"] if row["evaluator"] == "good")
    found = slice_estimates(
        metrics["good"][outside],
        people.mean[outside],
        people.item[outside],
        people.system[outside],
        part[outside],
        bootstrap=Bootstrap(cluster=people.cluster[outside]),
    )
    assert [cell["name"] for cell in mine["cells"]] == [part["name"] for part in table["parts"]] == [MISSING, "a", "b"]
    assert mine["cells"][1]["shrunken"]["value"] == found.slices[1].shrunken.value
    assert mine["estimate"]["value"] == found.whole.value
    assert table["n_excluded"] == 42
    one = slices_table(people, scored, np.full(len(people), "x"), settings, aspect="q", outside=outside)
    assert one["note"] == "All items belong to the same subset."


def test_many_slices_are_merged():
    part = np.array([f"p{k:02d}" for k in range(30) for _ in range(k + 1)])
    found = largest_parts(part, 5)
    assert sorted(set(found.tolist())) == [OTHERS, "p26", "p27", "p28", "p29"]
    assert (largest_parts(part, 30) == part).all()


def test_aspects_side_by_side(world):  # noqa: F811
    _, people, _, scored = world
    outside = np.ones(len(people), dtype=bool)
    tables = [
        evaluators_table(people, ScoredSets(scored[:k], outside), SETTINGS, aspect=name)
        for name, k in (("fluency", 3), ("relevance", 2))
    ]
    table = aspects_table(tables, {**SETTINGS, "figure": "spearman"})
    assert [row["aspect"] for row in table["aspects"]] == ["fluency", "relevance"]
    noise = next(row for row in table["rows"] if row["evaluator"] == "noise")
    assert noise["cells"][1]["note"] == "not scored for this aspect"
    first = next(row for row in tables[0]["rows"] if row["evaluator"] == "noise")
    assert noise["cells"][0]["value"] == first["spearman"]["value"]
    assert table["rows"][-1] is noise
