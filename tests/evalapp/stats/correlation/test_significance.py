"""All pairs of metrics: equal to a plain loop over the same draws and to SciPy's p-values; degenerate input."""

from __future__ import annotations

import itertools
import json
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evalapp.stats.core.multiple_tests import compact_letters, needed_draws, rank_clusters
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings
from evalapp.stats.correlation.pair_tests import PairTests
from evalapp.stats.correlation.paired import compare, williams
from evalapp.stats.correlation.significance import compare_all
from evalapp.stats.resampling.bootstrap import Bootstrap
from evalapp.stats.resampling.exchanges import SwapDraws

NAMES = ("pearson", "spearman", "kendall", "kendall-c")


def scored(n_items=14, n_systems=5, seed=0, rounded=False):
    """Four metrics of decreasing quality; with `rounded`, one has few distinct values."""
    rng = np.random.default_rng(seed)
    n = n_items * n_systems
    item, system = np.repeat(np.arange(n_items), n_systems), np.tile(np.arange(n_systems), n_items)
    quality = rng.normal(size=n) + 0.3 * system
    human = np.round(2 * quality) / 2
    metrics = {f"m{k}": quality + 0.6 * (k + 1) * rng.normal(size=n) for k in range(4)}
    if rounded:
        metrics["m1"] = np.round(metrics["m1"])
        metrics["m2"] = np.round(metrics["m2"])
    return metrics, human, item, system


def coefficient(name, x, y):
    """By the definitions, comparing all pairs."""
    if len(x) < 3 or np.ptp(x) < 1e-12 or np.ptp(y) < 1e-12:
        return math.nan
    if name == "pearson":
        return np.corrcoef(x, y)[0, 1]
    one, two = (np.sign(column[:, None] - column) for column in (x, y))
    if name == "spearman":  # sums of signs are twice the centred midranks
        return np.corrcoef(one.sum(axis=1), two.sum(axis=1))[0, 1]
    if name == "kendall":
        return (one * two).sum() / math.sqrt((one**2).sum() * (two**2).sum())
    m = min(len(set(x)), len(set(y)))
    return (one * two).sum() * m / (len(x) ** 2 * (m - 1))


def plain_value(metric, human, item, system, level, grouping, name, rule):
    """A coefficient as defined in docs/explanation/statistics/correlation.md#levels-and-groupings, group by group."""
    if level == "system":
        means = [[column[system == s].mean() for s in np.unique(system)] for column in (metric, human)]
        return coefficient(name, *np.round(means, 10))
    if grouping == "none":
        return coefficient(name, metric, human)
    group = item if grouping == "item" else system
    each = np.array([coefficient(name, metric[group == g], human[group == g]) for g in np.unique(group)])
    return np.nan_to_num(each).mean() if rule == "zero" else np.nanmean(each)


def plain_p(metrics, human, item, system, options, k, seed):
    """PERM-BOTH pair by pair and draw by draw."""
    z = {name: (column - column.mean()) / column.std() for name, column in metrics.items()}
    value = partial(plain_value, human=human, item=item, system=system, **options)
    draws = SwapDraws(len(human), seed).take(k)
    found = {}
    for a, b in itertools.permutations(metrics, 2):
        observed = value(z[a]) - value(z[b])
        reached = 0
        for swapped in draws.T:
            one, two = np.where(swapped, z[b], z[a]), np.where(swapped, z[a], z[b])
            reached += value(one) - value(two) >= observed - 1e-9
        found[a, b] = (reached + 1) / (k + 1)
    return found


def compared(found):
    return {
        (a, b): found.p[i, j]
        for (i, a), (j, b) in itertools.permutations(enumerate(found.names), 2)
    }  # fmt: skip


CASES = [
    *[("segment", "none", name, 14, 5) for name in NAMES],  # 70 rows: the kernels for large groups
    *[("segment", "item", name, 7, 4) for name in NAMES],  # patterns
    *[("segment", "item", name, 3, 10) for name in NAMES[1:]],  # small groups in arrays
    ("segment", "system", "pearson", 8, 3),
    ("segment", "system", "kendall", 70, 2),  # two large groups
    *[("system", "none", name, 5, 7) for name in ("pearson", "spearman", "kendall")],
]


