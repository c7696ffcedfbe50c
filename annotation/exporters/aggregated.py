"""Judgements without raters: one row per output and aspect, and one per pair and aspect, computed while the rows per
rater are exported."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from annotation.parsers import canonical
from annotation.parsers.kinds import VERDICTS

Row = dict[str, Any]
COLUMNS: dict[str, tuple[str, ...]] = {
    "aggregated_ratings": (
        "item", "system", "step", "dialogue", "aspect", "n", "mean", "median", "sd", "low", "high", "simulated",
    ),
    "aggregated_comparisons": (
        "item", "system_a", "step_a", "system_b", "step_b", "aspect", "n", *VERDICTS, "simulated",
    ),
}  # fmt: skip


class Aggregator:
    """Takes rows in canonical order, and returns those of an output or pair when the next one begins."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Row]] = {"ratings": [], "comparisons": []}

    def take(self, table: str, row: Row) -> Iterator[tuple[str, Row]]:
        waiting = self.waiting.get(table)
        if waiting is None:
            return
        if waiting and _place(table, waiting[0]) != _place(table, row):
            yield from self.give(table)
        waiting.append(row)

    def give(self, table: str) -> Iterator[tuple[str, Row]]:
        rows = sorted(self.waiting[table], key=lambda row: row["aspect"])
        self.waiting[table].clear()
        for aspect, of_aspect in groupby(rows, key=lambda row: row["aspect"]):
            made = _ratings if table == "ratings" else _comparisons
            yield f"aggregated_{table}", made(aspect, select_first_judgements(list(of_aspect)))

    def rest(self) -> Iterator[tuple[str, Row]]:
        for table in self.waiting:
            if self.waiting[table]:
                yield from self.give(table)


def aggregate(table: str, rows: Iterable[Row]) -> list[Row]:
    """The aggregated rows of `rows` of a table, `ratings` or `comparisons`, in canonical order."""
    aggregator = Aggregator()
    made = [one for row in rows for one in aggregator.take(table, row)]
    return [row for _, row in (*made, *aggregator.rest())]


def select_first_judgements(rows: list[Row]) -> list[Row]:
    """The first judgement of raters who judged more than once (`r7`, then `r7#2`), as in all tables."""
    from evalapp.stats.agreement.judged import resolve_raters

    people, places = resolve_raters({row["rater"] for row in rows})
    first: dict[str, str] = {}
    for name in sorted(people, key=places.__getitem__):
        first.setdefault(people[name], name)
    return [row for row in rows if row["rater"] == first[people[row["rater"]]]]


def _place(table: str, row: Row) -> tuple[Any, ...]:
    if table == "ratings":
        return tuple(row.get(name) for name in ("item", "system", "step", "dialogue"))
    other = row["system_b"]
    b = other if isinstance(other, str) else tuple(other.items())
    return (row["item"], row["system_a"], row.get("step_a"), b, row.get("step_b"))


def _ratings(aspect: str, rows: list[Row]) -> Row:
    values = [float(row["value"]) for row in rows]
    place: Row = {name: rows[0][name] for name in ("item", "system", "step", "dialogue") if name in rows[0]}
    figures: Row = {
        "n": len(values), "mean": statistics.fmean(values), "median": statistics.median(values),
        "sd": statistics.stdev(values) if len(values) > 1 else None, "low": min(values), "high": max(values),
    }  # fmt: skip
    return {**place, "aspect": aspect, **canonical_values(figures), "simulated": _simulated(rows)}


def _comparisons(aspect: str, rows: list[Row]) -> Row:
    names = ("item", "system_a", "step_a", "system_b", "step_b")
    place = {name: rows[0][name] for name in names if name in rows[0]}
    counts = Counter(row["verdict"] for row in rows)
    figures = {verdict: counts[verdict] for verdict in VERDICTS}
    return {**place, "aspect": aspect, "n": len(rows), **figures, "simulated": _simulated(rows)}


def canonical_values(row: Row) -> Row:
    return {name: canonical(value) for name, value in row.items()}


def _simulated(rows: list[Row]) -> int:
    return sum(bool(row.get("simulated")) for row in rows)
