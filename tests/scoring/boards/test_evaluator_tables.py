"""Further columns of a table of evaluators equal the results of their functions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalapp.stats.core.multiple_tests import needed_draws
from evalapp.stats.correlation.ceiling import OutputRatings, noise_ceiling
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate, resample_correlation
from evalapp.stats.correlation.pair_tests import PairTests
from evalapp.stats.correlation.pairs import calibrate_ties
from evalapp.stats.correlation.significance import compare_all
from evalapp.stats.correlation.system_pairs import soft_pairwise_accuracy
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.aspects.compute import aspects_table
from scoring.boards.data.columns import Ratings, Units
from scoring.boards.matrix.compute import matrix_table
from scoring.boards.metrics.by_ratings import evaluators_table
from scoring.boards.metrics.columns import write_lines
from scoring.boards.metrics.people import People, Scored, ScoredSets
from scoring.boards.references.compute import enhanced_table
from scoring.boards.systems.rankings import systems_by_ratings

SETTINGS = {
    "level": "segment", "grouping": "none", "systems": "all", "references": "original", "ratings": "raw",
    "coefficient": "pearson", "test": "permutation",
}  # fmt: skip
ITEMS, SYSTEMS, RATERS = 30, 7, 3


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(4)
    units = Units({k: (f"s{k}", "machine") for k in range(SYSTEMS)})
    for k in range(SYSTEMS):
        units.code(k, None)
    item = np.repeat(np.arange(ITEMS), SYSTEMS * RATERS)
    system = np.tile(np.repeat(np.arange(SYSTEMS), RATERS), ITEMS)
    rater = np.tile(np.arange(RATERS), ITEMS * SYSTEMS)
    truth = np.repeat(rng.normal(size=ITEMS * SYSTEMS), RATERS) + 0.3 * system
    value = np.clip(np.round(3 + truth + rng.normal(size=len(item))), 1, 5)
    output = item * SYSTEMS + system
    ratings = Ratings(output, item, item, system, rater, value, np.zeros(len(item), bool), units, ("a", "b", "c"))
    people = People(ratings, method="raw", subset="all")
    quality = truth[::RATERS]
    metrics = {
        "good": quality + rng.normal(size=len(quality)), "twin": quality + rng.normal(size=len(quality)),
        "noise": rng.normal(size=len(quality)),
    }  # fmt: skip
    scored = [Scored(name, name, "baseline", f"{name}|v:1", column) for name, column in metrics.items()]
    return ratings, people, metrics, scored


def make_table(world, outside=None, **settings):
    _, people, _, scored = world
    outside = np.ones(len(people), dtype=bool) if outside is None else outside
    wished = {**SETTINGS, **settings}
    return evaluators_table(
        people, ScoredSets(scored, outside, unapplied={"length": "not applied"}), wished, aspect="q"
    )


def read_rows(table):
    return {row["evaluator"]: row for row in table["rows"]}


def test_accuracy_ceiling_and_letters_equal_their_functions(world):
    ratings, people, metrics, _ = world
    table = make_table(world)
    rows = read_rows(table)
    found = calibrate_ties(metrics["good"], people.mean, people.item, folds=5)
    assert rows["good"]["accuracy"]["value"] == found.accuracy.value
    assert rows["good"]["accuracy"]["epsilon"] == found.epsilon
    assert rows["good"]["accuracy"]["cross_validated"]["value"] == found.cross_validated.value
    ceiling = noise_ceiling(
        OutputRatings(ratings.value, ratings.output, ratings.rater, item=ratings.item, system=ratings.system)
    )
    assert table["ceiling"]["value"] == pytest.approx(ceiling.value, abs=1e-12)
    assert rows["good"]["corrected"]["value"] == pytest.approx(rows["good"]["pearson"]["value"] / ceiling.value)
    named = dict(zip("012", metrics.values(), strict=True))
    pairs = compare_all(
        named, people.mean, people.item, people.system, cluster=people.cluster, tests=PairTests(k=needed_draws(3))
    )
    assert table["test"]["p_holm"] == pairs.as_dict()["p_holm"]
    assert set(rows["good"]["letters"]) & set(rows["twin"]["letters"])
    assert not set(rows["good"]["letters"]) & set(rows["noise"]["letters"])
    assert rows["length"]["accuracy"]["note"] == rows["length"]["corrected"]["note"] == "not applied"
    assert "|test:perm-inputs|coef:pearson|k:1000|test-seed:13|adjust:holm|sides:2|alpha:0.05|" in table["signature"]


def test_groups_of_equal_scores_are_left_out_or_count_as_0(world):
    """The evaluator is constant in half of the items: leaving these out rewards it."""
    _, people, metrics, scored = world
    flat = np.where(people.item < ITEMS // 2, 1.0, metrics["good"])
    one = replace(scored[0], metric=flat)
    tables = [
        make_table((None, people, None, [one, *scored[1:]]), grouping="item", undefined=rule)
        for rule in ("drop", "zero")
    ]
    dropped, zero = (read_rows(table)["good"] for table in tables)
    expected = [
        correlate(
            flat, people.mean, people.item, people.system, settings=CorrelationSettings(grouping="item", nan_rule=rule)
        )["pearson"]
        for rule in ("drop", "zero")
    ]
    assert [row["pearson"]["value"] for row in (dropped, zero)] == [found.value for found in expected]
    assert zero["pearson"]["value"] < 0.6 * dropped["pearson"]["value"]
    assert dropped["undefined_groups"] == zero["undefined_groups"]
    assert [sum(f"|nan:{rule}|" in table["signature"] for table in tables) for rule in ("drop", "zero")] == [1, 1]
    # Counted as 0, they make it significantly different from its twin; left out, they do not.
    shared = [set(read_rows(table)["twin"]["letters"]) & set(read_rows(table)["good"]["letters"]) for table in tables]
    assert (bool(shared[0]), bool(shared[1])) == (True, False)


def test_system_level_has_pairs_of_systems(world):
    _, people, metrics, _ = world
    table = make_table(world, level="system")
    spa = soft_pairwise_accuracy(metrics["good"], people.mean, people.item, people.system)
    row = read_rows(table)["good"]
    assert row["spa"]["value"] == spa.value
    assert row["pa"]["n"] == SYSTEMS * (SYSTEMS - 1) // 2
    assert "accuracy" not in row
    assert table["test"]["names"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"test": "none"}, "no test was requested"),
        ({"test": "williams", "coefficient": "kendall"}, "Williams’ test is for Pearson"),
        ({"level": "system", "coefficient": "spa"}, "there is no test for SPA"),
        ({"level": "system", "coefficient": "acc-eq"}, "belong to the level of outputs"),
    ],
)
def test_untested_rows_have_a_reason(world, settings, reason):
    table = make_table(world, **settings)
    assert reason in table["test"]["note"]
    assert {row["letters"] for row in table["rows"]} == {""}
    assert "|test:none|" in table["signature"]


def test_training_outputs_count_neither_in_tests_nor_in_the_ceiling(world):
    ratings, people, metrics, _ = world
    outside = people.item >= 10
    table = make_table(world, outside=outside)
    kept = ratings.item >= 10
    ceiling = noise_ceiling(
        OutputRatings(
            ratings.value[kept],
            ratings.output[kept],
            ratings.rater[kept],
            item=ratings.item[kept],
            system=ratings.system[kept],
        )
    )
    assert table["ceiling"]["value"] == pytest.approx(ceiling.value, abs=1e-12)
    assert table["ceiling"]["n"] == table["n_outputs"] == int(outside.sum())
    found = calibrate_ties(metrics["good"][outside], people.mean[outside], people.item[outside], folds=5)
    assert read_rows(table)["good"]["accuracy"]["value"] == found.accuracy.value


def test_repeats_are_no_further_raters(world):
    """Each rater judges the first items again (`a#2`), slightly differently: three people, not six. First judgements
    count, so the result is the same as without repeats."""
    ratings, people, _, _ = world
    again = np.flatnonzero(ratings.item < 10)
    columns = ("output", "item", "cluster", "system", "simulated")
    more = {name: np.concatenate([getattr(ratings, name), getattr(ratings, name)[again]]) for name in columns}
    rater = np.concatenate([ratings.rater, ratings.rater[again] + 3])
    value = np.concatenate([ratings.value, np.clip(ratings.value[again] + again % 2, 1, 5)])
    names = ("a", "b", "c", "a#2", "b#2", "c#2")
    found = People(replace(ratings, rater=rater, value=value, raters=names, **more), method="raw", subset="all")
    assert (found.n_raters, people.n_raters) == (3, 3)
    assert found.mean.tolist() == people.mean.tolist()
    expected = noise_ceiling(
        OutputRatings(ratings.value, ratings.output, ratings.rater, item=ratings.item, system=ratings.system)
    )
    ceiling = evaluators_table(found, ScoredSets([], np.ones(len(found), bool)), SETTINGS, aspect="q")["ceiling"]
    assert ceiling["value"] == pytest.approx(expected.value, abs=1e-12)
    wished = {**SETTINGS, "by": "", "method": "mean", "ratings": "z", "resamples": 20}
    judged = replace(ratings, rater=rater, value=value, raters=names, **more)
    table = systems_by_ratings(judged, wished, aspect="q", low=1, high=5)
    assert table["n_raters"] == 3
    assert table["counted"][0].startswith(f"{len(again)} judgements repeat earlier ones by the same person")
    alone = noise_ceiling(OutputRatings([1.0, 2, 2, 3], [0, 0, 1, 1], ["a"] * 4))
    assert alone.note == "no output has two raters"


def test_accuracy_and_ceiling_resample_the_clusters_of_the_coefficients(world):
    ratings, _, metrics, scored = world
    people = People(replace(ratings, cluster=ratings.item // 3), method="raw", subset="all")
    table = evaluators_table(people, ScoredSets(scored, np.ones(len(people), dtype=bool)), SETTINGS, aspect="q")
    found = calibrate_ties(
        metrics["good"], people.mean, people.item, folds=5, bootstrap=Bootstrap(cluster=people.item // 3, seed=13)
    )
    ceiling = noise_ceiling(
        OutputRatings(ratings.value, ratings.output, ratings.rater, item=ratings.item),
        bootstrap=Bootstrap(cluster=ratings.item // 3, resamples=500, seed=13),
    )
    of_items = noise_ceiling(OutputRatings(ratings.value, ratings.output, ratings.rater, item=ratings.item))
    assert (table["ceiling"]["low"], table["ceiling"]["high"]) == pytest.approx((ceiling.low, ceiling.high), abs=1e-12)
    assert ceiling.value == pytest.approx(of_items.value, abs=1e-12)
    assert ceiling.low != pytest.approx(of_items.low, abs=1e-6)
    shown = read_rows(table)["good"]["accuracy"]
    assert (shown["low"], shown["high"]) == (found.accuracy.low, found.accuracy.high)
    assert shown["cross_validated"]["value"] == found.cross_validated.value


def test_signatures_state_the_resampling(world):
    _, people, metrics, scored = world
    columns = np.stack(list(metrics.values()), axis=1)
    settings = {**SETTINGS, "resamples": 20}
    drawn = {"segment": ("inputs", "boot:inputs"), "system": ("systems", "interval:jackknife-z")}
    for level, (of_matrix, of_others) in drawn.items():
        wished = {**settings, "level": level}
        matrix = matrix_table(scored, columns, people.cluster, people.system, wished)
        assert f"|boot:{of_matrix}" in matrix["signature"]
        assert f"|{of_others}" in aspects_table([], {**wished, "figure": "pearson"})["signature"]
        sets = [{"original": scored[0], "good": scored[1]}]
        outside = np.ones(len(people), dtype=bool)
        enhanced = enhanced_table(people, sets, wished, aspect="q", names=("original", "good"), outside=outside)
        assert f"|{of_others}|" in enhanced["signature"]
        cell = enhanced["rows"][0]["cells"]["good"]["pearson"]
        own = correlate(
            scored[1].metric,
            people.mean,
            people.item,
            people.system,
            settings=CorrelationSettings(level=level),
            bootstrap=Bootstrap(cluster=people.cluster, resamples=20),
        )["pearson"]
        assert (cell["low"], cell["high"]) == (own.low, own.high)


def test_no_output_left_to_compare(world):
    table = make_table(world, outside=np.zeros(ITEMS * SYSTEMS, dtype=bool))
    assert "none is left to compare on" in table["note"]
    assert table["ceiling"]["value"] is None
    assert table["test"]["note"] == "no output can be compared"


def test_trained_evaluators_are_compared_with_ridge(world):
    """The difference of both coefficients, with percentiles of the difference in the same resamples of groups."""
    _, people, metrics, _ = world
    scored = [
        Scored("mine", "shared-bert", "trained", "shared-bert|v:1", metrics["good"]),
        Scored("ridge-1", "ridge", "trained", "ridge|v:1", metrics["noise"]),
        Scored("ridge-2", "ridge", "trained", "ridge|v:1", metrics["twin"]),
        Scored("one-sided", "shared-bert", "trained", "shared-bert|inputs:text|v:1", metrics["noise"]),
        Scored("length", "length", "sentinel", "length|v:1", metrics["noise"]),
    ]
    sets = ScoredSets(scored, np.ones(len(people), dtype=bool))
    table = evaluators_table(people, sets, {**SETTINGS, "coefficient": "spearman"}, aspect="quality")
    rows = {row["evaluator"]: row for row in table["rows"]}
    assert [name for name, row in rows.items() if "over_ridge" in row] == ["mine"]
    found = rows["mine"]["over_ridge"]
    assert found["rival"] == "ridge-2"
    settings, draws = CorrelationSettings(coefficients=("spearman",)), people.draw(SETTINGS)
    columns = [
        resample_correlation(
            metrics[name], people.mean, people.item, people.system, settings=settings, bootstrap=draws
        )
        for name in ("good", "twin")
    ]  # fmt: skip
    assert found["value"] == pytest.approx(columns[0][0].value - columns[1][0].value)
    ends = np.percentile(columns[0][1] - columns[1][1], [2.5, 97.5])
    assert [found["low"], found["high"]] == pytest.approx(list(ends))
    assert found["low"] < 0 < found["high"]
    lines = list(write_lines({**table, "project": "here"}))
    assert any(line.startswith("mine: not significantly above ridge-2, ") for line in lines)
    assert not [row for row in evaluators_table(people, replace(sets, scored=scored[:1] + scored[3:]), SETTINGS,
                aspect="quality")["rows"] if "over_ridge" in row]  # fmt: skip
