"""The examples in docstrings of the libraries give the printed results."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import evalapp.client
import evalapp.stats
import retrieval.index

ROOT = Path(__file__).parents[3]


def find_modules() -> list[str]:
    names = ["evalapp.words", "evalapp.names", "evalapp.markup"]
    for package in (evalapp.stats, evalapp.client, retrieval.index):
        names += [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    paths = {name: (ROOT / name.replace(".", "/")).with_suffix(".py") for name in names}
    return [name for name, path in paths.items() if path.exists() and ">>>" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", find_modules())
def test_examples_give_the_printed_results(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
