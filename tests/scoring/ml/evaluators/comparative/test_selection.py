"""Where to stop, and which settings to choose; random settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from evalapp.stats.ranking.skill import VerdictTable, rank_by_games
from scoring.ml.evaluators.comparative.selection import (
    make_checks,
    random_settings,
    select_checkpoint,
    select_variant,
)
from scoring.ml.types import Record


class ByNumber:
    """The text is a number; larger is better."""

    def compare(self, a: Sequence[Record], b: Sequence[Record]) -> np.ndarray:
        return np.array([np.sign(float(x.text) - float(y.text)) for x, y in zip(a, b, strict=True)], dtype=np.int8)

    def rank(self, systems, *, seeds, seed):
        names = sorted(systems)
        rows = [(i, j, k) for i in range(len(names)) for j in range(i + 1, len(names)) for k in range(3)]
        a, b = ([systems[names[row[side]]][row[2]] for row in rows] for side in (0, 1))
        table = VerdictTable.of(names, [r[0] for r in rows], [r[1] for r in rows], self.compare(a, b))
        return rank_by_games(table, seeds=seeds, seed=seed)


def outputs(value: float, items: int = 3) -> list[Record]:
    return [Record(str(value), item=f"i{n}") for n in range(items)]


def test_each_checkpoint_against_its_two_predecessors():
    checks = make_checks(ByNumber(), {30: outputs(2), 10: outputs(1), 20: outputs(3), 40: outputs(2)})
    assert [(c.checkpoint, c.wins, c.ties, c.losses) for c in checks] == [
        (10, 0, 0, 0), (20, 3, 0, 0), (30, 3, 0, 3), (40, 0, 3, 3),
    ]  # fmt: skip
    assert make_checks(ByNumber(), {10: outputs(1, 50), 20: outputs(2, 50)}, pairs=20)[1].n == 20
    assert make_checks(ByNumber(), {n: outputs(n) for n in range(5)}, previous=1)[4].n == 3


def test_checkpoint_before_five_lost_checks_is_returned():
    quality = [1, 2, 3, 1.9, 1.8, 1.7, 1.6, 1.5, 9]
    found = select_checkpoint(ByNumber(), {n: outputs(value) for n, value in enumerate(quality)})
    assert (found.best, found.at) == (2, 7)
    assert select_checkpoint(ByNumber(), {n: outputs(n) for n in range(4)}).best == 3


def test_best_variant_is_first():
    found = select_variant(ByNumber(), {"a": outputs(1), "b": outputs(5), "c": outputs(3)}, seeds=3)
    assert found.order == ("b", "c", "a")


def test_random_settings_differ_and_repeat_by_seed():
    space = {"rate": [1, 2, 3], "size": [10, 20, 30, 40]}
    chosen = random_settings(space, seed=2)
    assert chosen == random_settings(space, seed=2)
    assert len({tuple(setting.items()) for setting in chosen}) == 5
    assert all(setting["rate"] in space["rate"] and setting["size"] in space["size"] for setting in chosen)
    assert random_settings({"rate": [1, 2]}) == [{"rate": 1}, {"rate": 2}]
    assert random_settings({}) == []
    with pytest.raises(ValueError, match="at least one value"):
        random_settings({"rate": []})
