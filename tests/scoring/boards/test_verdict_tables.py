"""The table of evaluators on compared pairs has the figures of its parts, over pairs outside all training data."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from evalapp.stats.correlation.verdicts import agree_on_pairs, margins
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.data.columns import Comparisons, Units
from scoring.boards.metrics.people import Scored, ScoredSets
from scoring.boards.metrics.ranked import Compared
from scoring.boards.pairs.compute import BASELINE, NO_BASELINE, pairs_table
from scoring.boards.pairs.table import PairsTable
from scoring.boards.shapes import find_faults

SETTINGS = {"systems": "all", "references": "original", "test": "permutation"}
ITEMS, SYSTEMS = 30, 5


def world(raters: tuple[str, ...] = ("r1", "r2", "r3"), **changes) -> Compared:
    """All raters compare every item's outputs: systems with higher numbers are better, with errors."""
    units = Units({k: (f"s{k}", "human" if k == SYSTEMS - 1 else "machine") for k in range(SYSTEMS)})
    for k in range(SYSTEMS):
        units.code(k, None)
    rng = np.random.default_rng(6)
    rows = []
    for item in range(ITEMS):
        a, b = rng.choice(SYSTEMS, 2, replace=False)
        for rater in range(len(raters)):
            verdict = rng.choice(["a", "b", "tie"], p=[0.7, 0.1, 0.2] if a > b else [0.1, 0.7, 0.2])
            rows.append((item, a, b, verdict, rater))
    item, a, b, verdict, rater = (np.array(column) for column in zip(*rows, strict=True))
    n = len(item)
    found = Comparisons(
        item, item // 2, a, b, verdict, np.zeros(n, dtype=bool), units, rater, raters,
        output_a=item * SYSTEMS + a, output_b=item * SYSTEMS + b,
    )  # fmt: skip
    return Compared(replace(found, **changes), subset="all", turing=False)


def scored(compared: Compared, name: str, weight: float, seed: int = 1, **more) -> Scored:
    noise = np.random.default_rng(seed).normal(size=len(compared))
    kind = "sentinel" if name == BASELINE else "baseline"
    return Scored(name, name, kind, f"{name}|v:1", weight * compared.system + noise, **more)


def make_table(compared: Compared, metrics: list[Scored], outside=None, **settings):
    everything = np.ones(len(compared), dtype=bool)
    return pairs_table(
        compared, ScoredSets(metrics, everything if outside is None else outside), {**SETTINGS, **settings}, aspect="q"
    )


def test_table_has_the_figures_of_its_parts():
    compared = world()
    metrics = [scored(compared, BASELINE, 0.0, 3), scored(compared, "good", 2.0), scored(compared, "fair", 0.7)]
    table = make_table(compared, metrics)
    found = compared.comparisons
    place = {int(output): k for k, output in enumerate(compared.output)}
    votes: dict[tuple[int, int], list[int]] = {}
    for a, b, verdict in zip(found.output_a, found.output_b, found.verdict, strict=True):
        sign = {"a": 1, "b": -1}.get(str(verdict), 0)
        one, two = (place[int(a)], place[int(b)])
        key, sign = ((one, two), sign) if one < two else ((two, one), -sign)
        votes.setdefault(key, []).append(sign)
    people, split = {}, 0
    for key, signs in votes.items():
        counts = sorted((signs.count(sign) for sign in (-1, 0, 1)), reverse=True)
        if counts[0] == counts[1]:
            split += 1
        else:
            people[key] = max((-1, 0, 1), key=signs.count)
    decided = [key for key, sign in people.items() if sign]
    assert (table["n_pairs"], table["n_decided"], table["n_split"]) == (len(people), len(decided), split)
    assert split > 0
    assert table["n_ratings"] == sum(len(votes[key]) for key in people)
    shares = {}
    for one in metrics:
        row = next(row for row in table["rows"] if row["evaluator"] == one.evaluator)
        first, second = np.array(sorted(people)).T
        sign = np.array([people[key] for key in sorted(people)])
        cluster = compared.item[first] // 2
        expected = agree_on_pairs(
            margins(one.metric[first], one.metric[second]), sign, bootstrap=Bootstrap(cluster=cluster, seed=13)
        )
        right = [np.sign(one.metric[a] - one.metric[b]) == people[a, b] for a, b in decided]
        shares[one.evaluator] = float(np.mean(right))
        assert row["cells"][0]["value"] == pytest.approx(shares[one.evaluator])
        assert row["cells"][0] == pytest.approx(expected.decided.as_dict())
        assert row["cells"][2]["value"] == pytest.approx(expected.calibration.accuracy.value)
        assert row["cells"][2]["cross_validated"]["value"] == pytest.approx(expected.calibration.cross_validated.value)
    assert table["rows"][0]["evaluator"] == "good"
    of = {row["evaluator"]: row for row in table["rows"]}
    assert of[BASELINE]["cells"][1] is None
    length = max(shares[BASELINE], 1 - shares[BASELINE])
    assert of["good"]["cells"][1]["value"] == pytest.approx(shares["good"] - length)
    assert of["good"]["cells"][1]["low"] > 0
    assert of["good"]["letters"] != of[BASELINE]["letters"]
    assert table["ceiling"][0]["value"] > 0.6
    assert table["n_raters"] == 3
    assert list(find_faults(PairsTable, json.loads(json.dumps(table)), "table")) == []


