"""The table of agreement: the same figures as the functions, pairs of raters, prevalence, notes, JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from evalapp.stats.agreement.coefficients import NARROW, OVER_UNITS, agreement_table
from evalapp.stats.agreement.icc import icc
from evalapp.stats.agreement.kappa import cohen_kappa, fleiss_kappa
from evalapp.stats.agreement.krippendorff import krippendorff_alpha
from evalapp.stats.resampling.bootstrap import Bootstrap


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, 40)
    data = np.clip(truth[:, None] + rng.integers(-1, 2, (40, 3)), 1, 5).astype(float)
    data[:15, 2] = np.nan
    unit, rater = (grid.ravel() for grid in np.indices(data.shape))
    return data.ravel(), unit, np.array(["ann", "bob", "cem"])[rater]


def test_figures_equal_those_of_the_functions(ratings):
    value, unit, rater = ratings
    table = agreement_table(value, unit, rater, scale="interval", bootstrap=Bootstrap(resamples=50))
    assert table.coefficients["alpha"] == krippendorff_alpha(unit, value, bootstrap=Bootstrap(resamples=50))
    assert replace(table.coefficients["fleiss"], note="") == fleiss_kappa(
        value, unit, rater, bootstrap=Bootstrap(resamples=50)
    )
    assert table.coefficients["icc_a1"] == icc(value, unit, rater, form="A,1", bootstrap=Bootstrap(resamples=50))
    assert [(pair.rater_a, pair.rater_b, pair.n_units) for pair in table.pairs] == [
        ("ann", "bob", 40), ("ann", "cem", 25), ("bob", "cem", 25),
    ]  # fmt: skip
    x, y = value[rater == "ann"], value[rater == "bob"]
    assert table.pairs[0].kappa == cohen_kappa(x, y, weights="quadratic", bootstrap=Bootstrap(resamples=50))
    weights = np.array([40, 25, 25]) / 90
    assert table.coefficients["cohen"].value == pytest.approx(weights @ [pair.kappa.value for pair in table.pairs])
    assert sum(table.prevalence.values()) == pytest.approx(1)
    assert (table.n_ratings, table.n_units, table.n_rated_twice, table.n_raters) == (105, 40, 40, 3)
    assert "Units have 2 to 3 ratings." in table.notes
    text = json.dumps(table.as_dict(), allow_nan=False)
    assert json.loads(text)["pairs"][0]["rater_a"] == "ann"


def test_order_of_rows_does_not_matter(ratings):
    order = np.random.default_rng(1).permutation(len(ratings[0]))
    shown = [agreement_table(*columns, scale="ordinal", bootstrap=Bootstrap(resamples=30)).as_dict() for columns in (
        ratings, [column[order] for column in ratings],
    )]  # fmt: skip
    assert shown[0] == shown[1]


def test_labels_lopsided_answers_and_omitted_pairs():
    value = ["good"] * 57 + ["bad"] * 3
    unit = list(range(30)) * 2
    rater = ["a"] * 30 + ["b"] * 30
    table = agreement_table(value, unit, rater, scale="nominal", min_shared=31, bootstrap=Bootstrap(resamples=20))
    assert table.pairs == ()
    assert table.pairs_left_out == 1
    assert table.coefficients["cohen"].note == "no two raters share enough units"
    assert any("95% of the ratings are good" in note for note in table.notes)
    assert "icc_1" not in table.coefficients
    assert table.coefficients["percent"].value == pytest.approx(0.9)
    assert table.coefficients["alpha"].value < 0


def test_clusters_keep_the_value(ratings):
    value, unit, rater = ratings
    clustered = agreement_table(value, unit, rater, bootstrap=Bootstrap(cluster=unit // 10, resamples=50))
    alone = agreement_table(value, unit, rater, bootstrap=Bootstrap(resamples=0))
    assert clustered.coefficients["alpha"].value == pytest.approx(alone.coefficients["alpha"].value)
    assert clustered.settings["cluster"] is True


def test_empty_and_one_rater():
    for columns in (([], [], []), ([1.0, 2.0], [0, 1], ["a", "a"])):
        table = agreement_table(*columns, bootstrap=Bootstrap(resamples=10))
        assert all(not found.is_defined and found.note for found in table.coefficients.values())
        assert table.pairs == ()
        json.dumps(table.as_dict(), allow_nan=False)
    with pytest.raises(ValueError, match="scale"):
        agreement_table([1], [1], [1], scale="circular")


def test_lopsided_ratings_without_a_pair_get_no_pair_note():
    table = agreement_table([1.0] * 9 + [2.0], range(10), ["a"] * 10)
    assert table.notes == ("10 of 10 units have one rating and say nothing of agreement.",)


@pytest.mark.parametrize("shown", [0, 1, 60])
def test_coefficients_do_not_depend_on_the_number_of_shown_pairs(shown):
    """The mean kappa covers all pairs with 10 units in common, weighted by these: against scikit-learn's kappa."""
    from itertools import combinations

    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(2)
    data = np.clip(rng.integers(1, 6, size=(60, 1)) + rng.integers(-1, 2, size=(60, 6)), 1, 5)
    data = np.where(rng.random(data.shape) < 0.35, 0, data)
    unit, rater = (grid.ravel()[data.ravel() > 0] for grid in np.indices(data.shape))
    value = data.ravel()[data.ravel() > 0].astype(float)
    table = agreement_table(value, unit, rater, max_pairs=shown, bootstrap=Bootstrap(resamples=0))
    kappas, units = [], []
    for a, b in combinations(range(6), 2):
        both = (data[:, a] > 0) & (data[:, b] > 0)
        if both.sum() >= 10:
            x, y = data[both, a], data[both, b]
            kappas.append(cohen_kappa_score(x, y, labels=[1, 2, 3, 4, 5], weights="quadratic"))
            units.append(int(both.sum()))
    assert len(kappas) == 15
    cohen = table.coefficients["cohen"]
    assert cohen.value == pytest.approx(np.average(kappas, weights=units), abs=1e-9)
    assert (cohen.n, len(table.pairs)) == (sum(units), min(shown, 15))
    assert cohen.note == "quadratic weights; mean of 15 pairs of raters with 10 or more units in common"
    every = agreement_table(value, unit, rater, bootstrap=Bootstrap(resamples=0))
    assert {name: one.as_dict() for name, one in table.coefficients.items()} == {
        name: one.as_dict() for name, one in every.coefficients.items()
    }


