"""The mapping of a table to the interchange format: a small JSON object, read and checked.

    {"shape": "wide", "columns": {"item": "id", "context": "prompt", "references": ["ref"]},
     "outputs": [{"pattern": "{system}_output"}], "ratings": [{"pattern": "{system}_{aspect}"}],
     "constants": {"rater": "olga"}}

docs/how-to/import-your-table.md explains every member."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop

SHAPES = ("long", "wide", "pairs", "preference", "lines")
#: What a column can be, by shape. `context` and `references` can name several columns, and `verdict`
#: columns with at most one true in a row.
ITEM_FIELDS = ("item", "context", "source", "references", "group")
JUDGEMENT_FIELDS = ("rater", "aspect", "simulated")
#: Of scores by other programs; see `scores` in the interchange format.
SCORE_FIELDS = ("evaluator", "score", "reference_set", "signature", "higher_is_better")
FIELDS: dict[str, tuple[str, ...]] = {
    "long": (*ITEM_FIELDS, "system", "text", "step", *JUDGEMENT_FIELDS, "value", *SCORE_FIELDS),
    "wide": (*ITEM_FIELDS, "system", "text", "step", *JUDGEMENT_FIELDS, "value", *SCORE_FIELDS),
    "lines": (*ITEM_FIELDS, *JUDGEMENT_FIELDS, *SCORE_FIELDS[2:]),
    "pairs": (*ITEM_FIELDS, "system_a", "system_b", "text_a", "text_b", *JUDGEMENT_FIELDS, "verdict"),
    "preference": (*ITEM_FIELDS, "system_a", "system_b", "chosen", "rejected", *JUDGEMENT_FIELDS),
}
LISTS = frozenset({"context", "references"})
#: Fields that can be the same for the whole table.
CONSTANTS = frozenset(
    {"item", "group", "system", "step", "rater", "aspect", "simulated", "system_a", "system_b", *SCORE_FIELDS}
    - {"score"}
)
PLACES = ("item", "system", "aspect", "rater", "evaluator")
META_TABLES = ("items", "outputs", "ratings", "comparisons")
RULES = ("one", "split", "chat", "marks", "json")
#: Members of a mapping that are lists of `Cells`.
CELL_MEMBERS = ("outputs", "ratings", "verdicts", "scores")
ID_SOURCES = ("column", "row", "hash")
_PLACE = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class MappingFault:
    """An error in a mapping: the member, as `columns.item`, and what to do."""

    member: str
    message: str

    def __str__(self) -> str:
        return f"{self.member}: {self.message}" if self.member else self.message


class WrongMapping(ValueError):
    """The mapping cannot be used. `faults` has every reason."""

    def __init__(self, faults: Iterable[MappingFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(map(str, self.faults)))


@dataclass(frozen=True)
class Cells:
    """Columns with outputs, ratings or scores: one by name, or all that match a pattern such as `{system}_{aspect}`.
    The others state what neither pattern nor row says. `level`: `system` for scores of whole systems."""

    column: str = ""
    pattern: str = ""
    item: str = ""
    system: str = ""
    aspect: str = ""
    rater: str = ""
    evaluator: str = ""
    reference_set: str = ""
    higher_is_better: str = ""
    level: str = ""
    #: In pairs and preferences, the output that a column rates: `a` (the first, or the chosen one) or `b`.
    side: str = ""

    @property
    def places(self) -> list[str]:
        """The parts of the pattern, in order."""
        return _PLACE.findall(self.pattern)


@dataclass(frozen=True)
class Turns:
    """How a cell becomes a list of texts. `one`: it is a single text; `split`: at `separator`; `chat`: a list of
    messages with role and content; `marks`: a text where every mark begins a turn; `json`: a JSON list."""

    rule: str = "one"
    separator: str = "\n"
    marks: tuple[str, ...] = ()
    #: Only messages with these roles, for `chat`; empty: all.
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ids:
    """The ids of items: the column `item`, the number of the row, or a hash of context and source."""

    source: str = "column"
    prefix: str = ""


@dataclass(frozen=True)
class Reading:
    """How the file is read; empty values are found in the file."""

    encoding: str = ""
    separator: str = ""
    sheet: str = ""
    #: `.` or `,` for columns of numbers in which no cell shows which of the two it is, as `1.250`.
    decimal: str = ""
    #: Rows above those with the names of the columns, and rows below them that have no data.
    skip_above: int = 0
    skip_below: int = 0
    #: Rows whose cells together are the names, as with a system above its aspects.
    header_rows: int = 1


@dataclass(frozen=True)
class Mapping:
    """See the head of the module. `make_items`: whether the rows create items; None: if they have a context, a source,
    references or a group. `empty`: whether an empty cell is no output (`skip`) or an empty text (`text`)."""

    shape: str
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    outputs: tuple[Cells, ...] = ()
    ratings: tuple[Cells, ...] = ()
    #: In pairs, columns with the verdicts of a rater each.
    verdicts: tuple[Cells, ...] = ()
    #: Columns with scores by other programs.
    scores: tuple[Cells, ...] = ()
    constants: dict[str, str] = field(default_factory=dict)
    #: By field: the value for the text of a cell; null leaves the judgement out. `{"scale": [1, 2]}` for a verdict:
    #: the nearer end wins, the middle is a tie.
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    turns: dict[str, Turns] = field(default_factory=dict)
    ids: Ids = Ids()
    #: Columns with a list; each of its parts is a row of its own.
    explode: tuple[str, ...] = ()
    #: Columns whose cells have several parts, such as `{item}_{system}`; each part is a column such as `key.item`.
    split: dict[str, str] = field(default_factory=dict)
    #: Only rows with such a value in the column; without values, with any.
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: Columns that are kept as `meta`, by table.
    meta: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reading: Reading = Reading()
    make_items: bool | None = None
    empty: str = ""
    preset: str = ""

    def as_json(self) -> dict[str, Any]:
        """The mapping as a JSON object without default values; `read_mapping` reads it."""
        document: dict[str, Any] = {"shape": self.shape}
        if self.preset:
            document["preset"] = self.preset
        if self.columns:
            document["columns"] = {name: _shorten(names) for name, names in self.columns.items()}
        for name in CELL_MEMBERS:
            if cells := getattr(self, name):
                document[name] = [_as_members(one) for one in cells]
        for name in ("constants", "values", "turns", "ids", "explode", "split", "only", "meta", "reading"):
            if value := _as_plain(getattr(self, name)):
                document[name] = value
        if self.only:
            document["only"] = {name: list(values) or True for name, values in self.only.items()}
        if self.make_items is not None:
            document["make_items"] = self.make_items
        if self.empty:
            document["empty"] = self.empty
        return document

    def creates_items(self) -> bool:
        """Whether the rows create items."""
        if self.make_items is not None:
            return self.make_items
        if self.ids.source != "column" or any(name in self.columns for name in ITEM_FIELDS[1:]):
            return True
        return any(rule.rule in ("chat", "marks") for name, rule in self.turns.items() if name not in LISTS)


def _shorten(names: tuple[str, ...]) -> Any:
    return names[0] if len(names) == 1 else list(names)


def _as_members(value: Any) -> dict[str, Any]:
    """The members of a dataclass that differ from their default."""
    named = {one.name: getattr(value, one.name) for one in fields(value)}
    return {
        one.name: list(named[one.name]) if isinstance(named[one.name], tuple) else named[one.name]
        for one in fields(value)
        if named[one.name] != one.default
    }


def _as_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, dict):
        return {key: _as_plain(part) for key, part in value.items()}
    if isinstance(value, Turns):
        members = _as_members(value)
        return {"rule": value.rule, **members}
    if isinstance(value, Ids | Reading):
        return _as_members(value)
    return value


# ---- reading ----------------------------------------------------------------------------------------------


_NO_TEXT_BETWEEN = gettext_noop("Two parts of a pattern need a text between them.")


class _Reader:
    """Collects the faults of a mapping while its members are read."""

    def __init__(self) -> None:
        self.faults: list[MappingFault] = []

    def fail(self, member: str, message: str) -> None:
        self.faults.append(MappingFault(member, message))

    def read_object(self, value: Any, member: str, known: Iterable[str] | None = None) -> dict[str, Any]:
        if value is None:
            return {}
        if type(value) is not dict or not all(type(key) is str for key in value):
            self.fail(member, _("Write an object { ... }."))
            return {}
        if known is not None:
            names = sorted(known)
            for key in value.keys() - set(names):
                text = _("“%(key)s” is unknown. Use: %(names)s.", key=key[:100], names=", ".join(names))
                self.fail(f"{member}.{key}".lstrip("."), text)
        return dict(value)

    def read_text(self, value: Any, member: str, choices: Iterable[str] = (), default: str = "") -> str:
        if value is None:
            return default
        if type(value) is not str:
            self.fail(member, _("Write a text in quotes."))
            return default
        if choices and value not in choices:
            self.fail(member, _("Use one of: %(names)s.", names=", ".join(choices)))
            return default
        return value

    def read_names(self, value: Any, member: str) -> tuple[str, ...]:
        """A text, or a list of texts."""
        if value is None:
            return ()
        names = value if type(value) is list else [value]
        if not all(type(name) is str for name in names):
            self.fail(member, _("Write a text or a list of texts."))
            return ()
        return tuple(names)

    def read_lists(self, value: Any, member: str, known: Iterable[str] | None = None) -> dict[str, tuple[str, ...]]:
        return {
            key: self.read_names(names, f"{member}.{key}")
            for key, names in self.read_object(value, member, known).items()
        }

    def read_whole(self, value: Any, member: str, low: int = 0, high: int = 1000) -> int:
        if type(value) is not int or not low <= value <= high:
            self.fail(member, _("Write a whole number from %(low)s to %(high)s.", low=low, high=high))
            return low
        return value

    def read_members(self, value: Any, member: str, kind: type, read: dict[str, Callable[..., Any]]) -> Any:
        """A dataclass from an object. `read`: readers of members that are not plain texts."""
        names = [one.name for one in fields(kind)]
        document = self.read_object(value, member, names)
        values = {
            name: read.get(name, self.read_text)(document[name], f"{member}.{name}")
            for name in names
            if document.get(name) is not None
        }
        return kind(**values)

    def read_cells(self, value: Any, member: str) -> tuple[Cells, ...]:
        if value is None:
            return ()
        if type(value) is not list:
            self.fail(member, _('Write a list such as [{"column": "gpt", "system": "gpt"}].'))
            return ()
        return tuple(self._read_cell(one, f"{member}[{k}]") for k, one in enumerate(value))

    def _read_cell(self, value: Any, member: str) -> Cells:
        side = {"side": lambda value, member: self.read_text(value, member, ("a", "b"))}
        cells: Cells = self.read_members(value, member, Cells, side)
        if bool(cells.column) == bool(cells.pattern):
            self.fail(member, _("Name either a column or a pattern."))
        elif cells.pattern:
            self._check_pattern(cells, f"{member}.pattern")
        return cells

    def _check_pattern(self, cells: Cells, member: str) -> None:
        places = cells.places
        names = ", ".join(f"{{{name}}}" for name in PLACES)
        if not places or set(places) - set(PLACES):
            self.fail(
                member, _("A pattern contains at least one of %(names)s and nothing else in braces.", names=names)
            )
        elif len(places) != len(set(places)):
            self.fail(member, _("Each of %(names)s can occur only once.", names=names))
        elif "}{" in cells.pattern:
            self.fail(member, _(_NO_TEXT_BETWEEN))

    def read_split(self, value: Any) -> dict[str, str]:
        found = {}
        for column, given in self.read_object(value, "split").items():
            pattern, member = self.read_text(given, f"split.{column}"), f"split.{column}"
            parts = _PLACE.findall(pattern)
            if not all(parts) or len(set(parts)) != len(parts) or pattern.count("{") != len(parts):
                self.fail(member, _("Write a pattern whose parts have different names, such as {item}_{system}."))
            elif len(parts) < 2 or "}{" in pattern:
                self.fail(member, _(_NO_TEXT_BETWEEN))
            found[column] = pattern
        return found

    def read_only(self, value: Any) -> dict[str, tuple[str, ...]]:
        """The values that rows need by column; none for any value, which is written as true."""
        given = self.read_object(value, "only")
        return {
            column: () if names is True else self.read_names(names, f"only.{column}") for column, names in given.items()
        }

    def read_values(self, value: Any) -> dict[str, dict[str, Any]]:
        known = ("value", "verdict", "simulated", "system", "aspect", "rater", "system_a", "system_b")
        found = {}
        for name, texts in self.read_object(value, "values", known).items():
            found[name] = self.read_object(texts, f"values.{name}")
            if "scale" in found[name]:
                scale = found[name]["scale"]
                numbers = type(scale) is list and [one for one in scale if type(one) in (int, float)]
                if not numbers or len(scale) != 2 or len(numbers) != 2 or scale[0] == scale[1]:
                    self.fail(f"values.{name}.scale", _("Write two different numbers, such as [1, 2]."))
        return found

    def read_turns(self, value: Any, shape: str) -> dict[str, Turns]:
        texts = [name for name in FIELDS[shape] if name in (*LISTS, "text", "text_a", "text_b", "chosen", "rejected")]
        known = {*texts, "outputs"} if shape in ("wide", "lines") else set(texts)
        readers = {
            "rule": lambda value, member: self.read_text(value, member, RULES, "one"),
            "marks": self.read_names,
            "roles": self.read_names,
        }
        turns = {
            name: self.read_members(rule, f"turns.{name}", Turns, readers)
            for name, rule in self.read_object(value, "turns", known).items()
        }
        for name, rule in turns.items():
            if rule.rule == "marks" and not any(rule.marks):
                self.fail(f"turns.{name}.marks", _('Name the texts that begin a turn, such as ["Human:"].'))
            if rule.rule == "split" and not rule.separator:
                self.fail(f"turns.{name}.separator", _("Name the text between two turns."))
        return turns


_NEEDED = gettext_noop("Name a column for it, or state it under “constants”.")


def read_mapping(mapping: Any) -> Mapping:
    """The mapping in a JSON object. Raises `WrongMapping` with all faults."""
    reader = _Reader()
    document = reader.read_object(mapping, "", [one.name for one in fields(Mapping)])
    shape = reader.read_text(document.get("shape"), "shape", SHAPES)
    if not shape:
        if not reader.faults or reader.faults[-1].member != "shape":
            reader.fail("shape", _("Use one of: %(names)s.", names=", ".join(SHAPES)))
        raise WrongMapping(reader.faults)
    make_items = document.get("make_items")
    if make_items is not None and type(make_items) is not bool:
        reader.fail("make_items", _("Write true or false."))
        make_items = None
    constants = reader.read_object(document.get("constants"), "constants", CONSTANTS & set(FIELDS[shape]) | {"system"})
    reading: dict[str, Callable[..., Any]] = {
        "decimal": lambda value, member: reader.read_text(value, member, (".", ",")),
        "skip_above": reader.read_whole,
        "skip_below": reader.read_whole,
        "header_rows": lambda value, member: reader.read_whole(value, member, 1, 5),
    }
    source = {"source": lambda value, member: reader.read_text(value, member, ID_SOURCES, "column")}
    made = Mapping(
        shape=shape,
        columns=reader.read_lists(document.get("columns"), "columns", FIELDS[shape]),
        **{name: reader.read_cells(document.get(name), name) for name in CELL_MEMBERS},
        constants={name: reader.read_text(text, f"constants.{name}") for name, text in constants.items()},
        values=reader.read_values(document.get("values")),
        turns=reader.read_turns(document.get("turns"), shape),
        ids=reader.read_members(document.get("ids"), "ids", Ids, source),
        explode=reader.read_names(document.get("explode"), "explode"),
        split=reader.read_split(document.get("split")),
        only=reader.read_only(document.get("only")),
        meta=reader.read_lists(document.get("meta"), "meta", META_TABLES),
        reading=reader.read_members(document.get("reading"), "reading", Reading, reading),
        make_items=make_items,
        empty=reader.read_text(document.get("empty"), "empty", ("skip", "text")),
        preset=reader.read_text(document.get("preset"), "preset"),
    )
    _check_columns(made, reader)
    _check_needed(made, reader)
    if reader.faults:
        raise WrongMapping(reader.faults)
    return made


def _check_columns(mapping: Mapping, reader: _Reader) -> None:
    for name, names in mapping.columns.items():
        if not names or not all(names):
            reader.fail(f"columns.{name}", _("Name a column."))
        elif len(names) > 1 and name not in (*LISTS, "verdict"):
            reader.fail(f"columns.{name}", _("Only context, references and verdict can have several columns."))
        if name in mapping.constants:
            reader.fail(f"constants.{name}", _("It has a column already. Remove either."))


def _check_needed(mapping: Mapping, reader: _Reader) -> None:
    """Each shape has what its rows need."""
    have = mapping.columns.keys() | mapping.constants.keys()
    shape = mapping.shape

    def need(*names: str) -> None:
        for name in names:
            if name not in have:
                reader.fail(f"columns.{name}", _(_NEEDED))

    is_stated = all("item" in one.places or one.item for one in _list_cells(mapping))
    if mapping.ids.source == "column" and not is_stated and "item" not in have:
        text = _('Name the column with the ids, or choose "row" or "hash" under "ids": {"source": "row"}.')
        reader.fail("columns.item", text)
    if mapping.ids.source == "hash" and not {"context", "source"} & mapping.columns.keys():
        reader.fail("ids.source", _("A hash needs a column for context or source."))
    if shape in ("pairs", "preference"):
        if mapping.outputs or mapping.scores:
            reader.fail("outputs", _("Only long and wide tables and lines have outputs and scores."))
        if shape == "preference":
            need("chosen", "rejected", "rater", "aspect")
        else:
            need("system_a", "system_b")
            if "verdict" in have or not (mapping.ratings or mapping.verdicts):
                need("rater", "verdict", "aspect")
        _check_cells(mapping, reader, have)
        return
    if shape == "lines" and not mapping.outputs and not mapping.creates_items():
        reader.fail("outputs", _("Name the files with the outputs of the systems."))
    _check_cells(mapping, reader, have)
    if "text" in mapping.columns:
        need("system")
    if "value" in mapping.columns:
        need("system", "rater", "aspect")
    if "score" in mapping.columns:
        need("system", "evaluator")
    has_cells = mapping.outputs or mapping.ratings or mapping.scores
    if not (has_cells or {"text", "value", "score"} & mapping.columns.keys() or mapping.creates_items()):
        reader.fail(
            "columns", _("Nothing would be imported. Name columns with texts, ratings, contexts or references.")
        )


def _list_cells(mapping: Mapping) -> list[Cells]:
    """The cells that are all that rows have; a single dummy if there are other columns that need an item."""
    others = {"text", "value", "score", *ITEM_FIELDS[1:]} & mapping.columns.keys() or mapping.shape in (
        "pairs",
        "preference",
    )
    cells = [*mapping.outputs, *mapping.ratings, *(one for one in mapping.scores if one.level != "system")]
    return [Cells()] if others or not cells else cells


def _check_cells(mapping: Mapping, reader: _Reader, have: set[str]) -> None:
    """Each output has a system, each rating also a rater and an aspect, each score an evaluator. In pairs, ratings have
    a side in place of the system."""
    is_pair = mapping.shape in ("pairs", "preference")
    rated = "side" if is_pair else "system"
    needed = {
        "outputs": ("system",), "ratings": (rated, "rater", "aspect"), "verdicts": ("rater", "aspect"),
        "scores": ("system", "evaluator"),
    }  # fmt: skip
    if mapping.verdicts and mapping.shape != "pairs":
        reader.fail("verdicts", _("Only pairs have columns of verdicts."))
    for member, names in needed.items():
        for k, cells in enumerate(getattr(mapping, member)):
            if cells.side and not is_pair:
                reader.fail(f"{member}[{k}].side", _("Only ratings of pairs and preferences have a side."))
            for name in names:
                if name not in cells.places and not getattr(cells, name) and name not in have:
                    text = _("“%(name)s” of “%(column)s” is not stated. Add it here, to the pattern, or under "
                             "“constants”.", name=name, column=cells.column or cells.pattern)  # fmt: skip
                    reader.fail(f"{member}[{k}]", text)
