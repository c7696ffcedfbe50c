"""Rows of a table as rows of the interchange format, by a mapping."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import orjson

from annotation.parsers.faults import StopReading
from evalapp.translation import gettext as _

from .mapping import ITEM_FIELDS, Cells, Mapping, Turns
from .patterns import split_cell
from .plan import Fault, make_plan
from .presets import flatten_table
from .seen import Seen
from .sources import Row, flatten_row
from .tables import Table
from .values import WrongValue, get_value, is_empty, read_key, read_number, read_text, read_turns, read_verdict


class ConvertedRow(NamedTuple):
    """A row of the interchange format. `row`: its number in the file; `table`: items, outputs, ratings or comparisons;
    `columns`: the original column of each of its fields."""

    row: int
    table: str
    values: dict[str, Any]
    columns: dict[str, str]


class _Skip(Exception):
    """A row that cannot be converted; its fault."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


def convert_rows(table: Table, mapping: Mapping, seen: Seen | None = None) -> Iterator[ConvertedRow | Fault]:
    """The rows of the interchange format in a table, each item and output once, and a `Fault` for every row that cannot
    be converted. `seen`: shared by the files of an upload. If the mapping does not fit the table, only faults with the
    reasons."""
    table = flatten_table(table, mapping.preset)
    converter = _Converter(table, mapping, seen or Seen())
    if converter.faults:
        yield from converter.faults
        return
    faults: list[Fault] = []
    try:
        for number, row in table.read(lambda row, column, message: faults.append(Fault(row, column, message))):
            if faults:
                yield from faults
                faults.clear()
            yield from converter.convert(number, row)
    except StopReading as stop:
        yield from faults
        yield Fault(stop.line, "", stop.message)
        return
    yield from faults
    yield from converter.check_end()


def preview_rows(table: Table, mapping: Mapping, limit: int = 5) -> list[tuple[int, Row, list[ConvertedRow | Fault]]]:
    """The first rows in both forms: (number, the row in the table, what becomes of it). Faults of the mapping itself
    have the number 0 and no row. Raises `StopReading`."""
    table = flatten_table(table, mapping.preset)
    converter = _Converter(table, mapping, Seen())
    if converter.faults:
        return [(0, {}, list(converter.faults))]
    return [(number, row, list(converter.convert(number, row))) for number, row in islice(table, limit)]


def explode_row(row: Row, columns: tuple[str, ...]) -> list[Row]:
    """A row for each part of the lists in `columns`; the parts of an object become columns below the list's."""
    rows = [row]
    for column in columns:
        rows = [part for one in rows for part in _explode(one, column)]
    return rows


def _explode(row: Row, column: str) -> Iterator[Row]:
    value = get_value(row, column)
    if type(value) is str and value.lstrip().startswith("["):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise WrongValue(_("It is not JSON: %(error)s.", error=error), _("Write a list.")) from error
    others = {name: one for name, one in row.items() if name != column}
    for part in value if isinstance(value, list) else [] if value is None else [value]:
        if isinstance(part, dict):
            yield {**others, **flatten_row(part, f"{column}.")}
        else:
            yield {**others, column: part}


