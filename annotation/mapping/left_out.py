"""The columns of a table that a mapping does not import: what is in them, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from evalapp.translation import gettext as _

from .convert import explode_row
from .mapping import CELL_MEMBERS, Mapping
from .plan import make_plan
from .presets import flatten_table
from .profile import Profile, profile_column
from .tables import Table
from .values import WrongValue

_MOST_EXAMPLE = 80


@dataclass(frozen=True)
class LeftOut:
    """A column that is not imported, its first value, and what to do if it is needed."""

    column: str
    example: str
    message: str

    def __str__(self) -> str:
        return (
            f"“{self.column}” ({self.example}): {self.message}" if self.example else f"“{self.column}”: {self.message}"
        )


def list_left_out(table: Table, mapping: Mapping) -> list[LeftOut]:
    """The columns of a table that a mapping does not use, in their order. The mapping may be incomplete."""
    table = explode_table(flatten_table(table, mapping.preset), mapping.explode)
    used = list_used(table, mapping)
    found = []
    for name in table.columns:
        if name in used or any(name.startswith(f"{one}.") or one.startswith(f"{name}.") for one in used):
            continue
        profile = profile_column(table, name)
        is_unnamed = name.startswith("column ") and profile.kind == "empty"
        if not is_unnamed:
            found.append(LeftOut(name, _find_example(table, name), _advise(profile)))
    return found


def explode_table(table: Table, lists: tuple[str, ...]) -> Table:
    """The table with the first rows that the parts of its lists become."""
    if not lists:
        return table
    try:
        sample = [(number, part) for number, row in table.sample for part in explode_row(row, lists)]
    except WrongValue:
        return table
    return table.with_rows(sample, list(dict.fromkeys(name for _number, row in sample for name in row)))


def list_used(table: Table, mapping: Mapping) -> set[str]:
    """The columns that a mapping imports, or needs to know which rows to import."""
    plan = make_plan(table, mapping)
    named = {name for names in (*mapping.columns.values(), *mapping.meta.values()) for name in names}
    cells = {column for member in CELL_MEMBERS for column, _cells in getattr(plan, member)}
    return named | cells | mapping.only.keys() | mapping.split.keys()


def _find_example(table: Table, name: str) -> str:
    values = (" ".join(str(row.get(name)).split()) for _number, row in table.sample if row.get(name) is not None)
    text = next((value for value in values if value), "")
    return text if len(text) <= _MOST_EXAMPLE else f"{text[: _MOST_EXAMPLE - 1]}…"


def _advise(profile: Profile) -> str:
    """What to do if a column is needed, by its contents."""
    if profile.kind == "empty":
        return profile.wrong or _("It is empty.")
    if profile.kind == "number":
        return _("If these are ratings, name their system and aspect; otherwise keep it as a property of the item.")
    if profile.is_label:
        return _("Keep it as a property of the item; or, if these are ratings, name their system, aspect and the "
                 "number of each word.")  # fmt: skip
    if profile.kind in ("text", "list", "messages") and profile.words >= 2:
        return _("If a system wrote these texts, they are its outputs; otherwise say what they are, or keep it as a "
                 "property of the item.")  # fmt: skip
    return _("Say what it is, or keep it as a property of the item.")
