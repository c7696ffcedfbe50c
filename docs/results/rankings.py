"""Systems ranked from people's comparisons by every method: do the methods agree, how firm is the order, do judges
favour a side or the longer text, and how many comparisons would adaptive choice have needed? e2e and pandalm."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from store import Given, Result, Store, arguments, estimate, mean_interval, number, publish, store_of, table

from evalapp.stats.agreement.normalise import normalise_ratings
from evalapp.stats.correlation.ranking_correlation import correlate_with_ranking
from evalapp.stats.planning.adaptive import PairState, draw_pair, pair_chances
from evalapp.stats.planning.adaptive_simulation import PairChoice, simulate_saving
from evalapp.stats.ranking.bias import length_bias, side_bias
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.fragility import fragility
from evalapp.stats.ranking.judgements import PairwiseComparisons
from evalapp.stats.ranking.separation import separating
from evalapp.stats.ranking.systems import Ranking, rank_by_mean, rank_by_win_rate
from evalapp.stats.resampling.bootstrap import Bootstrap
from evalapp.words import split_words

SEED, SEEDS = 13, tuple(range(13, 23))
PARTS = ("methods", "replay", "simulation")
SETS = (("e2e", "quality"), ("e2e", "naturalness"), ("pandalm", "overall"))
MODELS = ("bradley-terry", "davidson", "rao-kupper")
METHODS = (*MODELS, "glicko2", "win-rate", "mean rank")
#: Share of pairs in which the longer text wins, of decided pairs: README beside the data.
PRINTED_LENGTH = {("e2e", "quality"): 0.633, ("e2e", "naturalness"): 0.406, ("pandalm", "overall"): 0.684}

#: A replay looks at the ranking after so many judgements more each time, and ends after so many.
LOOK, MOST = 500, 30_000
#: Chances of the pairs are computed anew after so many judgements.
EVERY = 20
FLOOR = 0.2

INTRODUCTION = """# Rankings from comparisons

Two sets with pairwise judgements, ranked by every method of `evalapp.stats` from the files alone:

```
python docs/results/rankings.py --data FOLDER_OF_SETS --out FOLDER
```

