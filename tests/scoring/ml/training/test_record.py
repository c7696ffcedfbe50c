"""The correlations of a training's card: each evaluator scores each output once, for all judged aspects."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from evalapp.stats.correlation.coefficients import pearson
from scoring.ml import Dataset, Dialogue, Item, Output, Rating, Record, load
from scoring.ml.base import Evaluator
from scoring.ml.training.record import correlate_with_people, hash_content, hash_contents

N = 12


def dataset() -> Dataset:
    """Twelve items with one output each; `clear` is judged for all, `short` for the first ten, `rare` for two."""
    items = tuple(Item(f"i{n}", references=("one two",)) for n in range(N))
    outputs = tuple(Output(f"i{n}", "a", " ".join(["word"] * (1 + n * 5 % 7))) for n in range(N))
    rows = [("clear", n, 1 + n % 5) for n in range(N)] + [("short", n, 5 - n % 4) for n in range(10)]
    rows += [("rare", n, 1 + n) for n in range(2)]
    ratings = tuple(Rating("r1", aspect, float(value), item=f"i{n}", system="a") for aspect, n, value in rows)
    return Dataset("d", items=items, outputs=outputs, ratings=ratings)


class Counting:
    """An evaluator that counts the texts it scores; `components` holds a score per aspect."""

    def __init__(self, *, many: bool, depends_on_batch: bool = False) -> None:
        self.name, self.depends_on_batch = "counting", depends_on_batch
        self.entry = SimpleNamespace(aspect="many" if many else "one")
        self.asked: list[int] = []

    def evaluate(self, records: Sequence[Record], *, progress: Any = None) -> Any:
        self.asked.append(len(records))
        length = np.array([float(len(record.text)) for record in records])
        return SimpleNamespace(values=length, components={"clear": length, "short": -length})


def list_rows(evaluator: Counting) -> dict[str, float]:
    found = correlate_with_people([cast(Evaluator, evaluator)], dataset(), ["clear", "short", "rare"])
    return {row["aspect"]: row["pearson"]["value"] for row in found}


def expected(aspect: str) -> float:
    data = dataset()
    text = {row.item: row.text for row in data.outputs}
    judged = [(len(text[row.item]), row.value) for row in data.ratings if row.aspect == aspect]
    return pearson([float(a) for a, _ in judged], [b for _, b in judged]).value


def test_every_aspect_has_a_row_and_every_text_is_scored_once() -> None:
    evaluator = Counting(many=False)
    found = list_rows(evaluator)
    assert evaluator.asked == [N]
    assert found == {"clear": pytest.approx(expected("clear")), "short": pytest.approx(expected("short"))}


def test_evaluator_of_several_aspects_is_called_for_each() -> None:
    evaluator = Counting(many=True)
    found = list_rows(evaluator)
    assert evaluator.asked == [N]
    assert found == {"clear": pytest.approx(expected("clear")), "short": pytest.approx(-expected("short"))}


def test_scores_that_depend_on_other_texts_are_computed_per_aspect() -> None:
    evaluator = Counting(many=False, depends_on_batch=True)
    list_rows(evaluator)
    assert evaluator.asked == [N, 10]


def test_nothing_is_scored_with_too_few_judgements() -> None:
    evaluator = Counting(many=False)
    assert correlate_with_people([cast(Evaluator, evaluator)], dataset(), ["rare", "unheard of"]) == ()
    assert evaluator.asked == []


def test_baselines_are_included() -> None:
    rows = correlate_with_people([load("length"), load("random")], dataset(), ["clear"])
    assert [row["evaluator"] for row in rows] == ["length", "random"]


def test_item_identity_does_not_depend_on_its_name() -> None:
    tea = hash_content(("Tea?",), None, "i1")
    # printf '4:Tea?source:' | sha256sum
    assert tea == "e3741c1337bc"
    assert tea == hash_content(["Tea?"], "", "other")
    others = [("T", "ea?"), ("Tea?", ""), ("tea?",), ("Tea? ",)]
    assert len({tea, *(hash_content(turns, None, "i1") for turns in others), hash_content(("Tea?",), "s", "i1")}) == 6
    # Only its name identifies it.
    assert hash_content((), None, "i1") == hash_content(("", " "), "", "i1") != hash_content((), None, "i2")
    assert len(hash_content(("\ud800",), "\udfff", "i1")) == 12


def test_training_data_include_items_and_dialogue_prefixes_of_its_groups() -> None:
    items = (Item("i1", ("tea",), group="g1"), Item("i2", ("cake",)), Item("i3", ("wine",), group="g3"))
    dialogues = (Dialogue("d1", ("hi", "hello", "bye")), Dialogue("d2", ("ho",)))
    record = SimpleNamespace(groups=("g1", "dialogue:d1"), dev_groups=("item:i2",))
    contexts = [("tea",), ("cake",), ("hi",), ("hi", "hello"), ("hi", "hello", "bye")]
    found = hash_contents(cast(Any, record), Dataset("d", items=items), None, Dataset("d", dialogues=dialogues))
    assert found == tuple(sorted(hash_content(context, None, "") for context in contexts))
