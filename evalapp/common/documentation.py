"""The documents of `docs` as pages: rendered to HTML with formulas as MathML, and searched by section. Nothing comes
from the network."""

from __future__ import annotations

import json
import posixpath
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

#: Folders of `docs` in the order of the navigation.
GROUPS = {
    "tutorial": _("Tutorial"),
    "how-to": _("How-to guides"),
    "explanation": _("Explanation"),
    "explanation/evaluators": _("Evaluators"),
    "explanation/statistics": _("Statistics"),
    "reference": pgettext_lazy("documentation", "Reference"),
    "operations": _("Operations"),
    "results": _("Results"),
    "decisions": _("Decisions"),
    "": _("Project"),
}
#: Documents outside `docs`, by their address below `/docs/`.
OUTSIDE = {"benchmarks": "benchmarks/README.md", "changelog": "CHANGELOG.md", "security": "SECURITY.md"}
IMAGES = {".svg": "image/svg+xml", ".png": "image/png"}
_COMMENT = re.compile(r"<!--([^<>]*)-->\s*")
_HEADING = re.compile(r"(#{1,6}) (.+)")
_TARGET = re.compile(r"\]\([^()\[\]]*\)")
#: Parts of Markdown that do not help to read an excerpt: targets of links, formulas, rules of tables, marks.
_MARKS = re.compile(rf"{_TARGET.pattern}|\$\$?[^$]+\$\$?|^ *[-:|][-:| ]*$|[!\[\]*`|]", re.M)


class Section(NamedTuple):
    """A heading with the text up to the next one. `anchor` is empty for the title of the document."""

    anchor: str
    title: str
    level: int
    text: str


@dataclass(frozen=True)
class Document:
    """A document of the tree.

    name: its address below `/docs/`; empty for the first page.
    file: its path from the root of the project, with slashes.
    source: its Markdown without comments.
    explained: names of URLs, each with the anchor of the section that explains that page."""

    name: str
    file: str
    source: str
    sections: tuple[Section, ...]
    explained: dict[str, str]

    @property
    def title(self) -> str:
        return self.sections[0].title

    @property
    def group(self) -> str:
        return posixpath.dirname(self.file.removeprefix("docs/")) if self.file.startswith("docs/") else ""

    @property
    def is_overview(self) -> bool:
        return self.file.endswith("README.md") and self.file.startswith("docs/")

    @property
    def url(self) -> str:
        return reverse("docs-page", args=[self.name]) if self.name else reverse("docs")


class Hit(NamedTuple):
    title: str
    section: str
    url: str
    excerpt: SafeString


