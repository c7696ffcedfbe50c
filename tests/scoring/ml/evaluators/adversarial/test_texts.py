"""The texts that the adversarial baseline reads, and the balance of its classes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from scoring.ml.evaluators.adversarial.texts import balanced_log_loss, collect_texts, row_weights, rows_of_epoch
from scoring.ml.types import Dataset, Item, Output, System


def data() -> Dataset:
    items = (
        Item("i1", context=("hello",), references=("the cat sat", " ", "the cat  sat"), group="g1"),
        Item("i2", source="s", references=("you like tea",), group="g2"),
    )
    outputs = (
        Output("i1", "m1", "the cat sat "),
        Output("i1", "m2", "no no"),
        Output("i2", "m1", "the cat sat"),
        Output("i2", "m1", "the  cat sat", step=2),
        Output("i2", "m2", ""),
        Output("i1", "people", "yes"),
        Output("i2", "always", "i do not know"),
    )
    systems = (System("people", "human"), System("always", "control"))
    return Dataset("hand", systems=systems, items=items, outputs=outputs)


def test_origin_of_texts() -> None:
    texts = collect_texts(data())
    said = [(r.item, r.system, r.text, int(label)) for r, label in zip(texts.records, texts.labels, strict=True)]
    assert said == [
        ("i1", "", "the cat sat", 1),
        ("i2", "", "you like tea", 1),
        ("i1", "people", "yes", 1),
        ("i1", "m2", "no no", 0),
        ("i2", "m1", "the cat sat", 0),
    ]
    assert (texts.n_people, texts.n_machines, texts.n_same, texts.n_repeated) == (3, 2, 1, 2)
    assert [rows.tolist() for rows in texts.rows_by_system()] == [[4], [3]]
    assert all(record.references == () for record in texts.records)


def test_human_text_of_the_same_context_is_no_machine_text() -> None:
    whole = data()
    copied = (Output("i1", "m1", "yes"), Output("i2", "m1", "yes"))
    texts = collect_texts(replace(whole, outputs=(*copied, *whole.outputs)))
    said = [
        (r.item, r.system, int(label)) for r, label in zip(texts.records, texts.labels, strict=True) if r.text == "yes"
    ]
    assert said == [("i1", "people", 1), ("i2", "m1", 0)]
    assert texts.n_same == 2


def unequal() -> Dataset:
    items = tuple(Item(f"i{n}", references=(f"ref {n}",)) for n in range(6))
    outputs = [Output(f"i{n}", "large", f"{k} of {n}", step=k) for n in range(6) for k in range(5)]
    outputs += [Output(f"i{n}", "small", f"small {n}") for n in range(3)]
    return Dataset("unequal", items=items, outputs=tuple(outputs))


def test_equal_numbers_per_class_are_drawn_each_epoch() -> None:
    texts = collect_texts(unequal())
    assert (texts.n_people, texts.n_machines) == (6, 33)
    drawn = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = rows_of_epoch(texts, balance="draw", systems_alike=True, rng=rng)
        assert len(set(rows.tolist())) == len(rows) == 12
        assert texts.labels[rows].sum() == 6
        names = [texts.records[int(row)].system for row in rows if texts.labels[row] < 0.5]
        assert (names.count("large"), names.count("small")) == (3, 3)
        drawn.append(set(rows.tolist()))
    assert drawn[0] != drawn[1]
    by_number = rows_of_epoch(texts, balance="draw", systems_alike=False, rng=np.random.default_rng(0))
    assert len(by_number) == 12
    assert rows_of_epoch(texts, balance="weight", systems_alike=True, rng=np.random.default_rng(0)).tolist() == list(
        range(39)
    )


def test_exhausted_small_system_gives_way_to_others() -> None:
    # 6 machine texts are needed; the small system has 2.
    found = unequal()
    few = replace(found, outputs=tuple(o for o in found.outputs if o.system == "large" or o.item in ("i0", "i1")))
    texts = collect_texts(few)
    rows = rows_of_epoch(texts, balance="draw", systems_alike=True, rng=np.random.default_rng(1))
    names = [texts.records[int(row)].system for row in rows if texts.labels[row] < 0.5]
    assert (names.count("large"), names.count("small")) == (4, 2)


@pytest.mark.parametrize("alike", [True, False])
def test_weighted_classes_have_equal_weight(alike: bool) -> None:
    texts = collect_texts(unequal())
    weights = row_weights(texts, balance="weight", systems_alike=alike)
    people = texts.labels > 0.5
    assert weights.mean() == pytest.approx(1.0)
    assert weights[people].sum() == pytest.approx(weights[~people].sum(), rel=1e-5)
    small = texts.rows_by_system()[1]
    share = weights[small].sum() / weights[~people].sum()
    assert share == pytest.approx(0.5 if alike else 3 / 33, rel=1e-5)
    assert (row_weights(texts, balance="draw", systems_alike=alike) == 1).all()


def test_balanced_log_loss_by_hand() -> None:
    # Human: -log .8; machine: -log .5 and -log .9; the class means have equal weight.
    expected = (-math.log(0.8) + (-math.log(0.5) - math.log(0.9)) / 2) / 2
    assert balanced_log_loss([1, 0, 0], [0.8, 0.5, 0.1]) == pytest.approx(expected)
    assert math.isnan(balanced_log_loss([1, 1], [0.5, 0.5]))
