"""The modules of docs/results, imported as its runner does: from their own folder."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"


@pytest.fixture(scope="module")
def module() -> Iterator[Callable[[str], ModuleType]]:
    """A module by its name, for example `study` or `experiments.verdicts`."""
    sys.path.insert(0, str(RESULTS))
    yield importlib.import_module
    sys.path.remove(str(RESULTS))
    for name in [name for name, one in sys.modules.items() if is_of_results(one)]:
        del sys.modules[name]


def is_of_results(one: ModuleType) -> bool:
    file = getattr(one, "__file__", None)
    return file is not None and RESULTS in Path(file).parents


@pytest.fixture
def make_run(module: Callable[[str], ModuleType], tmp_path: Path) -> Callable[..., Any]:
    """A run of a study whose rows and other files are in a folder of their own."""
    study = module("study")

    def make(name: str, **options: Any) -> Any:
        found = study.read_study(name)
        seeds = options.pop("seeds", found.seeds)
        run = study.Run(found, tmp_path, tmp_path / "out", seeds, **options)
        store = module("store").Store(tmp_path / "x.jsonl", tmp_path / "private.jsonl", "abc")
        run.__dict__["store"] = store
        return run

    return make
