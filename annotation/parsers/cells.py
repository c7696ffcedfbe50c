"""Cells of CSV and TSV tables: the type of each column, and rows from texts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evalapp.translation import gettext as _

from .faults import Lost, Report, Row
from .strict_json import HALF, DoubledKey, decode_object, find_half_pair, identify
from .writer import COLUMNS

#: Columns with JSON cells in CSV and TSV.
JSON_CELLS = frozenset({"context", "references", "turns", "speakers", "meta", "simulated", "value"})
WHOLE_CELLS = frozenset({"step", "step_a", "step_b"})
_OBJECTS = frozenset({"meta", "written", "candidate_source"})
#: Lists of texts that can be a single text.
TEXT_LISTS = frozenset({"context", "references"})
_LIST_OF_TEXTS = re.compile(r"\A\s*\[\s*[\"\]]")
#: 3.5 with a decimal comma.
_DECIMAL_COMMA = re.compile(r"^(\s*-?\d+),(\d+\s*)$")
#: Ambiguous between a thousands separator and a decimal comma.
_THOUSANDS = re.compile(r"\A\s*-?[1-9]\d{0,2}(,\d{3})+\s*")
#: 1.250, whose point may separate decimals or thousands, and 1.250.000.
_POINTS = re.compile(r"\A\s*-?[1-9]\d{0,2}(?:\.\d{3})+\s*\Z")
_FRACTION = re.compile(r"\A\s*-?\d+[.,]\d+\s*\Z")
#: Columns with true or false in any usual spelling, and columns of numbers that can have a decimal comma.
TRUTHS, NUMBERS = frozenset({"simulated", "higher_is_better"}), frozenset({"value", "score"})
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
#: Text columns in which an empty cell is an empty text; in others it is absent.
KNOWN_TEXT = frozenset(
    {"id", "item", "text", "rater", "aspect", "verdict", "system_a", "system_b", "query", "response", "kind"}
)
ATTEMPT_VALUES = frozenset(
    {"relevant", "edited", "counted", "unscored", "score_before", "score_after", "improved", "seconds"}
)


@dataclass(frozen=True)
class Cells:
    """The types of a table's columns, by name; all others are text, absent if empty."""

    json: frozenset[str] = JSON_CELLS
    whole: frozenset[str] = WHOLE_CELLS
    text: frozenset[str] = KNOWN_TEXT
    #: Cells are separated by semicolons, as with decimal commas.
    comma: bool = False
    #: By column of the file that is read: its first number with a decimal sign.
    signs: dict[str, str] = field(default_factory=dict)


def _get_columns(table: str) -> Cells:
    """A column that belongs to another table, such as references in outputs.csv, is plain text."""
    columns = frozenset(COLUMNS[table])
    return Cells(JSON_CELLS & columns, WHOLE_CELLS & columns)


#: Tables with columns of their own meaning.
CELLS = {
    **{table: _get_columns(table) for table in ("systems", "items", "outputs", "dialogues", "corpus")},
    **{table: _get_columns(table) for table in ("ratings", "comparisons")},
    "references": Cells(
        frozenset({"meta", "written"}), frozenset({"position"}), frozenset({"set", "item", "text"})
    ),
    "filters": Cells(frozenset({"raters"}), frozenset(), frozenset({"name", "reason"})),
    "campaigns": Cells(frozenset({"told"}), frozenset(), frozenset({"campaign", "kind"})),
    "score_sets": Cells(
        frozenset({"options", "systems", "judge"}), frozenset({"n_in_training"}),
        frozenset({"id", "evaluator", "name", "kind", "aspect", "references", "signature", "short_signature", "data"}),
    ),
    "scores": Cells(
        frozenset({"value", "score", "higher_is_better", "in_training", "empty", "truncated"}),
        frozenset({"step", "input"}), frozenset({"system"}),
    ),
    "judge_answers": Cells(
        frozenset({"refused", "cost", "seconds", "tokens"}),
        frozenset({"sample", "characters", "prompt_tokens", "completion_tokens"}),
        frozenset({"evaluator", "request", "model", "text", "finish"}),
    ),
    "attempts": Cells(
        ATTEMPT_VALUES | {"candidate_source"},
        frozenset({"annotator_group", "number", "round", "references_before"}),
        frozenset(
            {
                "campaign", "item", "annotator", "arm", "set", "decision", "why", "text_before", "text", "signature",
                "submission", "created_at",
            }
        ),
    ),
}  # fmt: skip


