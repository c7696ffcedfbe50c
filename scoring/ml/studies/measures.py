"""What a step of a study measures: cells of a table, from the scorers of a training and the held-out part.

Each measure returns part -> row -> column -> cell; a part is an aspect, or "" if the table has only one."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np

from evalapp.stats.agreement.normalise import RatingMethod
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.coefficients import pearson, spearman
from evalapp.stats.correlation.verdicts import outcomes
from evalapp.translation import gettext_noop
from scoring.ml.base import Evaluator, Floats, Query
from scoring.ml.errors import ScoringError
from scoring.ml.studies.m1 import LEAST_SYSTEMS, make_order
from scoring.ml.training.gold import RatedOutputs, collect_rated_outputs
from scoring.ml.training.record import correlate_with_people, data_hash, score_by_aspect
from scoring.ml.training.verdicts import collect_pairs, describe_agreement, judge_pairs
from scoring.ml.types import Dataset, Record

Cell: TypeAlias = Mapping[str, Any]
Parts: TypeAlias = dict[str, dict[str, dict[str, Cell]]]
Tick: TypeAlias = Callable[[int, int], None]
#: Sizes of reference sets, and sets drawn of each, in a study of reliability.
SIZES, SETS_PER_SIZE = (1, 2, 3, 5, 7, 10, 20, 30, 40), 5
#: Replies whose changes are scored.
REPLIES = 1000
#: The row of random choices.
CHANCE = gettext_noop("at random")
#: The row of a classifier that always gives the more frequent class (accuracy) or always says good (F1).
MAJORITY = gettext_noop("constant class")


@dataclass(frozen=True)
class StudyData:
    """The parts of a split by whole groups, the same for all steps, and the `aspects` to measure on the test part.
    `kinds` has texts of the test part by kind, for the study of robustness."""

    train: Dataset
    dev: Dataset
    test: Dataset
    aspects: tuple[str, ...]
    kinds: Mapping[str, Sequence[Record]] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """The hash of everything here."""
        parts = [data_hash(part) for part in (self.train, self.dev, self.test)]
        kinds = {kind: sorted(record.text for record in records) for kind, records in self.kinds.items()}
        content = json.dumps([parts, self.aspects, kinds, self.test.lang], sort_keys=True)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Measured:
    """The cells of a step, and those of rows that depend on no training (`floors`). By row and aspect: `scores` of the
    rated outputs of the test part, for each of its compared pairs whether it is `right` (1, 0, or 1/2), and the
    coefficients of `m1.SystemOrder` (`orders`). `picks` has by row, aspect and column: choice, run, and whether the
    pick was people's best."""

    parts: Parts
    floors: Parts = field(default_factory=dict)
    scores: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    right: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    orders: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    picks: dict[str, dict[str, dict[str, list[tuple[str, int, bool]]]]] = field(default_factory=dict)


