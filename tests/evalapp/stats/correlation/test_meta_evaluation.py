"""The `correlate` function: groupings by hand, every bootstrap against a plain loop over copied rows, real data."""

from __future__ import annotations

import gzip
import json
import math
import re

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.agreement.normalise import aggregate_ratings, normalise_ratings
from evalapp.stats.core.coding import ColumnError
from evalapp.stats.correlation.coefficients import COEFFICIENTS, CONSTANT_HUMAN, CONSTANT_METRIC, TOO_FEW
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.resampling.bootstrap import Bootstrap, ClusterDraws, percentile_interval

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


# Three items x three systems. Within items Pearson is 1, 1/2 and undefined (the metric is constant).
ITEM = [0, 0, 0, 1, 1, 1, 2, 2, 2]
SYSTEM = ["a", "b", "c"] * 3
METRIC = [1, 2, 3, 1, 2, 3, 5, 5, 5]
HUMAN = [1, 2, 3, 1, 3, 2, 1, 2, 3]


def scored(seed: int = 0, n_items: int = 12, n_systems: int = 5, levels: int = 6):
    """A ragged table with missing cells on both sides."""
    rng = np.random.default_rng(seed)
    item, system = (grid.ravel() for grid in np.meshgrid(np.arange(n_items), np.arange(n_systems), indexing="ij"))
    quality = rng.normal(size=n_systems)[system] + rng.normal(size=n_items)[item]
    metric = np.round((quality + rng.normal(size=len(item))) * levels) / levels
    human = np.round((quality + rng.normal(size=len(item))) * 2) / 2
    metric[rng.random(len(item)) < 0.1] = np.nan
    human[rng.random(len(item)) < 0.1] = np.nan
    return metric, human, item, system


def test_groupings_worked_by_hand():
    # Means over items: metric 7/3, 3, 11/3; human 1, 7/3, 8/3: deviations (-1 0 1) and (-3 1 2).
    points = {
        ("segment", "item", "drop"): (0.75, 2),
        ("segment", "item", "zero"): (0.5, 3),
        ("system", "none", "drop"): (5 / math.sqrt(2 * 14), 3),
    }
    for (level, grouping, rule), (value, n) in points.items():
        found = correlate(
            METRIC,
            HUMAN,
            ITEM,
            SYSTEM,
            settings=CorrelationSettings(level=level, grouping=grouping, nan_rule=rule),
            bootstrap=Bootstrap(resamples=0),
        )
        assert found["pearson"].value == pytest.approx(value, abs=1e-12)
        assert found["pearson"].n == n
        assert not found["pearson"].has_interval
        assert found["pearson"].note == ""
    assert found.n_groups == 0
    item = correlate(
        METRIC, HUMAN, ITEM, SYSTEM, settings=CorrelationSettings(grouping="item"), bootstrap=Bootstrap(resamples=0)
    )
    assert (item.n_groups, item.undefined_groups) == (3, {CONSTANT_METRIC: 1})


def test_no_grouping_and_grouping_by_system_equal_scipy():
    metric, human, item, system = scored()
    found = correlate(metric, human, item, system, bootstrap=Bootstrap(resamples=0))
    ok = np.isfinite(metric) & np.isfinite(human)
    assert found.n_pairs == ok.sum() == found["pearson"].n
    assert found.n_missing_metric == np.isnan(metric).sum()
    assert found.n_missing_human == np.isnan(human).sum()
    by_system = correlate(
        metric, human, item, system, settings=CorrelationSettings(grouping="system"), bootstrap=Bootstrap(resamples=0)
    )
    for name in COEFFICIENTS:
        assert found[name].value == pytest.approx(SCIPY[name](metric[ok], human[ok])[0], abs=1e-12)
        each = [SCIPY[name](metric[ok & (system == s)], human[ok & (system == s)])[0] for s in range(5)]
        assert by_system[name].value == pytest.approx(np.mean(each), abs=1e-12)


def plain_replicate(metric, human, item, system, level, grouping, name, rule):
    """The statistic of the given rows, with repeated items and systems already renamed."""

    def coefficient(x, y):
        if len(x) == 0 or np.ptp(x) == 0 or np.ptp(y) == 0:
            return math.nan
        return SCIPY[name](x, y)[0]

    if level == "system":
        systems = np.unique(system)
        means = [[column[system == s].mean() for s in systems] for column in (metric, human)]
        return coefficient(*np.round(means, 12))
    if grouping == "none":
        return coefficient(metric, human)
    group = item if grouping == "item" else system
    each = np.array([coefficient(metric[group == g], human[group == g]) for g in np.unique(group)])
    if rule == "zero":
        return np.nan_to_num(each).mean()
    return np.nan if np.isnan(each).all() else np.nanmean(each)


