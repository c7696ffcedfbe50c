"""Texts of pages and scripts go through gettext, so that translations can follow."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation

from evalapp.common import script_messages
from tests.browser.world import make_world
from tests.cast import Cast

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted(path for path in (ROOT / "templates").rglob("*") if path.suffix in {".html", ".txt"})
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))

MOST_CHARACTERS = 160
#: Names that are the same in every language.
NAMES = {"evalapp", "R²"}
#: Elements whose text is not translated: keys, code, scripts.
UNTRANSLATED = {"kbd", "code", "script", "style"}
TEXT_ATTRIBUTES = {"title", "aria-label", "alt", "placeholder", "aria-description", "label"}
#: Arguments of `include` and `with` that components show.
TEXT_ARGUMENTS = "title|text|action|alt|caption|label|lead|becomes|unit|note"

BLOCK = re.compile(r"\{% blocktranslate\b.*?\{% endblocktranslate %\}", re.DOTALL)
TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
ARGUMENT = re.compile(rf'\b(?:{TEXT_ARGUMENTS})="([^"]*)"')
DEFAULT = re.compile(r"""\|(?:default|default_if_none|yesno):["']([^"']*)["']""")
WORD = re.compile(r"[^\W\d_]{2}")


class Reader(HTMLParser):
    """Collects the texts and text attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.texts += [value or "" for name, value in attributes if name in TEXT_ATTRIBUTES]
        if tag in UNTRANSLATED:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open:
            self.texts.append(data)


def find_untranslated(source: str) -> list[str]:
    """Return the texts of a template that do not go through gettext."""
    source = BLOCK.sub("", source)
    reader = Reader()
    reader.feed(TAG.sub("", source))
    reader.close()
    literals = [text for tag in TAG.findall(source) for text in (*ARGUMENT.findall(tag), *DEFAULT.findall(tag))]
    words = (" ".join(text.split()).strip(" ·") for text in reader.texts + [text for text in literals if " " in text])
    return [text for text in words if WORD.search(text) and text not in NAMES]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_template_texts_go_through_gettext(path: Path) -> None:
    source = path.read_text("utf-8")
    assert find_untranslated(source) == [], "use {% translate %} or {% blocktranslate trimmed %}"
    long = [number for number, line in enumerate(source.splitlines(), 1) if len(line) > MOST_CHARACTERS]
    assert long == [], f"lines of more than {MOST_CHARACTERS} characters"


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<p>Two words</p>", ["Two words"]),
        ('<p>{% translate "Two words" %} {{ name }} · 95 %</p>', []),
        ('<td{% if x %} title="Why not"{% endif %}>{{ x }}</td>', ["Why not"]),
        ('<td title="{% translate "Why" %}">{% blocktranslate %}{{ n }} rows{% endblocktranslate %}</td>', []),
        ("<kbd>Enter</kbd> <code>evalapp up</code>", []),
        ('{% include "x.html" with title="No items yet." text=_("Upload some.") %}', ["No items yet."]),
        ('{{ row.text|default:"not known" }} {{ row.format|default:"jsonl" }}', ["not known"]),
    ],
)
def test_untranslated_template_text_is_found(source: str, texts: list[str]) -> None:
    assert find_untranslated(source) == texts


#: Comments, strings and regular expressions of a script, in this order of precedence.
TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)"
    r"|(?<=[(=,:!&|?]) ?/(?:[^/\\\n]|\\.)+/[a-z]*",
    re.DOTALL,
)
#: A sentence, a capitalised word, or several words; but not a selector, a header or the name of a key.
SHOWN = re.compile(r"^[A-Z][a-z]+[ .…]|^[A-Z][a-z]+$|^[A-Za-z]+…$|[A-Za-z]{2,} [A-Za-z]{2,}|[A-Za-z]{2,} \$\{")
GETTEXT = re.compile(r"n?gettext\((?:[^()]|\([^()]*\))*$")
MACHINE = re.compile(
    r"querySelector(?:All)?\($|closest\($|matches\($|\.key === $|Accept: $|^use strict$|className[:=] ?$"
    r"|getModifierState\($"
)
KEYS = {"use strict", "Enter", "Escape", "Accept", "CapsLock", "small muted", "note warn"}


def find_untranslated_strings(source: str) -> list[str]:
    """Return the string literals of a script that people see and that do not go through gettext."""
    found = []
    for token in TOKEN.finditer(source):
        if not (literal := token["text"]):
            continue
        text, before = literal[1:-1], source[: token.start()]
        if not SHOWN.search(text) or text in KEYS or re.search(r"[\[\]#>{}=]", re.sub(r"\$\{.*?\}", "", text)):
            continue
        if not MACHINE.search(before[-40:]) and not GETTEXT.search(before[-400:]):
            found.append(text)
    return found


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_script_texts_go_through_gettext(path: Path) -> None:
    assert find_untranslated_strings(path.read_text("utf-8")) == [], "use gettext, ngettext and interpolate"


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('say("Saved " + clock());', ["Saved "]),
        ('line.textContent = "scoring…";', ["scoring…"]),
        ("say(`That failed (${status}).`);", ["That failed (${status})."]),
        ('say(gettext("Back online")); // "Two words" in a comment', []),
        ('ngettext("%(count)s new row", "%(count)s new rows", count)', []),
        ('element.closest("textarea, select"); if (event.key === "Enter") go();', []),
    ],
)
def test_untranslated_string_is_found(source: str, texts: list[str]) -> None:
    assert find_untranslated_strings(source) == texts


