"""ridge that starts from other sets: weights learned on the other dialogue sets, then moved by ratings of this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from experiments.yardstick import Judged, RatedSet, score_untrained, strip, with_draws
from study import Result, Run, Tables, row

from evalapp.stats.core.multiple_tests import holm
from scoring.ml.evaluators.ridge.features import SIDES, measure_columns
from scoring.ml.evaluators.ridge.solve import fit_ratings

Floats = npt.NDArray[np.float64]
FOLDS, MEASURE = 5, "spearman"
WAYS = ("own", "warm")


@dataclass(frozen=True)
class SidedSet(RatedSet):
    """A rated set with the features of all sides, so that sets share their columns; missing ones are nan."""

    @property
    def sides(self) -> tuple[str, ...]:
        return SIDES


class Transfer:
    """A target set and the others, in features with the mean 0 and spread 1 of the other sets."""

    def __init__(self, run: Run, name: str) -> None:
        sets: Mapping[str, Mapping[str, object]] = run.settings["sets"]
        self.target = Judged(SidedSet(run, name, sets[name]), str(sets[name]["aspect"]))
        own = set(self.target.groups)
        features, labels, groups = [], [], []
        for other in sets:
            if other == name:
                continue
            judged = Judged(SidedSet(run, other, sets[other]), str(sets[other]["aspect"]))
            known = np.array([group not in own for group in judged.groups])
            means = judged.means[known]
            features.append(judged.set.features[judged.rows][known])
            labels.append((means - means.mean()) / means.std())
            groups += judged.groups[known].tolist()
        learned = np.concatenate(features)
        self.n_others = len(learned)
        self.mean, self.spread = measure_columns(learned)
        found = fit_ratings(self.standardise(learned), np.concatenate(labels), groups)
        self.features = self.standardise(self.target.set.features[self.target.rows])
        self.start = self.features @ found.weights

    def standardise(self, features: Floats) -> Floats:
        return np.nan_to_num((features - self.mean) / self.spread, nan=0.0)

    def predict(self, way: str, most: int | None, seed: int) -> Floats:
        """(n,) scores from at most so many rated groups of the other folds; `warm` learns what the start misses."""
        judged = self.target
        folds = judged.set.number_folds(seed)
        fold = np.array([folds[str(item)] for item in judged.items])
        rng, scores = np.random.default_rng(seed), np.empty(len(fold))
        for number in range(FOLDS):
            there = np.unique(judged.groups[fold != number].astype(str))
            chosen = set(rng.permutation(there)[:most].tolist())
            learned = np.array([f != number and g in chosen for f, g in zip(fold, judged.groups, strict=True)])
            offset = self.fit_offset(learned) if way == "warm" else np.zeros(len(fold))
            rest = judged.means[learned] - offset[learned]
            found = fit_ratings(self.features[learned], rest, judged.groups[learned].tolist())
            own = fold == number
            scores[own] = offset[own] + self.features[own] @ found.weights + found.bias
        return scores

    def fit_offset(self, learned: npt.NDArray[np.bool_]) -> Floats:
        """(n,) the start in the target's scale: its least-squares multiple on the rated outputs, at least 0."""
        x, y = self.start[learned], self.target.means[learned]
        slope = float(np.dot(x - x.mean(), y - y.mean()) / max(np.dot(x - x.mean(), x - x.mean()), 1e-12))
        return np.asarray(max(slope, 0.0) * self.start)


def compute(run: Run) -> None:
    for name in run.settings["sets"]:
        if run.wants(name):
            run.once(name, run.seeds[0], lambda name=name: measure(run, name))
            run.once(f"{name}/untrained", run.seeds[0], lambda name=name: compare_start(run, name))


def measure(run: Run, name: str) -> Result:
    """Spearman of the start alone, and of both ways by number of rated groups, with their difference."""
    transfer = Transfer(run, name)
    judged = transfer.target
    known = np.ones(len(judged.rows), dtype=bool)
    found: Result = {
        "n": len(judged.rows), "groups": len(set(judged.groups)), "others": transfer.n_others,
        "start": with_draws(*judged.resample([transfer.start], MEASURE, known)),
    }  # fmt: skip
    for most in (*run.settings["groups"], None):
        drawn = {
            way: judged.resample([transfer.predict(way, most, seed) for seed in run.seeds], MEASURE, known)
            for way in WAYS
        }
        label = "all" if most is None else str(most)
        found[label] = {way: with_draws(*each) for way, each in drawn.items()}
        (own, own_draws), (warm, warm_draws) = drawn["own"], drawn["warm"]
        found[label]["gain"] = with_draws(warm - own, warm_draws - own_draws, test=True)
    return found


def compare_start(run: Run, name: str) -> Result:
    """What needs no rating of the set: the baselines and the shipped evaluator, and the start minus each."""
    transfer = Transfer(run, name)
    judged = transfer.target
    found: Result = {}
    for other, scores in score_untrained(run, judged):
        known = np.isfinite(np.array(scores)).all(axis=0)
        start, start_draws = judged.resample([transfer.start], MEASURE, known)
        value, draws = judged.resample(scores, MEASURE, known)
        found[other] = with_draws(value, draws) | {"gap": with_draws(start - value, start_draws - draws, test=True)}
    return found


def tabulate(run: Run) -> Tables:
    found = {name: run.store.get(name, run.seeds[:1]) for name in run.settings["sets"]}
    labels = [*map(str, run.settings["groups"]), "all"]
    primary = tuple(run.settings["primary"])
    yield from tabulate_start(run, found)
    tests = [(name, label) for name, results in found.items() if results for label in labels]
    adjusted = holm([None if one == primary else found[one[0]][0][one[1]]["gain"]["p"] for one in tests])
    for (name, label), p in zip(tests, adjusted, strict=True):
        (result,) = found[name]
        gain = result[label]["gain"]
        said = gain["p"] if p is None else p
        yield row(
            "transfer", "set", f"{name}, {label} groups", n=result["n"], start=strip(result["start"]),
            own=strip(result[label]["own"]), warm=strip(result[label]["warm"]), gain=strip(gain), p=f"{said:.3f}",
        )  # fmt: skip


def tabulate_start(run: Run, found: Mapping[str, Sequence[Result]]) -> Tables:
    """The start alone and its difference from what needs no rating either; p by Holm over all rows."""
    known = {name: run.store.get(f"{name}/untrained", run.seeds[:1]) for name in run.settings["sets"]}
    tests = [
        (name, other) for name, results in known.items() if results for other in run.settings["others"]
        if other in results[0]
    ]  # fmt: skip
    adjusted = holm([known[name][0][other]["gap"]["p"] for name, other in tests])
    for (name, other), p in zip(tests, adjusted, strict=True):
        one = known[name][0][other]
        yield row(
            "start", "set", f"{name}, {other}", n=found[name][0]["n"], start=strip(found[name][0]["start"]),
            other=strip(one), difference=strip(one["gap"]), p=f"{p:.3f}",
        )  # fmt: skip