@pytest.mark.parametrize(("level", "grouping", "name", "n_items", "n_systems"), CASES)
@pytest.mark.parametrize("rounded", [False, True])
def test_equal_to_a_plain_loop_on_the_same_draws(level, grouping, name, n_items, n_systems, rounded):
    metrics, human, item, system = scored(n_items, n_systems, seed=3, rounded=rounded)
    metrics = {key: metrics[key] for key in ("m0", "m1", "m2")}
    options = {"level": level, "grouping": grouping, "name": name, "rule": "zero" if rounded else "drop"}
    found = compare_all(
        metrics,
        human,
        item,
        system,
        tests=PairTests(
            level=level, grouping=grouping, coefficient=name, nan_rule=options["rule"], k=15, seed=5, test="perm-both"
        ),
    )
    expected = plain_p(metrics, human, item, system, options, k=15, seed=5)
    assert compared(found) == pytest.approx(expected, abs=1e-9)
    for name_, value in zip(found.names, found.values, strict=True):
        exact = plain_value(metrics[name_], human, item, system, **options)
        assert value == pytest.approx(exact, abs=1e-9)


def plain_accuracy(metric, human, group, epsilon):
    right, weight = [], []
    for g in np.unique(group):
        rows = np.flatnonzero(group == g)
        pairs = list(itertools.combinations(rows, 2))
        for i, j in pairs:
            m = 0 if abs(metric[i] - metric[j]) <= epsilon else np.sign(metric[i] - metric[j])
            right.append(m == np.sign(human[i] - human[j]))
            weight.append(1 / len(pairs) / len(np.unique(group)))
    return np.array(right), np.array(weight)


@pytest.mark.parametrize("grouping", ["item", "none"])
def test_pairs_variant_equal_to_a_plain_loop(grouping):
    metrics, human, item, system = scored(9, 4, seed=6)
    found = compare_all(
        metrics,
        human,
        item,
        system,
        tests=PairTests(coefficient="acc-eq", grouping=grouping, k=40, seed=2, test="perm-both"),
    )
    group = item if grouping == "item" else np.zeros(len(item))
    epsilons = dict(zip(found.names, found.epsilons, strict=True))
    right = {name: plain_accuracy(metrics[name], human, group, epsilons[name] + 1e-12) for name in metrics}
    weight = right["m0"][1]
    draws = SwapDraws(len(weight), 2).take(40)
    for (i, a), (j, b) in itertools.permutations(enumerate(found.names), 2):
        difference = (right[a][0].astype(float) - right[b][0]) * weight
        null = [np.where(swapped, -difference, difference).sum() for swapped in draws.T]
        reached = (np.array(null) >= difference.sum() - 1e-12).sum()
        assert found.p[i, j] == pytest.approx((reached + 1) / 41, abs=1e-9)
        assert found.values[i] == pytest.approx((right[a][0] * weight).sum(), abs=1e-9)


def test_chunks_and_other_metrics_change_nothing(monkeypatch):
    metrics, human, item, system = scored(20, 5, seed=1)
    for name in ("pearson", "spearman", "kendall"):
        whole = compare_all(metrics, human, item, system, tests=PairTests(coefficient=name, k=50))
        two = compare_all(
            {key: metrics[key] for key in ("m0", "m3")}, human, item, system, tests=PairTests(coefficient=name, k=50)
        )
        i, j = whole.names.index("m0"), whole.names.index("m3")
        if name != "spearman":
            monkeypatch.setattr("evalapp.stats.correlation.swaps._CELLS", 1000)
        again = compare_all(metrics, human, item, system, tests=PairTests(coefficient=name, k=50))
        monkeypatch.undo()
        np.testing.assert_array_equal(again.p, whole.p)
        assert two.p[0, 1] == whole.p[i, j]