def test_order_of_rows_changes_nothing():
    compared = world()
    order = np.random.default_rng(0).permutation(len(compared.comparisons))
    turned = compared.comparisons.only(order)
    flip = {"a": "b", "b": "a", "tie": "tie"}
    half = np.arange(len(order)) % 2 == 0
    swapped = replace(
        turned,
        system_a=np.where(half, turned.system_b, turned.system_a),
        system_b=np.where(half, turned.system_a, turned.system_b),
        output_a=np.where(half, turned.output_b, turned.output_a),
        output_b=np.where(half, turned.output_a, turned.output_b),
        verdict=np.array([flip[str(v)] if h else str(v) for v, h in zip(turned.verdict, half, strict=True)]),
    )
    again = Compared(swapped, subset="all", turing=False)
    one = make_table(compared, [scored(compared, "good", 2.0), scored(compared, BASELINE, 0.0, 3)])
    two = make_table(again, [scored(again, "good", 2.0), scored(again, BASELINE, 0.0, 3)])
    assert one == two


def test_repeats_are_no_second_person_and_cannot_decide_is_excluded():
    plain = world(("r1", "r2"))
    found = plain.comparisons
    more = found.only(np.repeat(np.arange(len(found)), 2))
    again = np.arange(len(more)) % 2 == 1
    # The same person repeats every judgement with the opposite verdict, under a repeat key.
    flipped = np.array([{"a": "b", "b": "a"}.get(str(v), str(v)) for v in more.verdict])
    more = replace(
        more, verdict=np.where(again, flipped, more.verdict), rater=more.rater + 2 * again,
        raters=("r1", "r2", "r1#2", "r2#2"),
    )  # fmt: skip
    unsure = more.only(np.arange(5))
    unsure = replace(unsure, verdict=np.array(["cannot_decide"] * 5))
    columns = ("item", "cluster", "system_a", "system_b", "verdict", "simulated", "rater", "output_a", "output_b")
    both = replace(
        more, **{name: np.concatenate([getattr(more, name), getattr(unsure, name)]) for name in columns}
    )  # fmt: skip
    one = make_table(plain, [scored(plain, "good", 2.0)])
    compared = Compared(both, subset="all", turing=False)
    two = make_table(compared, [scored(compared, "good", 2.0)])
    assert one["rows"] == two["rows"]
    assert (one["n_ratings"], one["n_raters"]) == (two["n_ratings"], two["n_raters"])


def test_training_pairs_of_any_evaluator_count_for_none():
    compared = world()
    outside = compared.item >= 10
    table = make_table(compared, [scored(compared, "good", 2.0), scored(compared, BASELINE, 0.0, 3)], outside)
    part = Compared(compared.comparisons.only(compared.comparisons.item >= 10), subset="all", turing=False)
    metric = scored(compared, "good", 2.0).metric[outside]
    alone = make_table(part, [replace(scored(part, "good", 2.0), metric=metric)])
    assert table["n_pairs"] == alone["n_pairs"]
    row = next(row for row in table["rows"] if row["evaluator"] == "good")
    assert row["cells"][0] == alone["rows"][0]["cells"][0]
    assert table["n_excluded"] == 30
    nothing = pairs_table(
        compared,
        ScoredSets(
            [scored(compared, "good", 2.0)], np.zeros(len(compared), dtype=bool), learned={"good": len(compared)}
        ),
        SETTINGS,
        aspect="q",
    )
    assert "none is left to compare on" in nothing["note"]
    assert f"good {len(compared)}" in nothing["note"]
    assert nothing["rows"][0]["cells"][0]["value"] is None