def measure_agreement(scorers: Mapping[str, Evaluator], data: StudyData, seed: int, tick: Tick) -> Measured:
    """Return the agreement with people by aspect: coefficients over outputs (with intervals over groups) and over
    systems, the share of decided pairs that are right (of an evaluator that compares also `coverage`, the share
    that it decides, and `right_if_called`, its accuracy there), and the figures of the evaluator's own task."""
    parts: Parts = {}
    floors: Parts = {}
    scores: dict[str, dict[str, list[float | None]]] = {}
    right: dict[str, dict[str, list[float | None]]] = {}
    rated = {aspect: collect_rated_outputs(data.test, aspect) for aspect in data.aspects}
    compared = {aspect: collect_pairs(data.test, aspect) for aspect in data.aspects}
    for label, scorer in scorers.items():
        aspects = [aspect for aspect in data.aspects if scorer_covers(scorer, aspect)]
        for row in correlate_with_people([scorer], data.test, aspects, seed=seed, progress=tick):
            cells = {name: row[name] for name in ("spearman", "pearson", "kendall")}
            parts.setdefault(row["aspect"], {}).setdefault(label, {}).update(cells)
        pairs = {aspect: compared[aspect] for aspect in aspects if compared[aspect].texts}
        for aspect, (margin, signs) in judge_pairs(scorer, pairs, seed, tick).items() if pairs else ():
            figures = describe_agreement(pairs[aspect], margin, signs, seed)
            cells = {name: figures[name] for name in ("decided", "coverage", "right_if_called") if name in figures}
            parts.setdefault(aspect, {}).setdefault(label, {}).update(cells)
            right.setdefault(label, {})[aspect] = _list_finite(outcomes(margin, pairs[aspect].sign))
        records = {aspect: rated[aspect].records for aspect in aspects if rated[aspect].records}
        values = score_by_aspect(scorer, records, tick)
        for aspect, own in values.items():
            cells, floor = _own_task(scorer, data.test, aspect)
            cells = _over_systems(scorer, rated[aspect], own) | cells
            parts.setdefault(aspect, {}).setdefault(label, {}).update(cells)
            if floor:
                floors[aspect] = {MAJORITY: floor}
            scores.setdefault(label, {})[aspect] = _list_finite(own)
    return Measured(parts, floors, scores, right)


def scorer_covers(scorer: Evaluator, aspect: str) -> bool:
    """Return whether an evaluator has a score for an aspect: it learned that aspect, or none at all."""
    learned: tuple[str, ...] = getattr(scorer, "aspects", ())
    return scorer.entry.aspect != "many" or aspect in learned


def _over_systems(scorer: Evaluator, rated: RatedOutputs, values: Floats) -> dict[str, Cell]:
    """Coefficients over systems of their scores and mean ratings."""
    places: dict[str, list[int]] = {}
    for place, record in enumerate(rated.records):
        places.setdefault(record.system, []).append(place)
    if len(places) < LEAST_SYSTEMS:
        return {}
    means = rated.means()
    human = np.array([means[rows].mean() for rows in places.values()])
    if scorer.entry.system_score == "mean":
        own = np.array([_mean_defined(values[rows]) for rows in places.values()])
    else:
        own = np.array([scorer.score_system([rated.records[row] for row in rows]) for rows in places.values()])
    known = np.isfinite(own)
    coefficients = {"system_spearman": spearman, "system_pearson": pearson}
    return {name: compute(own[known], human[known]).as_dict() for name, compute in coefficients.items()}


def _own_task(scorer: Evaluator, test: Dataset, aspect: str) -> tuple[dict[str, Cell], dict[str, Cell]]:
    """The figures of the task that an evaluator is trained for, which its paper prints, and those of a constant."""
    if scorer.name == "shared-bert":
        return _classes(scorer, test, aspect)
    if scorer.entry.judges_references and aspect in scorer.aspects:  # type: ignore[attr-defined]
        return _predictions(scorer, test), {}
    return {}, {}


def _classes(scorer: Any, test: Dataset, aspect: str) -> tuple[dict[str, Cell], dict[str, Cell]]:
    from scoring.ml.evaluators.shared_bert.labels import label_outputs
    from scoring.ml.evaluators.shared_bert.report import classify

    labelled = label_outputs(test, [aspect], method=scorer.settings["ratings"])
    report = classify(labelled.labels[:, 0], scorer.evaluate(labelled.records).components[aspect])
    cells = {name: make_cell(getattr(report, name), report.n) for name in ("accuracy", "f1", "mcc", "auroc")}
    floors = {"accuracy": make_cell(report.majority, report.n), "f1": make_cell(report.majority_f1, report.n)}
    return cells, floors


def _predictions(scorer: Any, test: Dataset) -> dict[str, Cell]:
    try:
        report = scorer.report(test, sizes=SIZES, per_size=SETS_PER_SIZE, seed=0)
    except ScoringError:
        return {}
    pairs = {name: share for name, share in report.accuracy.items() if report.n_pairs[name]}
    return {
        "r2": make_cell(report.r2, report.n),
        "ceiling": make_cell(report.ceiling, report.n),
        "mse": make_cell(report.mse, report.n),
        **{f"prefers_{name}": make_cell(share, report.n_pairs[name]) for name, share in pairs.items()},
    }


