"""Reads systems, aspects and raters from the names of columns, such as `gpt output`, `fluency (gpt)`, `gptFluency`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from .mapping import Cells
from .names import (
    ASPECTS,
    NAMES,
    OUTPUT_WORDS,
    TOTALS,
    choose_translation,
    find_fields,
    normalize,
    strip_number,
    strip_scale,
)  # fmt: skip
from .patterns import AmbiguousPattern, match_pattern

_LINK_WORDS = """
    of from by for the an is von vom der die das des de du la le s
"""
#: Words that are no part of a name of a system or an aspect at its edge.
_LINKS = frozenset(_LINK_WORDS.split())
_EDGES = " \t_-.:;,/|()[]{}<>'’\"“”#=?!–—"
#: `rater 2`, `annotator_b`, `raterA`, `R3`; a letter needs a sign or a change to a capital before it: `Anna` is a name.
_RATER = re.compile(
    r"(?<![^\W_])(?i:rater|annotator|judge|coder|evaluator|reviewer|worker|bewerter|gutachter|évaluateur|annotateur|"
    r"evaluador|anotador|ann|anno|annot)(?:[ _.-]?\d{1,4}|[ _.-][A-Za-z]|(?<=[^\W\d_A-Z])[A-Z])(?![^\W_])"
    r"|(?<![A-Za-z0-9])[Rr]\d{1,3}(?![A-Za-z0-9])"
)
_AT_END = re.compile(r"[(\[]([^()\[\]]+)[)\]]\s*\Z")
_SIDES = {
    **dict.fromkeys(("a", "1", "left", "links", "chosen"), "a"),
    **dict.fromkeys(("b", "2", "right", "rechts", "rejected"), "b"),
}
_SIDE = r"(?P<side>[AaBb12]|left|right|links|rechts|chosen|rejected)"
_SIDE_AT_END = re.compile(rf"[ _.(\[-]{_SIDE}[)\]]?\Z", re.IGNORECASE)
_SIDE_AT_START = re.compile(rf"{_SIDE}[ _.:-]+(?=.)", re.IGNORECASE)
RATING_WORDS = ASPECTS | set(NAMES["value"])
_PROPERTY_WORDS = """
    time times seconds duration length language lang date type status count tokens words latency cost url file label
    order position trial session age