@settings(max_examples=15)
@given(seed=st.integers(0, 500), scale=st.sampled_from([0.01, 40.0]), name=st.sampled_from(["pearson", "kendall"]))
def test_order_of_rows_units_and_names(seed, scale, name):
    metrics, human, item, system = scored(6, 5, seed=seed)
    order = np.random.default_rng(seed).permutation(len(item))
    moved = {key: (scale * column + 3)[order] for key, column in reversed(metrics.items())}
    names = np.array([f"item {i:02}" for i in item])[order]
    for test in ("permutation", "perm-both", "bootstrap"):
        one = compare_all(metrics, human, item, system, tests=PairTests(coefficient=name, k=20, test=test))
        two = compare_all(moved, human[order], names, system[order], tests=PairTests(coefficient=name, k=20, test=test))
        assert one.names == two.names
        np.testing.assert_allclose(one.p, two.p, atol=1e-9)


def test_equal_to_scipys_permutation_test():
    metrics, human, item, system = scored(8, 1, seed=4)
    a, b = ((metrics[key] - metrics[key].mean()) / metrics[key].std() for key in ("m0", "m3"))
    exact = stats.permutation_test(
        (a, b),
        lambda x, y: stats.pearsonr(x, human)[0] - stats.pearsonr(y, human)[0],
        permutation_type="samples",
        alternative="greater",
        vectorized=False,
    ).pvalue  # all 2^8 exchanges
    found = compare_all({"a": a, "b": b}, human, item, system, tests=PairTests(k=20_000))
    assert found.p[found.names.index("a"), found.names.index("b")] == pytest.approx(exact, abs=0.01)


def test_williams_and_bootstrap_equal_the_paired_tests():
    metrics, human, item, system = scored(30, 5, seed=2)
    found = compare_all(metrics, human, item, system, tests=PairTests(test="williams"))
    one, two = (metrics[name] for name in found.names[:2])
    r = [stats.pearsonr(*pair)[0] for pair in ((one, human), (two, human), (one, two))]
    assert found.p[0, 1] == pytest.approx(williams(*r, len(human)), abs=1e-12)
    assert found.p[1, 0] == pytest.approx(1 - found.p[0, 1], abs=1e-12)
    drawn = compare_all(
        metrics, human, item, system, tests=PairTests(test="bootstrap", coefficient="spearman", k=200, seed=0)
    )
    a, b = drawn.names[:2]
    both = compare(
        metrics[a],
        metrics[b],
        human,
        item,
        system,
        settings=CorrelationSettings(coefficients=("spearman",)),
        bootstrap=Bootstrap(resamples=200),
    )
    assert 2 * drawn.p[0, 1] == pytest.approx(both.p, abs=1e-12)


def test_good_metric_beats_a_bad_one_and_early_stopping_agrees():
    metrics, human, item, system = scored(60, 5, seed=1)
    found = compare_all(metrics, human, item, system, tests=PairTests(k=600, grouping="item"))
    assert found.names == ("m0", "m1", "m2", "m3")
    assert found.rank[0] == 1
    assert found.rank[-1] > 1
    assert not set(found.letters[0]) & set(found.letters[-1])
    assert found.p_holm[0, 3] >= found.p[0, 3]
    early = compare_all(metrics, human, item, system, tests=PairTests(k=600, grouping="item", block=100, adjust="none"))
    assert early.k_each[0, 3] == 100
    assert early.k_each.max() == early.k_used <= 600
    assert early.p[0, 3] == pytest.approx(found.p[0, 3], abs=0.02)
    # Under Holm, a clear pair continues: 1 / 101 would not survive the adjustment.
    under_holm = compare_all(metrics, human, item, system, tests=PairTests(k=600, grouping="item", block=100))
    assert under_holm.p[0, 3] == found.p[0, 3]
    json.dumps(found.as_dict(), allow_nan=False)
    assert "k:600|block:100" in early.signature