def measure_systems(scorers: Mapping[str, Evaluator], data: StudyData, seed: int, tick: Tick) -> Measured:
    """Return the score of every system of the test part by each scorer, its mean rating, and its Turing M1, with the
    correlation of the scores with M1."""
    systems: dict[str, list[Record]] = {}
    for record in data.test.outputs_with_context():
        systems.setdefault(record.system, []).append(record)
    rows: dict[str, dict[str, Cell]] = {name: {} for name in systems}
    done, total = 0, len(systems) * len(scorers)
    for label, scorer in scorers.items():
        for name, records in systems.items():
            rows[name][label] = make_cell(scorer.score_system(records), len(records))
            done += 1
            tick(done, total)
    human: dict[str, dict[str, Cell]] = {}
    orders: dict[str, dict[str, list[float | None]]] = {}
    for aspect in data.aspects:
        rated = collect_rated_outputs(data.test, aspect)
        order = make_order(data.test, aspect)
        for row in order.ranking.systems if order else ():
            human.setdefault(str(row.system), {})[f"m1:{aspect}"] = row.estimate.as_dict()
        for label, scorer in scorers.items() if order else ():
            if order and scorer_covers(scorer, aspect):
                orders.setdefault(label, {})[aspect] = order.correlate(scorer, systems, aspect)
        of_system: dict[str, list[float]] = {}
        for record, values in zip(rated.records, rated.values, strict=True):
            of_system.setdefault(record.system, []).append(float(values.mean()))
        for name, means in of_system.items():
            human.setdefault(name, {})[f"human:{aspect}"] = make_cell(float(np.mean(means)), len(means))
    return Measured({"": rows}, {"": human}, orders=orders)


def measure_deltas(scorers: Mapping[str, Evaluator], data: StudyData, seed: int, tick: Tick) -> Measured:
    """Return mean and standard deviation over contexts of score(true reply) - score(changed reply), by kind of change,
    and the share of contexts where the changed reply scores lower."""
    from scoring.ml.evaluators.unreferenced.conversations import collect_conversations
    from scoring.ml.evaluators.unreferenced.delta import delta_table

    parts: Parts = {}
    for label, scorer in scorers.items():
        lower_case = bool(scorer.settings["lower_case"])  # type: ignore[attr-defined]
        conversations = collect_conversations(data.test, lower_case)
        for row in delta_table(scorer, conversations, n=REPLIES, seed=seed, progress=tick):
            cells = {"delta": row.mean, "delta_sd": row.sd, "below": row.below}
            for name, value in cells.items():
                if row.kind != "ground_truth" or name != "below":
                    parts.setdefault(label, {}).setdefault(row.kind, {})[name] = make_cell(value, row.n)
    return Measured(parts)


def measure_robustness(scorers: Mapping[str, Evaluator], data: StudyData, seed: int, tick: Tick) -> Measured:
    """Return each scorer's score of every kind of text, taken as one system."""
    from scoring.ml.evaluators.perception.robustness import robustness

    total = sum(map(len, data.kinds.values()))
    rows: dict[str, dict[str, Cell]] = {}
    for label, scorer in scorers.items():
        for row in robustness(scorer, data.kinds, progress=lambda done: tick(done, total)):
            if row.n:
                rows.setdefault(label, {})[row.kind] = make_cell(row.score, row.n)
    return Measured({"": rows})


