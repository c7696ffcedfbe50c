"""The source of the documentation site, laid out without Sphinx: every document is there, and every link resolves."""

from __future__ import annotations

import importlib.util
import re

import pytest

from tests.architecture.test_docs import ROOT


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("docs_site_build", ROOT / "docs/site/build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_document_is_on_the_site_and_links_resolve(build, tmp_path):
    build.write_source(tmp_path)
    pages = {path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.md")}
    assert set(build.find_pages().values()) <= pages
    listed = {
        entry.lstrip("/") for path in tmp_path.rglob("*.md")
        for tree in re.findall(r"```\{toctree\}\n(?::.*\n)*\n(.*?)```", path.read_text(encoding="utf-8"), re.S)
        for entry in tree.split()
    }  # fmt: skip
    assert pages - listed == {"index"}
    broken = []
    for path in tmp_path.rglob("*.md"):
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
        for target in re.findall(r"\]\(([^()\s]+)\)", text):
            file = target.partition("#")[0]
            if file and "://" not in target and not target.startswith("mailto:") and not (path.parent / file).exists():
                broken.append((path.relative_to(tmp_path).as_posix(), target))
    assert not broken


def test_links_outside_the_documentation_become_text(build):
    file = "/".join(["docs", "how-to", "a.md"])  # no page of ours
    pages = {file: "how-to/a", "docs/README.md": "index", "SECURITY.md": "security"}
    text = "[code](../../scoring/urls.py) [start](../README.md#x) [s](../../SECURITY.md) ![p](../images/p.png)"
    moved = build.move_links(text, file, pages)
    assert moved == "code [start](../index.md#x) [s](../security.md) ![p](../images/p.png)"


def test_libraries_exist(build):
    for modules in build.LIBRARIES.values():
        assert all(importlib.util.find_spec(module) for module in modules)
