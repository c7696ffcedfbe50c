"""Mean and spread of systems over discriminators with different seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from scoring.ml.evaluators.perception.seeds import scores_over_seeds
from scoring.ml.types import Record


def reader(seed: int, factor: float, more: str = "") -> Any:
    def system_score(records: Sequence[Record]) -> float:
        return factor * len(records) if records else float("nan")

    signature = f"perception|profile:paper|enc:mini@1|w:{seed:08d}|train:x@1|seed:{seed}|gp:pair/1{more}|v:0.1.0"
    return SimpleNamespace(signature=signature, system_score=system_score)


def test_mean_and_spread() -> None:
    systems = {"a": [Record("x")] * 2, "none": []}
    found = scores_over_seeds([reader(1, 0.1), reader(2, 0.2), reader(3, 0.3)], systems)
    assert [row.system for row in found] == ["a", "none"]
    # .2, .4, .6: mean .4, sum of squares .08 over n - 1 = 2.
    assert (found[0].n, found[0].mean, found[0].sd) == (3, pytest.approx(0.4), pytest.approx(0.2))
    assert found[0].values == pytest.approx((0.2, 0.4, 0.6))
    assert found[1].n == 0
    assert math.isnan(found[1].mean)
    alone = scores_over_seeds([reader(1, 0.1)], systems)[0]
    assert (alone.n, alone.mean, math.isnan(alone.sd)) == (1, pytest.approx(0.2), True)


def test_discriminators_of_other_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in more than their seed"):
        scores_over_seeds([reader(1, 0.1), reader(2, 0.2, "|inputs:text")], {"a": [Record("x")]})
    with pytest.raises(ValueError, match="no evaluator"):
        scores_over_seeds([], {})