def measure_selections(scorers: Mapping[str, Evaluator], data: StudyData, seed: int, tick: Tick) -> Measured:
    """Return how many selections of each scorer were people's best, as a share, and the human score of its selections,
    by aspect and kind of choice, with those of random choices."""
    from scoring.ml.selection import selection_report

    parts: Parts = {}
    floors: Parts = {}
    picks: dict[str, dict[str, dict[str, list[tuple[str, int, bool]]]]] = {}
    for aspect in data.aspects:
        report = selection_report(data.test, scorers, aspect=aspect, seed=seed, progress=tick)
        for row in report.rows:
            cells = {f"{row.kind}_wins": make_cell(row.wins / row.runs, row.runs)}
            cells[f"{row.kind}_human"] = row.human.as_dict()
            parts.setdefault(aspect, {}).setdefault(row.evaluator, {}).update(cells)
            own = picks.setdefault(row.evaluator, {}).setdefault(aspect, {})
            own[f"{row.kind}_wins"] = [(pick.choice, pick.run, bool(pick.hit)) for pick in row.picks]
        for kind, n in {row.kind: row.runs for row in report.rows}.items():
            floor = floors.setdefault(aspect, {}).setdefault(CHANCE, {})
            floor[f"{kind}_wins"] = make_cell(report.chance_wins[kind] / n, n)
            floor[f"{kind}_human"] = make_cell(report.chance[kind], n)
    return Measured(parts, floors, picks=picks)


def measure_reliability(scorers: Mapping[str, Evaluator], data: StudyData, seed: int, tick: Tick) -> Measured:
    """Return measured and predicted reliability of reference sets by size, with the errors of the prediction and of the
    mean of the size, and the highest R2 of a prediction, because the measured reliability is partly chance. The same
    sets are drawn for every scorer."""
    from scoring.ml.evaluators.ream.gold import split_variance

    parts: Parts = {}
    for label, scorer in scorers.items():
        rows: dict[str, dict[str, Cell]] = {}
        for size, drawn in _draw_reliabilities(scorer, data.test, seed, tick).items():
            gold, predicted, n_answers = np.array(drawn).T
            mse, constant = float(((gold - predicted) ** 2).mean()), float(gold.var())
            figures = {
                "gold": float(gold.mean()), "predicted": float(predicted.mean()), "mse": mse, "constant": constant,
                "r2": 1 - mse / constant if constant > 0 else math.nan,
                "ceiling": split_variance(gold, np.full(len(gold), gold.mean()), n_answers).ceiling,
            }  # fmt: skip
            rows[str(size)] = {name: make_cell(value, len(gold)) for name, value in figures.items()}
        parts[label] = rows
    return Measured(parts)


def _draw_reliabilities(scorer: Any, test: Dataset, seed: int, tick: Tick) -> dict[int, list[tuple[float, float, int]]]:
    """By size, of the drawn sets of every item: gold and predicted reliability, and the rated answers behind gold."""
    from scoring.ml.evaluators.ream.gold import ItemGold, draw_sets
    from scoring.ml.evaluators.ream.training import query_items

    method = cast(RatingMethod, str(scorer.settings["ratings"]))
    items = query_items(test, scorer.aspects[0], method)
    result: dict[int, list[tuple[float, float, int]]] = {}
    for done, item in enumerate(items, start=1):
        rng = np.random.default_rng([seed, *item.query.item.encode()])
        sets = draw_sets(len(item.references), SIZES, SETS_PER_SIZE, rng)
        (matrix,) = scorer.metric.all_pairs([Query(item.outputs, item.references)])
        gold = ItemGold(matrix, item.human, len(item.references)).reliabilities(sets)
        predicted = scorer.reliabilities(item.query, [[item.references[node] for node in nodes] for nodes in sets])
        for nodes, true, said in zip(sets, gold.tolist(), predicted.tolist(), strict=True):
            if math.isfinite(true) and math.isfinite(said):
                result.setdefault(len(nodes), []).append((true, said, len(item.human)))
        tick(done, len(items))
    return dict(sorted(result.items()))


def make_cell(value: float, n: int) -> Cell:
    """Return a cell without interval."""
    known = math.isfinite(value)
    return (Estimate.point(value, n) if known else Estimate.undefined("undefined on these data", n)).as_dict()


def _mean_defined(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def _list_finite(values: Floats) -> list[float | None]:
    return [round(value, 6) if math.isfinite(value) else None for value in values.tolist()]
