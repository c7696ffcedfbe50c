"""Metrics with references that ream chose from an item's references mixed with wrong ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from experiments.references import (
    Chosen,
    Pool,
    Source,
    correlate_values,
    cross_fitted,
    make_pools,
    own_references,
    plain_set,
    rated_columns,
    read_rated,
    read_sources,
    score_with,
    unseen_by,
)
from study import Result, Run, Tables, plain, row

from evalapp.stats.correlation.paired import compare
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml import Dataset, load
from scoring.ml.base import PairEvaluator, Query
from scoring.ml.evaluators.ream.annotate import Search, choose_references
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.evaluators.ream.gold import ItemGold
from scoring.ml.training.gold import collect_rated_outputs

MOST = 10
SETS = ("raw", "random", "ream", "transfer", "mix", "oracle", "all")
#: (a, b): the difference a − b is tested on the same outputs.
PAIRS = (("ream", "raw"), ("ream", "random"), ("transfer", "random"), ("oracle", "random"), ("all", "ream"))


def compute(run: Run) -> None:
    metrics = run.settings["metrics"]
    for source in read_sources(run):
        if not run.wants(source.name):
            continue
        data = read_rated(run, source)
        for seed in run.seeds:
            missing = [metric for metric in metrics if run.store.lacks(f"{source.name}/{metric}", seed)]
            # The choices of each model are a result of their own, so that the other metric can use them.
            for metric in metrics if missing else ():
                run.once(
                    f"{source.name}/{metric}/chosen", seed,
                    lambda d=data, o=source, m=metric, seed=seed: choose(run, d, o, m, seed), data=True,
                )  # fmt: skip
            for metric in missing:
                run.once(
                    f"{source.name}/{metric}", seed,
                    lambda d=data, o=source, m=metric, seed=seed: measure(run, d, o, m, seed),
                )  # fmt: skip


def choose(run: Run, data: Dataset, source: Source, metric: str, seed: int) -> Result:
    """References of each item by kind of set, chosen by models that have not seen its group."""
    found, golds = cross_fitted(run, data, source, metric, seed), Golds(data, source, metric)
    sets: dict[str, dict[str, Sequence[str]]] = {name: {} for name in ("raw", "random", "ream", "oracle", "all")}
    names = ("taken", "strangers", "offered", "offered_strangers", "oracle", "oracle_strangers")
    counts = dict.fromkeys(names, 0)
    # Pools do not depend on the metric, so that transfer chooses from the same candidates.
    pools = {pool.item.id: pool for pool in make_pools(data, data.items, np.random.default_rng(seed))}
    for member in found.members:
        assert isinstance(member, Ream)
        mine = [pools[item.id] for item in unseen_by(data, member) if item.id not in sets["raw"]]
        annotated = member.annotate([pool.item for pool in mine], [pool.texts for pool in mine], most=MOST, seed=seed)
        for pool, chosen in zip(mine, annotated, strict=True):
            key, best = pool.item.id, golds.choose(pool, chosen.start, seed)
            rest = [text for text in pool.texts if text not in chosen.start]
            blind = np.random.default_rng([seed, *key.encode()]).permutation(len(rest))[: len(chosen.added)]
            sets["raw"][key], sets["ream"][key], sets["oracle"][key] = chosen.start, chosen.references, best
            sets["all"][key] = own_references(pool.item)
            sets["random"][key] = (*chosen.start, *(rest[int(place)] for place in blind))
            counts["taken"] += len(chosen.added)
            counts["strangers"] += sum(text in pool.others for text in chosen.added)
            counts["offered"] += len(rest)
            counts["offered_strangers"] += len(pool.others)
            counts["oracle"] += len(best) - len(chosen.start)
            counts["oracle_strangers"] += sum(text in pool.others for text in best[len(chosen.start) :])
    seconds = sum(member.record.seconds for member in found.members)
    return {"sets": sets, "counts": counts, "items": len(sets["raw"]), "train_seconds": seconds}


class Golds:
    """The gold reliability of an item's sets of references (equations 1 and 2), from its rated outputs."""

    def __init__(self, data: Dataset, source: Source, metric: str) -> None:
        found = load(metric)
        assert isinstance(found, PairEvaluator)
        self.metric = found
        rated = collect_rated_outputs(data, source.aspect, source.ratings)
        self.outputs: dict[str, list[tuple[str, float]]] = {}
        for record, mean in zip(rated.records, rated.means(), strict=True):
            self.outputs.setdefault(record.item, []).append((record.text, float(mean)))

    def choose(self, pool: Pool, start: Sequence[str], seed: int) -> tuple[str, ...]:
        """The choice of ream with the true reliability; the start alone where none is defined."""
        outputs = self.outputs.get(pool.item.id, [])
        texts = list(dict.fromkeys([*start, *pool.texts]))
        (matrix,) = self.metric.all_pairs([Query([text for text, _ in outputs], texts)])
        gold = ItemGold(np.asarray(matrix), np.array([mean for _, mean in outputs]), len(texts))
        place = {text: number for number, text in enumerate(texts)}

        def judge(sets: Sequence[Sequence[str]]) -> list[float]:
            found = gold.reliabilities([tuple(place[text] for text in each) for each in sets])
            return list(np.where(np.isnan(found), -1.0, found).tolist())

        rng = np.random.default_rng([seed, *pool.item.id.encode()])
        return choose_references(pool.item.id, start, pool.texts, judge, Search(MOST), rng=rng).references