def test_clusters_are_exchanged_whole():
    # Copies of rows add no information: exchanged with their cluster they leave p unchanged, one by one they reduce it.
    metrics, human, item, system = scored(12, 2, seed=9)
    plain = compare_all(metrics, human, np.arange(24), system, tests=PairTests(k=300))
    copied = {name: np.repeat(column, 6) for name, column in metrics.items()}
    rest = np.repeat(human, 6), np.arange(144), np.repeat(system, 6)
    whole = compare_all(copied, *rest, cluster=np.repeat(np.arange(24), 6), tests=PairTests(k=300, test="perm-inputs"))
    np.testing.assert_allclose(whole.p, plain.p, atol=1e-9)
    assert (
        np.triu(compare_all(copied, *rest, tests=PairTests(k=300, test="perm-both")).p, 1).sum()
        < np.triu(whole.p, 1).sum()
    )
    paired = compare_all(
        metrics, human, item, system, cluster=item // 2, tests=PairTests(coefficient="acc-eq", grouping="item", k=50)
    )
    assert np.isfinite(paired.p[0, 1])


def test_holm_without_enough_resamples_has_a_note():
    metrics, human, item, system = scored(10, 3)
    assert needed_draws(4) == 1000
    assert needed_draws(20) == 15_200  # 190 pairs: .05 / 190 > 2 / (k + 1) from k = 7600
    assert "k >= 1000" in compare_all(metrics, human, item, system, tests=PairTests(k=20)).note
    assert compare_all(metrics, human, item, system, tests=PairTests(k=20, adjust="none")).note == ""


def test_holm_uses_two_sided_p():
    metrics, human, item, system = scored(25, 4, seed=5)
    found = compare_all(metrics, human, item, system, tests=PairTests(test="williams"))
    one, two = np.triu_indices(4, 1)
    expected = multipletests(np.minimum(1, 2 * found.p[one, two]), method="holm")[1]
    assert found.p_holm[one, two] == pytest.approx(expected, abs=1e-12)
    # The data decide which of the two is better: there is no test in the other direction (FAULTS A11: 1.000 was shown).
    assert np.isnan(found.p_holm[two, one]).all()
    assert "|adjust:holm|sides:2|" in found.signature
    alone = compare_all(metrics, human, item, system, tests=PairTests(test="williams", adjust="none"))
    assert "|adjust:none|sides:1|" in alone.signature


def test_equal_metrics_differ_significantly_at_rate_alpha():
    # Two equally good metrics, 400 samples: .05 expected; .095 if the one-sided p of the better one were used; the
    # limit is 3 standard errors above .05.
    apart = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        human = rng.normal(size=40)
        pair = {name: human + 1.2 * rng.normal(size=40) for name in "ab"}
        apart += (
            len(set(compare_all(pair, human, np.arange(40), np.zeros(40), tests=PairTests(test="williams")).letters))
            > 1
        )
    assert 0.02 < apart / 400 < 0.083


def test_few_systems_get_no_stars():
    metrics, human, item, system = scored(20, 5)
    found = compare_all(metrics, human, item, system, tests=PairTests(level="system"))
    assert found.note == "not tested: 5 systems rank nothing, at least 6 are needed"
    assert np.isnan(found.p).all()
    assert found.letters == ("",) * 4
    assert found.rank == (1, 1, 1, 1)


def by_all_exchanges(one, two, human, name):
    """PERM-SYSTEMS from its definition: all exchanges one by one, the difference of Fisher's z."""
    value = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[name]
    z = [(column - column.mean()) / column.std() for column in (one, two)]
    deltas = []
    for pattern in itertools.product([False, True], repeat=len(human)):
        sides = [np.where(pattern, z[1], z[0]), np.where(pattern, z[0], z[1])]
        r = [np.clip(value(side, human)[0], -1 + 1e-9, 1 - 1e-9) for side in sides]
        deltas.append(np.arctanh(r[0]) - np.arctanh(r[1]))
    return np.mean(np.array(deltas) >= deltas[0] - 1e-9)


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall"])
def test_all_exchanges_of_systems_are_enumerated(name):
    metrics, human, item, system = scored(6, 7, seed=8)
    metrics = {key: metrics[key] for key in ("m0", "m3")}
    found = compare_all(metrics, human, item, system, tests=PairTests(level="system", coefficient=name))
    means = {
        key: np.array([column[system == s].mean() for s in range(7)])
        for key, column in {**metrics, "human": human}.items()
    }
    a, b = found.names
    assert found.p[0, 1] == by_all_exchanges(means[a], means[b], means["human"], name)
    assert found.p[1, 0] == by_all_exchanges(means[b], means[a], means["human"], name)
    assert found.k_used == 128
    assert found.smallest_p == 2 / 128
    assert found.signature.startswith("test:perm-systems|")
    assert found.population == "systems and items like these"


