"""Evaluators against rankings made from comparisons: the table's figures equal those of its parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalapp.stats.correlation.ranking_correlation import correlate_with_ranking
from evalapp.stats.correlation.system_pairs import system_pairwise_accuracy
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.judgements import PairwiseComparisons
from evalapp.stats.ranking.systems import rank_by_m1
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.data.columns import Comparisons, Units
from scoring.boards.metrics.people import LEARNED, Scored, ScoredSets
from scoring.boards.metrics.ranked import Compared, evaluators_by_ranking

SETTINGS = {
    "people": "davidson", "systems": "all", "references": "original", "coefficient": "pearson", "test": "permutation",
}  # fmt: skip
ITEMS, SYSTEMS = 12, 7


def world(turing: bool = False, systems: int = SYSTEMS) -> Compared:
    """Comparisons of systems in which later names are better; the last system is human."""
    units = Units({k: (f"s{k}", "human" if k == systems - 1 else "machine") for k in range(systems)})
    rng = np.random.default_rng(3)
    rows = []
    for k in range(systems):
        units.code(k, None)
    for item in range(ITEMS):
        for a in range(systems):
            b = int(rng.choice([k for k in range(systems) if k != a]))
            other = systems / 2 if turing else b
            verdict = rng.choice(["a", "b", "tie"], p=[0.65, 0.15, 0.2] if a > other else [0.15, 0.65, 0.2])
            rows.append((item, a, -1 if turing else b, verdict))
    item, a, b, verdict = (np.array(column) for column in zip(*rows, strict=True))
    n = len(item)
    found = Comparisons(
        item, item // 2, a, b, verdict, np.zeros(n, dtype=bool), units, np.arange(n) % 3,
        output_a=item * systems + a, output_b=np.where(b < 0, -1, item * systems + b),
    )  # fmt: skip
    return Compared(found, subset="all", turing=turing)


def scored(compared: Compared, name: str, seed: int, weight: float) -> Scored:
    noise = np.random.default_rng(seed).normal(size=len(compared))
    return Scored(name, name, "baseline", f"{name}|v:1", weight * compared.system + noise)


@pytest.mark.parametrize("people", ["davidson", "m1"])
def test_table_has_the_figures_of_its_parts(people):
    compared = world(turing=people == "m1")
    metrics = [scored(compared, "good", 1, 0.6), scored(compared, "poor", 2, 0.0)]
    everything = np.ones(len(compared), dtype=bool)
    table = evaluators_by_ranking(compared, ScoredSets(metrics, everything), {**SETTINGS, "people": people}, aspect="q")
    kept = compared.comparisons
    ranking = (
        rank_by_m1(kept.item, kept.system_a, kept.verdict, bootstrap=Bootstrap(cluster=kept.cluster))
        if people == "m1"
        else rank_by_comparisons(
            PairwiseComparisons(kept.system_a, kept.system_b, kept.verdict, item=kept.item),
            bootstrap=Bootstrap(cluster=kept.cluster),
            model=ComparisonModel(method="davidson"),
        )
    )
    for one in metrics:
        row = next(row for row in table["rows"] if row["evaluator"] == one.evaluator)
        means = {code: float(one.metric[compared.system == code].mean()) for code in range(SYSTEMS)}
        for name in ("pearson", "spearman", "kendall"):
            expected = correlate_with_ranking(means, ranking, coefficient=name).as_dict()
            assert row[name] == pytest.approx(expected), name
        order = [int(r.system) for r in ranking.systems]
        pa = system_pairwise_accuracy([means[k] for k in order], [r.estimate.value for r in ranking.systems], order)
        assert row["pa"]["value"] == pytest.approx(pa.value)
        assert row["values"] == pytest.approx([means[code] for code in order])
    assert [row["label"] for row in table["scores"]] == [f"s{int(r.system)}" for r in ranking.systems]
    assert table["rows"][0]["evaluator"] == "good"
    assert table["test"]["names"] == ["good", "poor"]
    assert "|level:system|" in table["test"]["signature"]
    assert (table["people"], table["n_systems"], table["n_ratings"]) == (people, SYSTEMS, len(kept))
    assert f"|people:{people}|" in table["signature"]


def test_training_outputs_of_any_evaluator_count_for_none():
    compared = world()
    outside = compared.item >= 6
    table = evaluators_by_ranking(
        compared, ScoredSets([scored(compared, "good", 1, 0.6)], outside), SETTINGS, aspect="q"
    )
    kept = compared.comparisons.only(compared.comparisons.item >= 6)
    ranking = rank_by_comparisons(
        PairwiseComparisons(kept.system_a, kept.system_b, kept.verdict, item=kept.item),
        bootstrap=Bootstrap(cluster=kept.cluster),
        model=ComparisonModel(method="davidson"),
    )
    assert table["n_ratings"] == len(kept)
    assert [row["value"] for row in table["scores"]] == pytest.approx([r.estimate.value for r in ranking.systems])
    none = evaluators_by_ranking(
        compared,
        ScoredSets([scored(compared, "good", 1, 0.6)], np.zeros_like(outside), learned={"good": len(compared)}),
        SETTINGS,
        aspect="q",
    )
    assert none["note"].startswith("Every comparison is in the training data of an evaluator")
    assert f"good {len(compared)}" in none["note"]
    assert none["rows"][0]["pearson"]["value"] is None


def test_few_systems_have_a_reason_and_no_letters():
    compared = world(systems=3)
    own = [{"system": f"s{k}", "step": None, "value": float(k)} for k in range(3)]
    whole = Scored("own", "own", "baseline", "own", np.full(len(compared), np.nan), own=own)
    everything = np.ones(len(compared), dtype=bool)
    table = evaluators_by_ranking(
        compared,
        ScoredSets([scored(compared, "good", 1, 0.6), whole], everything, unapplied={"length": "not applied yet"}),
        SETTINGS,
        aspect="q",
    )
    by_name = {row["evaluator"]: row for row in table["rows"]}
    assert by_name["good"]["pearson"]["note"] == "fewer than 4 systems have both values"
    assert by_name["own"]["values"]
    assert set(by_name["own"]["values"]) == {0.0, 1.0, 2.0}
    learned = replace(whole, metric=compared.system * 10.0, n_in_training=5)
    (row,) = evaluators_by_ranking(compared, ScoredSets([learned], everything), SETTINGS, aspect="q")["rows"]
    assert set(row["values"]) == {0.0, 10.0, 20.0}
    assert row["note"] == LEARNED
    assert by_name["length"]["pearson"]["note"] == "not applied yet"
    assert table["test"]["note"] == "3 systems rank nothing, at least 6 are needed for a test"
    assert "not meaningful" in table["note"]
    same = [scored(compared, name, 1, 0.6) for name in ("one", "two")]
    same = [replace(one, metric=np.full(len(compared), 2.0)) for one in same]
    table = evaluators_by_ranking(compared, ScoredSets(same, everything), SETTINGS, aspect="q")
    assert table["test"]["note"] == "3 systems rank nothing, at least 6 are needed for a test"
    many = world()
    same = [replace(one, metric=np.full(len(many), 2.0)) for one in same]
    everything = np.ones(len(many), dtype=bool)
    table = evaluators_by_ranking(many, ScoredSets(same, everything), SETTINGS, aspect="q")
    assert {row["letters"] for row in table["rows"]} == {""}
    assert "one has no defined coefficient" in table["test"]["note"]
    machines = Compared(world().comparisons, subset="machine", turing=False)
    assert set(machines.system.tolist()) == set(range(SYSTEMS - 1))


def test_missing_comparisons_are_reported():
    found = world().comparisons
    empty = Compared(found.only(np.zeros(len(found), dtype=bool)), subset="all", turing=False)
    metric = Scored("m", "m", "baseline", "m", np.zeros(0))
    table = evaluators_by_ranking(empty, ScoredSets([metric], np.ones(0, dtype=bool)), SETTINGS, aspect="q")
    assert table["note"] == "No output of these systems has been compared with another for q."
    assert table["rows"][0]["pearson"]["note"] == "fewer than 4 systems have both values"


def test_trained_evaluators_are_compared_with_ridge_over_systems():
    compared = world(turing=True)
    metrics = [
        replace(scored(compared, "mine", 1, 0.6), kind="trained"),
        replace(scored(compared, "ridge-1", 2, 0.1), name="ridge", kind="trained"),
        scored(compared, "poor", 3, 0.0),
    ]
    sets = ScoredSets(metrics, np.ones(len(compared), dtype=bool))
    settings = {**SETTINGS, "people": "m1", "coefficient": "spearman"}
    rows = {row["evaluator"]: row for row in evaluators_by_ranking(compared, sets, settings, aspect="q")["rows"]}
    assert [name for name, row in rows.items() if "over_ridge" in row] == ["mine"]
    over = rows["mine"]["over_ridge"]
    assert over["rival"] == "ridge-1"
    assert over["value"] == pytest.approx(rows["mine"]["spearman"]["value"] - rows["ridge-1"]["spearman"]["value"])
    assert over["n"] == SYSTEMS
    # The coefficient that the reader chose; pairwise accuracy has no difference.
    assert (
        "over_ridge"
        not in evaluators_by_ranking(compared, sets, {**settings, "coefficient": "pa"}, aspect="q")["rows"][0]
    )
