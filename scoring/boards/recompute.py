"""The tables of an export computed again from its files alone, and compared with what the export says:
`python -m evalapp.stats.recompute FOLDER`. No web program, no database."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalapp import __version__
from evalapp.markup import show_hidden
from evalapp.side_figures import FAILED
from evalapp.versions import read_entry, split_version
from scoring.boards.base import Table
from scoring.boards.data.files import ExportFolder, FolderError
from scoring.boards.data.folder import Entry, compute_entry
from scoring.boards.kept_tables import fault_of_list, fault_of_table
from scoring.boards.metrics.people import COEFFICIENTS
from scoring.boards.shapes import Fault

#: Numbers that differ by less than this (of the larger, if that is above 1) are equal: rater ids in an export may stand
#: in another order, and a sum in another order differs in its last bits.
TOLERANCE = 1e-9
#: What a table tells without computing it.
_TOLD = frozenset({"project", "lang", "filter", "sets"})
#: The same of a table or a row of it: which scores were out of date, seen by uploads that no export tells of, and which
#: figures could not be computed.
_STATE = frozenset({"stale", "n_unscored", "failed"})
#: Differences told of one table.
_MOST_TOLD = 5


@dataclass(frozen=True)
class Difference:
    """Where in a table, what the export says, what was found."""

    where: str
    kept: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.where}: the export says {_shown(self.kept)}, recomputed {_shown(self.found)}"


@dataclass(frozen=True)
class Outcome:
    """One table: recomputed (None where that cannot be, `problem` says why), and how it differs from the export."""

    title: str
    kept: Table
    found: Table | None
    differences: list[Difference] = field(default_factory=list)
    n_numbers: int = 0
    largest: float = 0.0
    problem: str = ""
    #: Figures that failed when the export was written, and where the table lacks them.
    failed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    #: The version that computed what the export says.
    version: str = __version__

    @property
    def is_equal(self) -> bool:
        return self.found is not None and not self.differences


def recompute_folder(path: Path, *, overrides: Mapping[str, Any] | None = None) -> list[Outcome]:
    """Every table of the export's `leaderboard.json`. `overrides` (seed, resamples) replace what the tables were
    computed with. Raises `FolderError` where there is nothing to recompute."""
    folder = ExportFolder(path)
    document = folder.document("leaderboard.json")
    fault = fault_of_list(document)
    if fault is not None:
        raise FolderError("leaderboard.json", " ".join(fault))
    outcomes = []
    for place, entry in enumerate(document["tables"]):
        fault = fault_of_table(entry, place, to_compute=True)
        found = recompute_entry(folder, entry, overrides or {}) if fault is None else _not_one(place, entry, fault)
        outcomes.append(found)
    return outcomes


def _not_one(place: int, entry: Any, fault: Fault) -> Outcome:
    """What is no table, or of a kind that this version does not know: nothing of its content is relied upon."""
    kind = entry.get("kind") if isinstance(entry, dict) else None
    title = f"tables[{place}]" + (f", {kind[:50]}" if isinstance(kind, str) else "")
    return Outcome(title, {}, None, problem=" ".join(fault))


def recompute_entry(folder: ExportFolder, entry: Entry, overrides: Mapping[str, Any]) -> Outcome:
    """One table. What is missing in the folder is told in `problem`, not raised."""
    entry = read_entry(entry)
    kept = dict(entry["table"])
    bare, version = split_version(str(kept.get("signature", "")))
    kept |= {"signature": bare} if "signature" in kept else {}
    title = describe(kept)
    try:
        found = json.loads(json.dumps(compute_entry(folder, entry, overrides)))
    except ValueError as error:  # `FolderError`, or what the statistics say of columns and settings
        return Outcome(title, kept, None, problem=str(error))
    except LookupError as error:
        problem = folder.lost("outputs") or f"{error} is not found in the files of the folder"
        return Outcome(title, kept, None, problem=problem)
    if kept.get("filter"):
        found["signature"] += f"|filter:{kept['filter']['name']}@{kept['filter']['digest']}"
    failed = tuple(map(str, kept.get("failed") or ()))
    comparison = _Comparison(incomplete=bool(failed))
    told = {name: value for name, value in kept.items() if name not in _TOLD}
    comparison.walk("", without_filler(told), without_filler(found))
    numbers = comparison.n_numbers, comparison.largest
    missing = tuple(comparison.missing)
    return Outcome(
        title, kept, found, comparison.differences, *numbers, version=version, failed=failed, missing=missing
    )


def without_filler(table: Table) -> Table:
    """The table without p below the diagonal, where no test is; versions before 0.2.0 wrote 1 there."""
    test = table.get("test")
    if not isinstance(test, dict) or not test.get("p_holm"):
        return table
    upper = [[None if column <= row else p for column, p in enumerate(line)] for row, line in enumerate(test["p_holm"])]
    return {**table, "test": {**test, "p_holm": upper}}


# ---- comparing --------------------------------------------------------------------------------------------------


class _Comparison:
    """Walks two tables side by side. What the recomputed one has beside what the export says is no difference. Where
    the export is `incomplete`, because figures of the table had failed, the places without a value are `missing`."""

    def __init__(self, *, incomplete: bool = False) -> None:
        self.incomplete = incomplete
        self.missing: list[str] = []
        self.differences: list[Difference] = []
        self.n_numbers = 0
        self.largest = 0.0

    def walk(self, where: str, kept: Any, found: Any) -> None:
        if self.incomplete and kept != found and _is_without(kept, found):
            self.missing.append(where)
        elif isinstance(kept, dict) and isinstance(found, dict):
            for name in (name for name in kept if name not in _STATE):
                self.walk(f"{where}.{name}" if where else name, kept[name], found.get(name))
        elif isinstance(kept, list) and isinstance(found, list):
            if len(kept) != len(found):
                self.differences.append(Difference(f"{where} (rows)", len(kept), len(found)))
            for place, (one, two) in enumerate(zip(kept, found, strict=False)):
                self.walk(f"{where}[{_name(one, place)}]", one, two)
        elif _is_number(kept) and _is_number(found):
            self._number(where, float(kept), float(found))
        elif kept != found:
            self.differences.append(Difference(where, kept, found))

    def _number(self, where: str, kept: float, found: float) -> None:
        self.n_numbers += 1
        gap = abs(kept - found)
        self.largest = max(self.largest, gap)
        if not gap <= TOLERANCE * max(1.0, abs(kept), abs(found)):  # nan is near nothing
            self.differences.append(Difference(where, kept, found))


def _is_without(kept: Any, found: Any) -> bool:
    """Whether `kept` is what a table has in the place of a figure that failed: nothing, the note that says so, findings
    that lack some, or the signature of a table without the tests."""
    if kept is None or kept == FAILED or (isinstance(kept, str | list | dict) and not kept):
        return True
    if isinstance(kept, dict):
        return bool(kept.get("note") == FAILED)
    if isinstance(kept, list) and isinstance(found, list) and all(isinstance(one, str) for one in kept):
        return _is_part(kept, found)
    if isinstance(kept, str) and isinstance(found, str) and "|test:none" in kept:
        return _is_part(kept.replace("|test:none", "").split("|"), found.split("|"))
    return False


def _is_part(part: Sequence[str], whole: Sequence[Any]) -> bool:
    """Whether all of `part` is in `whole`, in this order."""
    rest = iter(whole)
    return all(one in rest for one in part)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name(row: Any, place: int) -> str:
    if isinstance(row, dict):
        return str(row.get("label") or row.get("evaluator") or place)
    return str(place)


# ---- printing ---------------------------------------------------------------------------------------------------


def describe(table: Mapping[str, Any]) -> str:
    """One line that names a table."""
    parts = [str(table.get("kind", "table")), str(table.get("aspect", ""))]
    parts += [str(table[name]) for name in ("method", "level", "grouping", "references", "by") if table.get(name)]
    parts += [f"{name} {table[name]}" for name in ("ratings", "systems") if table.get(name)]
    if table.get("filter"):
        parts.append(f"filter {table['filter']['name']}")
    return ", ".join(part for part in parts if part)


def lines_of(outcome: Outcome) -> Iterator[str]:
    """What is printed of one table: its rows as recomputed, then the verdict."""
    yield outcome.title
    for row in (outcome.found or outcome.kept).get("rows", []):
        if isinstance(row, dict):
            yield from _row_lines(row)
    if outcome.problem:
        yield f"  not recomputed: {outcome.problem}"
    elif outcome.is_equal:
        yield f"  equal: {outcome.n_numbers} numbers"
        yield from _missing_lines(outcome)
    else:
        of_version = f" (computed by version {outcome.version}, here {__version__})"
        told = of_version if outcome.version != __version__ else ""
        yield f"  DIFFERENT in {len(outcome.differences)} places{told}"
        for difference in outcome.differences[:_MOST_TOLD]:
            yield f"    {difference}"
        yield from _missing_lines(outcome)


def _missing_lines(outcome: Outcome) -> Iterator[str]:
    if outcome.failed:
        yield f"  missing in the export, where an internal error stopped their computation: {'; '.join(outcome.failed)}"
        more = ", ..." if len(outcome.missing) > _MOST_TOLD else ""
        if outcome.missing:
            yield f"    recomputed here: {', '.join(outcome.missing[:_MOST_TOLD])}{more}"


def _row_lines(row: Mapping[str, Any]) -> Iterator[str]:
    if "label" in row and "value" in row:
        yield f"  {_place(row):>5}  {row['label']:<32} {_interval(row)}"
    elif "evaluator" in row and "pearson" in row:
        figures = "  ".join(f"{name} {_interval(row[name])}" for name in COEFFICIENTS if name in row)
        yield f"  {row['evaluator']:<24} {figures}"
    elif "evaluator" in row and "cells" in row:
        cells = "  ".join(_cells(row["cells"]))
        yield f"  {row['evaluator']:<24} {cells}"
    else:
        yield from _coefficient_lines(row)


def _place(row: Mapping[str, Any]) -> str:
    """`1`, or `1-3` where the rank is not certain, as the tables show it; a dash for a system without a rank."""
    low, high = row.get("rank_low"), row.get("rank_high")
    if row.get("rank") is None:
        return "-"
    return str(row["rank"]) if low is None or low == high else f"{low}-{high}"


def _cells(cells: Any) -> Iterator[str]:
    """By reference set; or in the order of a table's parts, evaluators or aspects, of which a part has two figures."""
    if isinstance(cells, dict):
        yield from (f"{name} {_interval(cell['pearson'])}" for name, cell in cells.items())
    else:
        yield from ("-" if cell is None else _interval(cell.get("shrunken", cell)) for cell in cells)


