"""The selection report: steps and variants, each evaluator's choice, and human scores of the choice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from scoring.ml import load, selection
from scoring.ml.selection import SelectionError, find_choices, selection_report
from scoring.ml.types import Aspect, Comparison, Dataset, Item, Output, Rating, Record, System


def dataset(n_items: int = 20, *, by: str = "ratings") -> Dataset:
    """Step 20 has the best human score and the longest text; among the variants, v2 has the shortest."""
    items = tuple(Item(f"i{n}", ("hello",), references=("a b c",), group=f"g{n // 2}") for n in range(n_items))
    quality = {("m", 10): 1, ("m", 20): 4, ("m", 30): 3, ("v1", None): 2, ("v2", None): 5}
    words = {("m", 10): 1, ("m", 20): 4, ("m", 30): 2, ("v1", None): 3, ("v2", None): 1}
    outputs = tuple(
        Output(item.id, system, " ".join("abcde"[: words[(system, step)]]), step)
        for item in items
        for system, step in quality
    )
    ratings = tuple(Rating("r", "good", float(quality[(o.system, o.step)]), o.item, o.system, o.step) for o in outputs)
    compared = tuple(
        Comparison(item.id, "m", "m", "r", "good", "a", step_a=20, step_b=step, simulated=True)
        for item in items
        for step in (10, 30)
    )
    return Dataset(
        "d", aspects=(Aspect("good", 1, 5),), items=items, outputs=outputs,
        systems=(System("m"), System("v1", meta={"variant_of": "v"}), System("v2", meta={"variant_of": "v"})),
        ratings=ratings if by == "ratings" else (), comparisons=compared if by == "comparisons" else (),
    )  # fmt: skip


class Shorter:
    """Compares by length and prefers the shorter text; not an evaluator of the catalogue."""

    def compare(self, a: Sequence[Record], b: Sequence[Record]) -> np.ndarray:
        return np.array([np.sign(len(y.text) - len(x.text)) for x, y in zip(a, b, strict=True)], dtype=np.int8)


def row(report, evaluator: str, kind: str):
    return next(r for r in report.rows if (r.evaluator, r.kind) == (evaluator, kind))


def test_candidates_to_choose_from():
    found = find_choices(dataset())
    assert [(c.name, c.kind, c.candidates) for c in found] == [
        ("m", "steps", ("10", "20", "30")),
        ("v", "variants", ("v1", "v2")),
    ]
    named = find_choices(dataset(), {"mine": ["v2", "v1", "absent"]})
    assert named[1].name == "mine"


def test_choices_wins_and_human_scores():
    report = selection_report(
        dataset(), {"length": load("length"), "bleu-corpus": load("bleu-corpus"), "shorter": Shorter()}, aspect="good"
    )
    length = row(report, "length", "steps")
    assert (length.wins, length.runs, length.human.value) == (10, 10, 4.0)
    assert {pick.picked for pick in length.picks} == {"20"}
    assert row(report, "length", "variants").wins == 0
    assert row(report, "length", "variants").human.value == 2.0
    # Step 20 loses against 10; 30 loses against 10 and wins against 20, which ends the run of lost checks.
    shorter = row(report, "shorter", "steps")
    assert ({pick.picked for pick in shorter.picks}, shorter.human.value) == ({"30"}, 3.0)
    assert row(report, "shorter", "variants").wins == 10
    # "a b c" is the reference: three words of v1 match best.
    assert {pick.picked for pick in row(report, "bleu-corpus", "variants").picks} <= {"v1", "v2"}
    assert report.best == {"steps": 4.0, "variants": 5.0}
    assert report.chance["steps"] == pytest.approx(8 / 3)
    assert report.chance_wins == {"steps": pytest.approx(10 / 3), "variants": pytest.approx(5.0)}
    table = report.as_markdown()
    assert "| length | 10 of 10 | 4.000 [4.000, 4.000] |" in table
    assert "| (chance level) | 3.3 of 10 | 2.667 |" in table
    assert json.loads(json.dumps(report.as_dict()))["rows"][0]["runs"] == 10


def test_comparisons_count_where_there_are_no_ratings():
    report = selection_report(dataset(by="comparisons"), {"length": load("length")}, aspect="good")
    assert row(report, "length", "steps").human.value == 1.0
    assert report.simulated == 40
    assert [r.kind for r in report.rows] == ["steps"]


def test_fewer_groups_than_runs():
    report = selection_report(dataset(4), {"length": load("length")}, aspect="good")
    assert row(report, "length", "steps").runs == 2
    one = selection_report(dataset(2), {"length": load("length")}, aspect="good")
    assert not row(one, "length", "steps").human.has_interval


def test_interval_of_a_few_runs_is_students():
    """1.96 standard errors of ten runs cover 92 of 100 true means, of two runs 70."""
    noisy = dataset(20)
    values = np.random.default_rng(1).normal(size=len(noisy.ratings))
    rows = tuple(replace(r, value=r.value + float(v)) for r, v in zip(noisy.ratings, values, strict=True))
    report = selection_report(replace(noisy, ratings=rows), {"length": load("length")}, aspect="good")
    found = row(report, "length", "steps")
    humans = [pick.human for pick in found.picks]
    expected = stats.ttest_1samp(humans, 0).confidence_interval()
    assert (found.human.low, found.human.high) == pytest.approx((expected.low, expected.high))


def test_nothing_to_choose_or_no_judgements():
    plain = replace(dataset(), systems=(), outputs=tuple(o for o in dataset().outputs if o.step is None))
    with pytest.raises(SelectionError, match="nothing to choose from"):
        selection_report(plain, {}, aspect="good")
    with pytest.raises(SelectionError, match="no part has human judgements"):
        selection_report(dataset(), {}, aspect="other")


class First:
    """Prefers whatever it reads first, and uses the paper's tie rule."""

    tie_rule = "paper"

    def compare(self, a: Sequence[Record], b: Sequence[Record]) -> np.ndarray:
        return np.ones(len(a), dtype=np.int8)


