"""Scores of systems by several metrics, with tests on the same segments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evalapp.stats.core.estimate import Estimate
from evalapp.stats.ranking.paired_systems import SystemComparison, SystemTests, compare_systems
from scoring.ml.base import ARTIFACT, UNKNOWN_WORDS, Evaluator, Floats, Scores
from scoring.ml.errors import NotTrained, ScoringError, UnknownEvaluator
from scoring.ml.registry import catalogue, load
from scoring.ml.score_files.reading import Inputs
from scoring.ml.types import Record

NO_SUMS = "not tested: its score of a system is not computed from sums over segments"


@dataclass(frozen=True, slots=True)
class SystemResult:
    """The score of a system by a metric. `segments` (n,) are the scores of its texts (nan = undefined) where they are
    needed; `components` further means, such as precision; `notes` remarks on its texts."""

    system: str
    estimate: Estimate
    segments: Floats | None = None
    components: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MetricResult:
    """All systems by one metric, in the order given; `label` is the metric as the user wrote it, `metric` its name in
    the catalogue, `comparison` the tests."""

    label: str
    metric: str
    signature: str
    scale: tuple[float | None, float | None]
    systems: tuple[SystemResult, ...]
    comparison: SystemComparison | None = None
    note: str = ""


def load_metric(text: str) -> Evaluator:
    """Return the metric of an argument: a name of the catalogue, an alias or the folder of a saved evaluator, with
    options behind a colon (`chrf:word_order=2,lowercase=yes`). Raises `ScoringError` with similar names."""
    name = text
    options: dict[str, Any] = {}
    if ":" in text and not (Path(text) / ARTIFACT).is_file():
        name, _, given = text.partition(":")
        options = _parse_options(text, given)
    try:
        return load(name, **options)
    except UnknownEvaluator as error:
        raise ScoringError(_explain_unknown(name, error.near)) from error
    except NotTrained as error:
        raise ScoringError(
            f"-m {name}: has to be trained; name the folder of a trained one, which `train` or save_pretrained() wrote"
        ) from error


def _parse_options(text: str, given: str) -> dict[str, str]:
    options = {}
    for part in given.split(","):
        key, equals, value = part.partition("=")
        if not key.strip() or not equals:
            raise ScoringError(f"-m {text}: options are written name:option=value,option=value")
        options[key.strip()] = value.strip()
    return options


def _explain_unknown(name: str, near: Sequence[str]) -> str:
    if "/" in name or Path(name).exists():
        return f"-m {name}: there is no saved evaluator in this folder; it would have a file {ARTIFACT}"
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    names = ", ".join(entry.name for entry in catalogue() if not entry.learns)
    return f"-m {name}: there is no such metric.{hint} Metrics: {names}; or the folder of a saved evaluator"


def check_inputs(metric: Evaluator, argument: str, inputs: Inputs) -> None:
    """Raise `ScoringError` if the files lack something that `metric`, named by `argument`, needs."""
    needs = metric.entry.needs
    if "references" in needs and inputs.references is None:
        raise ScoringError(f"-m {argument}: needs references; add -r FILE")
    if "context" in needs and inputs.sources is None and inputs.contexts is None:
        raise ScoringError(f"-m {argument}: needs the context or source of each segment; add -c FILE or -s FILE")


def score_systems(
    label: str, metric: Evaluator, inputs: Inputs, *, tests: SystemTests | None = None, with_segments: bool = False
) -> MetricResult:
    """Score all systems of the `inputs` by a `metric`, which the user calls `label`; `tests` adds intervals and tests,
    `with_segments` the scores of single texts."""
    systems, statistics = [], []
    for name, records, scores in _evaluate(metric, inputs, with_segments or metric.entry.system_score == "mean"):
        sums = metric.system_statistics(records)
        if sums is None and scores is not None and metric.entry.system_score == "mean":
            sums = _sum_values(scores.values)
        value = metric.score_system(records) if sums is None else float(_from_sums(metric)(sums.sum(axis=0)))
        estimate = Estimate.point(value, len(records))
        systems.append(SystemResult(name, estimate, *_describe(scores), _list_notes(metric, records, scores)))
        statistics.append(sums)
    result = MetricResult(label, metric.name, metric.signature, metric.scale, tuple(systems))
    if tests is None:
        return result
    known = [rows for rows in statistics if rows is not None]
    if len(known) < len(statistics):
        return replace(result, note=NO_SUMS)
    comparison = compare_systems(known, _from_sums(metric), groups=inputs.groups, tests=tests)
    paired = zip(systems, comparison.estimates, strict=True)
    return replace(
        result,
        systems=tuple(replace(system, estimate=estimate) for system, estimate in paired),
        comparison=comparison,
        note=comparison.note,
    )


def _evaluate(
    metric: Evaluator, inputs: Inputs, with_scores: bool
) -> Iterator[tuple[str, list[Record], Scores | None]]:
    """The records of each system, with the scores of its texts."""
    if not with_scores:
        yield from ((name, inputs.make_records(name), None) for name in inputs.systems)
    elif "encoder" in metric.entry.needs and not metric.depends_on_batch:
        # All systems at once: an encoder reads the references once.
        records = {name: inputs.make_records(name) for name in inputs.systems}
        together = metric.evaluate([record for rows in records.values() for record in rows])
        n = inputs.n_segments
        for number, (name, rows) in enumerate(records.items()):
            yield name, rows, _take(together, slice(number * n, (number + 1) * n))
    else:
        for name in inputs.systems:
            rows = inputs.make_records(name)
            yield name, rows, metric.evaluate(rows)


def _take(scores: Scores, part: slice) -> Scores:
    """The scores of a part of the records."""
    return replace(
        scores,
        values=scores.values[part],
        reasons=scores.reasons[part],
        components={name: column[part] for name, column in scores.components.items()},
        truncated=None if scores.truncated is None else scores.truncated[part],
        unknown=None if scores.unknown is None else scores.unknown[part],
    )


def _sum_values(values: Floats) -> Floats:
    defined = ~np.isnan(values)
    return np.column_stack([np.where(defined, values, 0.0), defined])


def _from_sums(metric: Evaluator) -> Callable[[Floats], Floats]:
    return _mean if metric.entry.system_score == "mean" else metric.from_sums


def _mean(sums: Floats) -> Floats:
    n = sums[..., 1]
    return np.divide(sums[..., 0], n, out=np.full(n.shape, np.nan), where=n > 0)


def _describe(scores: Scores | None) -> tuple[Floats | None, dict[str, float]]:
    """The scores of the texts, and the means of their components."""
    if scores is None:
        return None, {}
    means = {name: column[~np.isnan(column)] for name, column in scores.components.items()}
    return scores.values, {name: float(column.mean()) for name, column in means.items() if column.size}


def _list_notes(metric: Evaluator, records: Sequence[Record], scores: Scores | None) -> tuple[str, ...]:
    notes = []
    if n_empty := sum(not record.text.strip() for record in records):
        notes.append(f"{n_empty:,} empty lines count with the worst value")
    if scores is None:
        return (*notes, *metric.remarks, *metric.remarks_on(records))
    for reason, count in Counter(reason for reason in scores.reasons if reason).items():
        notes.append(f"{count:,} lines without a score: {reason}")
    if scores.truncated is not None and scores.truncated.any():
        notes.append(f"{int(scores.truncated.sum()):,} lines are longer than the encoder reads and were cut")
    if scores.n_unknown:
        notes.append(f"{scores.n_unknown:,} {UNKNOWN_WORDS}")
    return (*notes, *scores.remarks)