@pytest.mark.parametrize("name", COEFFICIENTS)
@pytest.mark.parametrize("bootstrap", ["inputs", "systems", "both"])
@pytest.mark.parametrize(
    ("level", "grouping", "rule"),
    [
        ("segment", "none", "drop"),
        ("segment", "item", "drop"),
        ("segment", "item", "zero"),
        ("segment", "system", "drop"),
        ("system", "none", "drop"),
    ],
)
def test_intervals_equal_a_plain_loop_on_the_same_draws(level, grouping, rule, bootstrap, name):
    metric, human, item, system = scored(seed=4, n_items=8, n_systems=5)
    ok = np.isfinite(metric) & np.isfinite(human)
    metric, human, item, system = metric[ok], human[ok], item[ok], system[ok]
    b = 30
    found = correlate(
        metric,
        human,
        item,
        system,
        settings=CorrelationSettings(
            level=level, grouping=grouping, nan_rule=rule, resampling_unit=bootstrap, coefficients=[name]
        ),
        bootstrap=Bootstrap(resamples=b, seed=9),
    )
    n_items, n_systems = item.max() + 1, system.max() + 1
    items = ClusterDraws(n_items, 9, 0).take(b) if bootstrap != "systems" else np.ones((n_items, b))
    systems = ClusterDraws(n_systems, 9, 1).take(b) if bootstrap != "inputs" else np.ones((n_systems, b))
    # Items with fewer than 3 outputs are excluded from an average over items before resampling.
    kept = np.bincount(item)[item] >= 3 if grouping == "item" else np.ones(len(item), dtype=bool)
    values = []
    for k in range(b):
        rows, new_item, new_system = [], [], []
        for row in np.flatnonzero(kept):
            for i in range(int(items[item[row], k])):
                for s in range(int(systems[system[row], k])):
                    rows.append(row)
                    new_item.append(item[row] * 100 + i)
                    new_system.append(system[row] * 100 + s)
        columns = metric[rows], human[rows], np.array(new_item), np.array(new_system)
        values.append(plain_replicate(*columns, level, grouping, name, rule))
    low, high = percentile_interval(np.array(values))
    assert found[name].low == pytest.approx(low, abs=1e-9)
    assert found[name].high == pytest.approx(high, abs=1e-9)
    assert found.undefined_resamples[name] == np.isnan(values).sum()


@pytest.mark.parametrize(("level", "grouping"), [("segment", "none"), ("segment", "item"), ("system", "none")])
def test_order_of_rows_and_names_do_not_matter(level, grouping):
    metric, human, item, system = scored(seed=2)
    plain = correlate(
        metric,
        human,
        item,
        system,
        settings=CorrelationSettings(level=level, grouping=grouping),
        bootstrap=Bootstrap(resamples=50),
    )
    order = np.random.default_rng(0).permutation(len(item))
    names = np.array([f"item {i:03d}" for i in item])[order]
    options = {
        "settings": CorrelationSettings(level=level, grouping=grouping),
        "bootstrap": Bootstrap(resamples=50),
    }
    shuffled = correlate(metric[order], human[order], names, system[order], **options)
    moved = correlate(3 * metric + 7, human, item, system, **options)
    for name in COEFFICIENTS:
        for other in (shuffled, moved):
            assert other[name].value == pytest.approx(plain[name].value, abs=1e-9)
            assert other[name].low == pytest.approx(plain[name].low, abs=1e-9)
            assert other[name].high == pytest.approx(plain[name].high, abs=1e-9)


def test_same_seed_same_interval_other_seed_other_interval():
    columns = scored()
    first, again, other = (
        correlate(*columns, bootstrap=Bootstrap(resamples=50, seed=seed))["spearman"] for seed in (1, 1, 2)
    )
    assert first == again
    assert (first.low, first.high) != (other.low, other.high)


def test_clusters_are_resampled_whole():
    # Ten copies of an item add rows but no information: the interval must reflect items, not copies.
    rng = np.random.default_rng(0)
    m, h = rng.normal(size=(2, 20))
    copies = 10
    cluster = np.repeat(np.arange(20), copies)
    item = np.arange(200)
    single = correlate(m, h, np.arange(20), np.zeros(20), bootstrap=Bootstrap(resamples=200))
    columns = np.repeat(m, copies), np.repeat(h, copies), item, np.zeros(200)
    clustered = correlate(*columns, bootstrap=Bootstrap(cluster=cluster, resamples=200))
    rows = correlate(*columns, bootstrap=Bootstrap(resamples=200))
    assert clustered.n_clusters == 20
    assert clustered["pearson"].low == pytest.approx(single["pearson"].low, abs=1e-9)
    assert rows["pearson"].high - rows["pearson"].low < 0.6 * (clustered["pearson"].high - clustered["pearson"].low)


