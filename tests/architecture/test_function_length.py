"""Functions stay short, counted in lines of code: without docstrings, comments and blank lines."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("evalapp", "annotation", "retrieval", "scoring")
MEDIAN, P90, LONGEST = 8, 25, 60


def measure_functions(source: str) -> Iterator[tuple[str, int]]:
    """Yield (name:line, lines of code) of each function, from its signature to its end."""
    nodes = list(ast.walk(ast.parse(source)))
    strings = [node for node in nodes if isinstance(node, ast.Constant | ast.JoinedStr)]
    code = {line for node in strings for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    code |= {n for n, line in enumerate(source.split("\n"), 1) if line.strip() and not line.lstrip().startswith("#")}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = set(range(node.lineno, (node.end_lineno or node.lineno) + 1)) & code
            if ast.get_docstring(node):
                lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
            yield f"{node.name}:{node.lineno}", len(lines)


@pytest.fixture(scope="module")
def functions() -> dict[str, int]:
    return {
        f"{path.relative_to(ROOT)} {name}": size
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts
        for name, size in measure_functions(path.read_text(encoding="utf-8"))
    }


def test_no_function_is_long(functions: dict[str, int]) -> None:
    assert {name: size for name, size in functions.items() if size > LONGEST} == {}


def test_most_functions_are_short(functions: dict[str, int]) -> None:
    sizes = sorted(functions.values())
    assert statistics.median(sizes) <= MEDIAN
    assert sizes[int(0.9 * len(sizes))] <= P90


def test_docstrings_comments_and_blank_lines_do_not_count() -> None:
    source = 'def f(a):\n    """Two\n    lines."""\n\n    # why\n    return (\n        a\n    )\n'
    assert dict(measure_functions(source)) == {"f:1": 4}
