"""Imports the scripts of docs/results as they run: from their own folder."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"


@pytest.fixture(scope="module")
def script() -> Iterator[Callable[[str], ModuleType]]:
    """A script by its name."""
    sys.path.insert(0, str(RESULTS))
    yield importlib.import_module
    sys.path.remove(str(RESULTS))
    for name in [name for name, module in sys.modules.items() if under_results(module)]:
        del sys.modules[name]


def under_results(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).parent == RESULTS
