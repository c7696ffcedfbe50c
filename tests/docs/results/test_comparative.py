"""The page of the comparative evaluator: what was not computed this time stays in its tables, marked."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"


@pytest.fixture(scope="module")
def comparative() -> Iterator[ModuleType]:
    sys.path.insert(0, str(RESULTS))
    yield importlib.import_module("comparative")
    sys.path.remove(str(RESULTS))
    for name in ("comparative", "store"):
        sys.modules.pop(name, None)


def results(name: str, code: str) -> dict[str, Any]:
    """One fold of a setting: in each of three groups a pair it gets right and one it gets wrong."""
    rows = [[f"g{n // 2}", 1, 1 if n % 2 else -1, 0.5 if n % 2 else -0.5, 1, 1] for n in range(6)]
    fold = {"choice": "5e-05", "train_pairs": 9, "training_seconds": 1.0, "swap_consistency": 0.5, "rows": rows}
    return {
        f"{name}/rate/5e-05": {"dev_loss": 0.7, "steps": 3, "code": code},
        f"{name}/fold/0": {**fold, "systems": {}, "code": code},
    }


def test_sets_of_an_earlier_run_stay_and_are_marked(comparative: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    comparative.write_page(results("pandalm", "before"), page, False)
    first = page.read_text(encoding="utf-8")
    assert "| pandalm, 1 of 3 folds | 6 | 0.500" in first
    assert comparative.EARLIER not in first
    comparative.write_page(results("scratchplot", comparative.CODE), page, False)
    second = page.read_text(encoding="utf-8")
    assert "| pandalm, † 1 of 3 folds | 6 | 0.500" in second
    assert "- pandalm: † of decided pairs **below**" in second
    assert "| scratchplot, 1 of 3 folds | 6 | 0.500" in second
    assert "† Of an earlier run and state of the code." in second
    assert f"Code of the evaluators: state {comparative.CODE}." in second
    # Written once more it is the same page, and what is computed anew loses its mark.
    comparative.write_page(results("scratchplot", comparative.CODE), page, False)
    assert page.read_text(encoding="utf-8") == second
    both = results("scratchplot", comparative.CODE) | results("pandalm", comparative.CODE)
    comparative.write_page(both, page, False)
    assert comparative.EARLIER not in page.read_text(encoding="utf-8")
