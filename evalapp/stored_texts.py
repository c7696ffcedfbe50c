"""Texts that are stored or returned in English, shown in the language of the reader.

Notes of statistics, titles of runs and their phases are English wherever they are stored: in results, exports and
snapshots. `translate_stored` finds the template that such a text was made from (`stored_notes.NOTES`,
`stored_rankings.SENTENCES`, `stored_runs.RUNS`), and fills its translation with the same values.

What a placeholder stands for is seen from its name: one letter is a number; a name in `TEXTS` is a text that is
translated in turn; anything else is a name from the data, which stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from evalapp.stored_notes import NOTES
from evalapp.stored_rankings import SENTENCES
from evalapp.stored_runs import RUNS
from evalapp.translation import gettext as _

#: Placeholders whose values are texts made from templates as well.
TEXTS = frozenset(
    {"few", "files", "kind", "less", "note", "part", "phase", "study", "test", "unit", "way", "what", "why"}
)
#: A longer text is no note; it is shown as it is.
MOST_CHARACTERS = 2000
#: Most parts of a joined text.
MOST_PIECES = 12
#: Texts in texts in texts: a reason in a note of a joined text.
DEPTH = 3
#: Most pieces between separators that belong to one template.
LONGEST_RUN = 5
_KEY = 5
_NUMBER = re.compile(r"(?:[<=] )?[-−+]?[\d.,]{0,30}\d(?:e[-+]?\d{1,4})?|nan|inf")
_COUNT = re.compile(r"[-−+.\d]")
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
#: Where joined texts are taken apart: sentences, then notes, then counted reasons.
_JOINTS = (re.compile(r"(?<=\.)( )(?=\S)"), re.compile(r"(; )"), re.compile(r"(, )(?=\d)"))


@dataclass(frozen=True, slots=True)
class Template:
    """A template in parts: `literals` stand before, between and after the values of the placeholders `names`."""

    text: str
    literals: tuple[str, ...]
    names: tuple[str, ...]

    def match(self, text: str) -> dict[str, str] | None:
        """Return the values of the placeholders, each as short as possible from left to right; None if the text was
        made from another template. It looks for each literal once, so its time is linear."""
        first, *rest = self.literals
        if not text.startswith(first):
            return None
        if not rest:
            return {} if text == first else None
        values: dict[str, str] = {}
        at, last = len(first), len(rest) - 1
        for place, (name, literal) in enumerate(zip(self.names, rest, strict=True)):
            if place < last:
                end = text.find(literal, at + 1)
            else:
                end = len(text) - len(literal) if text.endswith(literal) else -1
            value = text[at:end]
            if end <= at or values.get(name, value) != value or (len(name) == 1 and not _NUMBER.fullmatch(value)):
                return None
            # A name in a sentence does not reach into the next one; one that begins a text is no list and no count.
            if name not in TEXTS and ". " in value and ". " in self.text + " ":
                return None
            if not first and place == 0 and len(name) > 1 and (", " in value or value.isdigit()):
                return None
            values[name], at = value, end + len(literal)
        return values


@dataclass(frozen=True, slots=True)
class Found:
    """A text as its template and values; a value is found in turn if it is a text."""

    template: str
    values: tuple[tuple[str, str | tuple[Found | str, ...]], ...]
    #: The text begins with a capital letter instead of the small one of its template; it ends with a further full stop.
    is_capital: bool = False
    has_stop: bool = False

    def translate(self) -> str:
        words = _(self.template)
        values = {name: value if isinstance(value, str) else _join(value) for name, value in self.values}
        words = words % values if values else words.replace("%%", "%")
        words = words[:1].upper() + words[1:] if self.is_capital else words
        return words + "." if self.has_stop else words


def translate_stored(text: str) -> str:
    """Return a stored English text in the language of the reader; unchanged if it was made from no known template."""
    found = _find(text, DEPTH) if text and len(text) <= MOST_CHARACTERS else None
    return text if found is None else _join(found)


def list_templates() -> tuple[str, ...]:
    """Return all templates."""
    return (*NOTES, *SENTENCES, *RUNS)


def read_template(text: str) -> Template:
    """Return a template in parts."""
    parts = [part.replace("%%", "%") for part in _PLACEHOLDER.split(text)]
    return Template(text, tuple(parts[::2]), tuple(parts[1::2]))


def _join(parts: Iterable[Found | str]) -> str:
    return "".join(part if isinstance(part, str) else part.translate() for part in parts)


@cache
def _index() -> dict[str, list[Template]]:
    """Return the templates by their first letters; those that begin with a number under "0", with another placeholder
    or few letters under ""."""
    found: dict[str, list[Template]] = {}
    for text in dict.fromkeys(list_templates()):
        template = read_template(text)
        fixed = template.literals[0]
        key = fixed[:_KEY] if len(fixed) >= _KEY else ""
        if not fixed and len(template.names[0]) == 1:
            key = "0"
        found.setdefault(key, []).append(template)
    for templates in found.values():
        # The template with most fixed words first: the other may be its beginning.
        templates.sort(key=lambda one: -sum(map(len, one.literals)))
    return found


@lru_cache(maxsize=4096)
def _find(text: str, depth: int) -> tuple[Found | str, ...] | None:
    """Return a text as parts of which at least one was made from a template; None if there is none."""
    if not depth:
        return None
    if (whole := _find_whole(text, depth)) is not None:
        return (whole,)
    for joint in _JOINTS:
        pieces = joint.split(text)
        if 1 < len(pieces) <= 2 * MOST_PIECES:
            parts = tuple(_find_runs(pieces, depth))
            if any(isinstance(part, Found) for part in parts):
                return parts
    return None


def _find_runs(pieces: list[str], depth: int) -> Iterator[Found | str]:
    """Yield the parts of a joined text. A template may contain a separator, so the longest run of pieces is tried
    first."""
    start = 0
    while start < len(pieces):
        for end in range(min(start + 2 * LONGEST_RUN - 1, len(pieces)), start, -2):
            if (found := _find_whole("".join(pieces[start:end]), depth)) is not None:
                yield found
                break
        else:
            end = start + 1
            yield from _find(pieces[start], depth - 1) or (pieces[start],)
        if end < len(pieces):
            yield pieces[end]
        start = end + 1


def _find_whole(text: str, depth: int) -> Found | None:
    """Return a text that was made from one template, also if a capital or a full stop was put to it."""
    found = _find_exact(text, depth)
    if found is None and text[:1].isupper():
        small = _find_exact(text[0].lower() + text[1:], depth)
        found = small and Found(small.template, small.values, is_capital=True)
    if found is None and text.endswith(".") and (bare := _find_whole(text[:-1], depth)) is not None:
        found = Found(bare.template, bare.values, bare.is_capital, has_stop=True)
    return found


def _find_exact(text: str, depth: int) -> Found | None:
    index = _index()
    counted = index["0"] if _COUNT.match(text) else ()
    for template in (*index.get(text[:_KEY], ()), *counted, *index[""]):
        values = template.match(text)
        if values is None:
            continue
        found: list[tuple[str, str | tuple[Found | str, ...]]] = []
        for name, value in values.items():
            parts = _find(value, depth - 1) if name in TEXTS else None
            # Text before or after the one of the template must be known, too.
            is_loose = not template.literals[0] or ". " in value
            if name in TEXTS and is_loose and not (parts and all(_is_known(part) for part in parts)):
                break
            found.append((name, value if parts is None else parts))
        else:
            return Found(template.text, tuple(found))
    return None


def _is_known(part: Found | str) -> bool:
    return isinstance(part, Found) or part in ("; ", " ", ", ")
