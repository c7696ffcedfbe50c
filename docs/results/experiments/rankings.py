"""Systems ranked from human comparisons by every method: agreement, bias of side and length, adaptive choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from experiments.files import read_rows
from study import Result, Run, Tables, plain, row, t_interval, with_ends

from evalapp.stats.agreement.normalise import normalise_ratings
from evalapp.stats.correlation.ranking_correlation import correlate_with_ranking
from evalapp.stats.planning.adaptive import PairState, draw_pair, pair_chances
from evalapp.stats.planning.adaptive_simulation import PairChoice, simulate_saving
from evalapp.stats.ranking.bias import length_bias, side_bias
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.fragility import fragility
from evalapp.stats.ranking.judgements import PairwiseComparisons
from evalapp.stats.ranking.separation import estimate_separation
from evalapp.stats.ranking.systems import Ranking, rank_by_mean, rank_by_win_rate
from evalapp.stats.resampling.bootstrap import Bootstrap
from evalapp.words import split_words

SEED = 13
MODELS = ("bradley-terry", "davidson", "rao-kupper")
METHODS = (*MODELS, "glicko2", "win-rate", "mean rank")
WAYS = ("random", "ranking", "best")
#: A replay ranks the systems after every LOOK judgements and ends after MOST; chances of pairs are updated after EVERY.
LOOK, MOST, EVERY = 500, 30_000, 20
FLOOR = 0.2


@dataclass(frozen=True)
class Columns:
    """Comparisons of an aspect, with the difference of lengths in tokens, and ratings if there are any."""

    name: str
    a: np.ndarray
    b: np.ndarray
    verdict: np.ndarray
    item: np.ndarray
    length: np.ndarray
    ratings: tuple[np.ndarray, ...] | None

    @property
    def longer_by_majority(self) -> float:
        """How often the longer text has the majority of an item's pair; equal lengths count one half."""
        turned = np.where(self.a > self.b, -1, 1)
        one, two = np.where(turned < 0, self.b, self.a), np.where(turned < 0, self.a, self.b)
        worth = turned * ((self.verdict == "a").astype(int) - (self.verdict == "b"))
        keys = np.char.add(np.char.add(self.item, "/"), np.char.add(np.char.add(one, "/"), two))
        _, rows, pairs = np.unique(keys, return_index=True, return_inverse=True)
        majority = np.sign(np.bincount(pairs, weights=worth))
        longer = np.sign(turned * self.length)[rows]
        return float(((majority * longer)[majority != 0] + 1).mean() / 2)


def compute(run: Run) -> None:
    for name in run.settings["sets"]:
        columns = read_columns(run, name)
        if run.wants("methods"):
            run.once(f"methods {name}", SEED, partial(rank_by_all, columns))
        if run.wants("replay") and name in run.settings["replayed"]:
            target = rank_by_comparisons(PairwiseComparisons(columns.a, columns.b, columns.verdict, item=columns.item))
            for seed in run.seeds:
                for way in WAYS:
                    run.once(f"replay {name} {way}", seed, partial(replay, columns, target, way, seed))
    for goal in ("ranking", "best") if run.wants("simulation") else ():
        run.once(f"simulation {goal}", SEED, partial(simulate, goal, run.quick))


def read_columns(run: Run, name: str) -> Columns:
    folder, aspect = name.split(" ")
    rows = [entry for entry in read_rows(run.data / folder, "comparisons") if entry["aspect"] == aspect]
    outputs = read_rows(run.data / folder, "outputs")
    tokens = {(entry["item"], entry["system"]): len(split_words(entry["text"])) for entry in outputs}
    length = [tokens[r["item"], r["system_a"]] - tokens[r["item"], r["system_b"]] for r in rows]
    columns = (np.array([entry[key] for entry in rows]) for key in ("system_a", "system_b", "verdict", "item"))
    rated = [entry for entry in read_rows(run.data / folder, "ratings") if entry["aspect"] == aspect]
    ratings = tuple(np.array([entry[key] for entry in rated]) for key in ("value", "item", "rater", "system"))
    return Columns(name, *columns, np.array(length), ratings if rated else None)


