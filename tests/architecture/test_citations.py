"""Citations in code and pages resolve: pages and headings exist, and every evaluator has its page."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.test_docs import ROOT, generator

#: A documentation page as named in code, with or without a heading.
CITATION = re.compile(r"(?<![\w/.-])(docs/[\w./-]+\.md)(?:#([\w-]+))?")
#: A link to a heading of a page.
LINK = re.compile(r"\]\(([^)\s:#]*\.md)?#([\w-]+)\)")
#: Upper-case documents that a text may name without a path: files in the root, or files written by exports.
NAMED = {"README", "CHANGELOG", "CONTRIBUTING", "SECURITY", "DATASHEET"}
DOCUMENT = re.compile(r"\b([A-Z]{4,})\.md\b")
#: A section of an earlier design document, such as "EVALUATORS 3.1" or "INTERFACE: ...".
DESIGN = "EVALUATORS|INTERFACE|PRODUCT|ARCHITECTURE|QUALITY|PAGES|STYLE|ASSISTED|JUDGES"
SECTION = re.compile(rf"\b({DESIGN})(?:,? (?:section )?\d+\b(?! *[=<>])|: [a-z]+ [a-z]+ )")
READ = {".py", ".md", ".html", ".js", ".toml", ".yml", ".sh"}


@cache
def texts() -> dict[Path, str]:
    """Every committed or staged text, except rows of results."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("needs a git checkout to know what is committed")
    paths = [ROOT / name for name in listed.stdout.splitlines()]
    return {
        path: path.read_text(encoding="utf-8", errors="replace")
        for path in paths
        if (path.suffix in READ or path.name == "Makefile") and path.is_file() and path != Path(__file__)
    }


@cache
def headings(page: Path) -> frozenset[str]:
    """The anchors of a page; a repeated heading gets the suffix -1, as on GitHub."""
    slug, found = generator().slug, set[str]()
    for line in re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M).splitlines():
        if match := re.match(r"#{1,6} +(.*)", line):
            anchor = slug(match[1])
            found.add(f"{anchor}-1" if anchor in found else anchor)
    return frozenset(found)


def test_cited_pages_and_headings_exist():
    missing = []
    for path, text in texts().items():
        for match in CITATION.finditer(text):
            page, anchor = ROOT / match[1], match[2]
            if not page.is_file() or (anchor and anchor not in headings(page)):
                missing.append(f"{path.relative_to(ROOT)}: {match[0]}")
    assert not missing


def test_links_lead_to_headings_that_exist():
    missing = []
    for path, text in texts().items():
        for target, anchor in LINK.findall(text) if path.suffix == ".md" else []:
            page = path.parent / target if target else path
            if not page.is_file() or anchor not in headings(page.resolve()):
                missing.append(f"{path.relative_to(ROOT)}: {target}#{anchor}")
    assert not missing


def test_no_missing_document_is_cited():
    """Readers cannot look up a section of a document outside the repository."""
    missing = []
    for path, text in texts().items():
        for match in [*DOCUMENT.finditer(text), *SECTION.finditer(text)]:
            if match[1] not in NAMED:
                missing.append(f"{path.relative_to(ROOT)}: {match[0]}")
    assert not missing


def test_every_evaluator_is_explained_on_one_page():
    from scoring.ml import catalogue

    explained = generator().find_explanations()
    assert {entry.name for entry in catalogue()} == set(explained)
    assert not {name: places for name, places in explained.items() if len(places) > 1}


def test_patterns_match():
    found = CITATION.search("see docs/explanation/evaluators/ream.md#training.")
    assert found
    assert found.groups() == ("docs/explanation/evaluators/ream.md", "training")
    assert all(map(SECTION.search, ["(EVALUATORS 3.1)", "EVALUATORS 2.", "INTERFACE: every command prints"]))
    assert not any(map(SECTION.search, ["METEOR 1.5", "PAGES: dict[str, list]", "from x import PAGES, ROOT"]))
    assert DOCUMENT.search("EVALUATORS.md 7.7")