def measure(run: Run, data: Dataset, source: Source, metric: str, seed: int) -> Result:
    """The metric with each set of references and human ratings, and the differences on the same outputs."""
    other = next(name for name in run.settings["metrics"] if name != metric)
    choice = run.store.rows[f"{source.name}/{metric}/chosen", seed]
    own, theirs = choice["sets"], run.store.rows[f"{source.name}/{other}/chosen", seed]["sets"]
    sets: dict[str, Chosen] = {**own, "transfer": theirs["ream"]}
    sets["mix"] = {key: list(dict.fromkeys([*own["ream"][key], *theirs["ream"].get(key, ())])) for key in own["ream"]}
    records, human, (item, system, cluster) = rated_columns(data, source, own["raw"])
    values = {name: score_with(metric, records, sets[name]) for name in SETS}
    found: dict[str, Mapping[str, object]] = {
        name: correlate_values(column, human, item, system, cluster, nan_rule="zero")
        | {"n_references": float(np.mean([len(texts) for texts in sets[name].values()]))}
        for name, column in values.items()
    }
    bootstrap = Bootstrap(cluster=cluster)
    differences = {
        f"{a} - {b}": compare(values[a], values[b], human, item, system, bootstrap=bootstrap).as_dict()
        for a, b in PAIRS
    }
    return {
        "sets": found, "differences": differences, "outputs": len(records), "items": choice["items"],
        "counts": choice["counts"],
    }  # fmt: skip


def tabulate(run: Run) -> Tables:
    """Of each set the rows from all items where there are any, otherwise those from the part of `run`."""
    whole = run.with_items(None)
    for source in read_sources(run):
        for metric in run.settings["metrics"]:
            setting = f"{source.name}/{metric}"
            results = whole.store.get(setting, run.seeds) or run.store.get(setting, run.seeds)
            if results:
                counts = {name: sum(result["counts"][name] for result in results) for name in results[0]["counts"]}
                yield row(
                    "chosen", "set", f"{source.name}, {metric}", items=results[0]["items"], seeds=len(results),
                    **{name: average([plain_set(result, name) for result in results]) for name in SETS},
                    difference=average([plain(result["differences"]["ream - random"]) for result in results]),
                    all_difference=average([plain(result["differences"]["all - ream"]) for result in results]),
                    oracle_difference=average([plain(result["differences"]["oracle - random"]) for result in results]),
                    offered=counts["offered_strangers"] / counts["offered"],
                    taken=counts["strangers"] / counts["taken"] if counts["taken"] else None,
                )  # fmt: skip


def average(estimates: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means over seeds of values and ends of intervals. However the seeds depend on each other, the standard error of a
    mean is at most the mean of the standard errors."""
    return {name: float(np.mean([one[name] for one in estimates])) for name in ("value", "low", "high")}
