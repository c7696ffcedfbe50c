"""Values of cells as texts, turns, numbers and verdicts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import orjson

from annotation.parsers.kinds import VERDICTS
from evalapp.translation import gettext as _

from .mapping import Turns
from .sources import Row

#: Names of the parts of a message.
_CONTENT = ("content", "text", "value", "utterance")
_ROLE = ("role", "from", "speaker")
CONTENT_NAMES, ROLE_NAMES = frozenset(_CONTENT), frozenset(_ROLE)


class WrongValue(ValueError):
    """A cell that cannot be used: `message`, `way_out`, and its column, if known."""

    def __init__(self, message: str, way_out: str, column: str = "") -> None:
        super().__init__(message)
        self.message, self.way_out, self.column = message, way_out, column


class WrongCell(str):
    """A cell that cannot be read, as it is shown to people. It is an error only if the mapping uses its column."""

    message: str
    way_out: str

    def __new__(cls, shown: str, message: str, way_out: str = "") -> WrongCell:
        cell = super().__new__(cls, shown)
        cell.message, cell.way_out = message, way_out
        return cell


def get_value(row: Row, column: str) -> Any:
    """The value of a column; `answers.0.text` is a part of a nested value. An empty object represents one whose parts
    are columns of their own. Raises `WrongValue` for a cell that cannot be read."""
    if column in row:
        value = row[column]
        if type(value) is WrongCell:
            raise WrongValue(value.message, value.way_out, column)
        return value
    cut = column.rfind(".")
    while cut > 0:
        if column[:cut] in row:
            return _find_part(row[column[:cut]], column[cut + 1 :].split("."))
        cut = column.rfind(".", 0, cut)
    below = f"{column}."
    return {} if any(name.startswith(below) for name in row) else None


def _find_part(value: Any, parts: list[str]) -> Any:
    for part in parts:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.lstrip("-").isdigit() and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def is_empty(value: Any) -> bool:
    return value is None or value == "" or (type(value) is float and math.isnan(value))


def read_key(value: Any) -> str:
    """An id or a name; numbers as they are written. Empty if there is none."""
    if type(value) is str:
        return value.strip()
    if value is None or (type(value) is float and math.isnan(value)):
        return ""
    if type(value) is float and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if type(value) is WrongCell:  # in a list
        raise WrongValue(value.message, value.way_out)
    if isinstance(value, dict | list):
        raise WrongValue(
            _("It is a list or an object, not a name."),
            _("Name one of its parts, such as “annotator.id”."),
        )
    return str(value).lower() if type(value) is bool else str(value)


def read_text(value: Any) -> str | None:
    """A text; None if there is none."""
    if type(value) is str:
        return value
    if isinstance(value, dict | list):
        raise WrongValue(
            _("It is a list or an object, not a text."),
            _("Name one of its parts, such as “answer.text”, or choose a rule for turns."),
        )
    return None if value is None else read_key(value)


def read_turns(value: Any, rule: Turns) -> list[str]:
    """The texts in a cell."""
    if is_empty(value):
        return []
    if rule.rule == "json" and type(value) is str:
        value = _read_list(value)
    if isinstance(value, list | dict):
        return _read_messages(value, rule)
    text = read_text(value) or ""
    if rule.rule == "split":
        return [part.strip() for part in text.split(rule.separator) if part.strip()]
    if rule.rule == "marks":
        return _split_at_marks(text, rule.marks)
    if rule.rule == "chat":
        return _read_messages(_read_list(text), rule)
    return [text]


def _read_list(text: str) -> Any:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise WrongValue(
            _("It is not JSON: %(error)s.", error=error), _("Write a JSON list, or choose another rule for turns.")
        ) from error
    return value if isinstance(value, list) else [value]


def _read_messages(value: Any, rule: Turns) -> list[str]:
    texts = []
    for message in value if isinstance(value, list) else [value]:
        if isinstance(message, dict):
            role, message = split_message(message)
            if rule.roles and role not in rule.roles:
                continue
            if message is None:
                raise WrongValue(
                    _("A message has no content."),
                    _("Each message needs “role” and “content”, or name another column."),
                )
        if (text := read_text(message)) is not None:
            texts.append(text)
    return texts


def split_message(message: Row) -> tuple[Any, Any]:
    """(role, content) of a message in a chat, each None if it has none; of several parts, as with pictures, the
    texts."""
    role, content = (next((message[name] for name in names if name in message), None) for names in (_ROLE, _CONTENT))
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(text for text in texts if isinstance(text, str))
    return role, content


def _split_at_marks(text: str, marks: tuple[str, ...]) -> list[str]:
    pieces = re.split("|".join(map(re.escape, sorted(marks, key=len, reverse=True))), text)
    return [piece.strip() for piece in pieces if piece.strip()]


_NO = ("", "false", "0", "no", "nein", "falsch", "non", "faux", "falso")
_YES = ("true", "1", "yes", "x", "✓", "✔", "ja", "wahr", "oui", "vrai", "sí", "verdadero")
#: Words in cells of true and false, in lower case.
FLAGS = dict.fromkeys(_NO, False) | dict.fromkeys(_YES, True)


def read_flag(value: Any) -> bool:
    """Whether a cell says yes; an empty one says no."""
    text = read_key(value)
    if text.lower() not in FLAGS:
        raise WrongValue(_("“%(text)s” is not true or false.", text=text[:80]), _("Write true or false."))
    return FLAGS[text.lower()]


def read_verdict(
    value: Any, known: dict[str, Any], read_number: Callable[[Any], float | None], system_a: str, system_b: str
) -> str | None:
    """a, b, tie, both_bad or cannot_decide; None if there is no judgement. The name of a system says that it won.
    `read_number`: reads numbers on a scale."""
    text = read_key(value)
    if text in known:
        text = "" if known[text] is None else str(known[text])
    elif "scale" in known and text:
        low, high = known["scale"]
        number = read_number(value)
        distance = abs((number or 0) - low) - abs((number or 0) - high)
        return "tie" if abs(distance) < 1e-9 else "a" if distance < 0 else "b"
    if not text:
        return None
    if text in VERDICTS:
        return text
    if text in (system_a, system_b) and system_a != system_b:
        return "a" if text == system_a else "b"
    raise WrongValue(
        _("“%(text)s” is not a verdict.", text=text[:80]),
        _('State what it means under "values": {"verdict": {"%(text)s": "a"}}; b, tie, both_bad and cannot_decide are '
          "possible as well.", text=text[:80]),
    )  # fmt: skip
