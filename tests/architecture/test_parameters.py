"""Public functions of the libraries take at most seven parameters: more are grouped into an object with a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = (
    "evalapp/stats", "evalapp/client", "annotation/parsers", "annotation/allocation", "retrieval/index", "scoring/ml",
    "scoring/boards",
)  # fmt: skip
LIMIT = 7
#: Functions that still take more. Remove a name when its function takes fewer; never add one.
EXCEPTIONS = {"call", "rebuild", "upload_rows"}


def long_functions() -> Iterator[tuple[str, str]]:
    """(name, place) of every public function or constructor with too many parameters."""
    for library in LIBRARIES:
        for path in sorted((ROOT / library).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            owners = {
                child: node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for child in node.body
            }
            for node in ast.walk(tree):
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                if node.name.startswith("_") and node.name != "__init__":
                    continue
                names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                if len(set(names) - {"self", "cls"}) > LIMIT:
                    name = f"{owners[node]}.{node.name}" if node.name == "__init__" else node.name
                    yield name, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_no_function_takes_more_than_seven_parameters() -> None:
    found = dict(long_functions())
    assert {name: place for name, place in found.items() if name not in EXCEPTIONS} == {}
    assert EXCEPTIONS - set(found) == set(), "exceptions that are no longer needed"