@pytest.mark.parametrize(
    ("metric", "human", "options", "reason"),
    [
        ([5] * 9, HUMAN, {}, CONSTANT_METRIC),
        (METRIC, [5] * 9, {}, CONSTANT_HUMAN),
        ([math.nan] * 9, HUMAN, {}, TOO_FEW),
        ([math.nan] * 9, HUMAN, {"level": "system"}, "fewer than 3 systems"),
        ([0.1, 0.2, 0.3] * 3, [1, 2, 3, 2, 3, 1, 3, 1, 2], {"level": "system"}, CONSTANT_HUMAN),
        ([math.nan] * 9, HUMAN, {"grouping": "item"}, "there is no pair of a metric score and a human score"),
        ([5] * 9, HUMAN, {"grouping": "item"}, f"no item has a defined coefficient (3: {CONSTANT_METRIC})"),
    ],
)
def test_undefined_is_nan_with_a_reason_never_zero(metric, human, options, reason):
    found = correlate(
        metric, human, ITEM, SYSTEM, settings=CorrelationSettings(**options), bootstrap=Bootstrap(resamples=20)
    )
    for estimate in found.estimates.values():
        assert not estimate.is_defined
        assert estimate.note == reason
    json.dumps(found.as_dict(), allow_nan=False)


def test_no_interval_from_one_item_or_one_system():
    one_item = correlate([1, 2, 4], [1, 3, 2], [0, 0, 0], [0, 1, 2], bootstrap=Bootstrap(resamples=20))["pearson"]
    assert one_item.is_defined
    assert one_item.note == "no interval: 1 items only, at least 5 are needed"
    one_system = correlate(
        [1, 2, 4],
        [1, 3, 2],
        [0, 1, 2],
        [0, 0, 0],
        settings=CorrelationSettings(resampling_unit="both"),
        bootstrap=Bootstrap(resamples=20),
    )["pearson"]
    assert one_system.note == "no interval: 3 items and 1 systems only, at least 5 are needed"


@pytest.mark.parametrize(
    "options",
    [
        {"level": "word"},
        {"grouping": "rater"},
        {"resampling_unit": "rows"},
        {"nan_rule": "ignore"},
        {"coefficients": ["gamma"]},
        {"level": "system", "grouping": "item"},
    ],
)
def test_unknown_options_are_refused(options):
    with pytest.raises(ValueError):
        correlate(METRIC, HUMAN, ITEM, SYSTEM, settings=CorrelationSettings(**options))


def test_negative_resamples_are_refused():
    with pytest.raises(ValueError):
        correlate(METRIC, HUMAN, ITEM, SYSTEM, bootstrap=Bootstrap(resamples=-1))


def test_mismatched_columns_and_items_in_two_clusters_are_refused():
    with pytest.raises(ColumnError, match="system"):
        correlate(METRIC, HUMAN, ITEM, SYSTEM[:-1])
    with pytest.raises(ColumnError, match="cluster"):
        correlate(METRIC, HUMAN, ITEM, SYSTEM, bootstrap=Bootstrap(cluster=range(9)))


def read(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


# Source: the baselines table of the README that comes with the data, Pearson / Spearman of the number of word tokens.
@pytest.mark.parametrize(
    ("name", "aspect", "without", "method", "n", "expected"),
    [
        ("e2e", "naturalness", (), "rank", 6012, (-0.134, -0.141)),
        ("e2e", "quality", (), "rank", 6012, (0.195, 0.190)),
        ("novikova", "informativeness", (), "raw", 2460, (0.101, 0.117)),
        ("usr_topicalchat", "overall", ("Original Ground Truth",), "raw", 300, (0.332, 0.270)),
        ("union_roc", "reasonable", (), "raw", 400, (-0.116, -0.111)),
    ],
)
def test_baselines_on_real_data(shared_data, name, aspect, without, method, n, expected):
    folder = shared_data / name
    ratings = next(folder.glob("ratings.jsonl*"))
    rows = [row for row in read(ratings) if row["aspect"] == aspect and row["system"] not in without]
    value, item, system, rater = ([row[key] for row in rows] for key in ("value", "item", "system", "rater"))
    outputs = aggregate_ratings(normalise_ratings(value, item, rater, method=method), item, system)
    texts = {(row["item"], row["system"]): row["text"] for row in read(folder / "outputs.jsonl")}
    keys = zip(outputs.item.tolist(), outputs.system.tolist(), strict=True)
    length = [len(re.findall(r"[a-z0-9']+", texts[key].lower())) for key in keys]
    found = correlate(length, outputs.mean, outputs.item, outputs.system, bootstrap=Bootstrap(resamples=0))
    assert found.n_pairs == n
    assert found["pearson"].value == pytest.approx(expected[0], abs=0.001)
    assert found["spearman"].value == pytest.approx(expected[1], abs=0.001)