def _cell(name: str, text: str, kind: Cells) -> Any:
    """The value of a cell; ValueError with the error. An empty list or number is absent."""
    if name in kind.whole:
        match = re.fullmatch(rf"(-?\d{{1,19}})(?:{'[.,]' if kind.comma else '[.]'}0+)?", text.strip())
        return int(match[1]) if match else text
    if name in TRUTHS:
        if text.strip().lower() not in _TRUTH:
            raise ValueError(_("write true or false"))
        return _TRUTH[text.strip().lower()]
    if name in TEXT_LISTS and not text.lstrip().startswith("["):
        return text
    if name in NUMBERS:
        if not kind.comma and _THOUSANDS.fullmatch(text):
            whole, part = text.strip().replace(",", ""), text.strip().replace(",", ".", 1)
            message = _("“%(text)s” may be %(whole)s or %(part)s; write it without a comma")
            raise ValueError(message % {"text": text[:40], "whole": whole[:40], "part": part[:40]})
        if _POINTS.fullmatch(text):
            text = _read_points(text, kind.signs.get(name, ""), kind.comma)
        try:
            number = decode_object(_DECIMAL_COMMA.sub(r"\1.\2", text).encode())
        except ValueError as error:
            if name == "score":
                message = _("“%(text)s” is not a number; leave the cell empty if there is no score", text=text[:40])
            else:
                message = _("“%(text)s” is not a number", text=text[:40])
            raise ValueError(message) from error
        _check_sign(text, kind.signs.setdefault(name, text) if "," in text or "." in text else text)
        return number
    try:
        return decode_object(text.encode())
    except ValueError as error:
        if name in TEXT_LISTS and not _LIST_OF_TEXTS.match(text):
            return text  # it starts with a bracket but is not a list: [laughs] Hello
        if (half := find_half_pair(text.encode())) is not None:
            raise ValueError(_(HALF, half=half).rstrip(".")) from error
        example = '{"domain": "food"}' if name in _OBJECTS else '["first", "second"]'
        if name in ATTEMPT_VALUES:
            example = _("true, false or a number")
        raise ValueError(_("the cell must contain JSON such as %(example)s", example=example)) from error


def _read_points(text: str, first: str, comma: bool) -> str:
    """The number without points if they separate thousands. `first`: as in `signs`."""
    plain = text.strip().replace(".", "")
    if not first and comma:
        part = text.strip().replace(".", ",", 1)
        message = _("“%(text)s” may be %(whole)s or %(part)s, and no cell of the column shows the decimal sign; write "
                    "one of the two", text=text[:40], whole=plain[:40], part=part[:40].rstrip("0"))  # fmt: skip
        raise ValueError(message)
    return plain if "," in first else text


def find_signs(
    rows: Iterator[tuple[int, list[str]]], names: list[str], kind: Cells, most: int
) -> Iterator[tuple[int, list[str]]]:
    """The rows, with `kind.signs` filled before the first row whose number may be read in two ways: at most `most`
    rows wait for the cell that shows the decimal sign of their column."""
    columns = [(k, name) for k, name in enumerate(names) if name in NUMBERS & kind.json]
    waiting: set[str] = set()
    held: list[tuple[int, list[str]]] = []
    for line, cells in rows:
        for k, name in columns:
            text = cells[k] if k < len(cells) else ""
            if name in kind.signs or not _FRACTION.fullmatch(text):
                continue
            if _POINTS.fullmatch(text):
                waiting.add(name)
            else:
                kind.signs[name] = text
                waiting.discard(name)
        held.append((line, cells))
        if not waiting or len(held) >= most:
            yield from held
            held.clear()
    yield from held


def _check_sign(text: str, first: str) -> None:
    """Raises ValueError if a number has another decimal sign than the first one of its column that has one."""
    if ("," in text) != ("," in first):
        point, comma = (first, text) if "," in text else (text, first)
        raise ValueError(" ".join(explain_two_signs(point, comma)).rstrip("."))


def explain_two_signs(point: str, comma: str) -> tuple[str, str]:
    """(message, way out) about two numbers of a column, one with a decimal point and one with a decimal comma."""
    message = _("“%(point)s” has a decimal point and “%(comma)s” a decimal comma.", point=point[:40],
                comma=comma[:40])  # fmt: skip
    return message, _("Use one of the two in the whole column.")


def read_cells(
    names: list[str], cells: list[str], line: int, report: Report, kind: Cells, lost: Lost, doubled: list[int]
) -> Row | None:
    row: Row = {}
    good = True
    for name, text in zip(names, cells, strict=True):
        if name in kind.json or name in kind.whole:
            if not text.strip():
                continue
            try:
                row[name] = _cell(name, text, kind)
            except ValueError as error:
                report(line, name, f"{name}: {error}.")
                good = False
                if isinstance(error.__cause__, DoubledKey):
                    doubled.append(line)
        elif name == "source" or name not in kind.text:
            if text:
                row[name] = text
        elif name == "system_b" and text.startswith('{"reference"'):
            row[name] = _reference(text)
        else:
            row[name] = text
    if not good:
        lost(line, identify(row))
        return None
    return row


def _reference(text: str) -> Any:
    try:
        return decode_object(text.encode())
    except ValueError:
        return text
