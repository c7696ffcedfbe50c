"""The selection report: which checkpoint or variant would each evaluator pick, and how do people judge these picks?

After the paper's table on early stopping and hyper-parameters (Zhou and Xu 2020). Scores come from evaluators,
people's opinion from ratings or comparisons; nothing is trained here.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import stats

from evalapp.stats.core.estimate import Estimate
from evalapp.stats.planning.stopping import PREVIOUS, Check, early_stop, from_either_side
from evalapp.stats.ranking.glicko2 import TieRule
from evalapp.stats.ranking.skill import VerdictTable, rank_by_games
from scoring.ml.base import Evaluator
from scoring.ml.errors import ScoringError
from scoring.ml.training.gold import collect_compared_pairs, collect_rated_outputs, output_key
from scoring.ml.training.record import name_group
from scoring.ml.types import Dataset, Record

Kind: TypeAlias = Literal["steps", "variants"]
Judged: TypeAlias = Literal["ratings", "comparisons"]
#: Called after every piece of work with the numbers of finished and of all choices.
Tick: TypeAlias = Callable[[int, int], object]
#: The paper made ten runs of each kind.
RUNS = 10
#: The key in a system's meta that names the architecture it is a variant of.
VARIANT_OF = "variant_of"
_SEEDS = 100
_Outputs: TypeAlias = dict[str, dict[str, Record]]


class SelectionError(ScoringError):
    """Data without anything to choose from, or without human judgements of it."""


@dataclass(frozen=True)
class Choice:
    """A choice between candidates (steps as texts, or systems) with one output per item each."""

    name: str
    kind: Kind
    candidates: tuple[str, ...]
    outputs: Mapping[str, Mapping[str, Record]]


@dataclass(frozen=True)
class Pick:
    """An evaluator's pick in one run of a choice, its human score, and the best candidate with its human score."""

    choice: str
    run: int
    picked: str
    human: float
    best: str
    best_human: float

    @property
    def hit(self) -> bool:
        """Whether no candidate has a better human score."""
        return self.human >= self.best_human


