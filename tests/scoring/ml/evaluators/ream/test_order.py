"""The order of candidates and the first reference are random when references are selected (Gao et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.ream.annotate import Search, choose_references
from scoring.ml.types import Item
from tests.scoring.ml.evaluators.ream.untrained import untrained
from tests.scoring.ml.tiny import tiny_encoder

CANDIDATES = ["a", "b", "c", "d"]


def same_for_all(sets: Sequence[Sequence[str]]) -> list[float]:
    return [0.0 for _ in sets]


@pytest.mark.parametrize("greedy", [False, True])
def test_candidates_are_visited_in_an_order_set_by_the_seed(greedy: bool) -> None:
    def visited(seed: int) -> list[str]:
        rng = np.random.default_rng(seed)
        # A gain of zero is enough: all are taken, and greedy breaks ties in the order of visits.
        search = Search(min_gain=-1.0, greedy=greedy)
        found = choose_references("i", ["start"], CANDIDATES, same_for_all, search, rng=rng)
        return [step.candidate for step in found.trace]

    orders = [visited(seed) for seed in range(40)]
    assert all(sorted(order) == CANDIDATES for order in orders)
    # There are 24 orders; any candidate may be first.
    assert len({tuple(order) for order in orders}) > 12
    assert {order[0] for order in orders} == set(CANDIDATES)
    assert orders == [visited(seed) for seed in range(40)]


def test_any_reference_of_the_item_may_be_the_first(tmp_path: Path) -> None:
    ream = untrained(find_encoder(tiny_encoder("bert", tmp_path)))
    references = ("cat sat", "dog ran", "no tea")
    items = [Item(f"i{number}", ("you like",), references=references) for number in range(20)]
    nothing: list[list[str]] = [[] for _ in items]

    def begun(seed: int) -> list[str]:
        found = ream.annotate(items, nothing, seed=seed)
        assert all(one.references == one.start and len(one.start) == 1 for one in found)
        return [one.start[0] for one in found]

    first = begun(1)
    assert set(first) == set(references)  # a different one for another item
    assert begun(1) == first
    assert begun(2) != first
    # Blank ones do not count.
    blank = [Item("i", ("you like",), references=(" ", "no"))]
    assert {ream.annotate(blank, [[]], seed=seed)[0].start for seed in range(6)} == {("no",)}
