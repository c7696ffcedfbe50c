"""Calls of translators work: no local name hides the translator, no text is translated while its module is imported,
and every placeholder of a message has a value."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("evalapp", "annotation", "retrieval", "scoring")
EAGER = {"gettext", "ngettext", "pgettext"}
PLACEHOLDER = re.compile(r"%\((\w+)\)")
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp)


def find_translators(tree: ast.Module) -> dict[str, str]:
    """Return the original name of each imported translator by its name in the module."""
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("translation")
        for alias in node.names
    }


def is_call(node: ast.AST, names: Any) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope without those of inner scopes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (*SCOPES, ast.GeneratorExp)):
            yield from walk_scope(child)


def find_hidden(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of functions that call a translator whose name they bind to something else."""
    translators = find_translators(tree)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if translators else []
    for function in functions:
        if called := {node.func.id for node in ast.walk(function) if is_call(node, translators)}:
            bound = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
            for node in walk_scope(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    bound.add(node.id)
            if called & bound:
                yield function.lineno


def find_eager(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of calls at import time, when no language is chosen yet: `gettext_lazy` is for these."""
    translators = {name for name, original in find_translators(tree).items() if original in EAGER}
    nodes = list(ast.walk(tree)) if translators else []
    inside = {
        id(node)
        for function in nodes
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for part in (function.body if isinstance(function.body, list) else [function.body])
        for node in ast.walk(part)
    }
    for node in nodes:
        if is_call(node, translators) and id(node) not in inside:
            yield node.lineno


def list_messages(call: ast.Call) -> list[str]:
    """Return the literal messages of a translator's call: two for a plural."""
    return [arg.value for arg in call.args[:2] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]


def find_unfilled(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of messages that are formatted in place without a value for each placeholder."""
    translators = find_translators(tree)
    for node in ast.walk(tree) if translators else ():
        names: set[Any] = set()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_call(node.left, translators):
            call = node.left
            if not isinstance(node.right, ast.Dict) or None in node.right.keys:
                continue
            names = {key.value for key in node.right.keys if isinstance(key, ast.Constant)}
        elif is_call(node, translators) and isinstance(node, ast.Call) and node.keywords:
            call, names = node, {keyword.arg for keyword in node.keywords}
        else:
            continue
        assert isinstance(call, ast.Call)
        if any(set(PLACEHOLDER.findall(message)) - names for message in list_messages(call)):
            yield node.lineno


@cache
def read_trees() -> dict[Path, ast.Module]:
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}


@pytest.mark.parametrize("find", [find_hidden, find_eager, find_unfilled])
def test_calls_of_translators_work(find: Callable[[ast.Module], Iterator[int]]) -> None:
    trees = read_trees()
    assert sum(bool(find_translators(tree)) for tree in trees.values()) > 100
    assert [f"{path.relative_to(ROOT)}:{line}" for path, tree in trees.items() for line in find(tree)] == []


@pytest.mark.parametrize(
    ("find", "source", "lines"),
    [
        (find_hidden, "def f():\n    for a, _ in b:\n        _('x')", [2]),
        (find_hidden, "def f():\n    [a for a, _ in b]\n    _('x')", []),
        (find_eager, "X = _('x')", [2]),
        (find_eager, "def f(a=_('x')):\n    _('y')", [2]),
        (find_eager, "X = {'a': lambda: _('x')}", []),
        (find_unfilled, "_('%(a)s and %(b)s') % {'a': 1}", [2]),
        (find_unfilled, "_('%(a)s') % {'a': 1}", []),
        (find_unfilled, "_('%(a)s', b=1)", [2]),
    ],
)
def test_faults_of_calls_are_found(find: Any, source: str, lines: list[int]) -> None:
    assert list(find(ast.parse(f"from django.utils.translation import gettext as _\n{source}"))) == lines
