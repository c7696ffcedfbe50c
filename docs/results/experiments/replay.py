"""Assisted estimates replayed on fully judged sets: a part of the outputs or pairs counts as judged, an evaluator
helps, and the estimates are compared with those of all judgements."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from experiments.yardstick import Judged, RatedSet, read_maude
from scipy import stats
from study import Result, Run, Tables, row

from evalapp.stats.assisted.choice import deal_parts, draw_outputs, predict_errors
from evalapp.stats.assisted.comparisons import AssistedComparisons, ScoredOutputs, rank_by_assisted_comparisons
from evalapp.stats.assisted.means import AssistedMeans, AssistedOptions, estimate_means
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml import Dataset, cross_fit, load
from scoring.ml.encoders import frozen
from scoring.ml.engine import Batch
from scoring.ml.evaluators.ridge.features import measure_columns
from scoring.ml.evaluators.ridge.solve import Solution, fit_comparisons, fit_ratings
from scoring.ml.evaluators.shared_bert import network
from scoring.ml.layers.pooling import Pooling
from scoring.ml.training.gold import collect_rated_outputs

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
#: Scores of all outputs from what is judged and the number of the draw.
Learn = Callable[[Bools, int], Floats]
FOLDS, BATCHES = 5, 4
THESE = AssistedOptions(target="these-items")
RIDGE, HUMAN = "ridge", "another human"
#: Points of the first of two outputs by the verdict.
WINS = {"a": 1.0, "tie": 0.5, "b": 0.0}
#: Resamples of the draws for intervals of ratios of errors.
RESAMPLES = 2000


@dataclass(frozen=True)
class Truth:
    """Rated outputs with what one evaluator says: all (n,). `learn`: of an evaluator trained in each draw, `is_slow`
    if that takes seconds."""

    human: Floats
    score: Floats
    group: npt.NDArray[np.int64]
    system: npt.NDArray[np.int64]
    length: Floats
    learn: Learn | None = None
    is_slow: bool = False

    @property
    def means(self) -> Floats:
        """The mean of all judgements of each system."""
        return np.bincount(self.system, self.human) / np.bincount(self.system)

    def score_by(self, is_judged: Bools, seed: int) -> Floats:
        """The scores, of a trained evaluator by the `is_judged` outputs only."""
        return self.score if self.learn is None else self.learn(is_judged, seed)


class ComparedSet(RatedSet):
    """A set with comparisons, all of it."""

    @cached_property
    def data(self) -> Dataset:
        return self.run.draw(self.run.read(self.name), 40)


def cross_ridge(
    features: Floats,
    group: npt.NDArray[np.int64],
    is_judged: Bools,
    seed: int,
    fit: Callable[[Floats, Bools], Solution],
) -> Floats:
    """Scores (n,) of outputs with `features` (n, k): each judged output gets the score of the folds without its group,
    the others the mean over the folds. `fit(standard, learned)` learns from the rows `learned`."""
    fold = np.random.default_rng([seed, 7]).integers(FOLDS, size=int(group.max()) + 1)[group]
    total, result = np.zeros(len(fold)), np.zeros(len(fold))
    for k in range(FOLDS):
        learned = is_judged & (fold != k)
        mean, spread = measure_columns(features[learned])
        standard = np.nan_to_num((features - mean) / spread, nan=0.0)
        found = fit(standard, learned)
        scores = standard @ found.weights + found.bias
        total += scores / FOLDS
        result[fold == k] = scores[fold == k]
    return np.where(is_judged, result, total)


def learn_ratings(features: Floats, human: Floats, group: npt.NDArray[np.int64]) -> Learn:
    """`ridge` on the ratings of the judged outputs."""

    def fit(standard: Floats, learned: Bools) -> Solution:
        return fit_ratings(standard[learned], human[learned], group[learned].tolist())

    return lambda is_judged, seed: cross_ridge(features, group, is_judged, seed, fit)


def learn_comparisons(
    features: Floats, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64], verdict: npt.NDArray[np.str_],
    group: npt.NDArray[np.int64],
) -> Learn:  # fmt: skip
    """`ridge` on the comparisons of the judged outputs; each output is in one pair."""
    wins = np.array([WINS[one] for one in verdict])

    def fit(standard: Floats, learned: Bools) -> Solution:
        rows = learned[first]
        differences = standard[first[rows]] - standard[second[rows]]
        return fit_comparisons(differences, wins[rows], group[first[rows]].tolist())

    return lambda is_judged, seed: cross_ridge(features, group, is_judged, seed, fit)


def learn_by_fit(judged: Judged, aspect: str, spec: Mapping[str, Any]) -> Learn:
    """An evaluator of the product, trained in each draw: each output gets the score of the model without its group."""
    # `keep_vectors` keeps what the first training reads for all others.
    assert spec["stages"] == "head", "only heads on a frozen encoder can be replayed"
    data, keys = judged.set.data, [(record.item, record.system) for record in judged.records]
    options = {name: value for name, value in spec.items() if name not in ("evaluator", "sets")}

    def learn(is_judged: Bools, seed: int) -> Floats:
        wanted = {key for key, is_wanted in zip(keys, is_judged, strict=True) if is_wanted}
        part = replace(data, ratings=tuple(one for one in data.ratings if (one.item, one.system) in wanted))
        with TemporaryDirectory(prefix="replay-") as folder:
            found = cross_fit(
                spec["evaluator"], part, seed=seed, folds=FOLDS, folder=Path(folder), encoder=judged.set.run.encoder,
                aspect=aspect, ratings=judged.set.entry.get("ratings", "raw"), **options,
            )  # fmt: skip
            return np.asarray(found.score(judged.records)).reshape(len(keys), -1)[:, 0]

    return learn


@contextmanager
def keep_vectors() -> Iterator[None]:
    """Let heads on the frozen encoder read each text once: otherwise each training and each scoring reads all again."""
    kept: dict[bytes, torch.Tensor] = {}
    read = frozen.pooled_vectors

    def read_kept(model: torch.nn.Module, batch: Batch, how: Pooling) -> torch.Tensor:
        texts = zip(batch.input_ids.numpy(), batch.lengths, strict=True)
        keys = [ids[:length].tobytes() for ids, length in texts]
        if any(key not in kept for key in keys):
            kept.update(zip(keys, read(model, batch, how), strict=True))
        return torch.stack([kept[key] for key in keys])

    with (
        mock.patch.object(frozen, "pooled_vectors", read_kept),
        mock.patch.object(network, "pooled_vectors", read_kept),
    ):
        yield


def compute(run: Run) -> None:
    for name, entry in run.settings["sets"].items():
        if not run.wants(name):
            continue
        rated_set = RatedSet(run, name, entry)
        judged = Judged(rated_set, entry["aspect"])
        for evaluator, truth in list_evaluators(run, judged, entry["aspect"]):
            for share in run.settings["shares"]:
                setting = f"{name}/{evaluator}/{share:g}"
                with keep_vectors():
                    run.once(setting, run.seeds[0], lambda t=truth, s=share: replay(run, t, s))

    for name, entry in run.settings["compared"].items():
        if run.wants(name):
            for evaluator, compared in list_compared(run, name, entry["aspect"]):
                for share in run.settings["shares"]:
                    setting = f"{name}/{evaluator}/{share:g}"
                    run.once(setting, run.seeds[0], lambda c=compared, s=share: replay_comparisons(run, c, s))


@dataclass(frozen=True)
class Compared:
    """Comparisons as columns (m,): rows of the two outputs, verdict, number of the pair and of its pair of systems,
    with the scores of all outputs."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    verdict: npt.NDArray[np.str_]
    pair: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    outputs: ScoredOutputs
    learn: Learn | None = None

    def rank(self, rows: Bools, seed: int) -> AssistedComparisons:
        """Win rates by the judgements in `rows` with the evaluator's help; ranks are not used."""
        outputs = self.outputs
        if self.learn is not None:
            is_judged = np.isin(np.arange(len(np.asarray(outputs.item))), self.first[rows])
            # The two outputs of a pair are neighbours.
            outputs = replace(outputs, score=self.learn(is_judged | is_judged.reshape(-1, 2)[:, ::-1].ravel(), seed))
        return rank_by_assisted_comparisons(
            self.first[rows], self.second[rows], self.verdict[rows], outputs, method="win-rate",
            bootstrap=Bootstrap(resamples=2, seed=seed),
        )  # fmt: skip


