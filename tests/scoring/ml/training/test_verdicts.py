"""A card's accuracy on compared outputs. The expected figures are worked by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from scoring.ml import fit, load
from scoring.ml.base import Evaluator
from scoring.ml.training.card import describe_verdicts
from scoring.ml.training.verdicts import collect_pairs, compare_with_people
from scoring.ml.types import Comparison, Dataset, Item, Output, Record
from tests.scoring.ml.evaluators.comparative.data import make
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.ml.training.toy import toy_data

#: Word counts of both texts of an item, and human verdicts on the first: a better in 0 and 1, b in 2 and 8, tied in 3;
#: in 4 equally many for each, in 5 the same text twice, in 7 none.
WORDS = {0: (3, 1), 1: (1, 2), 2: (2, 2), 3: (2, 3), 4: (4, 1), 5: (2, 2), 6: (1, 3), 7: (1, 5), 8: (1, 4)}
SAID = {0: "aab", 1: "a", 2: "b", 3: ("tie", "both_bad"), 4: "ab", 5: "a", 7: ("cannot_decide",), 8: "b"}


def dataset() -> Dataset:
    items = tuple(Item(f"i{n}", references=("one two",)) for n in WORDS)
    outputs = [
        Output(f"i{n}", system, " ".join([system if n != 5 else "same"] * count))
        for n, counts in WORDS.items()
        for system, count in zip("ab", counts, strict=True)
    ]
    rows = [
        Comparison(f"i{n}", "a", "b", f"r{k}", "clear", cast(Any, verdict))
        for n, verdicts in SAID.items()
        for k, verdict in enumerate(verdicts)
    ]
    # Sides swapped; the same person again; against a reference; for another aspect.
    rows[1] = Comparison("i0", "b", "a", "r1", "clear", "b")
    rows += [Comparison("i8", "a", "b", "r0#2", "clear", "a"), Comparison("i8", "a", "b", "r0#3", "clear", "a")]
    rows += [Comparison("i6", "a", None, "r0", "clear", "a", reference_b=0)]
    rows += [Comparison("i6", "a", None, "r0", "versus", "a", reference_b=0)]
    return Dataset("d", items=items, outputs=tuple(outputs), comparisons=tuple(rows))


class Words:
    """Scores by the number of words; `components` holds a score per aspect. Counts the requested texts."""

    def __init__(self, *, many: bool = False, without: str = "") -> None:
        self.name, self.depends_on_batch, self.without = "words", False, without
        self.entry = SimpleNamespace(aspect="many" if many else "one")
        self.asked: list[int] = []

    def evaluate(self, records: Sequence[Record], *, progress: Any = None) -> Any:
        self.asked.append(len(records))
        if progress is not None:
            progress(len(records), len(records))
        counts = np.array([np.nan if r.item == self.without else float(len(r.text.split())) for r in records])
        return SimpleNamespace(values=counts, components={"clear": counts, "short": -counts})


OWN = {
    "i0": (0.2, 0.5, 0.3),
    "i1": (0.6, 0.3, 0.1),
    "i2": (0.5, 0.2, 0.3),
    "i3": (0.1, 0.7, 0.2),
    "i8": (0.7, 0.2, 0.1),
}


class Judge(Words):
    """Gives predefined verdicts on each item's pair: worse, tie, better for the first text."""

    def judge_from_either_side(self, a: Sequence[Record], b: Sequence[Record], seed: int, progress: Any) -> Any:
        self.asked.append(len(a))
        assert {(x.system, y.system) for x, y in zip(a, b, strict=True)} == {("a", "b")}
        found = np.array([OWN[x.item] for x in a])
        return SimpleNamespace(probabilities=found, signs=(found.argmax(axis=1) - 1).astype(np.int8))


def list_rows(evaluator: Words, data: Dataset | None = None, aspects: Sequence[str] = ("clear",)) -> list[Any]:
    found = compare_with_people([cast(Evaluator, evaluator)], dataset() if data is None else data, aspects)
    return [dict(row) for row in found]


def test_human_verdict_is_the_majority() -> None:
    pairs = collect_pairs(dataset(), "clear")
    assert [(a.item, a.system, b.system) for a, b in pairs.texts] == [(f"i{n}", "a", "b") for n in (0, 1, 2, 3, 8)]
    assert pairs.sign.tolist() == [1, 1, -1, 0, -1]
    assert (pairs.n_split, pairs.n_identical, pairs.simulated) == (1, 1, 0)
    assert len(set(pairs.group.tolist())) == 5