`e2e` holds 72,180 comparisons of 21 systems (five outputs side by side, so ten comparisons a row), `pandalm` 2,997 of
five models by three annotators. Intervals and rank sets of the three models are those of the sandwich over items, of
win rate and mean rank those of 1,000 resamples of items, of Glicko-2 r ± 1.96 RD; all 95 %."""

BIAS = """The chance that the first side, or the longer text, wins a decided comparison between equal systems
(Bradley-Terry over the decided comparisons with the effect as a covariate, length at the usual difference in tokens),
and the raw share among decided comparisons of texts of different length. The sides are the order in which the files
name the two; pandalm names each pair of systems in one order throughout, so its side is told from the strengths of the
systems only. “README” is the share printed beside the data; it is of the majority over raters, equal lengths counting
as half, and “as there” is the same count here."""

REPLAY = """Replay on e2e: pairs of systems are chosen one after another and judged by drawing one of the recorded
verdicts of the pair, with replacement (`floor` {floor}, chances computed anew every {every} judgements, a look every
{look}, at most {most:,}). **Ranking**: until the rank sets hold on average as few places as those of all recorded
comparisons. **First**: until as few systems as there cannot be told from the first. Mean [95 % interval by t] over
seeds {first} to {last}; a run that did not get there counts as {most:,} and is marked. Saved: one less the ratio of
the means of the goal's own choice and of random choice, with the interval of 2,000 resamples of the seeds of both. A
drawn verdict is independent of the others, the recorded ones are not (ten come from one row, three people judge the
same texts): what adaptive choice saves is the ratio to the random replay, not to the recorded number. Who looks again
and again stops at a lucky moment now and then, in all three ways alike."""

SIMULATION = """20 systems with theta drawn from N(0, .6²) and nu = e⁻¹, 2,000 judgements, 20 runs, seed {seed},
`floor` {floor}, chances anew every {every}. Errors: share of pairs of systems in the wrong order (ranking); points by
which the system found first falls short of the best (best). Saved: the share of the 2,000 judgements that adaptive
choice does not need for the error with which random choice ends; intervals from 1,000 resamples of the runs."""

GLICKO = """Glicko-2's deviation is that of a player who may change at any time and does not shrink with the number of
judgements behind the table, so its rank sets are wide; its values, means of 100 simulations, are firmer than that."""


@dataclass(frozen=True)
class Columns:
    """Comparisons of one aspect: columns, difference of lengths in tokens, and ratings where there are any."""

    name: str
    a: np.ndarray
    b: np.ndarray
    verdict: np.ndarray
    item: np.ndarray
    length: np.ndarray
    ratings: tuple[np.ndarray, ...] | None

    @property
    def longer_by_majority(self) -> float:
        """How often the longer text has the majority of an item's pair, equal lengths counting as half."""
        turned = np.where(self.a > self.b, -1, 1)
        one, two = np.where(turned < 0, self.b, self.a), np.where(turned < 0, self.a, self.b)
        worth = turned * ((self.verdict == "a").astype(int) - (self.verdict == "b"))
        keys = np.char.add(np.char.add(self.item, "/"), np.char.add(np.char.add(one, "/"), two))
        _, rows, pairs = np.unique(keys, return_index=True, return_inverse=True)
        majority = np.sign(np.bincount(pairs, weights=worth))
        longer = np.sign(turned * self.length)[rows]
        return float(((majority * longer)[majority != 0] + 1).mean() / 2)


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    path = next(folder.glob(f"{name}.jsonl*"), None)
    if path is None:
        return []
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def load(data: Path, name: str, aspect: str) -> Columns:
    rows = [row for row in read(data / name, "comparisons") if row["aspect"] == aspect]
    outputs = read(data / name, "outputs")
    tokens = {(row["item"], row["system"]): len(split_words(row["text"])) for row in outputs}
    length = [tokens[row["item"], row["system_a"]] - tokens[row["item"], row["system_b"]] for row in rows]
    columns = (np.array([row[key] for row in rows]) for key in ("system_a", "system_b", "verdict", "item"))
    rated = [row for row in read(data / name, "ratings") if row["aspect"] == aspect]
    ratings = tuple(np.array([row[key] for row in rated]) for key in ("value", "item", "rater", "system"))
    return Columns(f"{name} {aspect}", *columns, np.array(length), ratings if rated else None)


def rank(columns: Columns, method: str) -> Ranking | None:
    if method == "mean rank":
        if columns.ratings is None:
            return None
        value, item, rater, system = columns.ratings
        return rank_by_mean(
            normalise_ratings(value, item, rater, method="rank"), item, system, bootstrap=Bootstrap(seed=SEED)
        )
    a, b, verdict, item = columns.a, columns.b, columns.verdict, columns.item
    if method == "win-rate":
        return rank_by_win_rate(item, a, b, verdict, bootstrap=Bootstrap(seed=SEED))
    return rank_by_comparisons(
        PairwiseComparisons(a, b, verdict, item=item),
        model=ComparisonModel(method=method),
        bootstrap=Bootstrap(seed=SEED),
    )


def width(ranking: Ranking) -> float:
    """Mean number of places a system's rank set holds."""
    return float(np.mean([row.rank_high - row.rank_low + 1 for row in ranking.systems]))


def methods(columns: Columns) -> Result:
    rankings = {name: found for name in METHODS if (found := rank(columns, name)) is not None}
    rows = {
        name: {str(row.system): [row.estimate.value, row.rank_low, row.rank_high] for row in ranking.systems}
        for name, ranking in rankings.items()
    }
    tau = {
        f"{one}/{two}": correlate_with_ranking(
            {row.system: row.estimate.value for row in rankings[one].systems}, rankings[two], coefficient="kendall"
        ).value
        for one in rankings
        for two in rankings
    }
    a, b, verdict, item = columns.a, columns.b, columns.verdict, columns.item
    ties = rankings["davidson"].extras
    return {
        "n": len(a),
        "tie_share": ties["tie_share"],
        "rows": rows,
        "width": {name: width(ranking) for name, ranking in rankings.items()},
        "tau": tau,
        "tie": {name: rankings[name].extras["tie"] for name in ("davidson", "rao-kupper")},
        "log_likelihood": {name: rankings[name].extras["log_likelihood"] for name in MODELS},
        "groups": rankings["bradley-terry"].extras["groups"],
        "fragility": {name: fragility(a, b, verdict, model=name).as_dict() for name in MODELS},
        "separating": separating(PairwiseComparisons(a, b, verdict, item=item)).as_dict(),
        "side": side_bias(a, b, verdict, item=item).as_dict(),
        "length": length_bias(a, b, verdict, columns.length, item=item).as_dict(),
        "longer_by_majority": columns.longer_by_majority,
    }