def test_many_systems_are_exchanged_at_random():
    metrics, human, item, system = scored(4, 20, seed=8)
    found = compare_all(metrics, human, item, system, tests=PairTests(level="system", k=4000))
    again = compare_all(metrics, human, item, system, tests=PairTests(level="system", k=4000, block=500))
    assert (found.k_used, found.smallest_p) == (4000, 2 / 4001)
    assert again.k_each.min(initial=4000, where=again.k_each > 0) == 500
    np.testing.assert_allclose(found.p, again.p, atol=0.06)


def test_name_of_a_test_and_its_population():
    metrics, human, item, system = scored(8, 7)
    for test, level, named, population in (
        ("permutation", "segment", "perm-inputs", "these systems, items like these"),
        ("permutation", "system", "perm-systems", "systems and items like these"),
        ("perm-inputs", "system", "perm-inputs", "these systems, items like these"),
        ("bootstrap", "segment", "bootstrap", "these systems, items like these"),
        ("bootstrap", "system", "bootstrap", "systems and items like these"),
        ("williams", "segment", "williams", "outputs like these, each taken as independent of the others"),
    ):
        found = compare_all(metrics, human, item, system, tests=PairTests(test=test, level=level, k=30))
        assert (found.test, found.population) == (named, population)
        assert f"test:{named}|" in found.signature
        assert math.isnan(found.smallest_p) == (test == "williams")


def test_errors_about_systems_give_no_significant_difference():
    # FAULTS A1: two equally good metrics, each with its own error about every system (SD .3). Exchanging items called
    # them different in .64 of such data; exchanging systems may in .05, here .05 +- 3 standard errors.
    rejected, before = 0, 0
    for seed in range(150):
        rng = np.random.default_rng([seed, 1])
        item, system = np.repeat(np.arange(40), 8), np.tile(np.arange(8), 40)
        quality = rng.normal(0, 0.5, 8)[system] + 0.7 * rng.normal(size=320)
        pair = {name: quality + rng.normal(0, 0.3, 8)[system] + 0.5 * rng.normal(size=320) for name in "ab"}
        of_systems, of_inputs = (
            compare_all(pair, quality, item, system, tests=PairTests(level="system", k=1000, seed=seed, test=test))
            for test in ("permutation", "perm-inputs")
        )
        rejected += len(set(of_systems.letters)) > 1
        before += len(set(of_inputs.letters)) > 1
    assert rejected / 150 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)
    assert before / 150 > 0.3


def test_too_few_exchanges_give_no_letters():
    # 6 systems: 64 exchanges, the smallest two-sided p is 2/64; three pairs by Holm, 6/64 > .05.
    metrics, human, item, system = scored(10, 6)
    three = {key: metrics[key] for key in ("m0", "m1", "m3")}
    found = compare_all(three, human, item, system, tests=PairTests(level="system"))
    assert found.letters == ("", "", "")
    assert "all 64 exchanges of 6 systems give no p below 0.031, 3 pairs by Holm none below 0.094" in found.note
    assert np.isfinite(found.p[0, 1])
    two = compare_all({key: metrics[key] for key in ("m0", "m3")}, human, item, system, tests=PairTests(level="system"))
    assert all(two.letters)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), missing=st.sampled_from([0.0, 0.1, 0.3]), empty=st.integers(0, 2))