def test_scores_are_judged_by_their_differences() -> None:
    """Right in items 0 and 8, wrong in 1, equal in 2. A threshold of 1 would also be right in 3; with 3 held out, the
    others give none, so cross-validated it stays wrong, like without a threshold."""
    evaluator = Words()
    (row,) = list_rows(evaluator)
    assert evaluator.asked == [10]
    assert row["decided"]["value"] == (1 + 0 + 0.5 + 1) / 4
    assert row["verdicts"]["value"] == pytest.approx(2 / 5)
    assert (row["decided"]["n"], row["verdicts"]["n"], row["ties"]) == (4, 5, "cross-validated")
    assert row["verdicts"]["low"] <= 2 / 5 <= row["verdicts"]["high"]
    counts = {name: row[name] for name in ("n_groups", "n_groups_decided", "n_pairs", "n_decided", "n_tied")}
    assert counts == {"n_groups": 5, "n_groups_decided": 4, "n_pairs": 5, "n_decided": 4, "n_tied": 1}
    left_out = [row[name] for name in ("n_split", "n_identical", "n_missing", "simulated")]
    assert left_out == [1, 1, 0, 0]
    assert row["by_lot"] == pytest.approx(0.4)
    assert (row["evaluator"], row["aspect"]) == ("words", "clear")


def test_threshold_with_too_few_groups_is_fitted_on_these_pairs() -> None:
    data = dataset()
    (row,) = list_rows(
        Words(), replace(data, items=tuple(replace(item, group=f"g{item.id > 'i1'}") for item in data.items))
    )
    assert (row["verdicts"]["value"], row["ties"]) == (pytest.approx(3 / 5), "fitted")
    assert (row["n_groups"], row["n_groups_decided"]) == (2, 2)


def test_comparative_evaluator_is_asked_for_its_verdicts() -> None:
    """Item 0 leans to the better text but is called tied: right among decided pairs, wrong as one of three verdicts.
    Item 1 is wrong, all others are right."""
    judge = Judge()
    (row,) = list_rows(judge)
    assert judge.asked == [5]
    assert row["decided"]["value"] == 3 / 4
    assert row["verdicts"]["value"] == pytest.approx(3 / 5)
    assert (row["verdicts"]["n"], row["ties"], row["n_missing"]) == (5, "own", 0)
    assert 0 < row["verdicts"]["low"] < row["verdicts"]["high"] <= 1
    # People decided items 0, 1, 2 and 8; the evaluator decides 1, 2 and 8.
    assert (row["coverage"]["value"], row["coverage"]["n"]) == (3 / 4, 4)
    assert (row["right_if_called"]["value"], row["right_if_called"]["n"]) == (pytest.approx(2 / 3), 3)
    card = "\n".join(describe_verdicts([row]))
    assert re.search(r"decides 0\.750.* and is right then on 0\.667.*; forced to decide all, .* 0\.750", card)
    assert "coverage" not in list_rows(Words())[0]


def twice(data: Dataset) -> Dataset:
    """For these people, clear texts are also short."""
    again = [replace(row, aspect="short") for row in data.comparisons if row.aspect == "clear"]
    return replace(data, comparisons=(*data.comparisons, *again))


def test_every_aspect_has_a_row_and_every_text_is_read_once() -> None:
    one, many, judge = Words(), Words(many=True), Judge()
    aspects = ("clear", "short", "versus", "unheard of")
    found = [list_rows(evaluator, twice(dataset()), aspects) for evaluator in (one, many, judge)]
    assert [[row["aspect"] for row in rows] for rows in found] == [["clear", "short"]] * 3
    decided = [[row["decided"]["value"] for row in rows] for rows in found]
    # Reversed in the second aspect: wrong in 0 and 8, right in 1.
    assert decided == [[2.5 / 4] * 2, [2.5 / 4, 1.5 / 4], [3 / 4] * 2]
    assert (one.asked, many.asked, judge.asked) == ([10], [10], [5])


def test_comparisons_with_references_alone_are_no_pairs() -> None:
    evaluator = Words()
    assert list_rows(evaluator, aspects=("versus",)) == []
    assert evaluator.asked == []


def test_simulated_judgements_among_counted_pairs_are_counted() -> None:
    data = dataset()
    rows = tuple(replace(row, simulated=row.item in ("i0", "i4", "i5")) for row in data.comparisons)
    assert list_rows(Words(), replace(data, comparisons=rows))[0]["simulated"] == 3


def test_pairs_without_a_score_are_counted_and_excluded() -> None:
    (row,) = list_rows(Words(without="i1"))
    assert (row["n_missing"], row["n_pairs"], row["decided"]["n"], row["verdicts"]["n"]) == (1, 5, 3, 4)
    assert row["decided"]["value"] == pytest.approx(2.5 / 3)
    assert (row["n_groups"], row["n_groups_decided"]) == (4, 3)


def test_order_of_rows_does_not_matter() -> None:
    data = dataset()
    other = replace(data, outputs=data.outputs[::-1], comparisons=data.comparisons[::-1], items=data.items[::-1])
    assert list_rows(Words(), other) == list_rows(Words(), data)
    assert list_rows(Judge(), other) == list_rows(Judge(), data)


