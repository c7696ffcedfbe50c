"""Docstrings of public functions name their arguments, in the packages that people use as libraries."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("evalapp", "annotation", "retrieval", "scoring", "docs", "benchmarks")
#: Package -> number of its public functions that do not explain all their arguments yet. Lower it, never raise it.
UNEXPLAINED = {"evalapp/stats": 0, "scoring/ml": 0, "retrieval/index": 0, "evalapp/client": 0}
#: The client is used by methods, and only from outside the product.
CLIENT = "evalapp/client"


@cache
def list_imports() -> list[tuple[Path, str, str]]:
    """(importing file, module, name) of all imports of names."""
    return [
        (path, node.module or "", alias.name)
        for folder in PRODUCT
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


def list_imported_names(package: str) -> set[tuple[str, str]]:
    """(module, name) of everything that modules outside a package import from it."""
    prefix = package.replace("/", ".")
    return {
        (module, name)
        for path, module, name in list_imports()
        if module.startswith(prefix) and not path.is_relative_to(ROOT / package)
    }


def list_functions(package: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions of a package that are used outside of it, with their place."""
    imported = set() if package == CLIENT else list_imported_names(package)
    for path in sorted((ROOT / package).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            in_class = isinstance(node, ast.ClassDef) and package == CLIENT and not node.name.startswith("_")
            for one in node.body if in_class else [node]:
                is_public = isinstance(one, ast.FunctionDef) and not one.name.startswith("_")
                if is_public and (package == CLIENT or (module, one.name) in imported):
                    yield f"{path.relative_to(ROOT)}:{one.lineno} {one.name}", one


def explains_arguments(function: ast.FunctionDef) -> bool:
    """Whether the docstring exists and has the name of every argument."""
    docstring = ast.get_docstring(function)
    arguments = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    names = [argument.arg for argument in arguments if argument.arg not in ("self", "cls")]
    return docstring is not None and all(re.search(rf"\b{name}\b", docstring) for name in names)


@pytest.mark.parametrize("package", UNEXPLAINED)
def test_docstrings_name_every_argument(package: str) -> None:
    functions = list(list_functions(package))
    missing = [place for place, function in functions if not explains_arguments(function)]
    assert len(functions) >= 5
    assert len(missing) <= UNEXPLAINED[package], "\n".join(missing)


def test_a_function_is_explained_by_the_names_of_its_arguments() -> None:
    source = 'def f(a, *, b):\n    """The mean of `a`{}."""\n'
    one, other = (ast.parse(source.format(more)).body[0] for more in ("", ", weighted by `b`"))
    assert isinstance(one, ast.FunctionDef)
    assert isinstance(other, ast.FunctionDef)
    assert not explains_arguments(one)
    assert explains_arguments(other)