def test_evaluator_without_scores_does_not_affect_the_others(seed, missing, empty):
    # FAULTS A7: unusable columns are set aside before complete rows are counted.
    rng = np.random.default_rng(seed)
    metrics, human, item, system = scored(8, 7, seed=seed)
    metrics = {name: np.where(rng.random(len(human)) < missing, np.nan, column) for name, column in metrics.items()}
    unusable = {f"none{k}": np.full(len(human), np.nan) for k in range(empty)} | {"flat": np.ones(len(human))}
    unusable["few"] = np.where(np.arange(len(human)) < 2, human, np.nan)
    for level in ("segment", "system"):
        alone = compare_all(metrics, human, item, system, tests=PairTests(level=level, k=20, seed=1))
        among = compare_all({**unusable, **metrics}, human, item, system, tests=PairTests(level=level, k=20, seed=1))
        assert among.n_rows == alone.n_rows
        places = [among.names.index(name) for name in alone.names]
        np.testing.assert_array_equal(among.p[np.ix_(places, places)], alone.p)
        assert tuple(among.letters[place] for place in places) == alone.letters
        for name in unusable:
            assert f"{name} " in among.note


def test_missing_and_constant_scores_are_set_aside():
    metrics, human, item, system = scored(20, 5)
    metrics["m0"] = metrics["m0"].copy()
    metrics["m0"][:10] = np.nan
    given = metrics | {"flat": np.ones(100), "none": np.full(100, np.nan)}
    found = compare_all(given, human, item, system, tests=PairTests(k=50))
    assert found.names[-2:] == ("flat", "none")
    assert found.n_rows == 90
    assert "none has no score; 10 of 100 outputs lack a score" in found.note
    assert "flat has no defined coefficient" in found.note
    assert np.isnan(found.p[:, -2:]).all()
    assert found.letters[-2:] == ("", "")
    empty = compare_all({}, human, item, system)
    assert empty.names == ()
    pairs = compare_all(
        given, human, item, system, tests=PairTests(coefficient="acc-eq", grouping="item", k=20, test="perm-both")
    )
    assert "exchanged one by one" in pairs.note
    whole = compare_all(
        given, human, item, system, cluster=item, tests=PairTests(coefficient="acc-eq", grouping="item", k=20)
    )
    assert "one by one" not in whole.note
    json.dumps(pairs.as_dict(), allow_nan=False)
    never = {"one": np.where(item < 10, np.nan, human), "other": np.where(item < 10, human, np.nan)}
    for coefficient in ("pearson", "acc-eq"):
        apart = compare_all(never, human, item, system, tests=PairTests(coefficient=coefficient))
        assert apart.n_rows == 50  # no common rows: the first is left alone, the other is named with the reason
        assert apart.note.startswith("other scored 50 of 100 outputs, too few to be compared with the others")


@pytest.mark.parametrize(
    "options",
    [
        {"test": "t"},
        {"coefficient": "gamma"},
        {"k": 0},
        {"adjust": "bonferroni"},
        {"test": "williams", "grouping": "item"},
        {"coefficient": "acc-eq", "level": "system"},
    ],
)
def test_unknown_options_are_refused(options):
    with pytest.raises(ValueError):
        compare_all(*scored(3, 3), tests=PairTests(**options))


def test_ranks_and_letters_worked_by_hand():
    # 1 beats 3 and 4, 2 beats 4, nothing else: {1, 2}, then 3 opens a rank (beaten by 1), 4 stays with 3.
    beats = np.zeros((4, 4), dtype=bool)
    beats[0, 2] = beats[0, 3] = beats[1, 3] = True
    assert rank_clusters(beats) == (1, 1, 2, 2)
    assert compact_letters(beats) == ("a", "ab", "bc", "c")
    assert compact_letters(np.zeros((3, 3), dtype=bool)) == ("a", "a", "a")
    assert compact_letters(~np.eye(3, dtype=bool)) == ("a", "b", "c")
    assert compact_letters(np.zeros((0, 0), dtype=bool)) == ()


@settings(max_examples=60)
@given(m=st.integers(1, 9), seed=st.integers(0, 10_000), share=st.sampled_from([0.1, 0.4, 0.8]))
def test_rows_share_letters_exactly_if_they_do_not_differ(m, seed, share):
    differs = np.triu(np.random.default_rng(seed).random((m, m)) < share, 1)
    letters = compact_letters(differs)
    for i, j in itertools.combinations(range(m), 2):
        assert bool(set(letters[i]) & set(letters[j])) != differs[i, j]