def test_all_tied_pairs_decide_nothing() -> None:
    data = dataset()
    (row,) = list_rows(Words(), replace(data, comparisons=tuple(replace(r, verdict="tie") for r in data.comparisons)))
    assert (row["decided"]["value"], row["n_decided"], row["n_groups_decided"]) == (None, 0, 0)
    assert "people decided no pair" in row["decided"]["note"]
    assert row["by_lot"] == 1.0


class Stop(Exception):
    pass


def stop(*_: object) -> None:
    raise Stop


def test_progress_callback_may_stop_the_work() -> None:
    with pytest.raises(Stop):
        compare_with_people([load("length")], dataset(), ["clear"], progress=stop)


def compared(data: Dataset) -> Dataset:
    """In each item the longer text was preferred, equal ones tied; there are no ratings."""
    words = {(row.item, row.system): len(row.text.split()) for row in data.outputs}
    rows = [
        Comparison(item.id, "a", "b", "r1", "fluency", "tie" if a == b else "a" if a > b else "b")
        for item in data.items
        for a, b in [(words[item.id, "a"], words[item.id, "b"])]
    ]
    return replace(data, ratings=(), comparisons=tuple(rows))


def test_training_measures_accuracy_on_its_held_out_part() -> None:
    dev = compared(toy_data(12, seed=9))
    seen: list[Any] = []
    found = fit("toy", toy_data(12), dev=dev, frozen=True, epochs=1, progress=seen.append)
    record = found.record
    assert record.correlations == ()
    assert [row["evaluator"] for row in record.verdicts] == ["toy", "length", "overlap", "random"]
    assert {row["aspect"] for row in record.verdicts} == {"fluency"}
    records = dev.outputs_with_context()
    values = dict(zip(((r.item, r.system) for r in records), found.score(records), strict=True))
    signs = {row.item: {"a": 1, "b": -1}[row.verdict] for row in dev.comparisons if row.verdict != "tie"}
    right = [float(np.sign(values[item, "a"] - values[item, "b"]) == sign) for item, sign in signs.items()]
    assert record.verdicts[0]["decided"]["value"] == pytest.approx(np.mean(right))
    assert record.verdicts[0]["decided"]["n"] == len(right) > 5
    assert "held-out comparisons" in {progress.phase for progress in seen}


def test_training_can_be_cancelled_during_the_measurement() -> None:
    def cancel(progress: Any) -> None:
        if progress.phase == "held-out comparisons":
            raise Stop

    with pytest.raises(Stop):
        fit("toy", toy_data(12), dev=compared(toy_data(12, seed=9)), frozen=True, epochs=1, progress=cancel)


def test_nothing_is_measured_with_reference_comparisons_only() -> None:
    dev = compared(toy_data(12, seed=9))
    rows = tuple(replace(row, system_b=None, reference_b=0) for row in dev.comparisons)
    found = fit("toy", toy_data(12), dev=replace(dev, comparisons=rows), frozen=True, epochs=1)
    assert found.record.verdicts == found.record.correlations == ()


def test_verdicts_of_the_comparative_evaluator_are_measured(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Not the difference of its scores against common references, which would need many more readings."""
    dev = make(12, 9, ratings=False, steps=False, prefix="d")
    rows = [row if n % 3 else replace(row, verdict="tie") for n, row in enumerate(dev.comparisons)]
    dev = replace(dev, comparisons=tuple(rows))
    seen: list[Any] = []
    found = fit(
        "comparative", make(6), dev=dev, encoder=tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.1),
        epochs=1, learning_rate=3e-3, pairs_per_epoch=32, batch_size=8, max_steps=3, references=4,
        progress=seen.append,
    )  # fmt: skip
    own = found.record.verdicts[0]
    texts = {(r.item, r.system): r for r in dev.outputs_with_context()}
    kept = [row for row in dev.comparisons if texts[row.item, "m1"].text != texts[row.item, "m2"].text]
    said = found.judge([texts[row.item, "m1"] for row in kept], [texts[row.item, "m2"] for row in kept])
    people = np.array([{"a": 1, "tie": 0}[row.verdict] for row in kept])
    lean = said.probabilities[:, 2] - said.probabilities[:, 0]
    assert (own["evaluator"], own["ties"], own["n_pairs"], own["simulated"]) == ("comparative", "own", 12, 12)
    assert own["verdicts"]["value"] == pytest.approx(np.mean(said.signs == people))
    assert own["decided"]["value"] == pytest.approx(np.mean(lean[people == 1] > 0))
    # A pair is read once for them, in both orders.
    assert max(p.total for p in seen if p.phase == "held-out comparisons") == len(texts)
    assert {row["ties"] for row in found.record.verdicts[1:]} <= {"cross-validated", "fitted"}
