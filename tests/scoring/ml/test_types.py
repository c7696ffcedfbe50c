"""Splits by group and the records to score."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from scoring.ml.errors import InvalidRecords
from scoring.ml.types import Comparison, Dataset, Dialogue, Item, Output, Rating, Record, assign_groups


def make_dataset(n_groups: int = 20) -> Dataset:
    items = tuple(Item(f"i{n}", ("hi",), None, ("ref",), f"g{n // 2}") for n in range(2 * n_groups))
    outputs = tuple(Output(item.id, system, f"{item.id} {system}") for item in items for system in "ab")
    ratings = tuple(Rating("r", "overall", 1.0, out.item, out.system) for out in outputs)
    comparisons = tuple(Comparison(item.id, "a", "b", "r", "overall", "tie") for item in items)
    return Dataset(
        "toy", items=items, outputs=outputs, ratings=ratings, comparisons=comparisons, dialogues=(
            Dialogue("d1", ("hello",)),
        )
    )  # fmt: skip


def test_split_keeps_groups_whole_and_loses_nothing():
    data = make_dataset()
    parts = data.split(seed=13, by="group")
    groups = [{item.group for item in part.items} for part in parts]
    assert not groups[0] & groups[1]
    assert not groups[0] & groups[2]
    assert not groups[1] & groups[2]
    for name in ("items", "outputs", "ratings", "comparisons", "dialogues"):
        assert sum(len(getattr(part, name)) for part in parts) == len(getattr(data, name))
    for part in parts:
        known = {item.id for item in part.items}
        assert {row.item for row in (*part.outputs, *part.ratings, *part.comparisons)} <= known


def test_split_sizes_are_eighty_ten_ten():
    parts = assign_groups({f"g{n}" for n in range(100)}, 13, (0.8, 0.1, 0.1))
    assert [list(parts.values()).count(part) for part in range(3)] == [80, 10, 10]


def test_split_depends_on_seed_not_on_row_order():
    data = make_dataset()
    items = list(data.items)
    random.Random(5).shuffle(items)
    shuffled = replace(data, items=tuple(items))
    for one, two in zip(data.split(seed=13), shuffled.split(seed=13), strict=True):
        assert {item.id for item in one.items} == {item.id for item in two.items}
    assert {i.id for i in data.split(seed=1)[0].items} != {i.id for i in data.split(seed=2)[0].items}


def test_every_part_gets_a_group():
    parts = assign_groups({"a", "b", "c"}, 1, (0.8, 0.1, 0.1))
    assert sorted(parts.values()) == [0, 1, 2]


def test_too_few_groups_and_other_rules_are_refused():
    with pytest.raises(ValueError, match=r"2 groups .*3"):
        assign_groups({"a", "b"}, 1, (0.8, 0.1, 0.1))
    with pytest.raises(ValueError, match="whole groups"):
        make_dataset().split(by="row")  # type: ignore[arg-type]


def test_outputs_with_context_carry_their_item():
    record = make_dataset(2).outputs_with_context()[1]
    assert (record.text, record.item, record.system, record.group) == ("i0 b", "i0", "b", "g0")
    assert (record.context, record.references) == (("hi",), ("ref",))


def test_single_string_is_not_a_list_of_references_or_turns():
    # Its characters would be taken for them, and the score would be a number.
    with pytest.raises(InvalidRecords, match="references of a record is a list of texts, not one text"):
        Record("the cat", references="the cat")
    with pytest.raises(InvalidRecords, match="context of a record"):
        Record("the cat", context="Where is it?")
    assert Record("x", references=["a", "b"], context=["c"]) == Record("x", ("a", "b"), ("c",))
