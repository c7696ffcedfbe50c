"""Reads item, system and aspect from the questions of a questionnaire, which are the names of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .cell_names import RATING_WORDS, clean_part, read_rating_name
from .mapping import Cells
from .names import find_fields, normalize

#: How questions are named, from the most to the least specific pattern. `{first}` and `{last}` are system and aspect in
#: either order.
PATTERNS = (
    "{item}. {first} [{last}]", "{item} - {first} [{last}]", "{item}: {first} [{last}]", "{item}_{first}[{last}]",
    "{item}x{first}[{last}]", "{item}_{first}_{last}", "{item}-{first}-{last}", "{item} {first} [{last}]",
    "{first} [{last}]", "{item}_{aspect}", "{first}_{last}",
)  # fmt: skip
_BRACKETS = "[{last}]"
#: Patterns whose item must have a digit, because what is between its parts is also in the words of a question.
_NUMBERED = (
    "{item}x{first}[{last}]",
    "{item} {first} [{last}]",
    "{item}. {first} [{last}]",
    "{item}: {first} [{last}]",
)
_KIND = r"(?:system|model|modell|bot|chatbot|assistant|engine|système|modèle|sistema|modelo)"
_NAMED_SYSTEM = re.compile(rf"\b{_KIND}[ _-]?(?:[A-Z]|\d{{1,3}})\b", re.IGNORECASE)
_SYSTEM = re.compile(rf"\A(?:{_KIND}\b.{{0,100}}|[A-H])\Z", re.IGNORECASE)
_ITEM = re.compile(r"\A\s*((?:[^\W\d_]{1,12}[ _.-]?)?\d{1,6}[a-z]?)\s?(?:[.:)]|[-–]\s)?\s+(?=\S)")
_MOST_QUESTIONS, _MOST_SYSTEM_WORDS = 300, 3
_ASKING_WORDS = """
    which what is the your of please enter select choose did you see rate evaluate judge shown given a an
    welches welcher welche ist das der die bitte quel quelle est le la qué cuál es el
"""
#: Words of a question that are no part of a field's name.
_ASKING = frozenset(_ASKING_WORDS.split())
Parts = dict[str, str]


@dataclass(frozen=True)
class Questions:
    """What the questions ask: `cells` for each column, or a `pattern` that says the same. Without either, they do not
    say what is the system and what the aspect."""

    cells: tuple[Cells, ...] = ()
    pattern: str = ""


def read_questions(names: Sequence[str]) -> Questions:
    """The items, systems and aspects of questions, by their form and by known words."""
    if found := _read_by_pattern(names):
        return found
    systems = sorted({" ".join(match[0].split()) for name in names for match in _NAMED_SYSTEM.finditer(name)})
    cells = [_read_question(name, systems) for name in names]
    if not systems or None in cells:
        systems = _find_varying_part(names)
        cells = [_read_question(name, systems) for name in names]
    return Questions(tuple(one for one in cells if one is not None)) if None not in cells else Questions()


def read_field(column: str) -> list[str]:
    """The fields that a column of this name can be, without the words of a question: `Which system?`."""
    words = [word for word in re.split(r"[\W_]+", column.casefold()) if word not in _ASKING]
    return find_fields(column) or find_fields(" ".join(words))


def split_names(pattern: str, names: Iterable[str]) -> list[Parts]:
    """The parts of the names that match a pattern such as `{item}_{system}`; each is as short as possible."""
    escaped = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(pattern))
    return [match.groupdict() for name in names if (match := re.fullmatch(escaped, name))]


def _read_by_pattern(names: Sequence[str]) -> Questions | None:
    """By the first pattern that fits all names, and whose parts repeat as in a questionnaire."""
    for pattern in PATTERNS:
        parts = split_names(pattern, names)
        if len(parts) != len(names) or len(names) < 2:
            continue
        if pattern in _NUMBERED and not all(any(map(str.isdigit, part["item"])) for part in parts):
            continue
        different = [len({part[key] for part in parts}) for key in parts[0]]
        if not (all(number < len(names) for number in different) or len(different) == 1):
            continue
        order = _order_parts(parts, has_brackets=_BRACKETS in pattern) if "first" in parts[0] else ("", "")
        if order is None:
            return Questions() if not any(map(_NAMED_SYSTEM.search, names)) else None
        return Questions(pattern=pattern.replace("{first}", f"{{{order[0]}}}").replace("{last}", f"{{{order[1]}}}"))
    return None


def _order_parts(parts: Sequence[Parts], has_brackets: bool) -> tuple[str, str] | None:
    """(what the first part is, what the last one is): system and aspect by known words, otherwise by which part is a
    sentence. None if neither decides."""
    first, last = ({part[name] for part in parts} for name in ("first", "last"))
    evidence = _weigh(first) - _weigh(last)
    if not evidence and has_brackets:
        evidence = _count_sentences(last) - _count_sentences(first)
    elif not evidence:
        evidence = 1.0  # `gpt_politeness`: names without brackets begin with the system
    return None if not evidence else ("system", "aspect") if evidence > 0 else ("aspect", "system")


def _weigh(texts: set[str]) -> float:
    """The evidence that texts are systems (above 0) or aspects (below 0), as a share."""
    systems = sum(_SYSTEM.match(text) is not None for text in texts)
    aspects = sum(normalize(text) in RATING_WORDS for text in texts)
    versions = 0.5 * sum(_has_version(text) and len(text.split()) < 4 for text in texts)
    return (systems - aspects + versions * (not systems)) / len(texts)


def _has_version(text: str) -> bool:
    """True for a letter with a digit after it, as in `gpt-4`."""
    letter = re.search(r"[A-Za-z]", text)
    return letter is not None and re.search(r"\d", text[letter.end() :]) is not None


def _count_sentences(texts: set[str]) -> float:
    return sum(text.endswith("?") or len(text.split()) > _MOST_SYSTEM_WORDS for text in texts) / len(texts)


def _read_question(name: str, systems: Sequence[str]) -> Cells | None:
    """A question whose text names one of the systems, and maybe begins with the number of an item."""
    item = _ITEM.match(name)
    cells = read_rating_name(name[item.end() :] if item else name, systems)
    if cells is None:
        return None
    return Cells(column=name, item=item[1] if item else "", system=cells.system, aspect=cells.aspect)


def _find_varying_part(names: Sequence[str]) -> list[str]:
    """The names of systems in questions such as `How fluent is GPT-4?`, `How fluent is Llama?`: the words that differ
    between questions that are equal otherwise. They begin with a capital letter, and each has the same questions."""
    questions = [name.split() for name in names[:_MOST_QUESTIONS]]
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, int]] = {}
    for k, one in enumerate(questions):
        for other in questions[k + 1 :]:
            start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
            most = min(len(one), len(other)) - start
            end = next((n for n in range(most) if one[-1 - n] != other[-1 - n]), most)
            parts = one[start : len(one) - end], other[start : len(other) - end]
            if all(0 < len(part) <= _MOST_SYSTEM_WORDS and _is_name(part[0]) for part in parts):
                frame = tuple(one[:start]), tuple(one[len(one) - end :])
                found.setdefault(frame, {}).update({clean_part(" ".join(part)): 0 for part in parts})
    sets = [frozenset(parts) for frame, parts in found.items() if any(frame)]
    for systems in sets:
        if len(systems) * sets.count(systems) == len(names):
            return sorted(systems)
    return []


def _is_name(word: str) -> bool:
    return word[:1].isupper() and word.casefold() not in ("i", "q")
