"""Draws of the four others that a text is compared with."""

from __future__ import annotations

from collections import Counter

import pytest

from scoring.ml.evaluators.comparative.others import draw_others
from scoring.ml.types import Record


def make_records(n: int, context: str = "Hello.") -> list[Record]:
    return [Record(f"text {k}", context=(context,)) for k in range(n)]


@pytest.mark.parametrize(("n", "others"), [(1, 0), (2, 1), (4, 3), (5, 4), (40, 4)])
def test_every_text_meets_and_is_met_by_four_different_others(n, others):
    pairs = draw_others([*make_records(n), *make_records(3, "Bye.")], 13)
    here = [pair for pair in pairs if pair[0] < n]
    assert all(other < n and other != place for place, other in here)
    assert len(set(here)) == len(here)
    for side in zip(*here, strict=True):
        assert Counter(side) == Counter(dict.fromkeys(range(n), others))


def test_draw_depends_on_content_and_seed_and_not_on_order():
    records = make_records(12)

    def name_pairs(rows: list[Record], seed: int) -> set[tuple[str, str]]:
        return {(rows[place].text, rows[other].text) for place, other in draw_others(rows, seed)}

    assert name_pairs(records[::-1], 13) == name_pairs(records, 13)
    assert name_pairs(records, 14) != name_pairs(records, 13)
