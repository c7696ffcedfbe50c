"""The page about ream: each part can be computed by name, and all are written to one page."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.mark.parametrize("part", ["e2e", "extra"])
def test_part_alone_writes_the_page_of_the_script(
    script: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    store, parts = script("store"), script("ream_parts")
    monkeypatch.setattr(store, "PAGES", tmp_path)
    monkeypatch.setattr(sys, "argv", ["x.py", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--only", part])
    done: list[str] = []
    parts.make_page(
        "a-page",
        "what it does",
        lambda given, kept, question: done.append(question.name),
        lambda given, kept: ["# A page", "", *done],
        more={"extra": lambda given, kept: done.append("extra")},
    )
    assert done == [part]
    assert [path.name for path in tmp_path.glob("*.md")] == ["a-page.md"]
    assert (tmp_path / "a-page.md").read_text(encoding="utf-8") == f"# A page\n\n{part}\n"