def _coefficient_lines(row: Mapping[str, Any]) -> Iterator[str]:
    if "coefficients" in row:
        figures = "  ".join(f"{one['name']} {_interval(one)}" for one in row["coefficients"])
        yield f"  {row['aspect']:<24} {row['judged']}: {figures}"
    elif "name" in row and "value" in row:
        yield f"  {row['name']:<24} {_interval(row)}"


def _interval(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return "-"
    if estimate.get("low") is None or estimate.get("high") is None:
        return f"{estimate['value']:.4f}"
    return f"{estimate['value']:.4f} [{estimate['low']:.4f}, {estimate['high']:.4f}]"


def _shown(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def _as_json(outcome: Outcome) -> Table:
    return {
        "table": outcome.title,
        "equal": outcome.is_equal,
        "version": outcome.version,
        "problem": outcome.problem,
        "numbers": outcome.n_numbers,
        "largest_difference": outcome.largest,
        "failed": list(outcome.failed),
        "missing": list(outcome.missing),
        "differences": [{"where": d.where, "kept": d.kept, "found": d.found} for d in outcome.differences],
        "recomputed": outcome.found,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """0 all equal, 1 a table differs or cannot be recomputed, 2 wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m evalapp.stats.recompute",
        description="Compute the tables of an exported project again from its files, and compare.",
    )
    parser.add_argument("folder", type=Path, help="what `manage.py dump` wrote, or an unpacked export")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seed", type=int, help="draw resamples from another seed: intervals move, values do not")
    parser.add_argument("--resamples", type=int, help="draw another number of resamples")
    wishes = parser.parse_args(arguments)
    overrides = {name: getattr(wishes, name) for name in ("seed", "resamples") if getattr(wishes, name) is not None}
    try:
        outcomes = recompute_folder(wishes.folder, overrides=overrides)
    except FolderError as error:
        print(error, file=sys.stderr)
        return 1
    n_equal = sum(outcome.is_equal for outcome in outcomes)
    if wishes.json:
        tables = [_as_json(outcome) for outcome in outcomes]
        print(json.dumps({"tables": tables, "n_tables": len(outcomes), "n_equal": n_equal}, ensure_ascii=False))
    else:
        for outcome in outcomes:
            print("\n".join(map(show_hidden, lines_of(outcome))))
        n_failed = sum(bool(outcome.failed) for outcome in outcomes)
        verdict = "all equal" if n_equal == len(outcomes) else f"{len(outcomes) - n_equal} NOT equal"
        lacking = f"; {n_failed} lack figures that failed when the export was written" if n_failed else ""
        print(f"{len(outcomes)} tables: {verdict}{lacking}.")
    return 0 if n_equal == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
