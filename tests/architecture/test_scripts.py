"""Scripts of results, benchmarks and documents run for hours by hand, so tests do not run them; this checks that the
names they use exist."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOUSE = ("evalapp", "annotation", "retrieval", "scoring", "tests")
SCRIPTS = sorted(path for folder in ("docs", "benchmarks") for path in (ROOT / folder).rglob("*.py"))


def find_missing(source: str) -> Iterator[str]:
    """Names that a script imports from the product, or reads from its modules, that do not exist."""
    tree = ast.parse(source)
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] in HOUSE:
            module = importlib.import_module(str(node.module))
            for name in node.names:
                try:
                    found = getattr(module, name.name)
                except AttributeError:
                    try:
                        found = importlib.import_module(f"{node.module}.{name.name}")
                    except ModuleNotFoundError:
                        yield f"line {node.lineno}: {node.module} has no {name.name}"
                        continue
                if type(found) is type(ast):
                    modules[name.asname or name.name] = found
    for node in ast.walk(tree):
        of_module = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
        if of_module and not hasattr(modules[node.value.id], node.attr):
            yield f"line {node.lineno}: {node.value.id} has no {node.attr}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_used_by_scripts_exist(script: Path) -> None:
    assert list(find_missing(script.read_text(encoding="utf-8"))) == []


def test_missing_names_are_found() -> None:
    source = (
        "from scoring.ml.evaluators.ream import gold\nfrom evalapp.stats import nothing\ngold.KINDS\ngold.ItemGold\n"
    )
    assert list(find_missing(source)) == ["line 2: evalapp.stats has no nothing", "line 3: gold has no KINDS"]
