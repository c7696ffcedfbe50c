"""Recompute the tables of an export from its files and compare them with the exported ones, without Django.

python -m evalapp.stats.recompute FOLDER
"""

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
from scoring.boards.judge_values import JudgeScores, compute_judge_scores
from scoring.boards.leaderboard_file import find_document_fault, find_table_fault
from scoring.boards.metrics.people import COEFFICIENTS
from scoring.boards.shapes import Fault
from scoring.ml.score_files.command import read_resamples, read_seed

#: Largest relative difference of equal numbers. Rater ids in an export may sort differently, and a sum in another order
#: differs in its last bits.
TOLERANCE = 1e-9
#: Members of a table that say where it was computed, and are not recomputed.
ORIGIN = frozenset({"project", "lang", "filter", "sets"})
#: Members that depend on the database at that moment: outdated scores and figures that failed.
STATE = frozenset({"stale", "n_unscored", "failed"})
#: Sentences for the reader. Their wording may change between versions; the figures they mention are compared elsewhere.
NOTES = frozenset(
    {
        "note",
        "notes",
        "counted",
        "findings",
        "coverage",
        "population",
        "changed",
        "message",
        "label",
        "calibration_note",
    }
)
MAX_DIFFERENCES = 5


@dataclass(frozen=True)
class Difference:
    """A place in a table with its exported and its recomputed value."""

    where: str
    exported: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.where}: the export says {_format(self.exported)}, recomputed {_format(self.recomputed)}"


@dataclass(frozen=True)
class Outcome:
    """A table and how it differs from the export. `recomputed` is None if that is impossible; `problem` says why.

    `failed` are figures that an error had left out of the export, `missing` their places in the table. `version` is
    the version that computed the export.
    """

    title: str
    exported: Table
    recomputed: Table | None
    differences: list[Difference] = field(default_factory=list)
    n_numbers: int = 0
    largest: float = 0.0
    problem: str = ""
    failed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    version: str = __version__

    @property
    def is_equal(self) -> bool:
        return self.recomputed is not None and not self.differences


def recompute_folder(path: Path, *, overrides: Mapping[str, Any] | None = None) -> list[Outcome]:
    """Recompute every table of the folder's `leaderboard.json`, and the scores of judges from their raw answers.

    `overrides` replace the `seed` and `resamples` of the tables. Raises `FolderError` if there is nothing to recompute.
    """
    folder = ExportFolder(path)
    document = folder.document("leaderboard.json")
    fault = find_document_fault(document)
    if fault is not None:
        raise FolderError("leaderboard.json", " ".join(fault))
    outcomes = []
    for place, entry in enumerate(document["tables"]):
        fault = find_table_fault(entry, place, to_compute=True)
        outcome = recompute_entry(folder, entry, overrides or {}) if fault is None else _refuse(place, entry, fault)
        outcomes.append(outcome)
    return outcomes + [_compare_scores(scores) for scores in compute_judge_scores(folder)]


def _compare_scores(scores: JudgeScores) -> Outcome:
    comparison = _Comparison()
    comparison.walk("", scores.exported, scores.recomputed)
    return Outcome(
        scores.title, {"scores": scores.exported}, {"scores": scores.recomputed}, comparison.differences,
        comparison.n_numbers, comparison.largest,
    )  # fmt: skip


def _refuse(place: int, entry: Any, fault: Fault) -> Outcome:
    kind = entry.get("kind") if isinstance(entry, dict) else None
    title = f"tables[{place}]" + (f", {kind[:50]}" if isinstance(kind, str) else "")
    return Outcome(title, {}, None, problem=" ".join(fault))


def recompute_entry(folder: ExportFolder, entry: Entry, overrides: Mapping[str, Any]) -> Outcome:
    """Recompute one table. Data that the folder lacks are reported in `problem`, not raised."""
    entry = read_entry(entry)
    exported = dict(entry["table"])
    bare, version = split_version(str(exported.get("signature", "")))
    exported |= {"signature": bare} if "signature" in exported else {}
    title = describe(exported)
    try:
        recomputed = json.loads(json.dumps(compute_entry(folder, entry, overrides)))
    except ValueError as error:  # `FolderError`, or an error of the statistics about columns and settings
        return Outcome(title, exported, None, problem=str(error))
    except LookupError as error:
        problem = folder.lost("outputs") or f"{error} is not found in the files of the folder"
        return Outcome(title, exported, None, problem=problem)
    if exported.get("filter"):
        recomputed["signature"] += f"|filter:{exported['filter']['name']}@{exported['filter']['digest']}"
    failed = tuple(map(str, exported.get("failed") or ()))
    comparison = _Comparison(is_incomplete=bool(failed), has_same_texts=version == __version__)
    figures = {name: value for name, value in exported.items() if name not in ORIGIN}
    comparison.walk("", drop_untested(figures), drop_untested(recomputed))
    return Outcome(
        title, exported, recomputed, comparison.differences, comparison.n_numbers, comparison.largest,
        version=version, failed=failed, missing=tuple(comparison.missing),
    )  # fmt: skip


