"""A mapping applied to the columns of a table: the columns exist, and patterns are the columns that match."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from evalapp.translation import gettext as _

from .mapping import CELL_MEMBERS, Cells, Mapping
from .patterns import AmbiguousPattern, match_pattern
from .tables import Table

#: So many columns are listed in a message.
_LISTED = 12


class Fault(NamedTuple):
    """An error in a table: the row in the file (None for the whole file), the column (or the member of the mapping),
    what is wrong, and what to do about it."""

    row: int | None
    column: str
    message: str
    way_out: str = ""

    def __str__(self) -> str:
        return f"{self.message} {self.way_out}".strip()


@dataclass
class Plan:
    """Columns with outputs, judgements and scores, and what each holds; faults if the mapping does not fit
    the table."""

    outputs: list[tuple[str, Cells]] = field(default_factory=list)
    ratings: list[tuple[str, Cells]] = field(default_factory=list)
    verdicts: list[tuple[str, Cells]] = field(default_factory=list)
    scores: list[tuple[str, Cells]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def make_plan(table: Table, mapping: Mapping) -> Plan:
    plan = Plan()
    taken = {name for names in mapping.columns.values() for name in names} | mapping.only.keys()
    taken |= mapping.split.keys()
    taken |= {name for names in mapping.meta.values() for name in names}
    named = {one.column for member in CELL_MEMBERS for one in getattr(mapping, member) if one.column}
    if not mapping.explode:
        plan.faults += [_describe_missing(name, table) for name in sorted(taken | named) if not has_column(table, name)]
    for member in CELL_MEMBERS:
        found = _expand(getattr(mapping, member), member, table, taken | named, plan)
        setattr(plan, member, found)
        taken |= {column for column, _cells in found}
    plan.outputs += [(name, Cells()) for name in mapping.columns.get("text", ())]
    plan.ratings += [(name, Cells()) for name in mapping.columns.get("value", ())]
    plan.scores += [(name, Cells()) for name in mapping.columns.get("score", ())]
    return plan


def has_column(table: Table, name: str) -> bool:
    """Whether rows can have this column: it is known, a part of a known one, or above known ones."""
    columns = set(table.columns)
    if name in columns or (table.is_open and any(one.startswith(f"{name}.") for one in columns)):
        return True
    return any(name[:k] in columns for k, letter in enumerate(name) if letter == "." and k)


def _describe_missing(name: str, table: Table) -> Fault:
    near = difflib.get_close_matches(name, table.columns, 1, 0.6)
    way_out = _("Did you mean “%(near)s”?", near=near[0]) if near else list_columns(table)
    return Fault(None, name, _("There is no column “%(name)s”.", name=name), way_out)


def list_columns(table: Table) -> str:
    """A sentence with the columns of a table."""
    names = ", ".join(f"“{name}”" for name in table.columns[:_LISTED])
    return _("The columns are %(columns)s.", columns=names + (", ..." if len(table.columns) > _LISTED else ""))


def _expand(
    cells: tuple[Cells, ...], member: str, table: Table, taken: set[str], plan: Plan
) -> list[tuple[str, Cells]]:
    """(column, its contents) of each column that is named or matches a pattern and is not `taken`."""
    found = {one.column: one for one in cells if one.column}
    for k, one in enumerate(cells):
        if not one.pattern:
            continue
        free = [column for column in table.columns if column not in taken and column not in found]
        try:
            matched = match_pattern(one.pattern, free)
        except AmbiguousPattern as error:
            plan.faults.append(_describe_ambiguous(error, member))
            continue
        if not matched:
            message = _("No column matches the pattern “%(pattern)s”.", pattern=one.pattern)
            plan.faults.append(Fault(None, f"{member}[{k}]", message, list_columns(table)))
        found.update({column: replace(one, pattern="", column=column, **parts) for column, parts in matched.items()})
    return list(found.items())


def _describe_ambiguous(error: AmbiguousPattern, member: str) -> Fault:
    first, second = (", ".join(f"{k} “{v}”" for k, v in one.items()) for one in (error.first, error.second))
    message = _("The column can be read in two ways: %(first)s, or %(second)s.", first=first, second=second)
    way_out = _(
        'State it under "%(member)s" on its own: {"column": "%(column)s", ...}.', member=member, column=error.column
    )
    return Fault(None, error.column, message, way_out)
