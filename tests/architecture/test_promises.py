"""Promises and tests match: every marker names a promise, the page is up to date with the markers, and completed
sections stay complete."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def promises() -> Any:
    import sys

    spec = importlib.util.spec_from_file_location("docs_promises", ROOT / "docs/promises.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module


def test_every_marker_names_a_promise(promises):
    known = {name for section in promises.SECTIONS for name in section.promises}
    assert set(promises.find_tests()) - known == set()


def test_complete_sections_stay_complete(promises):
    shown = promises.find_tests()
    lost = {section.title: promises.find_missing(section, shown) for section in promises.SECTIONS if section.complete}
    assert not any(lost.values()), lost


def test_page_is_up_to_date_with_the_markers(promises):
    written = (ROOT / "docs/promises.md").read_text(encoding="utf-8")
    assert written == promises.generate(), "docs/promises.md is out of date: run `make docs`"


def test_markers_are_found_everywhere(promises, tmp_path):
    path = tmp_path / "test_x.py"
    path.write_text(
        "import pytest\npytestmark = [pytest.mark.slow, pytest.mark.promise('a')]\n"
        "@pytest.mark.promise('b', 'c')\ndef test_one():\n    pass\n"
    )
    assert list(promises._read_markers(path)) == [("a", ""), ("b", "test_one"), ("c", "test_one")]