def drop_untested(table: Table) -> Table:
    """Remove p-values on and below the diagonal, where nothing is tested; versions before 0.2.0 wrote 1 there."""
    test = table.get("test")
    if not isinstance(test, dict) or not test.get("p_holm"):
        return table
    upper = [[None if column <= row else p for column, p in enumerate(line)] for row, line in enumerate(test["p_holm"])]
    return {**table, "test": {**test, "p_holm": upper}}


class _Comparison:
    """Compares two tables recursively. Members that only the recomputed table has are no difference.

    If the export `is_incomplete`, because figures had failed, places without a value are `missing`. Sentences are
    compared only if both tables are by the same version (`has_same_texts`).
    """

    def __init__(self, *, is_incomplete: bool = False, has_same_texts: bool = True) -> None:
        self.is_incomplete = is_incomplete
        self.skipped = STATE if has_same_texts else STATE | NOTES
        self.missing: list[str] = []
        self.differences: list[Difference] = []
        self.n_numbers = 0
        self.largest = 0.0

    def walk(self, where: str, exported: Any, recomputed: Any) -> None:
        if self.is_incomplete and exported != recomputed and _lacks_figure(exported, recomputed):
            self.missing.append(where)
        elif isinstance(exported, dict) and isinstance(recomputed, dict):
            for name in (name for name in exported if name not in self.skipped):
                self.walk(f"{where}.{name}" if where else name, exported[name], recomputed.get(name))
        elif isinstance(exported, list) and isinstance(recomputed, list):
            if len(exported) != len(recomputed):
                self.differences.append(Difference(f"{where} (rows)", len(exported), len(recomputed)))
            for place, (one, two) in enumerate(zip(exported, recomputed, strict=False)):
                self.walk(f"{where}[{_name_row(one, place)}]", one, two)
        elif _is_number(exported) and _is_number(recomputed):
            self._compare_numbers(where, float(exported), float(recomputed))
        elif exported != recomputed:
            self.differences.append(Difference(where, exported, recomputed))

    def _compare_numbers(self, where: str, exported: float, recomputed: float) -> None:
        self.n_numbers += 1
        gap = abs(exported - recomputed)
        self.largest = max(self.largest, gap)
        if not gap <= TOLERANCE * max(1.0, abs(exported), abs(recomputed)):  # true for nan
            self.differences.append(Difference(where, exported, recomputed))


def _lacks_figure(exported: Any, recomputed: Any) -> bool:
    """Whether the exported value is what a table has in place of a figure that failed: nothing, the note that says so,
    a shorter list of findings, or a signature without tests."""
    if exported is None or exported == FAILED or (isinstance(exported, str | list | dict) and not exported):
        return True
    if isinstance(exported, dict):
        return bool(exported.get("note") == FAILED)
    if isinstance(exported, list) and isinstance(recomputed, list) and all(isinstance(one, str) for one in exported):
        return _is_subsequence(exported, recomputed)
    if isinstance(exported, str) and isinstance(recomputed, str) and "|test:none" in exported:
        return _is_subsequence(exported.replace("|test:none", "").split("|"), recomputed.split("|"))
    return False


def _is_subsequence(part: Sequence[str], whole: Sequence[Any]) -> bool:
    rest = iter(whole)
    return all(one in rest for one in part)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name_row(row: Any, place: int) -> str:
    return str(row.get("label") or row.get("evaluator") or place) if isinstance(row, dict) else str(place)


# ---- printing ---------------------------------------------------------------------------------------------------


def describe(table: Mapping[str, Any]) -> str:
    """One line that names a table."""
    parts = [str(table.get("kind", "table")), str(table.get("aspect", ""))]
    parts += [str(table[name]) for name in ("method", "level", "grouping", "references", "by") if table.get(name)]
    parts += [f"{name} {table[name]}" for name in ("ratings", "systems") if table.get(name)]
    if table.get("filter"):
        parts.append(f"filter {table['filter']['name']}")
    return ", ".join(part for part in parts if part)


