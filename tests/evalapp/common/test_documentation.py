"""The documentation inside the product: every document renders, every link leads somewhere, every page has its help."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from evalapp.common.documentation import (
    find_help,
    find_image,
    load_documents,
    make_anchor,
    render_document,
    search_documents,
    split_sections,
)
from tests.architecture.routes import PAGES

#: Addresses that are no pages of the product, or the documentation itself.
OTHERS = re.compile(r"docs|health-|metrics$|accounts:logout$|scoring:live-score$|.*-(svg|pdf|csv|tar|file)$")


@pytest.mark.parametrize("name", sorted(load_documents()))
def test_a_document_renders_without_anything_that_the_policy_refuses(name: str) -> None:
    html = render_document(name)
    assert load_documents()[name].title in unescape(re.sub(r"<[^>]+>", "", html))
    assert not re.search(r"<script|\sstyle=|\son\w+=", html)
    assert "$$" not in re.sub(r"<code.*?</code>", "", html, flags=re.S)


def test_every_link_and_image_of_the_documents_exists() -> None:
    documents = load_documents()
    addresses = {document.url: name for name, document in documents.items()} | {reverse("docs-errors"): ""}
    lost = []
    for name in documents:
        for target in re.findall(r'(?:href|src)="([^"]+)"', render_document(name)):
            path, _sep, anchor = unescape(target).partition("#")
            if re.match(r"https?:|mailto:", target):
                continue
            if path.startswith("/docs/images/"):
                if find_image(path.removeprefix("/docs/images/")) is None:
                    lost.append((name, target))
                continue
            other = name if not path else addresses.get(path)
            if other is None or (anchor and f'id="{anchor}"' not in render_document(other)):
                lost.append((name, target))
    assert lost == []


@pytest.mark.parametrize("name", sorted(name for name in PAGES if not OTHERS.match(name)))
def test_every_page_has_a_chapter(name: str) -> None:
    path, _sep, anchor = find_help(name).partition("#")
    assert path != reverse("docs")
    document = next(document for document in load_documents().values() if document.url == path)
    assert not anchor or f'id="{anchor}"' in render_document(document.name)


def test_a_section_explains_the_pages_whose_names_continue_its_own() -> None:
    assert find_help("scoring:combine-again") == find_help("scoring:combine") != find_help("scoring:evaluator-list")
    assert find_help("unknown") == find_help("") == reverse("docs")


def test_sections_know_code_from_headings_and_count_equal_ones() -> None:
    sections, explained = split_sections(
        "<!-- made -->\n# Title\n\n## One `two`\n\n<!-- explains: a:b c -->\n\n"
        "```\n# a comment\n```\n\n## One `two`\n\nText.\n"
    )
    assert [section.anchor for section in sections] == ["", "one-two", "one-two-1"]
    assert explained == {"a:b": "one-two", "c": "one-two"}
    assert "a comment" in sections[1].text
    assert make_anchor("Krippendorff's alpha, 95 %") == "krippendorffs-alpha-95-"


def test_search_finds_sections_by_words_and_their_beginnings() -> None:
    titles = [hit.title for hit in search_documents("krippendorff alpha")]
    assert titles[0] == "Agreement"
    assert search_documents("krippendor")
    assert search_documents("alpha qzxw"), "one known word is enough"
    assert search_documents("qzxw") == []
    for odd in ('" OR - * ( NEAR', "_", "__ _", "½ ²", "a" * 300, "\u0301", "漢字 ابجد", "col:on"):
        assert isinstance(search_documents(odd), list)
    assert "<mark>" in search_documents("krippendorff")[0].excerpt


def test_excerpts_are_escaped() -> None:
    assert all("<" not in re.sub(r"</?mark>", "", hit.excerpt) for hit in search_documents("list str int", limit=200))


@pytest.mark.django_db
def test_pages_of_documents_need_no_account() -> None:
    client = Client()
    assert client.get("/docs/").status_code == 200
    assert client.get("/docs/how-to/annotate/").status_code == 200
    assert client.get("/docs/search/", {"q": "train"}).status_code == 200
    assert client.get("/docs/images/results/figures/power-power.svg")["Content-Type"] == "image/svg+xml"


@pytest.mark.django_db
def test_the_notebook_is_a_page_with_code_and_outputs() -> None:
    linked = Client().get("/docs/how-to/python-client/").content.decode()
    assert 'href="/docs/how-to/notebook/"' in linked
    html = Client().get("/docs/how-to/notebook/").content.decode()
    notebook = json.loads((Path(settings.BASE_DIR) / "docs/how-to/notebook.ipynb").read_text(encoding="utf-8"))
    assert html.count('<code class="language-python">') == sum(c["cell_type"] == "code" for c in notebook["cells"])
    assert "succeeded" in html
    assert "notebook" in [hit.url.split("/")[-2] for hit in search_documents("DataFrames to a leaderboard")]


@pytest.mark.parametrize(
    "address",
    [
        "/docs/none/",
        "/docs/README/",
        "/docs/images/none.svg",
        "/docs/images/../../manage.py",
        "/docs/images/generate.py",
    ],
)
@pytest.mark.django_db
def test_other_files_are_not_served(address: str) -> None:
    assert Client().get(address).status_code == 404


@pytest.mark.django_db
def test_a_page_links_to_its_chapter() -> None:
    page = Client().get("/account/sign-in/").content.decode()
    assert f'href="{find_help("accounts:login")}"' in page
