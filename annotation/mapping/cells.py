"""Readers of the fields of a row, prepared once for a mapping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from evalapp.translation import gettext as _

from .mapping import Cells, Mapping, Turns
from .numbers import ColumnNumbers
from .sources import Row
from .values import WrongCell, WrongValue, get_value, is_empty, read_flag, read_key, read_text, read_turns

#: Reads a field of a row.
Read = Callable[[Row], Any]


def make_reader(column: str, read: Callable[..., Any], *more: Any) -> Read:
    """A reader of a column; the `WrongValue` of a cell names it."""

    def read_cell(row: Row) -> Any:
        try:
            value = row[column] if column in row else get_value(row, column)
            return read(get_value(row, column) if type(value) is WrongCell else value, *more)
        except WrongValue as wrong:
            wrong.column = column
            raise

    return read_cell


def make_text_reader(column: str, rule: Turns) -> Read:
    """A reader of a text (None if there is none), or of a list of turns if the cell can have several."""
    return make_reader(column, read_text) if rule.rule == "one" else make_reader(column, read_turns, rule)


def cut_turns(text: Any) -> tuple[list[str], str | None]:
    """(turns before, text): a text, or the last turn."""
    if type(text) is list:
        return (text[:-1], text[-1]) if text else ([], None)
    return [], text


def read_source(value: Any) -> str | None:
    return None if is_empty(value) else read_text(value)


def read_ratings(value: Any, numbers: ColumnNumbers) -> tuple[list[float | int | None], bool]:
    """(numbers in a cell, whether they are a list with a rater for each)."""
    if type(value) is str and value.startswith("["):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            way_out = _("Write a number or a list of numbers.")
            raise WrongValue(_("It is not JSON: %(error)s.", error=error), way_out) from error
    if isinstance(value, list):
        return [numbers.read(one) for one in value], True
    return [numbers.read(value)], False


def _read_known(value: Any, known: Row) -> str:
    """A name, or the one that the mapping states for it."""
    key = value.strip() if type(value) is str else read_key(value)
    if known and key in known:
        return "" if known[key] is None else str(known[key])
    return key


def _read_step(value: Any, known: Row) -> int | None:
    text = _read_known(value, known)
    if text and not (text.isascii() and text.isdigit()):
        way_out = _("A step is a whole number from 0; leave the cell empty for none.")
        raise WrongValue(_("“%(text)s” is not a step.", text=text[:80]), way_out)
    return int(text) if text else None


def _read_simulated(value: Any, known: Row) -> bool:
    """Whether no person made a judgement."""
    return read_flag(_read_known(value, known))


def _read_direction(value: Any, known: Row) -> bool | None:
    """Whether higher scores are better; None if the cell is empty."""
    return None if is_empty(value) or value == "" else _read_simulated(value, known)


_READERS: dict[str, Callable[[Any, Row], Any]] = {
    "step": _read_step, "simulated": _read_simulated, "higher_is_better": _read_direction,
}  # fmt: skip


class Cell:
    """A column with outputs or judgements. `read` reads its content, `origin` has the column of each field. `fixed` has
    the fields that are the same in all rows; `readers` read the others."""

    def __init__(self, column: str, read: Read, origin: dict[str, str], fixed: Row) -> None:
        self.column, self.read, self.origin, self.fixed = column, read, origin, fixed
        self.readers: list[tuple[str, Read]] = []

    def read_fields(self, row: Row, item: Row | None) -> Row:
        """The fields without the content."""
        values = self.fixed.copy()
        if "item" in values and not values["item"]:
            if item is None:
                raise WrongValue(_("It is not stated which item this is."), "", self.column)
            values["item"] = item["id"]
        for name, read in self.readers:
            values[name] = read(row)
        return values


class FieldReaders:
    """Makes the readers of a mapping."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.single = {name: names[0] for name, names in mapping.columns.items() if names}

    def make_field(self, name: str) -> Read | None:
        """A reader of a name, a step or a flag in its column or constant; None if there is neither."""
        read, known = _READERS.get(name, _read_known), self.mapping.values.get(name) or {}
        if name in self.single:
            return make_reader(self.single[name], read, known)
        constant = self.mapping.constants.get(name)
        return make_reader(name, lambda _value: read(constant, {})) if constant else None

    def make_cell(self, column: str, read: Read, field: str, names: tuple[str, ...], stated: Cells) -> Cell:
        """A column with the content `field`, whose rows have `names`: stated by the mapping, or in the row."""
        item = f"{self.mapping.ids.prefix}{stated.item}" if stated.item else ""
        cell = Cell(column, read, {**self.single, field: column}, {"item": item, **dict.fromkeys(names, "")})
        for name in names:
            if own := getattr(stated, name, ""):
                cell.fixed[name] = _read_known(own, self.mapping.values.get(name) or {})
            elif name not in self.single:
                cell.fixed[name] = self.mapping.constants.get(name, "")
            if not cell.fixed[name]:
                cell.readers.append((name, self.make_needed(name, self.single.get(name, column))))
        return cell

    def make_score(self, column: str, read: Read, stated: Cells) -> Cell:
        """A column with scores by another program; of whole systems they have no item."""
        cell = self.make_cell(column, read, "score", ("system", "evaluator"), stated)
        if stated.level == "system":
            del cell.fixed["item"]
        for name in ("reference_set", "signature", "higher_is_better", "aspect"):
            if own := getattr(stated, name, ""):
                cell.fixed[name] = _read_direction(own, {}) if name == "higher_is_better" else own
            elif read_field := self.make_field(name):
                cell.readers.append((name, read_field))
        return cell

    def make_needed(self, name: str, column: str, default: str = "") -> Read:
        """A reader of a name that must be there, in `column` for messages, unless there is a default."""
        read = self.make_field(name)

        def read_needed(row: Row) -> str:
            if key := (read(row) if read else "") or default:
                return str(key)
            raise WrongValue(_("%(name)s is empty.", name=name), _("Fill the cell, or leave the row out."), column)

        return read_needed