def list_compared(run: Run, name: str, aspect: str) -> Iterator[tuple[str, Compared]]:
    """Length, and another human: the verdict of one rater, for the judgements of the others. Each compared pair counts
    as an item of its own, because other pairs of the same items were not compared and have no truth."""
    rated_set = ComparedSet(run, name, {})
    data = rated_set.data
    group = {item.id: item.group or item.id for item in data.items}
    length = {(one.item, one.system): float(len(one.text)) for one in data.outputs}
    rows = [one for one in data.comparisons if one.aspect == aspect and one.verdict in WINS]
    sides = [sorted([(one.item, one.system_a), (one.item, one.system_b)]) for one in rows]
    pairs = sorted({tuple(two) for two in sides})
    place = {two: k for k, two in enumerate(pairs)}
    pair = np.array([place[tuple(two)] for two in sides])
    is_turned = np.array([two[0] != (one.item, one.system_a) for one, two in zip(rows, sides, strict=True)])
    system = np.array([one[1] for two in pairs for one in two])
    kind = np.unique(system.reshape(-1, 2), axis=0, return_inverse=True)[1][pair]
    verdict, rater = np.array([one.verdict for one in rows]), np.array([one.rater for one in rows])
    cluster = [group[one[0]] for two in pairs for one in two]

    first, second, every = 2 * pair + is_turned, 2 * pair + ~is_turned, np.ones(len(rows), dtype=np.bool_)

    def make(score: Floats, used: Bools, learn: Learn | None = None) -> Compared:
        outputs = ScoredOutputs(np.repeat(np.arange(len(pairs)), 2), cluster, system, score)
        columns = (first, second, verdict, pair, kind)
        return Compared(*(column[used] for column in columns), outputs, learn)

    yield "length", make(np.array([length[one] for two in pairs for one in two]), every)
    place_of = {(record.item, record.system): k for k, record in enumerate(rated_set.records)}
    features = rated_set.features[[place_of[one] for two in pairs for one in two]]
    numbers = np.unique(cluster, return_inverse=True)[1]
    yield RIDGE, make(np.zeros(len(system)), every, learn_comparisons(features, first, second, verdict, numbers))
    other = rater == np.random.default_rng(run.seeds[0]).choice(np.unique(rater))
    score = np.full(len(system), 0.5)
    for k in np.flatnonzero(other):
        won = WINS[verdict[k]]
        score[2 * pair[k] + is_turned[k]], score[2 * pair[k] + 1 - is_turned[k]] = won, 1.0 - won
    yield HUMAN, make(score, ~other)


