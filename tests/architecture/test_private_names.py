"""Tests use private names of the product only where no public name will do; their number only falls."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("evalapp", "annotation", "retrieval", "scoring")
#: Uses that are left. Lower the number when you remove one; never raise it. Most replace a function by one that
#: fails, waits or counts.
CEILING = 172
#: Private only by name: documented by Django and Python.
DOCUMENTED = {"_meta", "_default_manager", "_base_manager", "_state", "_replace"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_" and name not in DOCUMENTED


def list_definitions(tree: ast.Module) -> Iterator[str]:
    """Private functions, classes, variables and attributes that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def list_uses(tree: ast.Module) -> Iterator[str]:
    """Private names that are imported, read as attributes of anything but `self`, or named to `monkeypatch`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PRODUCT:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            names = [arg.value for arg in node.args[:2] if isinstance(arg, ast.Constant)]
            yield from (name.rsplit(".", 1)[-1] for name in names if isinstance(name, str))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def list_private_names() -> set[str]:
    paths = [path for package in PRODUCT for path in (ROOT / package).rglob("*.py")]
    return {name for path in paths for name in list_definitions(parse(path)) if is_private(name)}


def count_private_uses(tests: Path) -> Counter[str]:
    """Uses of private names of the product, by test file."""
    uses, private = Counter[str](), list_private_names()
    for path in tests.rglob("*.py"):
        if private.isdisjoint(re.findall(r"\b_\w+", path.read_text(encoding="utf-8"))):
            continue
        tree = parse(path)
        theirs = private - set(list_definitions(tree))
        uses[str(path.relative_to(tests))] += sum(name in theirs for name in list_uses(tree))
    return uses


def test_tests_use_no_more_private_names() -> None:
    uses = count_private_uses(ROOT / "tests")
    worst = ", ".join(f"{name} {n}" for name, n in uses.most_common(8))
    assert uses.total() <= CEILING, f"{uses.total()} private names, {CEILING} allowed; most in {worst}"


def test_uses_are_found(tmp_path: Path) -> None:
    source = "from scoring.ml.selection import _ByComparison as by\nfrom annotation.services import hooks\n"
    source += "hooks._WRITING\nmonkeypatch.setattr(hooks, '_WRITING', {})\nmodel._meta\n"
    (tmp_path / "test_x.py").write_text(source, encoding="utf-8")
    assert count_private_uses(tmp_path) == {"test_x.py": 3}