"""
#: With a word for an output these are its properties, as in `response time`.
_PROPERTIES = RATING_WORDS | set(_PROPERTY_WORDS.split())
_RANK_WORDS = frozenset(
    ["rank", "ranks", "ranking", "rang", "rangfolge", "platz", "platzierung", "rango", "classement"]
)
_GRADE_WORDS = frozenset(["note", "noten", "schulnote", "schulnoten", "gesamtnote", "zensur", "zensuren"])
#: The number of a question before its words, as in `Q2 fluent?` and `F3: flüssig`.
_QUESTION = re.compile(r"\A\s*[QqFf]\d{1,3}[.:)_-]?\s+(?=\S)")
_MOST_WORDS = 3


@dataclass(frozen=True)
class Token:
    """A word in a name: in lower case, and its place."""

    word: str
    start: int
    end: int


def list_tokens(name: str) -> list[Token]:
    """The words of a name: between them are other characters, digits, or a change to a capital letter."""
    tokens, start = [], 0
    for at in range(1, len(name) + 1):
        if at == len(name) or _is_edge(name, at):
            if name[start].isalnum():
                tokens.append(Token(name[start:at].casefold(), start, at))
            start = at
    return tokens


def _is_edge(name: str, at: int) -> bool:
    before, here, after = name[at - 1], name[at], name[at + 1 : at + 2]
    if before.isalpha() and here.isalpha():
        return here.isupper() and (before.islower() or after.islower())
    return not (before.isdigit() and here.isdigit())


def clean_part(text: str) -> str:
    """A part of a name without brackets, separators and linking words around it."""
    text = text.strip(_EDGES)
    while (words := text.split()) and len(words) > 1:
        if words[0].casefold() in _LINKS:
            text = text[len(words[0]) :].strip(_EDGES)
        elif words[-1].casefold() in _LINKS:
            text = text[: -len(words[-1])].strip(_EDGES)
        else:
            break
    return re.sub(r"['’]s\Z", "", text)


def split_affix(name: str, words: Collection[str]) -> tuple[str, str] | None:
    """(the rest, the word) of a name that begins or ends with a word in `words`; None otherwise."""
    tokens = list_tokens(name)
    for n in range(min(_MOST_WORDS, len(tokens) - 1), 0, -1):
        for part, rest in ((tokens[-n:], name[: tokens[-n].start]), (tokens[:n], name[tokens[n - 1].end :])):
            if "".join(token.word for token in part) in words and (rest := clean_part(rest)):
                return rest, name[part[0].start : part[-1].end]
    return None


def read_output_name(name: str) -> str:
    """The system in the name of a column with outputs; empty otherwise."""
    found = split_affix(name, OUTPUT_WORDS) if strip_number(name) == name else None
    if found is None or not set(find_fields(name)) <= {"text", "text_a", "text_b"}:
        return ""
    is_other = not set(find_fields(found[0])) <= {"system_a", "system_b"} or normalize(found[0]) in _PROPERTIES
    return "" if is_other else found[0]


def read_rating_name(name: str, systems: Collection[str]) -> Cells | None:
    """System, aspect and perhaps rater in the name of a column with ratings. None if it names no known system, or
    several."""
    rater = _RATER.search(name)
    plain = name if rater is None else name[: rater.start()] + " " * len(rater[0]) + name[rater.end() :]
    if (place := _find_system(plain, systems)) is None:
        return None
    system, start, end = place
    before, after = clean_part(plain[:start]), clean_part(plain[end:])
    label = _AT_END.search(plain[end:])
    if label is not None and any(letter.isalpha() for letter in label[1]) and before:
        before, after = "", clean_part(label[1])
    if before and after:  # `score gpt fluency`
        before, after = ("" if normalize(part) in NAMES["value"] else part for part in (before, after))
    aspect = re.sub(r"\s+", " ", f"{before} … {after}" if before and after else before or after)
    cells = Cells(column=name, system=system, aspect=aspect, rater="" if rater is None else rater[0].strip())
    return cells if aspect and normalize(aspect) not in _PROPERTIES - RATING_WORDS else None


def _find_system(name: str, systems: Collection[str]) -> tuple[str, int, int] | None:
    """(system, start, end) of the only system in a name; of `gpt` and `gpt-4` the longer one."""
    tokens, found = list_tokens(name), []
    for system in systems:
        words = [token.word for token in list_tokens(system)]
        for at in range(len(tokens) - len(words) + 1 if words else 0):
            part = tokens[at : at + len(words)]
            text = name[part[0].start : part[-1].end]
            if [token.word for token in part] == words and (len(system) > 1 or text == system):
                found.append((len(words), system, part[0].start, part[-1].end))
                break
    most = max((one[0] for one in found), default=0)
    longest = [one for one in found if one[0] == most]
    return longest[0][1:] if len(longest) == 1 else None


def find_sides(columns: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Column -> (the rest of its name, `a` or `b`), of columns that occur for both sides, such as `fluency_a` and
    `fluency_b`, `A fluency` and `B fluency`, `fluency left` and `fluency right`, `tone_chosen` and `tone_rejected`."""
    found: dict[str, tuple[str, str]] = {}
    for name in columns:
        match = _SIDE_AT_END.search(name) or _SIDE_AT_START.match(name)
        if match and not read_rater_name(name) and (rest := clean_part(name[: match.start()] or name[match.end() :])):
            found[name] = rest, _SIDES[match["side"].casefold()]
    return {name: part for name, part in found.items() if _has_both(part[0], found)}


def _has_both(rest: str, found: dict[str, tuple[str, str]]) -> bool:
    sides = [side for other, side in found.values() if other == rest]
    return sorted(sides) == ["a", "b"]


def strip_question(name: str) -> str:
    """A column's name without the number and the mark of a question."""
    return clean_part(_QUESTION.sub("", name)) or name


def is_property_name(name: str) -> bool:
    """Whether a word of a name is one for what nobody rates, as in `reading time`."""
    return any(token.word in _PROPERTIES - RATING_WORDS for token in list_tokens(name))