def count_draws(run: Run, is_slow: bool = False) -> int:
    return 4 if run.quick else int(run.settings["draws_slow" if is_slow else "draws"])


def replay_comparisons(run: Run, compared: Compared, share: float) -> Result:
    """Draws of a share of the compared pairs of each pair of systems, as `replay`. Intervals are about items like
    these, so they are wider than the errors against all judgements of the same items require."""
    whole = compared.rank(np.ones(len(compared.pair), dtype=np.bool_), 0).human
    target = {row.system: row.estimate.value for row in whole.systems}
    pairs, places = np.unique(compared.pair, return_index=True)
    kind = compared.kind[places]
    sizes = np.bincount(kind)
    n = np.maximum(np.round(share * sizes), 2)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    covered: dict[str, list[bool]] = {"assisted": [], "human": []}
    width, squares, orders = [], [], []
    draws = count_draws(run)
    for seed in range(draws):
        rng = np.random.default_rng([run.seeds[0], seed])
        rank = np.argsort(np.argsort(rng.random(len(pairs)) + 2.0 * kind))
        found = compared.rank(np.isin(compared.pair, pairs[rank - starts[kind] < n[kind]]), seed)
        values = {}
        for way, ranking in (("assisted", found.assisted), ("human", found.human)):
            estimates = {row.system: row.estimate for row in ranking.systems}
            covered[way] += [estimates[one].low <= value <= estimates[one].high for one, value in target.items()]
            values[way] = np.array([estimates[one].value for one in target])
        truth = np.array(list(target.values()))
        width.append([np.sqrt(list(one.values())).mean() for one in (found.variance, found.human_variance)])
        squares.append([((value - truth) ** 2).mean() for value in values.values()])
        orders.append([stats.spearmanr(value, truth).statistic for value in values.values()])
    mean = np.mean(width, axis=0)
    return {
        "n": int(n.sum()), "outputs": len(pairs), "systems": len(target), "draws": draws,
        "groups": len(np.unique(np.asarray(compared.outputs.cluster)[compared.first])),
        "coverage": float(np.mean(covered["assisted"])), "human_coverage": float(np.mean(covered["human"])),
        "width": None, "width_alike": float(mean[0] / mean[1]), "error": ratio_of_errors(np.array(squares)),
        "order": [float(one) for one in np.nanmean(orders, axis=0)],
    }  # fmt: skip


