"""Rows of a table as rows of the interchange format, by a mapping."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import orjson

from annotation.parsers.faults import StopReading
from evalapp.translation import gettext as _

from .cells import Cell, FieldReaders, Read, cut_turns, make_reader, make_text_reader, read_ratings, read_source
from .mapping import ITEM_FIELDS, Cells, Mapping, Turns
from .numbers import ColumnNumbers, RatingLimits, find_limits
from .patterns import split_cell
from .plan import Fault, make_plan
from .presets import flatten_table
from .seen import Seen
from .sources import Row, flatten_row
from .tables import Table
from .values import WrongValue, get_value, is_empty, read_flag, read_key, read_turns, read_verdict

#: What judgements of a rater differ in.
_KEYS = ("item", "system", "aspect", "step")


class ConvertedRow(NamedTuple):
    """A row of the interchange format. `row`: its number in the file; `table`: items, outputs, ratings, comparisons or
    scores; `columns`: the original column of each of its fields."""

    row: int
    table: str
    values: dict[str, Any]
    columns: dict[str, str]


Converted = list[ConvertedRow | Fault]


def convert_rows(
    table: Table, mapping: Mapping, seen: Seen | None = None, is_preview: bool = False
) -> Iterator[ConvertedRow | Fault]:
    """The rows of the interchange format in a table, each item and output once, and a `Fault` for every row that cannot
    be converted. `seen`: shared by the files of an upload; `is_preview`: only the first rows are needed, so the others
    are not searched for a decimal sign. If the mapping does not fit the table, only faults with the reasons."""
    given, table = table, flatten_table(table, mapping.preset)
    converter = _Converter(table, mapping, seen or Seen(), table.sample if is_preview else table)
    if converter.faults:
        yield from converter.faults
        return
    faults: list[Fault] = []
    last = None

    def report(row: int | None, column: str, message: str) -> None:
        faults.append(Fault(row, table.describe_column(column), message))

    given.rows_read = 0
    try:
        for number, row in table.read(report):
            if faults:
                yield from faults
                faults.clear()
            if number != last:  # nested records become several rows of the same number
                given.rows_read += 1
                last = number
            yield from converter.convert(number, row)
    except StopReading as stop:
        yield from faults
        yield Fault(stop.line, "", stop.message)
        return
    yield from faults
    if not converter.index:
        message = _("The table has no rows to import.")
        yield Fault(None, "", message, _("Check “only” and “explode” in the mapping."))


def preview_rows(table: Table, mapping: Mapping, limit: int = 5) -> list[tuple[int, Row, Converted]]:
    """The first rows in both forms: (number, the row in the table, what becomes of it). Faults of the mapping itself
    have the number 0 and no row. Raises `StopReading`."""
    table = flatten_table(table, mapping.preset)
    converter = _Converter(table, mapping, Seen(), table.sample)
    if converter.faults:
        return [(0, {}, list(converter.faults))]
    return [(number, row, converter.convert(number, row)) for number, row in islice(table, limit)]


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
            raise WrongValue(_("It is not JSON: %(error)s.", error=error), _("Write a list."), column) from error
    others = {name: one for name, one in row.items() if name != column}
    for part in value if isinstance(value, list) else [] if value is None else [value]:
        if isinstance(part, dict):
            yield {**others, **flatten_row(part, f"{column}.")}
        else:
            yield {**others, column: part}


class _Converter:
    """The mapping applied to a table's columns."""

    def __init__(self, table: Table, mapping: Mapping, seen: Seen, rows: Iterable[tuple[int, Row]]) -> None:
        """`rows`: are searched for the decimal sign of a column."""
        self.table, self.mapping, self.seen, self.rows = table, mapping, seen, rows
        seen.begin_file(table.name)
        plan = make_plan(table, mapping)
        self.faults = plan.faults
        self.index = 0
        #: The number of the part of a row's lists, from 1.
        self.part = 0
        self.readers = FieldReaders(mapping)
        self.single = self.readers.single
        self.turns = {name: mapping.turns.get(name, Turns()) for name in (*mapping.columns, "outputs")}
        if "text" in self.single:
            self.turns["outputs"] = self.turns["text"]
        self.keeps_empty = mapping.empty == "text" or (not mapping.empty and mapping.shape in ("long", "lines"))
        self.creates = mapping.creates_items()
        self._prepare_items()
        self.read_step, self.read_simulated = map(self.readers.make_field, ("step", "simulated"))
        self.has_pairs = mapping.shape in ("pairs", "preference")
        if self.has_pairs:
            self._prepare_pairs(plan.verdicts)
        self.outputs = [
            self.readers.make_cell(column, make_text_reader(column, self.turns["outputs"]), "text", ("system",), cells)
            for column, cells in plan.outputs
        ]
        known = mapping.values.get("value", {})
        self.limits: dict[str, RatingLimits] | None = None
        self.ratings = [
            self.readers.make_cell(
                column, make_reader(column, read_ratings, self._make_numbers(column, known, True)), "value",
                ("system", "rater", "aspect"), cells,
            )
            for column, cells in plan.ratings
        ]  # fmt: skip
        if self.has_pairs:
            for rating, (_column, cells) in zip(self.ratings, plan.ratings, strict=True):
                _read, read_system, _origin = self.sides[cells.side == "b"]
                rating.readers = [("system", read_system), *(one for one in rating.readers if one[0] != "system")]
        self.numbered = self._list_numbered()
        self.scores = [
            self.readers.make_score(column, make_reader(column, self._make_numbers(column, known).read), cells)
            for column, cells in plan.scores
        ]

    def _list_numbered(self) -> set[str]:
        """Columns of ratings in a list whose parts differ in nothing else, so that each is another rater's."""
        columns, lists = self.mapping.columns, tuple(f"{one}." for one in self.mapping.explode)
        keys = [name for field in ("context", "source", *_KEYS) for name in columns.get(field, ())]
        if "rater" in columns or self.mapping.ids.source == "row" or any(name.startswith(lists) for name in keys):
            return set()
        return {cell.column for cell in self.ratings if cell.column.startswith(lists)}

    def _make_numbers(self, column: str, known: dict[str, Any], is_rating: bool = False) -> ColumnNumbers:
        """The reader of a column's numbers. Programs write aligned files, with decimal points and without codes for
        missing answers."""
        if self.table.format == "lines":
            return ColumnNumbers(known, ".")
        limits = (lambda: self._find_limits(column)) if is_rating else (lambda: None)
        return ColumnNumbers(known, self.mapping.reading.decimal, lambda: self._read_column(column), limits)

    def _find_limits(self, column: str) -> RatingLimits | None:
        if self.limits is None:  # of all columns at once, because it reads the whole file
            known = self.mapping.values.get("value", {})
            self.limits = find_limits([cell.column for cell in self.ratings], self._list_parts(), known)
        return self.limits.get(column)

    def _list_parts(self) -> Iterator[Row]:
        """All rows that can be read, or the parts of their lists."""
        for _number, row in self.rows:
            with suppress(WrongValue):
                yield from explode_row(row, self.mapping.explode)

    def _read_column(self, column: str) -> Iterator[Any]:
        """The values of a column that can be read."""
        for part in self._list_parts():
            with suppress(WrongValue):
                yield get_value(part, column)

    def _prepare_items(self) -> None:
        columns = self.mapping.columns
        self.lists = {
            name: [make_reader(column, read_turns, self.turns[name]) for column in columns[name]]
            for name in ("context", "references")
            if name in columns
        }
        self.read_group, self.read_key = map(self.readers.make_field, ("group", "item"))
        self.read_source = make_reader(self.single["source"], read_source) if "source" in self.single else None
        joined = {name: ", ".join(columns.get(name, ())) for name in ITEM_FIELDS[1:]}
        self.item_origin = {"id": self.single.get("item", ""), **joined}

    def _prepare_pairs(self, verdicts: list[tuple[str, Cells]]) -> None:
        """The texts and systems of both sides, and the columns of verdicts."""
        is_preference = self.mapping.shape == "preference"
        self.sides = []
        for name, text in zip(
            ("system_a", "system_b"), ("chosen", "rejected") if is_preference else ("text_a", "text_b"), strict=True
        ):
            column = self.single.get(text, "")
            read = make_text_reader(column, self.turns[text]) if column else _read_nothing
            read_system = self.readers.make_needed(name, self.single.get(name, name), text if is_preference else "")
            self.sides.append((read, read_system, {**self.single, "text": column}))
        if "verdict" in self.single or is_preference:
            verdicts = [(self.single.get("verdict", ""), Cells()), *verdicts]
        self.verdicts = [
            (self.readers.make_cell(column, _read_nothing, "verdict", ("rater", "aspect"), cells),
             self._make_numbers(column, {}).read)
            for column, cells in verdicts
        ]  # fmt: skip
        options = self.mapping.columns.get("verdict", ())
        self.options = [(one, make_reader(one, read_flag)) for one in options] if len(options) > 1 else []

    # ---- rows ---------------------------------------------------------------------------------------------

    def convert(self, number: int, row: Row) -> Converted:
        made: Converted = []
        try:
            parts = explode_row(row, self.mapping.explode) if self.mapping.explode else (row,)
            for self.part, one in enumerate(parts, 1):
                if self.mapping.only and not self._is_wanted(one):
                    continue
                self.index += 1
                self._convert_part(number, one, made)
        except WrongValue as wrong:
            made.append(self._describe(wrong, number))
        return made

    def _convert_part(self, number: int, row: Row, made: Converted) -> None:
        """A row, or a part of its lists. Its other parts are still converted if this one is faulty."""
        try:
            if self.mapping.split:
                row = self._split(row)
            if self.has_pairs:
                self._convert_pair(number, row, made)
            else:
                self._convert_cells(number, row, made)
        except WrongValue as wrong:
            made.append(self._describe(wrong, number))

    def _describe(self, wrong: WrongValue, number: int) -> Fault:
        return Fault(number, self.table.describe_column(wrong.column), wrong.message, wrong.way_out)

    def _is_wanted(self, row: Row) -> bool:
        for column, wanted in self.mapping.only.items():
            value = get_value(row, column)
            if not wanted:
                if is_empty(value) or (type(value) is str and not value.strip()):
                    return False
            elif (orjson.dumps(value).decode() if isinstance(value, dict | list) else read_key(value)) not in wanted:
                return False
        return True

    def _split(self, row: Row) -> Row:
        """The row with the parts of its cells as columns of their own."""
        parts: Row = {}
        for column, pattern in self.mapping.split.items():
            text = make_reader(column, read_key)(row)
            found = split_cell(pattern, text)
            if not found:
                message = _("“%(text)s” is not of the form “%(pattern)s”.", text=text[:80], pattern=pattern)
                raise WrongValue(message, _("Correct the cell, or “split” in the mapping."), column)
            parts.update({f"{column}.{name}": part for name, part in found.items()})
        return {**row, **parts}

    def _convert_cells(self, number: int, row: Row, made: Converted) -> None:
        """Outputs and ratings, each in a column of its own."""
        texts: list[str | None] = []
        before: list[str] = []
        for cell in self.outputs:
            turns, text = cut_turns(cell.read(row))
            before = before or turns
            texts.append(text)
        item = self._read_item(row, before)
        if item is not None and self.creates:
            self._add_item(number, item, made)
        step = self.read_step(row) if self.read_step else None
        for cell, text in zip(self.outputs, texts, strict=True):
            if text or (text is not None and self.keeps_empty):
                self._add_output(number, cell.read_fields(row, item), text, step, row, cell.origin, made)
        for cell in self.ratings:
            try:
                self._add_ratings(number, row, cell, item, step, made)
            except WrongValue as wrong:
                made.append(self._describe(wrong, number))
        for cell in self.scores:
            try:
                self._add_score(number, row, cell, item, step, made)
            except WrongValue as wrong:
                made.append(self._describe(wrong, number))

    def _convert_pair(self, number: int, row: Row, made: Converted) -> None:
        """The texts of both sides, and their comparison."""
        texts: list[str | None] = []
        before: list[str] = []
        for read, _read_system, _origin in self.sides:
            turns, text = cut_turns(read(row))
            before = before or turns
            texts.append(text)
        item = self._read_item(row, before)
        assert item is not None
        if self.creates:
            self._add_item(number, item, made)
        systems = [read_system(row) for _read, read_system, _origin in self.sides]
        for (_read, _read_system, origin), system, text in zip(self.sides, systems, texts, strict=True):
            if text is not None:
                self._add_output(number, {"item": item["id"], "system": system}, text, None, row, origin, made)
        for cell in self.ratings:
            self._add_ratings(number, row, cell, item, None, made)
        for cell, read_number in self.verdicts:
            try:
                if (verdict := self._read_verdict(row, cell.column, read_number, systems)) is not None:
                    values = {**cell.read_fields(row, item), "verdict": verdict}
                    values["system_a"], values["system_b"] = systems
                    self._add_flags(values, row, "comparisons")
                    made.append(ConvertedRow(number, "comparisons", values, cell.origin))
            except WrongValue as wrong:
                made.append(self._describe(wrong, number))

    def _read_verdict(self, row: Row, column: str, read_number: Read, systems: list[str]) -> str | None:
        if self.mapping.shape == "preference":
            return "a"
        if self.options and column == self.single.get("verdict"):
            row = {**row, column: "|".join(one for one, read in self.options if read(row))}
        known = self.mapping.values.get("verdict", {})
        verdict: str | None = make_reader(column, read_verdict, known, read_number, *systems)(row)
        return verdict

    # ---- items --------------------------------------------------------------------------------------------

    def _read_item(self, row: Row, before: list[str]) -> Row | None:
        """The item of a row; None if its cells name their items themselves."""
        item: Row = {"id": ""}
        for name, readers in self.lists.items():
            item[name] = readers[0](row) if len(readers) == 1 else [text for read in readers for text in read(row)]
        if before and "context" not in item:
            item["context"] = before
        if self.read_source and (source := self.read_source(row)) is not None:
            item["source"] = source
        if self.read_group and (group := self.read_group(row)):
            item["group"] = group
        key = self._read_id(row, item)
        if not key:
            if "item" in self.single:
                way_out = _('Fill the cell, or take ids from the row: "ids": {"source": "row"}.')
                raise WrongValue(_("The id is empty."), way_out, self.single["item"])
            return None
        item["id"] = self.mapping.ids.prefix + key
        self._add_meta(item, row, "items")
        return item

    def _read_id(self, row: Row, item: Row) -> str:
        source = self.mapping.ids.source
        if source == "row":
            return str(self.index)
        if source == "hash":
            content = orjson.dumps([item.get("context"), item.get("source")])
            return hashlib.sha256(content).hexdigest()[:16]
        return self.read_key(row) if self.read_key else ""

    # ---- results ------------------------------------------------------------------------------------------

    def _add_meta(self, values: Row, row: Row, table: str) -> None:
        names = self.mapping.meta.get(table)
        if names and (meta := {name: value for name in names if not is_empty(value := get_value(row, name))}):
            values["meta"] = meta

    def _add_flags(self, values: Row, row: Row, table: str) -> None:
        if self.read_simulated and self.read_simulated(row):
            values["simulated"] = True
        if self.mapping.meta:
            self._add_meta(values, row, table)

    def _add_item(self, number: int, item: Row, made: Converted) -> None:
        before = self.seen.add(("items", item["id"]), repr(item), number)
        if before is True:
            made.append(ConvertedRow(number, "items", item, self.item_origin))
        elif before is not False:
            message = _("Row %(place)s has another text for the item “%(item)s”.")
            way_out = _('Use one text per id, or take ids from the text: "ids": {"source": "hash"}.')
            message = message % {"place": _name_place(before), "item": item["id"]}
            raise WrongValue(message, way_out, self.item_origin["id"])

    def _add_output(
        self, number: int, values: Row, text: str | None, step: int | None, row: Row, origin: dict[str, str],
        made: Converted,
    ) -> None:  # fmt: skip
        """An output, unless the same one was converted before. If it had another text, the row ends with that fault,
        because its judgements would be faulty as well."""
        values["text"] = text
        if step is not None:
            values["step"] = step
        if self.mapping.meta:
            self._add_meta(values, row, "outputs")
        content = (text, repr(values["meta"])) if "meta" in values else text
        before = self.seen.add(("outputs", values["item"], values["system"], step), content, number)
        if before is True:
            made.append(ConvertedRow(number, "outputs", values, origin))
        elif before is not False:
            message = _("Row %(place)s has another text of “%(system)s” for the item “%(item)s”.")
            message = message % {"place": _name_place(before), "system": values["system"], "item": values["item"]}
            way_out = _("Keep one text, or give them different items, systems or steps.")
            raise WrongValue(message, way_out, origin["text"])

    def _add_ratings(
        self, number: int, row: Row, cell: Cell, item: Row | None, step: int | None, made: Converted
    ) -> None:
        numbers, is_list = cell.read(row)
        if not is_list and numbers[0] is None:
            return
        rating = cell.read_fields(row, item)
        if cell.column in self.numbered:
            rating["rater"] = f"{rating['rater']} {self.part}"
        if step is not None:
            rating["step"] = step
        if self.read_simulated or self.mapping.meta:
            self._add_flags(rating, row, "ratings")
        if not is_list:
            rating["value"] = numbers[0]
            made.append(ConvertedRow(number, "ratings", rating, cell.origin))
            return
        for k, one in enumerate(numbers, 1):
            if one is not None:
                values = {**rating, "rater": f"{rating['rater']} {k}", "value": one}
                made.append(ConvertedRow(number, "ratings", values, cell.origin))

    def _add_score(
        self, number: int, row: Row, cell: Cell, item: Row | None, step: int | None, made: Converted
    ) -> None:  # fmt: skip
        """A score by another program; an empty cell is none."""
        score = cell.read(row)
        if score is None:
            return
        values = cell.read_fields(row, item)
        if step is not None:
            values["step"] = step
        values = {name: value for name, value in values.items() if value not in (None, "")}
        made.append(ConvertedRow(number, "scores", {**values, "score": score}, cell.origin))


def _read_nothing(row: Row) -> None:
    """For columns that the table does not have."""


def _name_place(place: tuple[str, int]) -> str:
    file, row = place
    return f"{file}:{row}" if file else str(row)
