"""The result of `evalapp score` as a table for the console, as JSON and as LaTeX."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evalapp.markup import escape_latex, join_latex, show_hidden
from evalapp.stats.ranking.paired_systems import SystemTests
from scoring.ml.score_files.compute import MetricResult, SystemResult
from scoring.ml.signature import VERSION

# A metric on 0 to 100 is shown with 2 digits, others with 4.
_LARGE = 10.0


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is shown: metrics with their systems. `notes` are remarks on the files."""

    results: tuple[MetricResult, ...]
    n_segments: int
    n_references: int
    #: None: the segments are not grouped.
    n_groups: int | None = None
    tests: SystemTests | None = None
    notes: tuple[str, ...] = ()
    #: Digits behind the point; None: by the scale of each metric.
    digits: int | None = None

    @property
    def systems(self) -> list[str]:
        """The names of the systems."""
        return [system.system for system in self.results[0].systems]

    @property
    def test_line(self) -> str:
        """The tests and intervals in one sentence; "" without any."""
        compared = next((result.comparison for result in self.results if result.comparison), None)
        if compared is None or self.tests is None:
            return ""
        units = f"{self.n_segments:,} segments"
        if self.n_groups is not None:
            units = f"{self.n_groups:,} groups of {units}"
        drawn = f"{compared.k:,} resamples of {units}, seed {self.tests.seed}"
        intervals = f"95 % intervals from {drawn}"
        if self.tests.test is None:
            return intervals
        drawn = "the same resamples" if self.tests.test == "bootstrap" else f"{compared.k:,} exchanges"
        n_pairs = len(self.systems) * (len(self.systems) - 1) // 2
        adjusted = f", adjusted by Holm over {n_pairs} pairs" if n_pairs > 1 else ""
        return (
            f"{intervals}. p: paired {self.tests.test} test against {self.systems[0]}, {drawn}{adjusted}. "
            f"Systems that share a letter are not significantly different ({self.tests.alpha:g})."
        )

    def list_notes(self) -> list[str]:
        """All remarks, each once, with the metric or system that it is about."""
        notes = [*self.notes]
        for result in self.results:
            notes += [f"{result.label}: {result.note}"] if result.note else []
            notes += [system.estimate.note for system in result.systems if system.estimate.note]
            notes += [f"{result.label}: {system.system}: {note}" for system in result.systems for note in system.notes]
        return list(dict.fromkeys(notes))


def as_json(report: Report) -> dict[str, Any]:
    """Return the report as plain values; nan becomes None. Segment scores are there if they were asked for."""
    tests = report.tests
    return {
        "version": VERSION,
        "segments": report.n_segments,
        "references": report.n_references,
        "groups": report.n_groups,
        "systems": report.systems,
        "metrics": [_metric_as_json(result) for result in report.results],
        "test": None if tests is None else {
            "test": tests.test, "draws": tests.count_draws(len(report.systems)), "seed": tests.seed,
            "alpha": tests.alpha, "adjust": "holm",
        },
        "notes": report.list_notes(),
    }  # fmt: skip


def _metric_as_json(result: MetricResult) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": result.label,
        "metric": result.metric,
        "signature": result.signature,
        "systems": [_system_as_json(system) for system in result.systems],
    }
    if (compared := result.comparison) is not None:
        names = [system.system for system in result.systems]
        for row, letters in zip(found["systems"], compared.letters, strict=True):
            row["letters"] = letters
        found["pairs"] = [
            {
                "a": names[one], "b": names[two],
                "difference": _finite(result.systems[one].estimate.value - result.systems[two].estimate.value),
                "p": _finite(compared.p[one, two]), "p_holm": _finite(compared.p_holm[one, two]),
            }
            for one in range(len(names)) for two in range(one + 1, len(names))
        ]  # fmt: skip
    return found


def _system_as_json(system: SystemResult) -> dict[str, Any]:
    estimate = system.estimate
    row: dict[str, Any] = {
        "system": system.system,
        "score": _finite(estimate.value),
        "low": _finite(estimate.low),
        "high": _finite(estimate.high),
        "note": estimate.note,
    }
    if system.components:
        row["components"] = {name: _finite(value) for name, value in system.components.items()}
    if system.segments is not None:
        row["segments"] = [_finite(value) for value in system.segments.tolist()]
    return row


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def as_text(report: Report) -> str:
    """Return an aligned table, then the signatures and the sentence on the tests."""
    head = ["system", *(result.label for result in report.results)]
    rows = [
        [show_hidden(name), *(_cell(result, place, report) for result in report.results)]
        for place, name in enumerate(report.systems)
    ]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]]
    below = [result.signature for result in report.results]
    return "\n".join([*(line.rstrip() for line in lines), "", *below, *filter(None, [report.test_line])]) + "\n"


def _cell(result: MetricResult, place: int, report: Report) -> str:
    estimate, digits = result.systems[place].estimate, _count_digits(result, report)
    parts = [_format(estimate.value, digits)]
    if estimate.has_interval:
        parts.append(f"[{_format(estimate.low, digits)}, {_format(estimate.high, digits)}]")
    if compared := result.comparison:
        parts += [compared.letters[place]] if compared.letters[place] else []
        parts += [_format_p(compared.p_holm[0, place])] if place and not math.isnan(compared.p_holm[0, place]) else []
    return " ".join(parts)


def as_latex(report: Report) -> str:
    """Return a table for booktabs, letters as exponents, with signatures as comments."""
    head = ["system", *(escape_latex(result.label) for result in report.results)]
    lines = [f"% {result.signature}" for result in report.results]
    lines += [f"% {line}" for line in [report.test_line, *report.list_notes()] if line]
    lines += [
        rf"\begin{{tabular}}{{l{'r' * len(report.results)}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
    ]
    for place, name in enumerate(report.systems):
        cells = [escape_latex(name), *(_latex_cell(result, place, report) for result in report.results)]
        lines.append(" & ".join(cells) + r" \\")
    return join_latex([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(result: MetricResult, place: int, report: Report) -> str:
    estimate, digits = result.systems[place].estimate, _count_digits(result, report)
    if not estimate.is_defined:
        return "--"
    letters = result.comparison.letters[place] if result.comparison else ""
    value = f"${_format(estimate.value, digits)}" + (f"^{{{letters}}}$" if letters else "$")
    if not estimate.has_interval:
        return value
    return f"{value} {{\\small $[{_format(estimate.low, digits)}, {_format(estimate.high, digits)}]$}}"


def segment_lines(report: Report) -> Iterator[str]:
    """Yield the lines of a table of tab-separated values: a row per segment and system, a column per metric."""
    yield "\t".join(["segment", "system", *(result.label for result in report.results)])
    for place, name in enumerate(report.systems):
        columns: list[Sequence[float]] = []
        for result in report.results:
            segments = result.systems[place].segments
            columns.append([] if segments is None else segments.tolist())
        for number, values in enumerate(zip(*columns, strict=True), start=1):
            yield "\t".join([str(number), show_hidden(name), *(repr(v) if math.isfinite(v) else "" for v in values)])


def _count_digits(result: MetricResult, report: Report) -> int:
    if report.digits is not None:
        return report.digits
    low, high = result.scale
    return 2 if any(end is not None and abs(end) >= _LARGE for end in (low, high)) else 4


def _format(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def _format_p(p: float) -> str:
    return f"p={p:.3f}" if p >= 0.001 else "p<0.001"
