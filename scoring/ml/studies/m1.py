"""Scores of systems against Turing M1, the share of judgements that a system is at least as good as the reference.

Explained in docs/explanation/evaluators/studies.md#figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from evalapp.stats.agreement.judged import resolve_raters
from evalapp.stats.correlation.coefficients import spearman
from evalapp.stats.ranking.m1_ratings import compare_with_reference
from evalapp.stats.ranking.systems import rank_by_m1
from evalapp.stats.resampling.bootstrap import DEFAULT_RESAMPLES, Bootstrap, ClusterDraws
from scoring.ml.base import Evaluator, Floats
from scoring.ml.training.record import name_group, score_by_aspect
from scoring.ml.types import Dataset, Record

#: Seed of the resamples, which are the same for all scorers.
SEED = 13
#: Systems that a coefficient needs.
LEAST_SYSTEMS = 3
#: Values of systems (resamples, n) in resampled groups.
_Draws: TypeAlias = Floats


@dataclass(frozen=True)
class ReferenceVerdicts:
    """Verdicts on outputs of `systems` against the reference, one row each: a (better), tie and others, b (worse)."""

    items: tuple[str, ...]
    systems: tuple[str, ...]
    verdicts: tuple[str, ...]


def collect_verdicts(data: Dataset, aspect: str) -> ReferenceVerdicts | None:
    """Return the verdicts of an `aspect` on outputs against the reference: comparisons with a reference, or without any
    the ratings of people who also rated the reference as an output. None if there are neither.

    The reference was rated if a single system has only rated outputs that are references of their items.
    """
    rows = [row for row in data.comparisons if row.aspect == aspect and row.system_b is None]
    if rows:
        return ReferenceVerdicts(
            tuple(row.item for row in rows), tuple(row.system_a for row in rows), tuple(row.verdict for row in rows)
        )
    references = {item.id: set(item.references) for item in data.items}
    texts = {(output.item, output.system): output.text for output in data.outputs if output.step is None}
    people, _places = resolve_raters({row.rater for row in data.ratings})
    rated: dict[tuple[str, str, str], float] = {}
    for row in data.ratings:
        if row.aspect == aspect and row.item and row.system and (row.item, row.system) in texts:
            rated.setdefault((row.item, row.system, people[row.rater]), row.value)
    told = Counter(system for _item, system, _person in rated)
    same = Counter(system for item, system, _person in rated if texts[item, system] in references.get(item, ()))
    (reference, *others) = [system for system in told if told[system] == same[system]] or [""]
    if not reference or others:
        return None
    items, systems, raters = zip(*rated, strict=True)
    found = compare_with_reference(items, systems, raters, list(rated.values()), reference)
    return ReferenceVerdicts(found.items, found.systems, found.verdicts) if found.items else None


def make_order(data: Dataset, aspect: str) -> SystemOrder | None:
    """Return the order of systems by M1 in an `aspect` of the `data`; None without verdicts on enough systems."""
    verdicts = collect_verdicts(data, aspect)
    order = None if verdicts is None else SystemOrder(data, verdicts)
    return order if order is not None and len(order.systems) >= LEAST_SYSTEMS else None


class SystemOrder:
    """The order of the systems in `verdicts` by M1, and in resampled groups of the items of `data`."""

    def __init__(self, data: Dataset, verdicts: ReferenceVerdicts) -> None:
        groups = {item.id: name_group(item.group, item.id) for item in data.items}
        codes = {group: code for code, group in enumerate(sorted(set(groups.values())))}
        self.code = {item: codes[group] for item, group in groups.items()}
        self.n_groups = len(codes)
        there = {output.system for output in data.outputs}
        self.systems = [system for system in sorted(set(verdicts.systems)) if system in there]
        self.ranking = rank_by_m1(
            verdicts.items, verdicts.systems, verdicts.verdicts,
            bootstrap=Bootstrap(cluster=[groups[item] for item in verdicts.items]),
        )  # fmt: skip
        rows = zip(verdicts.items, verdicts.systems, verdicts.verdicts, strict=True)
        judged = {system: np.zeros((self.n_groups, 2)) for system in self.systems}
        for item, system, verdict in rows:
            if system in judged:
                judged[system][self.code[item]] += (verdict != "b", 1)
        self.m1 = self._draw(judged, _divide)

    def correlate(self, scorer: Evaluator, systems: Mapping[str, Sequence[Record]], aspect: str) -> list[float | None]:
        """Return Spearman's coefficient of the scores of `systems` by a `scorer` with M1, and after it the coefficient
        in every resample of groups; None where it is undefined."""
        sums: dict[str, Floats] = {}
        combine: Callable[[Floats], Floats] = _divide
        for system in self.systems:
            statistics, combine = _measure(scorer, systems[system], aspect)
            total = np.zeros((self.n_groups, statistics.shape[1]))
            np.add.at(total, [self.code[record.item] for record in systems[system]], statistics)
            sums[system] = total
        values = self._draw(sums, combine)
        found = [spearman(own, m1).value for own, m1 in zip(values, self.m1, strict=True)]
        return [round(value, 6) if math.isfinite(value) else None for value in found]

    def _draw(self, sums: Mapping[str, Floats], combine: Callable[[Floats], Floats]) -> _Draws:
        """Values of the systems (1 + resamples, n) from their sums by group (n_groups, k); the first ones are those of
        all groups."""
        counts = ClusterDraws(self.n_groups, SEED).take(DEFAULT_RESAMPLES)
        counts = np.concatenate([np.ones((self.n_groups, 1)), counts], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.stack([combine(counts.T @ sums[system]) for system in self.systems], axis=1)


def _measure(scorer: Evaluator, records: Sequence[Record], aspect: str) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Statistics of texts (n, k), and the function that makes the score of a system from their sums."""
    statistics = scorer.system_statistics(records)
    if statistics is not None:
        return statistics, scorer.from_sums
    values = score_by_aspect(scorer, {aspect: list(records)}, None)[aspect]
    known = np.isfinite(values)
    return np.stack([np.where(known, values, 0.0), known.astype(np.float64)], axis=1), _divide


def _divide(sums: Floats) -> Floats:
    return np.asarray(sums[..., 0] / sums[..., 1])
