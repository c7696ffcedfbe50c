"""The version is the same everywhere, and the changelog has the form of Keep a Changelog."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from evalapp import __version__

ROOT = Path(__file__).resolve().parents[2]


def test_the_project_has_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__


def test_the_changelog_begins_with_what_is_unreleased() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)$", text, re.M)
    assert sections[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ - (\d{4}-\d\d-\d\d|not yet released)", one) for one in sections[1:])
    release = __version__.partition(".dev")[0]
    assert sections[1].startswith(release), f"the changelog has no section on {release}"


def test_the_first_release_fits_on_a_page() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## 0\.2\.0.*?(?=^## |\Z)", text, re.M | re.S)
    assert first
    assert len(first[0].splitlines()) <= 100