def read_aspect_name(name: str) -> Cells | None:
    """Aspect and rater in the name of a column with ratings of a single system, such as `fluency (rater 2)`."""
    rater = _RATER.search(name)
    name, column = strip_scale(name), name
    if rater is None:
        name = strip_question(choose_translation(name))
    plain = clean_part(name if rater is None else name[: rater.start()] + " " + name[rater.end() :])
    last = plain.rsplit(".", 1)[-1]
    if normalize(last) not in ASPECTS and not (rater is not None and normalize(last) in RATING_WORDS):
        return None
    return Cells(column=column, aspect=last, rater="" if rater is None else rater[0].strip())


def read_rater_name(name: str) -> str:
    """The rater that is the whole name of a column, such as `Annotator 1`; empty otherwise."""
    return name.strip() if _RATER.fullmatch(name.strip()) else ""


def read_judge_name(name: str) -> str:
    """The rater in the name of a column that may have verdicts, such as `annotator_1`, `winner (rater 2)`; empty
    otherwise."""
    rater = _RATER.search(name)
    rest = clean_part(name[: rater.start()] + " " + name[rater.end() :]) if rater else ""
    return rater[0].strip() if rater and (not rest or normalize(rest) in NAMES["verdict"]) else ""


def read_named_raters(names: Sequence[str]) -> list[Cells]:
    """Columns with an aspect and another name, such as `Fluency (Anna)` and `Fluency (Ben)`, at least two of an aspect.
    In a table whose rows are outputs the other name is a rater's."""
    parts = {name: found for name in names if (found := split_affix(strip_scale(name), ASPECTS))}
    cells = [
        Cells(column=name, aspect=aspect, rater=rater)
        for name, (rater, aspect) in parts.items()
        if not find_fields(rater) and normalize(rater) not in _PROPERTIES | TOTALS
    ]
    counts = Counter(one.aspect for one in cells)
    return [one for one in cells if counts[one.aspect] > 1]


def is_rating_name(name: str) -> bool:
    """Whether a word for ratings is a part of a name, as in `politeness_score`."""
    found = split_affix(strip_number(strip_scale(name)), NAMES["value"])
    return found is not None and normalize(found[0]) not in _PROPERTIES - RATING_WORDS | TOTALS


def is_grade_name(name: str) -> bool:
    """Whether a word of a name is one for German grades, whose best is 1, as in `Schulnote`."""
    return any(token.word in _GRADE_WORDS for token in list_tokens(name))


def is_rank_name(name: str) -> bool:
    """Whether a word of a name says that 1 is the best, as in `rank_gpt`."""
    return any(token.word in _RANK_WORDS for token in list_tokens(name))


def read_systems_of_ratings(names: Sequence[str]) -> dict[str, str]:
    """Column -> system, if at least two columns have the name of the same aspect and the systems differ."""
    parts = {name: found for name in names if (found := split_affix(_RATER.sub(" ", name), RATING_WORDS))}
    parts = {name: (system, normalize(aspect)) for name, (system, aspect) in parts.items() if not find_fields(system)}
    # `Q1 fluency` and `Q2 clarity` are two questions, not two systems.
    counts = Counter(aspect for _system, aspect in set(parts.values()))
    return {name: system for name, (system, _aspect) in parts.items()} if max(counts.values(), default=0) > 1 else {}


def find_pattern(cells: Sequence[Cells], free: Sequence[str]) -> Cells | None:
    """A pattern that reads the columns as stated, and no other one of the `free` columns."""
    if len(cells) < 2 or any(one.rater for one in cells):
        return None
    first = cells[0]
    places = ("system", "aspect") if first.aspect else ("system",)
    pattern = first.column
    for name in places:
        text = getattr(first, name)
        if pattern.count(text) != 1:
            return None
        pattern = pattern.replace(text, f"{{{name}}}")
    if not pattern.strip("{}").replace(places[0], ""):
        return None  # {system} alone matches every column
    try:
        matched = match_pattern(pattern, free)
    except AmbiguousPattern:
        return None
    if "}{" in pattern or matched != {one.column: {name: getattr(one, name) for name in places} for one in cells}:
        return None
    return Cells(pattern=pattern)


def shorten_cells(cells: Sequence[Cells], free: Sequence[str]) -> list[Cells]:
    """The columns by a pattern if there is one, otherwise one by one."""
    pattern = find_pattern(cells, free)
    return [pattern] if pattern is not None else [replace(one) for one in cells]