MARKED = re.compile(r"⟦[^⟦⟧]*⟧")
#: Elements that show data or machine text.
DATA = UNTRANSLATED | {"pre", "textarea"}
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "path", "circle", "line", "rect"}


class PageReader(HTMLParser):
    """Collects the texts and text attributes of a rendered page, without those of elements that show data."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        names = set((values.get("class") or "").split())
        is_data = (tag != "html" and "dir" in values) or values.get("translate") == "no"
        shows_data = tag in DATA or is_data or bool(names & {"mono", "markdown", "log"})
        if not shows_data and not self.shows_data():
            self.texts += [value or "" for name, value in attributes if name in TEXT_ATTRIBUTES]
        if tag not in VOID:
            self.open.append((tag, shows_data))

    def shows_data(self) -> bool:
        return any(shows for _, shows in self.open)

    def handle_endtag(self, tag: str) -> None:
        while self.open and any(name == tag for name, _ in self.open):
            if self.open.pop()[0] == tag:
                break

    def handle_data(self, data: str) -> None:
        if not self.shows_data():
            self.texts.append(data)


def find_unmarked(html: str) -> set[str]:
    """Return the texts of a page that no translator has marked."""
    while MARKED.search(html):
        html = MARKED.sub("", html)
    reader = PageReader()
    reader.feed(html)
    words = {" ".join(text.split()).strip(" ·,.:;()") for text in reader.texts}
    return {text for text in words if re.search(r"[A-Za-z]{3}", text)}


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark every message that is translated."""

    def mark(message: str) -> str:
        return f"⟦{message}⟧" if message else message

    def mark_plural(singular: str, plural: str, number: int) -> str:
        return mark(singular if number == 1 else plural)

    monkeypatch.setattr(translation._trans, "gettext", mark, raising=False)
    monkeypatch.setattr(translation._trans, "ngettext", mark_plural, raising=False)
    monkeypatch.setattr(translation._trans, "pgettext", lambda context, message: mark(message), raising=False)


#: Names of the world of the test, and values that change from run to run.
OF_THE_WORLD = re.compile(
    r"Alpha|rita|vic|anna|olga|otto|sys-\w+|Replies|More replies|Better ones|How \w+ is it\?|awkward"
    r"|naturalness|relevance|under 0.1 s"
    r"|\d+ (s|min)( ago)?|just now|\d{4}-\d\d-\d\d.*|.* · evalapp|evalapp"
)
#: View -> texts of Python code that do not go through gettext yet. Remove what has been converted; add nothing.
UNCONVERTED: dict[str, set[str]] = {
    "home": {"Items", "Outputs"},
    "accounts:account": set(),
    "accounts:login": set(),
    "annotation:item-list": {"contexts", "ids", "outputs", "judged", "not judged"},
    "annotation:campaign-list": set(),
    "annotation:campaign": {"no unit was rated twice"},
    "annotation:my-work": set(),
    "annotation:judge": set(),
    "annotation:write": {"yours"},
}  # fmt: skip


@pytest.mark.django_db
def test_pages_show_only_translated_texts(cast: Cast, marked: None) -> None:
    world = make_world(cast)
    unmarked = {}
    for view, known in UNCONVERTED.items():
        for user, path in world.pages[view]:
            client = Client()
            if user:
                client.force_login(user)
            html = client.get(path).content.decode()
            assert "⟦" in html
            texts = {text for text in find_unmarked(html) if not OF_THE_WORLD.fullmatch(text)}
            unmarked[view, path] = texts - known
    assert {place: texts for place, texts in unmarked.items() if texts} == {}
    assert find_unmarked("<p>⟦a ⟦b⟧⟧ Two words</p><td dir='auto'>data</td>") == {"Two words"}


@pytest.mark.django_db
def test_scripts_get_the_translations_of_the_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert b'id="catalogue"' not in client.get("/").content  # English needs none
    messages = {"messages": {"Copied": "Kopiert"}, "plurals": [1, 0]}
    monkeypatch.setattr(script_messages, "_load", lambda language: messages)
    page = client.get("/").content.decode()
    found = re.search(r'<script id="catalogue" type="application/json">(.*?)</script>', page)
    assert found
    assert json.loads(found[1]) == messages
    assert page.index('id="catalogue"') < page.index("js/app")


def test_names_have_the_direction_of_their_script() -> None:
    """A name with a question mark or a number is wrong in a page of the other direction without it."""
    named = re.compile(r"<([^<>]*)>\s*\{\{ [\w.]*\b(?:campaign|project)\.name \}\}")
    wrong = [
        f"{path.relative_to(ROOT)}: <{match[1]}>"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for match in named.finditer(path.read_text(encoding="utf-8"))
        if match[1] != "bdi" and 'dir="auto"' not in match[1]
    ]
    assert wrong == []