@dataclass(frozen=True)
class SelectionRow:
    """One evaluator and kind: `wins` of `runs` picks were people's best; `human` is their mean score with its 95 %
    interval over the runs; `picks` the single ones."""

    evaluator: str
    kind: Kind
    runs: int
    wins: int
    human: Estimate
    picks: tuple[Pick, ...] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe, without the single picks."""
        names = ("evaluator", "kind", "runs", "wins")
        return {**{name: getattr(self, name) for name in names}, "human": self.human.as_dict()}


@dataclass(frozen=True)
class SelectionReport:
    """The rows of every evaluator; `best` is the mean human score of always picking people's best, `chance` that of
    random picks, by kind."""

    aspect: str
    rows: tuple[SelectionRow, ...]
    best: Mapping[Kind, float]
    chance: Mapping[Kind, float]
    chance_wins: Mapping[Kind, float]
    choices: tuple[Choice, ...] = field(repr=False)
    simulated: int = 0
    #: Whether people's score is their mean rating, or the share of comparisons won.
    judged_by: Judged = "ratings"

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return {
            "aspect": self.aspect,
            "rows": [row.as_dict() for row in self.rows],
            "best": dict(self.best),
            "chance": dict(self.chance),
            "chance_wins": dict(self.chance_wins),
            "choices": [{"name": c.name, "kind": c.kind, "candidates": list(c.candidates)} for c in self.choices],
            "simulated": self.simulated,
            "judged_by": self.judged_by,
        }

    def as_markdown(self) -> str:
        """A table for each kind."""
        lines: list[str] = []
        for kind in dict.fromkeys(row.kind for row in self.rows):
            rows = [row for row in self.rows if row.kind == kind]
            lines += [
                f"| {kind}: evaluator | picks that were people's best | mean human score of the picks |",
                "|---|---|---|",
            ]
            for row in sorted(rows, key=lambda row: (-row.wins, row.evaluator)):
                e = row.human
                spread = f" [{e.low:.3f}, {e.high:.3f}]" if e.has_interval else ""
                lines.append(f"| {row.evaluator} | {row.wins} of {row.runs} | {e.value:.3f}{spread} |")
            n = rows[0].runs
            lines += [
                f"| (people's best) | {n} of {n} | {self.best[kind]:.3f} |",
                f"| (chance level) | {self.chance_wins[kind]:.1f} of {n} | {self.chance[kind]:.3f} |",
                "",
            ]
        return "\n".join(lines)


def find_choices(dataset: Dataset, variants: Mapping[str, Sequence[str]] | None = None) -> list[Choice]:
    """Return the choices in a `dataset`: every system with at least two steps, and every group of systems that are
    variants of an architecture (`variants`, or the same `variant_of` in their meta)."""
    by_step: dict[str, _Outputs] = defaultdict(lambda: defaultdict(dict))
    by_system: _Outputs = defaultdict(dict)
    for record in dataset.outputs_with_context():
        if record.step is None:
            by_system[record.system][record.item] = record
        else:
            by_step[record.system][str(record.step)][record.item] = record
    result = [
        Choice(system, "steps", tuple(sorted(outputs, key=int)), outputs)
        for system, outputs in sorted(by_step.items())
        if len(outputs) > 1
    ]
    groups: dict[str, list[str]] = defaultdict(list)
    if variants is None:
        for system in dataset.systems:
            if isinstance(system.meta.get(VARIANT_OF), str):
                groups[str(system.meta[VARIANT_OF])].append(system.id)
    else:
        groups.update({name: list(systems) for name, systems in variants.items()})
    for name, systems in sorted(groups.items()):
        there = tuple(sorted(system for system in systems if by_system.get(system)))
        if len(there) > 1:
            result.append(Choice(name, "variants", there, {system: by_system[system] for system in there}))
    return result


def selection_report(
    dataset: Dataset,
    evaluators: Mapping[str, Evaluator],
    *,
    aspect: str,
    variants: Mapping[str, Sequence[str]] | None = None,
    runs: int = RUNS,
    seed: int = 13,
    progress: Tick | None = None,
) -> SelectionReport:
    """Let all `evaluators` choose in `runs` parts of the items of a `dataset` (whole split groups, by `seed`) and
    compare with human scores of an `aspect`.

    The pick is the candidate with the highest system score; evaluators that compare pick a step by the early-stopping
    rule and a variant by skill rating. Candidates are compared on the items that all have; `variants` are as in
    `find_choices`. The human score of a candidate is its mean rating, or without ratings its win rate. Parts in which
    some candidate has no human score are left out. An exception raised by `progress` ends the work. Raises
    `SelectionError` if nothing remains.
    """
    choices = find_choices(dataset, variants)
    if not choices:
        raise SelectionError(
            "there is nothing to choose from: load outputs of a system at different steps, or name systems that are "
            f"variants of each other (meta {VARIANT_OF!r})"
        )
    human = _Human(dataset, aspect)
    usable = [_judged_parts(choice, human, runs, seed) for choice in choices]
    if not any(usable):
        raise SelectionError(f"no part has human judgements of {aspect!r} for all candidates")
    picks: dict[tuple[str, Kind], list[Pick]] = defaultdict(list)
    done, total = 0, sum(map(bool, usable)) * len(evaluators)
    for choice, judged in zip(choices, usable, strict=True):
        for name, evaluator in evaluators.items() if judged else ():
            # Progress within a choice: the number of finished choices stays the same.
            tick = None if progress is None else lambda _, __, done=done: progress(done, total)
            by = _ByComparison if hasattr(evaluator, "compare") else _ByScore
            chooser = by(evaluator, choice, tick)
            for run, items, scores in judged:
                picked = chooser.pick(items, seed)
                best = max(choice.candidates, key=lambda candidate: scores[candidate])
                if picked is not None:
                    pick = Pick(choice.name, run, picked, scores[picked], best, scores[best])
                    picks[(name, choice.kind)].append(pick)
            done += 1
            if progress is not None:
                progress(done, total)
    tables: dict[Kind, list[list[float]]] = defaultdict(list)
    for choice, judged in zip(choices, usable, strict=True):
        tables[choice.kind] += [list(scores.values()) for _, _, scores in judged]
    rows_by_kind = {kind: rows for kind, rows in tables.items() if rows}
    return SelectionReport(
        aspect,
        tuple(_row(name, kind, own) for (name, kind), own in picks.items()),
        {kind: float(np.mean([max(row) for row in rows])) for kind, rows in rows_by_kind.items()},
        {kind: float(np.mean([np.mean(row) for row in rows])) for kind, rows in rows_by_kind.items()},
        {kind: float(sum(row.count(max(row)) / len(row) for row in rows)) for kind, rows in rows_by_kind.items()},
        tuple(choices),
        human.simulated,
        "ratings" if human.means else "comparisons",
    )


def _row(name: str, kind: Kind, picks: Sequence[Pick]) -> SelectionRow:
    values = np.array([pick.human for pick in picks])
    n, mean = len(values), float(values.mean())
    if n > 1:
        # Runs are disjoint parts of the items; they are few, so Student's interval of their mean.
        reach = float(stats.t.ppf(0.975, n - 1)) * float(values.std(ddof=1)) / math.sqrt(n)
        estimate = Estimate(mean, mean - reach, mean + reach, n)
    else:
        estimate = Estimate.point(mean, n, "one run: no interval")
    return SelectionRow(name, kind, n, sum(pick.hit for pick in picks), estimate, tuple(picks))


def _parts(choice: Choice, runs: int, seed: int) -> list[tuple[str, ...]]:
    """The items that all candidates have, divided by whole groups into `runs` parts of similar size."""
    first = choice.outputs[choice.candidates[0]]
    common = [item for item in first if all(item in choice.outputs[name] for name in choice.candidates)]
    groups: dict[str, list[str]] = defaultdict(list)
    for item in common:
        groups[name_group(first[item].group, item)].append(item)
    ordered = sorted(groups, key=lambda group: hashlib.sha256(f"{seed}:{group}".encode()).digest())
    return [
        tuple(item for group in ordered[run::runs] for item in groups[group]) for run in range(min(runs, len(ordered)))
    ]


def _judged_parts(
    choice: Choice, human: _Human, runs: int, seed: int
) -> list[tuple[int, tuple[str, ...], dict[str, float]]]:
    """Number, items and human scores of each part in which all candidates were judged."""
    return [
        (run, items, scores)
        for run, items in enumerate(_parts(choice, runs, seed))
        if (scores := human.scores(choice, items)) is not None
    ]


class _Human:
    """People's scores of candidates."""

    def __init__(self, dataset: Dataset, aspect: str) -> None:
        rated = collect_rated_outputs(dataset, aspect)
        self.means = {output_key(r): float(v.mean()) for r, v in zip(rated.records, rated.values, strict=True)}
        self.compared = [] if self.means else collect_compared_pairs(dataset, aspect)
        self.simulated = rated.simulated + sum(row.simulated for row in self.compared)

    def scores(self, choice: Choice, items: Sequence[str]) -> dict[str, float] | None:
        """Each candidate's score on these items; None where one was not judged."""
        result: dict[str, list[float]] = {name: [] for name in choice.candidates}
        if self.means:
            for name in choice.candidates:
                keys = [output_key(choice.outputs[name][item]) for item in items]
                result[name] = [self.means[key] for key in keys if key in self.means]
        else:
            wanted = set(items)
            names = {output_key(choice.outputs[name][item]): name for name in choice.candidates for item in wanted}
            for row in self.compared:
                one, two = names.get(output_key(row.a)), names.get(output_key(row.b))
                if one is not None and two is not None and one != two:
                    result[one].append((row.sign + 1) / 2)
                    result[two].append((1 - row.sign) / 2)
        if not all(result.values()):
            return None
        return {name: float(np.mean(values)) for name, values in result.items()}