class _Converter:
    """The mapping applied to a table's columns."""

    def __init__(self, table: Table, mapping: Mapping, seen: Seen) -> None:
        self.mapping, self.seen = mapping, seen
        seen.begin_file(table.name)
        plan = make_plan(table, mapping)
        self.faults, self.outputs, self.ratings = plan.faults, plan.outputs, plan.ratings
        self.index = 0
        columns = mapping.columns
        self.single = {name: names[0] for name, names in columns.items() if names}
        self.turns = {name: mapping.turns.get(name, Turns()) for name in (*columns, "outputs")}
        if "text" in self.single:
            self.turns["outputs"] = self.turns["text"]
        self.keeps_empty = mapping.empty == "text" or (not mapping.empty and mapping.shape in ("long", "lines"))
        self.creates = mapping.creates_items()
        self.values = mapping.values
        origin = {name: ", ".join(columns.get(name, ())) for name in ITEM_FIELDS[1:]}
        self.origins = {"items": {"id": self.single.get("item", ""), **origin}}

    # ---- rows ---------------------------------------------------------------------------------------------

    def convert(self, number: int, row: Row) -> Iterator[ConvertedRow | Fault]:
        try:
            rows = explode_row(row, self.mapping.explode) if self.mapping.explode else [row]
        except WrongValue as wrong:
            yield Fault(number, ", ".join(self.mapping.explode), wrong.message, wrong.way_out)
            return
        for one in rows:
            if self.mapping.only and not self._is_wanted(one):
                continue
            self.index += 1
            try:
                yield from self._convert(number, self._split(number, one) if self.mapping.split else one)
            except _Skip as skip:
                yield skip.fault

    def _is_wanted(self, row: Row) -> bool:
        for column, wanted in self.mapping.only.items():
            value = get_value(row, column)
            if not wanted:
                if is_empty(value) or (type(value) is str and not value.strip()):
                    return False
            elif (orjson.dumps(value).decode() if isinstance(value, dict | list) else read_key(value)) not in wanted:
                return False
        return True

    def _split(self, number: int, row: Row) -> Row:
        """The row with the parts of its cells as columns of their own."""
        parts: Row = {}
        for column, pattern in self.mapping.split.items():
            text = self._read_plain(number, row, column, read_key)
            found = split_cell(pattern, text)
            if not found:
                message = _("“%(text)s” is not of the form “%(pattern)s”.", text=text[:80], pattern=pattern)
                raise _Skip(Fault(number, column, message, _("Correct the cell, or “split” in the mapping.")))
            parts.update({f"{column}.{name}": part for name, part in found.items()})
        return {**row, **parts}

    def _convert(self, number: int, row: Row) -> Iterator[ConvertedRow | Fault]:
        texts = [
            (column, cells, *self._read_output(number, row, column, self.turns["outputs"]))
            for column, cells in self.outputs
        ]
        if self.mapping.shape in ("pairs", "preference"):
            yield from self._convert_pair(number, row)
            return
        before = next((turns for _column, _cells, turns, _text in texts if turns), [])
        item = self._read_item(number, row, before)
        if item is not None and self.creates:
            yield from self._emit(number, "items", item, (item["id"],), self.origins["items"])
        step = self._read_step(number, row)
        for column, cells, _before, text in texts:
            if text is None or (text == "" and not self.keeps_empty):
                continue
            key = self._get_item(number, cells, item, column)
            output = {
                "item": key,
                "system": self._read_name(number, row, "system", cells, column),
                "text": text,
                **step,
            }
            output.update(self._read_meta(row, "outputs"))
            yield from self._emit(
                number, "outputs", output, (key, output["system"], step.get("step")), self._origin(column, "text")
            )
        for column, cells in self.ratings:
            yield from self._convert_rating(number, row, column, cells, item, step)

    def _read_output(self, number: int, row: Row, column: str, rule: Turns) -> tuple[list[str], str | None]:
        """(turns before, text) of an output."""
        value = get_value(row, column)
        try:
            if rule.rule == "one":
                return [], read_text(value)
            turns = read_turns(value, rule)
        except WrongValue as wrong:
            raise _Skip(Fault(number, column, wrong.message, wrong.way_out)) from wrong
        return (turns[:-1], turns[-1]) if turns else ([], None)

    def _read_item(self, number: int, row: Row, before: list[str]) -> Row | None:
        """The item of a row; None if its cells name their items themselves."""
        columns = self.mapping.columns
        item: Row = {"id": ""}
        for name in ("context", "references"):
            if name in columns:
                item[name] = [text for column in columns[name] for text in self._read_list(number, row, column, name)]
        if "context" not in columns and before:
            item["context"] = before
        if "source" in self.single and not is_empty(get_value(row, self.single["source"])):
            item["source"] = self._read_plain(number, row, self.single["source"], read_text)
        if group := self._read_field(number, row, "group"):
            item["group"] = group
        item["id"] = self._read_id(number, row, item)
        if not item["id"]:
            if "item" in self.single:
                way_out = _('Fill the cell, or take ids from the row: "ids": {"source": "row"}.')
                raise _Skip(Fault(number, self.single["item"], _("The id is empty."), way_out))
            return None
        item.update(self._read_meta(row, "items"))
        return item

    def _read_id(self, number: int, row: Row, item: Row) -> str:
        ids = self.mapping.ids
        if ids.source == "row":
            return f"{ids.prefix}{self.index}"
        if ids.source == "hash":
            digest = hashlib.sha256(orjson.dumps([item.get("context"), item.get("source")])).hexdigest()
            return f"{ids.prefix}{digest[:16]}"
        key = self._read_field(number, row, "item")
        return f"{ids.prefix}{key}" if key else ""

    def _read_list(self, number: int, row: Row, column: str, name: str) -> list[str]:
        return self._read_plain(number, row, column, lambda value: read_turns(value, self.turns[name]))

    def _read_plain(self, number: int, row: Row, column: str, read: Callable[[Any], Any]) -> Any:
        try:
            return read(get_value(row, column))
        except WrongValue as wrong:
            raise _Skip(Fault(number, column, wrong.message, wrong.way_out)) from wrong

    def _read_field(self, number: int, row: Row, name: str) -> str:
        """A name from its column or constant; empty if there is none."""
        if name not in self.single:
            return self.mapping.constants.get(name, "")
        column = self.single[name]
        key = self._read_plain(number, row, column, read_key)
        known = self.values.get(name) if self.values else None
        return str(known.get(key, key)) if known else key

    def _read_name(self, number: int, row: Row, name: str, cells: Cells, at: str) -> str:
        """A name that must be there: from the cell's own statement, its column or a constant."""
        stated = getattr(cells, name)
        if stated:
            known = self.values.get(name) if self.values else None
            return str(known.get(stated, stated)) if known else stated
        if key := self._read_field(number, row, name):
            return key
        column = self.single.get(name, at)
        raise _Skip(
            Fault(number, column, _("%(name)s is empty.", name=name), _("Fill the cell, or leave the row out."))
        )

    def _get_item(self, number: int, cells: Cells, item: Row | None, column: str) -> str:
        if cells.item:
            return f"{self.mapping.ids.prefix}{cells.item}"
        if item is None:
            raise _Skip(Fault(number, column, _("It is not stated which item this is.")))
        return str(item["id"])

    def _read_step(self, number: int, row: Row) -> Row:
        if "step" not in self.single and "step" not in self.mapping.constants:
            return {}
        text = self._read_field(number, row, "step")
        if not text:
            return {}
        if not text.isascii() or not text.isdigit():
            message = _("“%(text)s” is not a step.", text=text[:80])
            column = self.single.get("step", "step")
            raise _Skip(
                Fault(number, column, message, _("A step is a whole number from 0; leave the cell empty for none."))
            )
        return {"step": int(text)}

    def _read_simulated(self, number: int, row: Row) -> Row:
        """Whether no person made a judgement."""
        text = self._read_field(number, row, "simulated").lower()
        if text in ("", "false", "0", "no"):
            return {}
        if text in ("true", "1", "yes"):
            return {"simulated": True}
        column = self.single.get("simulated", "simulated")
        raise _Skip(Fault(number, column, _("“%(text)s” is not true or false.", text=text[:80])))

    def _read_meta(self, row: Row, table: str) -> Row:
        names = self.mapping.meta.get(table, ())
        found = {name: value for name in names if not is_empty(value := get_value(row, name))}
        return {"meta": found} if found else {}

    def _convert_rating(
        self, number: int, row: Row, column: str, cells: Cells, item: Row | None, step: Row
    ) -> Iterator[ConvertedRow | Fault]:
        value = get_value(row, column)
        if is_empty(value):
            return
        known = self.values.get("value", {})
        several = value if isinstance(value, list) else None
        try:
            if type(value) is str and value.startswith("["):
                several = orjson.loads(value)
            numbers = [read_number(one, known) for one in (several if several is not None else [value])]
        except (WrongValue, orjson.JSONDecodeError) as wrong:
            fault = (
                Fault(number, column, wrong.message, wrong.way_out)
                if isinstance(wrong, WrongValue)
                else Fault(
                    number,
                    column,
                    _("It is not JSON: %(error)s.", error=wrong),
                    _("Write a number or a list of numbers."),
                )
            )
            yield fault
            return
        try:
            rating = {"item": self._get_item(number, cells, item, column), **step}
            for name in ("system", "rater", "aspect"):
                rating[name] = self._read_name(number, row, name, cells, column)
            rating.update(self._read_simulated(number, row))
        except _Skip as skip:
            yield skip.fault
            return
        rating.update(self._read_meta(row, "ratings"))
        origin = self._origin(column, "value")
        for k, one in enumerate(numbers, 1):
            if one is not None:
                rater = rating["rater"] if several is None else f"{rating['rater']} {k}"
                yield ConvertedRow(number, "ratings", {**rating, "rater": rater, "value": one}, origin)

    # ---- pairs --------------------------------------------------------------------------------------------

    def _convert_pair(self, number: int, row: Row) -> Iterator[ConvertedRow | Fault]:
        is_preference = self.mapping.shape == "preference"
        names = ("chosen", "rejected") if is_preference else ("text_a", "text_b")
        texts = []
        before: list[str] = []
        for name in names:
            if name in self.single:
                turns, text = self._read_output(number, row, self.single[name], self.turns[name])
                before = before or turns
                texts.append((name, text))
        item = self._read_item(number, row, before)
        assert item is not None
        if self.creates:
            yield from self._emit(number, "items", item, (item["id"],), self.origins["items"])
        systems = []
        for side, default in (("system_a", "chosen"), ("system_b", "rejected")):
            system = self._read_field(number, row, side) or (default if is_preference else "")
            if not system:
                column = self.single.get(side, side)
                raise _Skip(
                    Fault(number, column, _("%(name)s is empty.", name=side), _("Fill the cell, or leave the row out."))
                )
            systems.append(system)
        for (name, text), system in zip(texts, systems, strict=False):
            if text is not None:
                output = {"item": item["id"], "system": system, "text": text, **self._read_meta(row, "outputs")}
                key = (item["id"], system, None)
                yield from self._emit(number, "outputs", output, key, self._origin(self.single[name], "text"))
        verdict = "a" if is_preference else self._read_verdict(number, row, systems)
        if verdict is None:
            return
        comparison = {"item": item["id"], "system_a": systems[0], "system_b": systems[1], "verdict": verdict}
        for name in ("rater", "aspect"):
            comparison[name] = self._read_name(number, row, name, Cells(), name)
        comparison.update(self._read_simulated(number, row))
        comparison.update(self._read_meta(row, "comparisons"))
        yield ConvertedRow(number, "comparisons", comparison, self._origin(self.single.get("verdict", ""), "verdict"))

    def _read_verdict(self, number: int, row: Row, systems: list[str]) -> str | None:
        known = self.values.get("verdict", {})
        column = self.single["verdict"]
        verdict: str | None = self._read_plain(number, row, column, lambda value: read_verdict(value, known, *systems))
        return verdict

    # ---- results ------------------------------------------------------------------------------------------

    def _origin(self, column: str, name: str) -> dict[str, str]:
        """The columns that an output or a judgement comes from."""
        key = f"{name}:{column}"
        if key not in self.origins:
            self.origins[key] = {**self.single, name: column}
        return self.origins[key]

    def _emit(
        self, number: int, table: str, values: Row, key: tuple[Any, ...], origin: dict[str, str]
    ) -> Iterator[ConvertedRow | Fault]:
        """The row, unless the same was converted before; a fault if it had other content."""
        content = repr(values)
        before = self.seen.add((table, *key), content, number)
        if before is True:
            yield ConvertedRow(number, table, values, origin)
        elif before is not False:
            file, row = before
            place = f"{file}:{row}" if file else str(row)
            if table == "items":
                message = _("Row %(place)s has another text for the item “%(item)s”.", place=place, item=key[0])
                column, way_out = (
                    origin["id"],
                    _('Use one text per id, or take ids from the text: "ids": {"source": "hash"}.'),
                )
            else:
                message = _("Row %(place)s has another text of “%(system)s” for the item “%(item)s”.",
                            place=place, system=key[1], item=key[0])  # fmt: skip
                column, way_out = origin["text"], _("Keep one text, or give them different items, systems or steps.")
            yield Fault(number, column, message, way_out)

    def check_end(self) -> Iterator[Fault]:
        """A fault if no row was taken."""
        if not self.index:
            yield Fault(
                None, "", _("The table has no rows to import."), _("Check “only” and “explode” in the mapping.")
            )
