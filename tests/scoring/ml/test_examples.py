"""The examples in docstrings are right."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import scoring.ml

ROOT = Path(scoring.ml.__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "scoring/ml").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