def recorded(columns: Columns) -> tuple[list[str], Callable[[int, int, np.random.Generator], float], np.ndarray]:
    """Names of the systems, a judge that draws one of the recorded verdicts of a pair, and which pairs have any."""
    names = sorted(set(columns.a.tolist()) | set(columns.b.tolist()))
    place = {name: k for k, name in enumerate(names)}
    points: dict[tuple[int, int], list[float]] = {}
    worth = {"a": 1.0, "tie": 0.5, "b": 0.0}
    for a, b, verdict in zip(columns.a.tolist(), columns.b.tolist(), columns.verdict.tolist(), strict=True):
        value = worth[verdict]
        points.setdefault((place[a], place[b]), []).append(value)
        points.setdefault((place[b], place[a]), []).append(1 - value)
    kept = {pair: np.array(values) for pair, values in points.items()}
    there = np.zeros((len(names), len(names)), dtype=bool)
    for pair in kept:
        there[pair] = True

    def judge(a: int, b: int, rng: np.random.Generator) -> float:
        values = kept[a, b]
        return float(values[rng.integers(len(values))])

    return names, judge, there


def replay(columns: Columns, target: Ranking, way: str, seed: int) -> Result:
    """Judgements drawn with replacement until the rank sets are as narrow as those of all comparisons, and until as
    few systems as there cannot be told from the first."""
    names, judge, there = recorded(columns)
    goal, floor = ("ranking", 1.0) if way == "random" else (way, FLOOR)
    rng, answers = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    state = PairState(len(names))
    wanted, first = width(target), [row.system for row in target.systems if row.rank_low == 1]
    needed: dict[str, int | None] = {"ranking": None, "best": None}
    agreed: dict[str, Any] = {}
    a, b, worth = np.empty(MOST, dtype=np.int64), np.empty(MOST, dtype=np.int64), np.empty(MOST)
    for done in range(MOST):
        if done % EVERY == 0:
            chances = pair_chances(state, floor=floor, goal=goal, available=there)
        pair = draw_pair(*chances, rng)
        a[done], b[done], worth[done] = pair.a, pair.b, judge(pair.a, pair.b, answers)
        state.add(pair.a, pair.b, float(worth[done]))
        n = done + 1
        if n % LOOK:
            continue
        verdicts = np.array(["b", "tie", "a"])[np.round(2 * worth[:n]).astype(int)]
        found = named(rank_by_comparisons(PairwiseComparisons(a[:n], b[:n], verdicts)), names)
        if needed["ranking"] is None and width(found) <= wanted:
            needed["ranking"] = n
            agreed["tau"] = tau_with(found, target)
            agreed["contradicted"] = contradicted(found, target)
        if needed["best"] is None and sum(row.rank_low == 1 for row in found.systems) <= len(first):
            needed["best"] = n
            agreed["first"] = found.systems[0].system in first
        if all(needed.values()):
            break
    return {"needed": needed, **agreed}


def named(ranking: Ranking, names: list[str]) -> Ranking:
    """The same with names instead of numbers of systems."""
    return replace(ranking, systems=tuple(replace(row, system=names[row.system]) for row in ranking.systems))


def tau_with(found: Ranking, target: Ranking) -> float:
    scores = {row.system: row.estimate.value for row in found.systems}
    return correlate_with_ranking(scores, target, coefficient="kendall").value


def contradicted(found: Ranking, target: Ranking) -> int:
    """Pairs of systems whose rank sets are apart in both rankings, in opposite order."""
    rows = {row.system: row for row in target.systems}
    pairs = 0
    for one in found.systems:
        for two in found.systems:
            if one.rank_high < two.rank_low:
                pairs += rows[two.system].rank_high < rows[one.system].rank_low
    return pairs