def test_each_kappa_states_its_weighting():
    value, unit, rater = [1, 2, 2, 3, 3, 3, 1, 2], [0, 0, 1, 1, 2, 2, 2, 2], [0, 1, 0, 1, 0, 1, 2, 3]
    table = agreement_table(value, unit, rater, min_shared=2, bootstrap=Bootstrap(resamples=0))
    assert table.coefficients["fleiss"].note == f"unweighted; {OVER_UNITS}"
    assert table.coefficients["cohen"].note == "quadratic weights; 1 pair of raters with 2 or more units in common"
    nominal = agreement_table(
        value[:6], unit[:6], rater[:6], scale="nominal", min_shared=2, bootstrap=Bootstrap(resamples=0)
    )
    assert nominal.coefficients["fleiss"].note == "unweighted"
    assert nominal.coefficients["cohen"].note.startswith("unweighted; 1 pair")


@pytest.mark.parametrize(("n", "warned"), [(4, False), (11, True), (49, True), (50, False)])
def test_intervals_from_few_units_warn_that_they_are_too_narrow(n, warned):
    rng = np.random.default_rng(n)
    value = np.concatenate([first := rng.integers(1, 6, n), np.clip(first + rng.integers(-1, 2, n), 1, 5)])
    unit, rater = np.tile(np.arange(n), 2), np.repeat(["a", "b"], n)
    notes = agreement_table(value.astype(float), unit, rater, bootstrap=Bootstrap(resamples=30)).notes
    assert notes == ((f"Intervals from {n} units are {NARROW}",) if warned else ())
    assert agreement_table(value.astype(float), unit, rater, bootstrap=Bootstrap(resamples=0)).notes == ()
