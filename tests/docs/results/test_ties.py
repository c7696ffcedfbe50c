"""The study of calibrated ties: figures of verdicts by hand."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture(scope="module")
def ties(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("experiments.ties")


def test_figures_of_verdicts_by_hand(ties: ModuleType) -> None:
    """Five pairs: better called, worse called wrongly, two ties with one called better, and better left as a tie."""
    result = {
        "probabilities": [[0.1, 0.2, 0.7], [0.2, 0.2, 0.6], [0.2, 0.6, 0.2], [0.2, 0.3, 0.5], [0.2, 0.5, 0.3]],
        "said": [1, 1, 0, 1, 0],
        "raw_said": [0, 0, 0, 0, 0],
        "usual": [0.25, 0.25, 0.5],
        "swap_consistency": 0.9,
    }
    truth = np.array([1, -1, 0, 0, 1])
    fold = ties.Fold(0, result, [f"g{n}" for n in range(5)], truth, np.array([1, 1, 1, 1, 0]))
    row = ties.summarise("d", [fold])
    assert row["loss"] == pytest.approx(-np.log([0.7, 0.2, 0.6, 0.3, 0.3]).mean())
    assert row["usual_loss"] == pytest.approx(-np.log([0.5, 0.25, 0.25, 0.25, 0.5]).mean())
    assert row["gain"]["value"] == pytest.approx(row["usual_loss"] - row["loss"], abs=1e-7)
    assert (row["ties"], row["human_ties"], row["raw_ties"], row["decided"]) == (0.4, 0.4, 1.0, 3)
    shares = {name: row[name]["value"] for name in ("coverage", "called", "forced", "longer", "difference")}
    expected = {"coverage": 2 / 3, "called": 1 / 2, "forced": 2 / 3, "longer": 1 / 2, "difference": 1 / 6}
    assert shares == pytest.approx(expected, abs=1e-6)