def rank(columns: Columns, method: str) -> Ranking | None:
    if method == "mean rank":
        if columns.ratings is None:
            return None
        value, item, rater, system = columns.ratings
        ranks = normalise_ratings(value, item, rater, method="rank")
        return rank_by_mean(ranks, item, system, bootstrap=Bootstrap(seed=SEED))
    a, b, verdict, item = columns.a, columns.b, columns.verdict, columns.item
    if method == "win-rate":
        return rank_by_win_rate(item, a, b, verdict, bootstrap=Bootstrap(seed=SEED))
    rows, model = PairwiseComparisons(a, b, verdict, item=item), ComparisonModel(method=method)
    return rank_by_comparisons(rows, model=model, bootstrap=Bootstrap(seed=SEED))


def mean_width(ranking: Ranking) -> float:
    """Mean number of ranks in a system's rank set."""
    return float(np.mean([one.rank_high - one.rank_low + 1 for one in ranking.systems]))


def read_scores(ranking: Ranking) -> dict[str, float]:
    return {one.system: one.estimate.value for one in ranking.systems}


def correlate_rankings(one: Ranking, two: Ranking) -> float:
    return correlate_with_ranking(read_scores(one), two, coefficient="kendall").value


def rank_by_all(columns: Columns) -> Result:
    rankings = {name: found for name in METHODS if (found := rank(columns, name)) is not None}
    a, b, verdict, item = columns.a, columns.b, columns.verdict, columns.item
    return {
        "n": len(a),
        "tie_share": rankings["davidson"].extras["tie_share"],
        "rows": {
            name: {str(one.system): [one.estimate.value, one.rank_low, one.rank_high] for one in ranking.systems}
            for name, ranking in rankings.items()
        },
        "width": {name: mean_width(ranking) for name, ranking in rankings.items()},
        "tau": {
            f"{one}/{two}": correlate_rankings(rankings[one], rankings[two]) for one in rankings for two in rankings
        },
        "tie": {name: rankings[name].extras["tie"] for name in ("davidson", "rao-kupper")},
        "log_likelihood": {name: rankings[name].extras["log_likelihood"] for name in MODELS},
        "groups": rankings["bradley-terry"].extras["groups"],
        "fragility": {name: fragility(a, b, verdict, model=name).as_dict() for name in MODELS},
        "separating": estimate_separation(PairwiseComparisons(a, b, verdict, item=item)).as_dict(),
        "side": side_bias(a, b, verdict, item=item).as_dict(),
        "length": length_bias(a, b, verdict, columns.length, item=item).as_dict(),
        "longer_by_majority": columns.longer_by_majority,
    }


def record_verdicts(
    columns: Columns,
) -> tuple[list[str], Callable[[int, int, np.random.Generator], float], np.ndarray]:
    """Names of the systems, a judge that draws a recorded verdict of a pair, and which pairs have verdicts."""
    names = sorted(set(columns.a.tolist()) | set(columns.b.tolist()))
    place = {name: k for k, name in enumerate(names)}
    points: dict[tuple[int, int], list[float]] = {}
    worth = {"a": 1.0, "tie": 0.5, "b": 0.0}
    for a, b, verdict in zip(columns.a.tolist(), columns.b.tolist(), columns.verdict.tolist(), strict=True):
        points.setdefault((place[a], place[b]), []).append(worth[verdict])
        points.setdefault((place[b], place[a]), []).append(1 - worth[verdict])
    recorded = {pair: np.array(values) for pair, values in points.items()}
    available = np.zeros((len(names), len(names)), dtype=bool)
    for pair in recorded:
        available[pair] = True

    def judge(a: int, b: int, rng: np.random.Generator) -> float:
        values = recorded[a, b]
        return float(values[rng.integers(len(values))])

    return names, judge, available


def replay(columns: Columns, target: Ranking, way: str, seed: int) -> Result:
    """Judgements until the rank sets are as narrow as those of all comparisons, and until as few systems as there are
    not significantly different from the first."""
    names, judge, available = record_verdicts(columns)
    goal, floor = ("ranking", 1.0) if way == "random" else (way, FLOOR)
    rng, answers = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    state = PairState(len(names))
    wanted, first = mean_width(target), [one.system for one in target.systems if one.rank_low == 1]
    needed: dict[str, int | None] = {"ranking": None, "best": None}
    agreed: dict[str, Any] = {}
    a, b, worth = np.empty(MOST, dtype=np.int64), np.empty(MOST, dtype=np.int64), np.empty(MOST)
    for done in range(MOST):
        if done % EVERY == 0:
            chances = pair_chances(state, floor=floor, goal=goal, available=available)
        pair = draw_pair(*chances, rng)
        a[done], b[done], worth[done] = pair.a, pair.b, judge(pair.a, pair.b, answers)
        state.add(pair.a, pair.b, float(worth[done]))
        n = done + 1
        if n % LOOK:
            continue
        verdicts = np.array(["b", "tie", "a"])[np.round(2 * worth[:n]).astype(int)]
        found = with_names(rank_by_comparisons(PairwiseComparisons(a[:n], b[:n], verdicts)), names)
        if needed["ranking"] is None and mean_width(found) <= wanted:
            needed["ranking"] = n
            agreed |= {"tau": correlate_rankings(found, target), "contradicted": count_contradictions(found, target)}
        if needed["best"] is None and sum(one.rank_low == 1 for one in found.systems) <= len(first):
            needed["best"] = n
            agreed["first"] = found.systems[0].system in first
        if all(needed.values()):
            break
    return {"needed": needed, **agreed}


