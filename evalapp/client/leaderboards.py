"""Leaderboards, as rows or as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalapp.client.errors import WrongOrder, expecting
from evalapp.client.rows import need_pandas, to_frame
from evalapp.markup import MAX_ROWS, write_html_table

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Leaderboard:
    """A leaderboard. `rows` are ordered from the best, each with estimate and interval (for agreement, a row per aspect
    or coefficient). `table` is the complete response, with the signature and the numbers of items and raters."""

    table: dict[str, Any] = field(repr=False)
    #: Requests the table as LaTeX.
    _fetch_latex: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Leaderboard: {len(self.table.get('rows') or ()):,} rows, {self.table.get('signature', '')}>"

    def _repr_html_(self) -> str:
        rows = [_flatten(row) for row in self.rows]
        names = [name for name in dict.fromkeys(name for row in rows for name in row) if _is_shown(name, rows)]
        shown = [[row.get(name) for name in names] for row in rows[:MAX_ROWS]]
        return write_html_table(names, shown, more=max(0, len(rows) - MAX_ROWS))

    @property
    @expecting("a leaderboard")
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table."""
        return list(self.table["rows"])

    @property
    @expecting("a leaderboard")
    def signature(self) -> str:
        """The signature of the table."""
        return str(self.table["signature"])

    @property
    @expecting("a leaderboard")
    def is_current(self) -> bool:
        """Whether the data are unchanged since the table was computed."""
        return bool(self.table["is_current"])

    def to_latex(self) -> str:
        """Return the table as LaTeX for the package booktabs, with its signature as a comment, as the page of the
        leaderboard does. Raises `WrongOrder` for a table that no server has computed."""
        if self._fetch_latex is None:
            raise WrongOrder("only leaderboards of a project have LaTeX: project.leaderboard(...).to_latex()")
        return self._fetch_latex()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a DataFrame. Nested estimates become columns such as `pearson.value` and `alpha.low`,
        cells columns of their part, aspect, evaluator or figure: `news.value`."""
        need_pandas("to_pandas()")
        names = self._name_cells()
        return to_frame([_flatten(row) | _flatten_cells(row, names) for row in self.rows])

    @expecting("a leaderboard")
    def _name_cells(self) -> list[str]:
        if self.table.get("kind") == "matrix":
            return [str(row["evaluator"]) for row in self.rows]
        heads = self.table.get("parts") or self.table.get("aspects") or self.table.get("columns") or []
        return [str(head["name"] if "name" in head else head["aspect"]) for head in heads]


#: Members of a row that a short table shows, alone or as `pearson.value`.
_SHOWN = frozenset({
    "rank", "system", "step", "evaluator", "aspect", "name", "judged", "value", "low", "high", "n", "letters",
})  # fmt: skip


def _is_shown(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    part, _, member = name.rpartition(".")
    if member != "value" if part else name not in _SHOWN:
        return False
    return any(row.get(name) not in (None, "") and not isinstance(row[name], list | dict) for row in rows)


def _flatten(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": part for inner, part in value.items()}
        elif name == "coefficients":  # agreement has a list of them in each row
            flat |= {
                f"{each['name']}.{inner}": part for each in value for inner, part in each.items() if inner != "name"
            }
        elif name != "cells":
            flat[name] = value
    return flat


def _flatten_cells(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    # Empty cells, such as that of an evaluator with itself, have no columns.
    cells = zip(names, row.get("cells") or (), strict=False)
    return {f"{name}.{inner}": part for name, cell in cells if cell for inner, part in cell.items()}