class _ByScore:
    """Picks the candidate with the highest system score; a mean is computed from the scores of single texts."""

    def __init__(self, evaluator: Evaluator, choice: Choice, tick: Tick | None) -> None:
        self.evaluator, self.choice, self.tick = evaluator, choice, tick
        self.values: dict[tuple[str, str], float] | None = None
        if evaluator.entry.system_score == "mean" and not evaluator.depends_on_batch:
            keys = [(name, item) for name in choice.candidates for item in choice.outputs[name]]
            records = [choice.outputs[name][item] for name, item in keys]
            scores = evaluator.evaluate(records, progress=tick).values
            self.values = dict(zip(keys, scores.tolist(), strict=True))

    def pick(self, items: Sequence[str], seed: int) -> str | None:
        means: dict[str, float] = {}
        for name in self.choice.candidates:
            if self.values is None:
                if self.tick is not None:
                    self.tick(0, 0)
                value = self.evaluator.system_score([self.choice.outputs[name][item] for item in items])
            else:
                own = [self.values[(name, item)] for item in items]
                defined = [score for score in own if not math.isnan(score)]
                value = sum(defined) / len(defined) if defined else math.nan
            if not math.isnan(value):
                means[name] = value
        return max(means, key=lambda name: means[name]) if means else None


class _ByComparison:
    """Picks a step by the early-stopping rule, from verdicts, and a variant by skill rating, from the points of the
    evaluator's `outcome`. Verdicts are computed once."""

    def __init__(self, evaluator: Any, choice: Choice, tick: Tick | None) -> None:
        self.choice = choice
        self.tie_rule: TieRule = getattr(evaluator, "tie_rule", "half")
        # Objects outside the catalogue that only compare take no progress callback.
        options: dict[str, Any] = {"progress": tick} if isinstance(evaluator, Evaluator) else {}
        compare = partial(evaluator.compare, **options)
        self.verdicts: dict[tuple[int, int], dict[str, int]] = {}
        self.scores: dict[tuple[int, int], dict[str, float]] = {}
        names = choice.candidates
        for i in range(len(names)):
            reach = min(len(names), i + PREVIOUS + 1) if choice.kind == "steps" else len(names)
            for j in range(i + 1, reach):
                one, two = choice.outputs[names[i]], choice.outputs[names[j]]
                items = sorted(one.keys() & two.keys())
                newer, older = [two[x] for x in items], [one[x] for x in items]
                if choice.kind != "steps" and getattr(evaluator, "outcome", "verdict") == "expected":
                    result = evaluator.judge_from_either_side(newer, older, seed=13, progress=tick)
                    signs = result.signs
                    self.scores[(i, j)] = dict(zip(items, evaluator.counted(result).tolist(), strict=True))
                else:
                    signs = from_either_side(compare, newer, older)
                self.verdicts[(i, j)] = dict(zip(items, signs.astype(int).tolist(), strict=True))

    def pick(self, items: Sequence[str], seed: int) -> str | None:
        names = self.choice.candidates
        if self.choice.kind == "steps":
            checks = []
            for j in range(len(names)):
                before = range(max(0, j - PREVIOUS), j)
                checks.append(Check.from_verdicts(names[j], [self.verdicts[(i, j)][x] for i in before for x in items]))
            best = early_stop(checks).best
            return names[0] if best is None else str(best)
        rows = [(i, j, sign[x]) for (i, j), sign in self.verdicts.items() for x in items]
        scores = [score[x] for score in self.scores.values() for x in items] or None
        table = VerdictTable.of(
            names, [j for _, j, _ in rows], [i for i, _, _ in rows], [s for _, _, s in rows], scores
        )
        return rank_by_games(table, seeds=_SEEDS, seed=seed, tie=self.tie_rule).order[0]