def with_names(ranking: Ranking, names: list[str]) -> Ranking:
    return replace(ranking, systems=tuple(replace(one, system=names[one.system]) for one in ranking.systems))


def count_contradictions(found: Ranking, target: Ranking) -> int:
    """Pairs of systems whose rank sets are disjoint in both rankings, in opposite order."""
    rows = {one.system: one for one in target.systems}
    return sum(
        one.rank_high < two.rank_low and rows[two.system].rank_high < rows[one.system].rank_low
        for one in found.systems
        for two in found.systems
    )


def simulate(goal: str, quick: bool) -> Result:
    theta = np.random.default_rng([SEED, 9]).normal(0, 0.6, 20)
    runs, n = (3, 200) if quick else (20, 2000)
    choice = PairChoice(goal=goal, every=EVERY, floor=FLOOR)
    return simulate_saving(theta, n, runs=runs, seed=SEED, choice=choice).as_dict()


def tabulate(run: Run) -> Tables:
    for name in run.settings["sets"]:
        for result in run.store.get(f"methods {name}", [SEED]):
            taus = {method: result["tau"].get(f"{method}/bradley-terry") for method in METHODS[1:]}
            fragile = result["fragility"]["bradley-terry"]
            yield row(
                "methods", "set", name, comparisons=result["n"], ties=result["tie_share"], **taus,
                width=result["width"]["bradley-terry"], width_glicko=result["width"]["glicko2"],
                fragile=fragile["sentence"].partition(" (")[0].removeprefix("Changing ").partition(" judg")[0],
            )  # fmt: skip
            yield row(
                "bias", "set", name, side=plain(result["side"]["estimate"]), longer=plain(result["length"]["estimate"]),
                raw=result["length"]["raw"]["value"], majority=result["longer_by_majority"],
                printed=run.settings["sets"][name],
            )  # fmt: skip
    agreed: list[Result] = []
    for name in run.settings["replayed"]:
        for criterion, label in (("ranking", "whole ranking"), ("best", "first system")):
            values, missed = {}, 0
            for way in ("random", criterion):
                found = run.store.get(f"replay {name} {way}", run.seeds)
                needed = [one["needed"][criterion] for one in found]
                missed += sum(n is None for n in needed)
                values[way] = [float(MOST if n is None else n) for n in needed]
                agreed += found if (criterion, way) == ("ranking", "ranking") else []
            if all(values.values()):
                yield row(
                    "adaptive", "study", f"replay of {name}, {label}", random=t_interval(values["random"]),
                    adaptive=t_interval(values[criterion]), saved=estimate_saving(values[criterion], values["random"]),
                )  # fmt: skip
    for goal, label in (("ranking", "whole ranking"), ("best", "first system")):
        for result in run.store.get(f"simulation {goal}", [SEED]):
            yield row("adaptive", "study", f"simulation, {label}", saved=plain(result["saved"]))
    if agreed:
        contradicted = sum(one.get("contradicted", 0) for one in agreed)
        taus = t_interval([one["tau"] for one in agreed if "tau" in one])
        yield {"table": "facts", "contradicted": contradicted, "tau": taus, "replays": len(agreed)}


def estimate_saving(adaptive: list[float], random: list[float]) -> dict[str, Any]:
    """1 - mean / mean, with the interval of resampled seeds."""
    rng = np.random.default_rng(SEED)
    one, two = (rng.choice(values, size=(2000, len(values))).mean(axis=1) for values in (adaptive, random))
    return with_ends(1 - np.mean(adaptive) / np.mean(random), np.percentile(1 - one / two, [2.5, 97.5]).tolist())