def write_lines(outcome: Outcome) -> Iterator[str]:
    """Yield the lines printed for a table: its recomputed rows, then the verdict."""
    yield outcome.title
    for row in (outcome.recomputed or outcome.exported).get("rows", []):
        if isinstance(row, dict):
            yield from _write_row(row)
    if outcome.problem:
        yield f"  not recomputed: {outcome.problem}"
    elif outcome.is_equal:
        yield f"  equal: {outcome.n_numbers} numbers"
        yield from _write_missing(outcome)
    else:
        versions = f" (computed by version {outcome.version}, here {__version__})"
        suffix = versions if outcome.version != __version__ else ""
        yield f"  DIFFERENT in {len(outcome.differences)} places{suffix}"
        for difference in outcome.differences[:MAX_DIFFERENCES]:
            yield f"    {difference}"
        yield from _write_missing(outcome)


def _write_missing(outcome: Outcome) -> Iterator[str]:
    if outcome.failed:
        yield f"  missing in the export because of an internal error: {'; '.join(outcome.failed)}"
        more = ", ..." if len(outcome.missing) > MAX_DIFFERENCES else ""
        if outcome.missing:
            yield f"    recomputed here: {', '.join(outcome.missing[:MAX_DIFFERENCES])}{more}"


def _write_row(row: Mapping[str, Any]) -> Iterator[str]:
    if "label" in row and "value" in row:
        yield f"  {_format_rank(row):>5}  {row['label']:<32} {_format_interval(row)}"
    elif "evaluator" in row and "pearson" in row:
        figures = "  ".join(f"{name} {_format_interval(row[name])}" for name in COEFFICIENTS if name in row)
        yield f"  {row['evaluator']:<24} {figures}"
    elif "evaluator" in row and "cells" in row:
        cells = "  ".join(_format_cells(row["cells"]))
        yield f"  {row['evaluator']:<24} {cells}"
    else:
        yield from _write_coefficients(row)


def _format_rank(row: Mapping[str, Any]) -> str:
    """Format the rank as tables do: `1`, `1-3` for a range, a dash without a rank."""
    low, high = row.get("rank_low"), row.get("rank_high")
    if row.get("rank") is None:
        return "-"
    return str(row["rank"]) if low is None or low == high else f"{low}-{high}"


def _format_cells(cells: Any) -> Iterator[str]:
    if isinstance(cells, dict):
        yield from (f"{name} {_format_interval(cell['pearson'])}" for name, cell in cells.items())
    else:
        yield from ("-" if cell is None else _format_interval(cell.get("shrunken", cell)) for cell in cells)


def _write_coefficients(row: Mapping[str, Any]) -> Iterator[str]:
    if "coefficients" in row:
        figures = "  ".join(f"{one['name']} {_format_interval(one)}" for one in row["coefficients"])
        yield f"  {row['aspect']:<24} {row['judged']}: {figures}"
    elif "name" in row and "value" in row:
        yield f"  {row['name']:<24} {_format_interval(row)}"


def _format_interval(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return "-"
    if estimate.get("low") is None or estimate.get("high") is None:
        return f"{estimate['value']:.4f}"
    return f"{estimate['value']:.4f} [{estimate['low']:.4f}, {estimate['high']:.4f}]"


def _format(value: Any) -> str:
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
        "differences": [{"where": d.where, "kept": d.exported, "found": d.recomputed} for d in outcome.differences],
        "recomputed": outcome.recomputed,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if all tables are equal, 1 if one differs or cannot be recomputed, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m evalapp.stats.recompute",
        description="Recompute the tables of an exported project from its files, and compare.",
    )
    parser.add_argument("folder", type=Path, help="a folder written by `evalapp dump`, or an unpacked export")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seed", type=read_seed, help="another seed for resamples: intervals change, values do not")
    parser.add_argument("--resamples", type=read_resamples, help="another number of resamples")
    options = parser.parse_args(arguments)
    overrides = {name: getattr(options, name) for name in ("seed", "resamples") if getattr(options, name) is not None}
    try:
        outcomes = recompute_folder(options.folder, overrides=overrides)
    except FolderError as error:
        print(error, file=sys.stderr)
        return 1
    n_equal = sum(outcome.is_equal for outcome in outcomes)
    if options.json:
        tables = [_as_json(outcome) for outcome in outcomes]
        print(json.dumps({"tables": tables, "n_tables": len(outcomes), "n_equal": n_equal}, ensure_ascii=False))
    else:
        for outcome in outcomes:
            print("\n".join(map(show_hidden, write_lines(outcome))))
        n_failed = sum(bool(outcome.failed) for outcome in outcomes)
        verdict = "all equal" if n_equal == len(outcomes) else f"{len(outcomes) - n_equal} NOT equal"
        incomplete = f"; {n_failed} lack figures that had failed in the export" if n_failed else ""
        print(f"{len(outcomes)} tables: {verdict}{incomplete}.")
    return 0 if n_equal == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