def list_evaluators(run: Run, judged: Judged, aspect: str) -> Iterator[tuple[str, Truth]]:
    group = np.unique(judged.groups, return_inverse=True)[1]
    system = np.unique(judged.systems, return_inverse=True)[1]
    length = np.array([len(record.text) for record in judged.records], dtype=np.float64)
    fixed = {"length": length}
    fixed |= {name: column[judged.rows] for name, column in judged.set.cosines.items() if name == "cosine with context"}
    if any(record.context for record in judged.records):
        fixed |= {name: load(name).score(judged.records) for name in run.settings["shipped"]}
    # By the first of its seeds: an estimate is assisted by one evaluator.
    if own := read_maude(run.settings["stored"], judged)[:1]:
        fixed["maude"] = own[0]
    for name, score in fixed.items():
        yield name, Truth(judged.means, np.asarray(score), group, system, length)
    learners = {RIDGE: learn_ratings(judged.set.features[judged.rows], judged.means, group)}
    for name, spec in run.settings["trained"].items():
        if judged.set.name in spec["sets"]:
            learners[name] = learn_by_fit(judged, aspect, spec)
    for name, learn in learners.items():
        yield name, Truth(judged.means, judged.means, group, system, length, learn, is_slow=name != RIDGE)
    values = collect_rated_outputs(judged.set.data, aspect, judged.set.entry.get("ratings", "raw")).values
    several = np.array([place for place, own in enumerate(values) if len(own) > 1], dtype=np.int64)
    if len(several) < len(values) / 2:
        return
    rng = np.random.default_rng(run.seeds[0])
    picked = [int(rng.integers(len(values[place]))) for place in several]
    other = np.array([values[place][k] for place, k in zip(several, picked, strict=True)])
    rest = np.array([np.delete(values[place], k).mean() for place, k in zip(several, picked, strict=True)])
    numbers = np.unique(system[several], return_inverse=True)[1]
    yield HUMAN, Truth(rest, other, np.unique(group[several], return_inverse=True)[1], numbers, length[several])


def replay(run: Run, truth: Truth, share: float) -> Result:
    """Draws of a share of the outputs of each system: coverage of the means of all judgements, width and error relative
    to judgements only, and Spearman's correlation with the order by all judgements."""
    target, sizes = truth.means, np.bincount(truth.system)
    n = np.maximum(np.round(share * sizes), 2)
    covered, width, squares, orders, alike = [], [], [], [], []
    draws = count_draws(run, truth.is_slow)
    for seed in range(draws):
        rng = np.random.default_rng([run.seeds[0], seed])
        rank = np.argsort(np.argsort(rng.random(len(truth.human)) + 2.0 * truth.system))
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        is_judged = rank - starts[truth.system] < n[truth.system]
        columns = (np.where(is_judged, truth.human, np.nan), truth.score_by(is_judged, seed), truth.group, truth.system)
        these = estimate_means(*columns, options=THESE, seed=seed)
        wide = estimate_means(*columns, seed=seed)
        t = stats.t.ppf(0.975, np.maximum(these.n_groups - 1, 1))
        for found, value, variance in ((0, these.value, these.variance), (1, these.human, these.human_variance)):
            covered.append((found, np.abs(value - target) <= t * np.sqrt(variance) + 1e-12))
        width.append([np.sqrt(one).mean() for one in (these.variance, these.human_variance, *widths(wide))])
        chosen = None if truth.learn is not None else choose(truth, int(n.sum()), seed)
        values = [these.value, these.human, *([chosen.value, wide.value] if chosen is not None else [])]
        squares.append([((value - target) ** 2).mean() for value in values])
        if chosen is not None:
            alike.append(np.sqrt(chosen.variance).mean() / np.sqrt(wide.variance).mean())
        if len(target) > 2:
            orders.append([stats.spearmanr(value, target).statistic for value in (these.value, these.human)])
    widths_mean = np.mean(width, axis=0)
    result: Result = {
        "n": int(n.sum()), "outputs": len(truth.human), "systems": len(target), "groups": int(truth.group.max()) + 1,
        "draws": draws,
        "coverage": float(np.mean([hit for which, hit in covered if which == 0])),
        "human_coverage": float(np.mean([hit for which, hit in covered if which == 1])),
        "width": float(widths_mean[0] / widths_mean[1]), "width_alike": float(widths_mean[2] / widths_mean[3]),
        "error": ratio_of_errors(np.array(squares)[:, :2]),
        "order": [float(one) for one in np.nanmean(orders, axis=0)] if orders else None,
    }  # fmt: skip
    if alike:
        result |= {"chosen_error": ratio_of_errors(np.array(squares)[:, 2:]), "chosen_width": float(np.mean(alike))}
    return result


