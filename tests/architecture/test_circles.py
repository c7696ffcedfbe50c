"""No module of the product imports itself through others: at module level, inside functions or for types alone."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("evalapp", "annotation", "retrieval", "scoring")

# Circles known today: the first module by name, and the number of modules. The list only gets shorter: a new circle
# fails, and so does a listed one that is gone.
KNOWN = {
    "scoring.services.combining": 2,
}


def find_imports(tree: ast.Module, module: str, is_package: bool, modules: Mapping[str, object]) -> set[str]:
    """Modules imported anywhere in `tree`. A parent package that Python imports on the way does not count."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".") if is_package else module.split(".")[:-1]
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                found.add(submodule if submodule in modules else base)
    return {name for name in found if name in modules and name != module}


def read_graph(root: Path, packages: tuple[str, ...]) -> dict[str, set[str]]:
    """The imports of each module below `packages`, by dotted name."""
    files: dict[str, tuple[Path, bool]] = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            files[".".join(parts[:-1] if is_package else parts)] = (path, is_package)
    return {
        name: find_imports(ast.parse(path.read_text(encoding="utf-8")), name, is_package, files)
        for name, (path, is_package) in files.items()
    }


def find_circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan 1972), sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            place = stack.index(name)
            circle = stack[place:]
            del stack[place:]
            if len(circle) > 1:
                circles.append(sorted(circle))

    for name in graph:
        if name not in index:
            visit(name)
    return sorted(circles)


def test_no_module_imports_itself_through_others() -> None:
    found = {circle[0]: circle for circle in find_circles(read_graph(ROOT, PACKAGES))}
    new = [circle for first, circle in found.items() if len(circle) > KNOWN.get(first, 1)]
    assert new == [], "a new circle: move what its modules share into a module below them"
    gone = {first: size for first, size in KNOWN.items() if len(found.get(first, ())) < size}
    assert gone == {}, "these circles are gone or smaller: change KNOWN"


def test_a_circle_is_found_wherever_the_import_stands(tmp_path: Path) -> None:
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("from p.a import f\n")
    (package / "a.py").write_text("import os\nfrom p import b\n\ndef f(): ...\n")
    (package / "b.py").write_text("def g():\n    from .c import h\n")
    (package / "c.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.a\n")
    (package / "d.py").write_text("from p import a, c\n")
    assert find_circles(read_graph(tmp_path, ("p",))) == [["p.a", "p.b", "p.c"]]
    (package / "c.py").write_text("def h(): ...\n")
    assert find_circles(read_graph(tmp_path, ("p",))) == []