def test_difference_is_to_the_shorter_text_where_that_wins():
    compared = world()
    good, length = scored(compared, "good", 2.0), scored(compared, BASELINE, -1.0, 3)
    table = make_table(compared, [good, length])
    of = {row["evaluator"]: row["cells"] for row in table["rows"]}
    assert table["shorter"]
    assert of[BASELINE][0]["value"] < 0.5
    expected = of["good"][0]["value"] - (1 - of[BASELINE][0]["value"])
    assert of["good"][1]["value"] == pytest.approx(expected)
    longer = make_table(compared, [good, replace(length, metric=-length.metric)])
    assert not longer["shorter"]
    assert longer["rows"][0]["cells"][1]["value"] == pytest.approx(expected)


def test_missing_length_explains_the_missing_difference():
    compared = world()
    table = make_table(compared, [scored(compared, "good", 2.0)])
    assert table["rows"][0]["cells"][1]["note"] == NO_BASELINE
    assert table["test"]["note"] == "there are fewer than two evaluators to compare"
    assert make_table(compared, [scored(compared, "good", 2.0)], test="none")["test"]["note"] == "no test was requested"


def test_subsets_and_missing_scores():
    compared = world()
    machines = Compared(compared.comparisons, subset="machine", turing=False)
    table = make_table(machines, [scored(machines, "good", 2.0)], systems="machine")
    assert table["n_systems"] == SYSTEMS - 1
    holes = scored(compared, "good", 2.0)
    metric = np.where(compared.item < 3, np.nan, holes.metric)
    found = make_table(compared, [replace(holes, metric=metric)])["rows"][0]
    whole = make_table(compared, [holes])["rows"][0]
    assert found["n_missing"] > 0
    assert found["n"] < whole["n"]


def test_all_ties_and_no_comparisons_are_reported():
    compared = world(verdict=np.array(["tie"] * (3 * ITEMS)))
    table = make_table(compared, [scored(compared, "good", 2.0)])
    assert "All pairs are tied" in table["note"]
    assert table["by_lot"] == 1.0
    nobody = Compared(
        compared.comparisons.only(np.zeros(len(compared.comparisons), dtype=bool)), subset="all", turing=False
    )
    empty = make_table(nobody, [replace(scored(compared, "good", 2.0), metric=np.zeros(0))])
    assert "No output of these systems has been compared" in empty["note"]
    assert list(find_faults(PairsTable, json.loads(json.dumps(empty)), "table")) == []


def test_trained_evaluators_are_compared_with_the_best_ridge():
    compared = world()
    metrics = [
        replace(scored(compared, "mine", 2.0), kind="trained"),
        replace(scored(compared, "ridge-1", 0.1, 2), name="ridge", kind="trained"),
        replace(scored(compared, "ridge-2", 0.8, 3), name="ridge", kind="trained"),
        scored(compared, "length", 0.0),
    ]
    table = make_table(compared, metrics)
    assert list(find_faults(PairsTable, json.loads(json.dumps(table)), "table")) == []
    assert table["columns"][3] == {"name": "less ridge", "n": table["n_decided"]}
    rows = {row["evaluator"]: row["cells"] for row in table["rows"]}
    assert [name for name, cells in rows.items() if cells[3] is not None] == ["mine"]
    over = rows["mine"][3]
    assert over["value"] == pytest.approx(rows["mine"][0]["value"] - rows["ridge-2"][0]["value"])
    assert over["low"] < over["value"] < over["high"]
    # The difference of both from the same baseline is the same difference.
    assert over["value"] == pytest.approx(rows["mine"][1]["value"] - rows["ridge-2"][1]["value"])
    # No column without a trained ridge, nor without another trained evaluator.
    for part in (metrics[:1] + metrics[3:], metrics[1:]):
        assert len(make_table(compared, part)["columns"]) == 3