def widths(means: AssistedMeans) -> tuple[Floats, Floats]:
    return means.variance, means.human_variance


def choose(truth: Truth, n: int, seed: int) -> AssistedMeans:
    """The estimate from as many outputs, drawn in batches by predicted error."""
    human, chance = np.full((2, len(truth.human)), np.nan)
    part = deal_parts(truth.system, BATCHES, seed)
    for batch in range(BATCHES):
        error = predict_errors(human, truth.score, truth.length, truth.group, truth.system, seed=seed)
        size = n * (batch + 1) // BATCHES - n * batch // BATCHES
        drawn = draw_outputs(error, truth.system, n=size, candidate=part == batch, seed=BATCHES * seed + batch)
        human[drawn.rows], chance[drawn.rows] = truth.human[drawn.rows], drawn.chance
    return estimate_means(human, truth.score, truth.group, truth.system, seed=seed, chance=chance)


def count_needed(label: str, results: Mapping[str, Result]) -> Tables:
    """The judgements with an evaluator that give intervals as wide as those of `n` without, as a share of `n`."""
    shares = {one.replace(" ", "_"): found["width_alike"] ** 2 for one, found in results.items()}
    yield row("needed", "setting", label, n=next(iter(results.values()))["n"], **shares)


def ratio_of_errors(squares: Floats) -> Result:
    """Root mean squared error of the first column relative to the second, with its 95 % interval over the draws."""
    rng = np.random.default_rng(zlib.crc32(squares.tobytes()))
    drawn = squares[rng.integers(len(squares), size=(RESAMPLES, len(squares)))].mean(axis=1)
    value = squares.mean(axis=0)
    ratio = np.sqrt(drawn[:, 0] / drawn[:, 1])
    low, high = np.quantile(ratio, (0.025, 0.975))
    return {"value": float(np.sqrt(value[0] / value[1])), "low": float(low), "high": float(high)}


def tabulate(run: Run) -> Tables:
    """One row per set, evaluator and share."""
    names = [*run.settings["shown"]]
    facts: dict[str, list[float]] = {"coverage": [], "human_coverage": [], "width": [], "chosen": []}
    for name in (*run.settings["sets"], *run.settings["compared"]):
        for share in run.settings["shares"]:
            results = {
                one: result for one in names for result in run.store.get(f"{name}/{one}/{share:g}", run.seeds[:1])
            }
            for evaluator, found in results.items():
                if found["width"] is not None:
                    facts["coverage"].append(found["coverage"])
                    facts["human_coverage"].append(found["human_coverage"])
                facts["width"].append(found["width_alike"])
                order = found["order"] or [None, None]
                yield row(
                    "replay", "setting", f"{name}, {share:.0%} judged, {evaluator}", n=found["n"],
                    draws=found["draws"], coverage=found["coverage"], human_coverage=found["human_coverage"],
                    width=found["width"], alike=found["width_alike"], error=found["error"], order=order[0],
                    human_order=order[1],
                )  # fmt: skip
                if "chosen_error" in found:
                    if name not in run.settings["unequal"]:
                        facts["chosen"].append(found["chosen_error"]["value"])
                    yield row(
                        "chosen", "setting", f"{name}, {share:.0%} judged, {evaluator}", n=found["n"],
                        draws=found["draws"], error=found["chosen_error"], width=found["chosen_width"],
                    )  # fmt: skip
            if results:
                yield row(
                    "widths", "setting", f"{name}, {share:.0%} judged",
                    **{one.replace(" ", "_"): found["width_alike"] for one, found in results.items()},
                )  # fmt: skip
                yield from count_needed(f"{name}, {share:.0%} judged", results)
    if facts["chosen"]:
        yield {
            "table": "facts", "lowest": round(min(facts["coverage"]), 4), "highest": round(max(facts["coverage"]), 4),
            "human_lowest": round(min(facts["human_coverage"]), 4), "widest": round(max(facts["width"]), 4),
            "narrowest": round(min(facts["width"]), 4), "settings": len(facts["width"]),
            "chosen_lowest": round(min(facts["chosen"]), 4), "chosen_highest": round(max(facts["chosen"]), 4),
        }  # fmt: skip