def test_no_candidate_is_always_read_first():
    for choice in find_choices(dataset()):
        found = selection._ByComparison(First(), choice, None).verdicts
        assert found
        for signs in found.values():
            assert set(signs.values()) == {-1, 1}, choice.name


class Leaning:
    """Calls every pair tied, but leans to the shorter text."""

    outcome, tie_rule = "expected", "half"

    def compare(self, a: Sequence[Record], b: Sequence[Record]) -> np.ndarray:
        return np.zeros(len(a), dtype=np.int8)

    def judge_from_either_side(self, a, b, seed, progress):
        lean = np.array([np.sign(len(y.text) - len(x.text)) for x, y in zip(a, b, strict=True)]) / 10
        return SimpleNamespace(signs=self.compare(a, b), lean=lean)

    def counted(self, found):
        return (1 + found.lean) / 2


def test_variants_are_rated_by_the_evaluators_outcome():
    """Its verdicts are all ties: by verdicts, the first variant would be chosen. Steps are chosen by verdicts."""
    report = selection_report(dataset(), {"leaning": Leaning(), "shorter": Shorter()}, aspect="good", runs=2)
    picked = {(row.evaluator, row.kind): {pick.picked for pick in row.picks} for row in report.rows}
    assert picked["leaning", "variants"] == picked["shorter", "variants"] == {"v2"}
    # Nothing ever loses, so the training is never stopped.
    assert picked["leaning", "steps"] == {"30"}


def test_variants_are_rated_by_the_evaluators_own_tie_rule(monkeypatch):
    asked: list[dict] = []

    def rank(table, **options):
        asked.append(options)
        return selection_rank(table, **options)

    selection_rank = selection.rank_by_games
    monkeypatch.setattr(selection, "rank_by_games", rank)
    selection_report(dataset(), {"first": First(), "shorter": Shorter()}, aspect="good", runs=2)
    assert [(options["tie"], options["seeds"]) for options in asked] == [("paper", 100)] * 2 + [("half", 100)] * 2