def simulation(goal: str, quick: bool) -> Result:
    theta = np.random.default_rng([SEED, 9]).normal(0, 0.6, 20)
    runs, n = (3, 200) if quick else (20, 2000)
    return simulate_saving(
        theta, n, runs=runs, seed=SEED, choice=PairChoice(goal=goal, every=EVERY, floor=FLOOR)
    ).as_dict()


def replays(columns: Columns, given: Given, store: Store) -> None:
    target = rank_by_comparisons(PairwiseComparisons(columns.a, columns.b, columns.verdict, item=columns.item))
    for seed in given.seeds:
        for way in ("random", "ranking", "best"):
            setting = f"replay {columns.name} {way}"
            store.once(setting, seed, partial(replay, columns, target, way, seed))


def compute(given: Given, store: Store) -> None:
    for name, aspect in SETS:
        columns = load(given.data, name, aspect)
        if given.wants("methods"):
            store.once(f"methods {columns.name}", SEED, partial(methods, columns))
        if given.wants("replay") and name == "e2e":
            replays(columns, given, store)
    if given.wants("simulation"):
        for goal in ("ranking", "best"):
            store.once(f"simulation {goal}", SEED, partial(simulation, goal, given.quick))


def places(row: list[Any]) -> str:
    return f"{row[1]}-{row[2]}" if row[1] != row[2] else str(row[1])


def methods_page(found: Mapping[str, Result]) -> list[str]:
    lines = []
    for name, result in found.items():
        rows = result["rows"]
        used = [method for method in METHODS if method in rows]
        order = sorted(rows["bradley-terry"], key=lambda system: -rows["bradley-terry"][system][0])
        lines += ["", f"## {name}", "", f"{result['n']:,} comparisons, {100 * result['tie_share']:.0f} % ties."]
        lines += ["Value and rank set of each method; the order is that of Bradley-Terry.", ""]
        digits = {"win-rate": 3, "mean rank": 3}
        lines += table(
            ["system", *used],
            [
                [system, *(f"{number(rows[m][system][0], digits.get(m, 0))}, {places(rows[m][system])}" for m in used)]
                for system in order
            ],
        )
        widths = ", ".join(f"{method} {number(result['width'][method], 2)}" for method in used)
        nu, kappa = (result["tie"][method] for method in ("davidson", "rao-kupper"))
        if "glicko2" in used:
            lines += ["", GLICKO]
        lines += ["", f"- Mean number of places in a rank set: {widths}."]
        fits = [f"{result['log_likelihood'][model]:,.1f}" for model in ("davidson", "rao-kupper")]
        lines += [f"- Ties: nu {estimate(nu)}, kappa {estimate(kappa)}; log-likelihoods {fits[0]} and {fits[1]}."]
        groups = "; ".join(", ".join(group) for group in result["groups"])
        lines += [f"- Cannot be told apart (Bradley-Terry): {groups}."]
        for model in MODELS:
            lines += [f"- Fragility, {model}: {result['fragility'][model]['sentence']}"]
        lines += [f"- {result['separating']['sentence']}", "", "Kendall's tau-b between the values of the methods:", ""]
        lines += table(["", *used], [[one, *(number(result["tau"][f"{one}/{two}"]) for two in used)] for one in used])
    return lines


def bias_page(found: Mapping[str, Result]) -> list[str]:
    lines = ["", "## Side and length", ""]
    lines += [BIAS, ""]
    rows = []
    for (name, aspect), printed in PRINTED_LENGTH.items():
        result = found.get(f"{name} {aspect}")
        if result is None:
            continue
        cells = [f"{name} {aspect}"]
        for kind in ("side", "length"):
            effect, raw, p = result[kind]["estimate"], result[kind]["raw"], result[kind]["p"]
            shown = "< .001" if p is not None and p < 0.001 else number(p)
            cells += [f"{number(effect['value'])} [{number(effect['low'])}, {number(effect['high'])}]", shown]
            cells += [number(raw["value"])]
        rows.append([*cells, number(result["longer_by_majority"]), number(printed)])
    head = ["set, aspect", "first side", "p", "raw", "longer", "p", "raw", "as there", "README"]
    lines += table(head, rows)
    return lines