def make_anchor(title: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def split_sections(source: str) -> tuple[tuple[Section, ...], dict[str, str]]:
    """Split Markdown at its headings. A comment `<!-- explains: NAME ... -->` below a heading says which pages of the
    product the section explains; the second value maps their URL names to anchors."""
    sections: list[Section] = []
    explained: dict[str, str] = {}
    used: Counter[str] = Counter()
    fenced, lines = False, list[str]()

    def close() -> None:
        if sections:
            text = "\n".join(lines)
            for comment in _COMMENT.findall(text):
                if comment.strip().startswith("explains:"):
                    explained.update(dict.fromkeys(comment.split()[1:], sections[-1].anchor))
            sections[-1] = sections[-1]._replace(text=_MARKS.sub(" ", _COMMENT.sub("", text)))
        lines.clear()

    for line in source.splitlines():
        fenced ^= line.startswith("```")
        if not fenced and (heading := _HEADING.match(line)):
            close()
            title = re.sub(r"[\[`]", "", _TARGET.sub("", heading[2]))
            anchor = make_anchor(title)
            number = used[anchor]
            used[anchor] += 1
            anchor = f"{anchor}-{number}" if number else anchor
            sections.append(Section(anchor if sections else "", title, len(heading[1]), ""))
        else:
            lines.append(line)
    close()
    return tuple(sections), explained


def write_notebook(source: str) -> str:
    """Return a notebook as Markdown: its texts, its code, and the outputs that are plain text."""
    parts = []
    for cell in json.loads(source)["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            printed = "".join(output.get("text") or output.get("data", {}).get("text/plain") or "")
            if printed.strip():
                parts.append(f"```\n{printed.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


@cache
def load_documents() -> dict[str, Document]:
    """Return all documents by their names; empty if the installation has no `docs`."""
    root = Path(settings.BASE_DIR)
    files = {name: root / file for name, file in OUTSIDE.items()}
    for path in sorted([*(root / "docs").rglob("*.md"), *(root / "docs").rglob("*.ipynb")]):
        name = path.relative_to(root / "docs").with_suffix("").as_posix()
        files["" if name == "README" else name.removesuffix("/README")] = path
    documents = {}
    for name, path in files.items():
        if path.is_file():
            source = path.read_text(encoding="utf-8")
            source = write_notebook(source) if path.suffix == ".ipynb" else source
            sections, explained = split_sections(source)
            file = path.relative_to(root).as_posix()
            documents[name] = Document(name, file, _COMMENT.sub("", source), sections, explained)
    return documents


@cache
def _names_of_files() -> dict[str, str]:
    return {document.file: name for name, document in load_documents().items()}


def find_help(url_name: str) -> str:
    """Return the address of the section that explains a page of the product; of the first page if there is none. A
    section that explains `app:campaign` also explains `app:campaign-list`, unless another section names that page."""
    addresses = _help_addresses()
    while url_name and url_name not in addresses:
        url_name = url_name.rpartition("-")[0]
    return addresses.get(url_name) or reverse("docs")


@cache
def _help_addresses() -> dict[str, str]:
    return {
        url_name: f"{document.url}#{anchor}" if anchor else document.url
        for document in load_documents().values()
        for url_name, anchor in document.explained.items()
    }


def list_groups() -> list[tuple[str, list[Document]]]:
    """Return the documents by group, for the navigation; the overview of a folder comes first."""
    groups: dict[str, list[Document]] = {group: [] for group in GROUPS}
    for document in load_documents().values():
        if document.name:
            groups[document.group].append(document)
    return [
        (str(GROUPS[group]), sorted(documents, key=lambda one: (not one.is_overview, one.title.lower())))
        for group, documents in groups.items()
        if documents
    ]


# ---- rendering -----------------------------------------------------------------------------------------


@cache
def _writer() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.anchors import anchors_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    writer = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    writer.use(anchors_plugin, max_level=6, slug_func=make_anchor)
    writer.use(dollarmath_plugin, allow_space=False, allow_digits=False, renderer=_render_formula)
    writer.add_render_rule("table_open", lambda *_: '<div class="table-wrap" tabindex="0"><table class="table">')
    writer.add_render_rule("table_close", lambda *_: "</table></div>")
    return writer


def _render_formula(source: str, options: MutableMapping[str, bool]) -> str:
    from latex2mathml.converter import convert

    formula = convert(source, display="block" if options["display_mode"] else "inline")
    # A wide formula scrolls, also by keyboard.
    return f'<div class="wide" tabindex="0">{formula}</div>' if options["display_mode"] else formula


@lru_cache(maxsize=256)
def render_document(name: str) -> SafeString:
    """Return the HTML of a document. Links to documents and images lead to their pages; links to other files of the
    project, which no installation serves, become plain text."""
    document = load_documents()[name]
    writer = _writer()
    tokens = writer.parse(document.source)
    for token in tokens:
        if token.children:
            token.children = list(_follow_links(token.children, posixpath.dirname(document.file)))
    html = writer.renderer.render(tokens, writer.options, {})
    return mark_safe(html.replace("<pre>", '<pre tabindex="0">'))


def _follow_links(tokens: Sequence[Token], folder: str) -> Iterator[Token]:
    is_dropped = False
    for token in tokens:
        if token.type == "link_open":
            href = _find_address(str(token.attrs["href"]), folder)
            is_dropped = not href
            token.attrs["href"] = href
        if token.type == "image":
            path = posixpath.normpath(posixpath.join(folder, str(token.attrs["src"])))
            token.attrs["src"] = reverse("docs-image", args=[path.removeprefix("docs/")])
        if not (is_dropped and token.type in ("link_open", "link_close")):
            yield token


def _find_address(href: str, folder: str) -> str:
    """Return the address of a link's target; empty if no installation serves it."""
    if re.match(r"https?:|mailto:|#", href):
        return href
    path, _sep, anchor = href.partition("#")
    name = _names_of_files().get(posixpath.normpath(posixpath.join(folder, path)))
    if name is None:
        return ""
    url = load_documents()[name].url
    return f"{url}#{anchor}" if anchor else url


def find_image(name: str) -> Path | None:
    """Return the file of an image below `docs`; None if there is none of this name."""
    root = (Path(settings.BASE_DIR) / "docs").resolve()
    path = (root / name).resolve()
    return path if path.suffix in IMAGES and path.is_relative_to(root) and path.is_file() else None


# ---- search --------------------------------------------------------------------------------------------

_START, _END = "\x02", "\x03"


@cache
def _search_index() -> sqlite3.Connection:
    """All sections in a full-text table of SQLite in memory. Threads may share it, because it is only read."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute(
        "CREATE VIRTUAL TABLE section USING fts5(url UNINDEXED, document, title, text, tokenize='porter unicode61')"
    )
    connection.executemany(
        "INSERT INTO section VALUES (?, ?, ?, ?)",
        (
            (f"{document.url}#{one.anchor}" if one.anchor else document.url, document.title, one.title, one.text)
            for document in load_documents().values()
            for one in document.sections
        ),
    )
    return connection


def search_documents(query: str, limit: int = 30) -> list[Hit]:
    """Return the sections that contain all words of the query, or else any of them, best first. The last word may be
    the beginning of one."""
    words = [f'"{word}"' for word in re.findall(r"\w+", query)[:12]]
    if not words:
        return []
    words[-1] += "*"
    for operator in (" AND ", " OR "):
        rows = _search_index().execute(
            f"SELECT document, title, url, snippet(section, 3, '{_START}', '{_END}', '…', 32) FROM section "
            "WHERE section MATCH ? ORDER BY bm25(section, 0, 4, 8, 1) LIMIT ?",
            (operator.join(words), limit),
        )
        if hits := [Hit(document, title, url, _mark(excerpt)) for document, title, url, excerpt in rows]:
            return hits
    return []


def _mark(excerpt: str) -> SafeString:
    return mark_safe(escape(excerpt).replace(_START, "<mark>").replace(_END, "</mark>"))