def replay_page(store: Store, given: Given) -> list[str]:
    lines = ["", "## How many comparisons adaptive choice would have needed", ""]
    lines += [
        REPLAY.format(floor=FLOOR, every=EVERY, look=LOOK, most=MOST, first=given.seeds[0], last=given.seeds[-1]),
        "",
    ]
    rows = []
    for name, aspect in SETS[:2]:
        for criterion, label in (("ranking", "ranking"), ("best", "first")):
            cells = [f"{name} {aspect}", label]
            values = {}
            for way in ("random", "ranking", "best"):
                found = [r["needed"][criterion] for r in store.of(f"replay {name} {aspect} {way}", given.seeds)]
                values[way] = [MOST if n is None else n for n in found]
                missed = sum(n is None for n in found)
                mark = f" ({missed} of {len(found)} not there)" if missed else ""
                cells.append(mean_interval([float(n) for n in values[way]], 0) + mark)
            rows.append([*cells, saving(values[criterion], values["random"])])
    lines += table(["aspect", "until", "random", "adaptive, ranking", "adaptive, best", "saved"], rows)
    agreed = [r for name, aspect in SETS[:2] for r in store.of(f"replay {name} {aspect} ranking", given.seeds)]
    taus = [r["tau"] for r in agreed if r.get("tau") is not None]
    pairs = sum(r.get("contradicted", 0) for r in agreed)
    firsts = [r["first"] for name, aspect in SETS[:2] for way in ("random", "ranking", "best")
              for r in store.of(f"replay {name} {aspect} {way}", given.seeds) if "first" in r]  # fmt: skip
    lines += [
        "",
        f"Where the adaptive replays for the ranking end, tau-b with the ranking by all is {mean_interval(taus)},",
        f"and {pairs} pairs of systems stand apart in the opposite order in {len(agreed)} replays. In {sum(firsts)} of",
        f"{len(firsts)} replays the system found first is one that all comparisons cannot tell from their first.",
    ]
    return lines


def saving(adaptive: list[int], random: list[int]) -> str:
    """1 - mean / mean [95 % of resampled seeds]."""
    if not adaptive or not random:
        return "-"
    rng = np.random.default_rng(SEED)
    one, two = (rng.choice(values, size=(2000, len(values))).mean(axis=1) for values in (adaptive, random))
    low, high = np.percentile(1 - one / two, [2.5, 97.5])
    return f"{number(1 - np.mean(adaptive) / np.mean(random), 2)} [{number(low, 2)}, {number(high, 2)}]"


def simulation_page(store: Store) -> list[str]:
    lines = ["", "## Simulated saving", ""]
    lines += [SIMULATION.format(seed=SEED, floor=FLOOR, every=EVERY), ""]
    rows = []
    for goal in ("ranking", "best"):
        for result in store.of(f"simulation {goal}", [SEED]):
            saved, digits = result["saved"], 3 if goal == "ranking" else 1
            half = len(result["looks"]) // 2 - 1
            rows.append([
                goal, *(number(result[way][k], digits) for k in (half, -1) for way in ("random", "adaptive")),
                f"{number(saved['value'], 2)} [{number(saved['low'], 2)}, {number(saved['high'], 2)}]",
            ])  # fmt: skip
    lines += table(["goal", "random, half way", "adaptive, half way", "random, end", "adaptive, end", "saved"], rows)
    return lines


def main() -> None:
    given = arguments(__doc__ or "", seeds=SEEDS, parts=PARTS, without=("encoder", "items"))
    store = store_of(given, "rankings")
    if not given.page_only:
        compute(given, store)
    found = {
        f"{name} {aspect}": result for name, aspect in SETS for result in store.of(f"methods {name} {aspect}", [SEED])
    }
    results = list(store.rows.values())
    hours = sum(result["wall_seconds"] for result in results) / 3600
    loads = [result["load"] for result in results]
    lines = [INTRODUCTION, *methods_page(found), *bias_page(found), *replay_page(store, given), *simulation_page(store)]
    lines += [
        "",
        f"{len(results)} results took {hours:.2f} h together, load {min(loads):g} to {max(loads):g} before each.",
    ]
    publish(given, "rankings", lines)


if __name__ == "__main__":
    main()
