"""Are metrics better with the references that ream chooses? Raw, random, ream, oracle and all references side by side.

    python docs/results/enhanced.py --out FOLDER [--only dstc7_dev dstc7_dev-machines e2e dailydialog_multiref]

Of every item all references but one are held back. ream, cross-fitted by group, chooses from those held back mixed with
as many wrong ones (references of other items), first-fit, until nothing improves or there are ten. Uses the models that
`ream.py` saved in the same folder, where they are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from ream_parts import (
    FOLDS,
    METRICS,
    SETTINGS,
    SIZES,
    Pool,
    Question,
    cross_fitted,
    found_of,
    make_page,
    make_pools,
    own_references,
    rated_part,
    sections,
    size_line,
    unseen_by,
)
from store import (
    ABSENT,
    Given,
    Result,
    Store,
    estimate,
    machine_line,
    mean_interval,
    mean_sd,
    number,
    t_interval,
    table,
    what_was_read,
)

from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.correlation.paired import compare
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml import Dataset, load
from scoring.ml.base import PairEvaluator, Query
from scoring.ml.evaluators.ream.annotate import choose_references
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.evaluators.ream.gold import ItemGold
from scoring.ml.training.gold import rated_records
from scoring.ml.training.record import group_of

MOST = 10
SETS = ("raw", "random", "ream", "transfer", "mix", "oracle", "all")
#: (a, b): the difference a minus b is tested on the same outputs.
PAIRS = (("ream", "raw"), ("ream", "random"), ("transfer", "random"), ("oracle", "random"), ("all", "ream"))
MEANING = {
    "raw": "one reference, drawn by the seed",
    "random": "raw and as many candidates as ream took, item by item, drawn blindly from the same",
    "ream": "raw and what the model for this metric takes",
    "transfer": "raw and what the model for the other metric takes",
    "mix": "the union of ream and transfer",
    "oracle": "raw and what really improves the reliability, by the ratings of these very outputs: a ceiling only",
    "all": "every reference of the item, no wrong one",
}
Chosen = dict[str, tuple[str, ...]]


def compute(given: Given, store: Store, question: Question) -> None:
    data = rated_part(given, question)
    for seed in given.seeds:
        missing = [metric for metric in METRICS if (f"{question.name}/{metric}", seed) not in store.rows]
        # What each model chose is a result of its own, so that the other metric's part can read it.
        for metric in METRICS if missing else ():
            store.once(
                f"{question.name}/{metric}/chosen", seed,
                lambda seed=seed, metric=metric: choose(given, data, question, metric, seed), data=True,
            )  # fmt: skip
        for metric in missing:
            store.once(
                f"{question.name}/{metric}", seed,
                lambda seed=seed, metric=metric: measure(store, data, question, metric, seed),
            )  # fmt: skip


def choose(given: Given, data: Dataset, question: Question, metric: str, seed: int) -> Result:
    """References of each item by kind of set, chosen by models that did not see its group."""
    found = cross_fitted(given, data, question, metric, seed)
    golds = Golds(data, question, metric)
    sets: dict[str, Chosen] = {name: {} for name in ("raw", "random", "ream", "oracle", "all")}
    counts = {"taken": 0, "strangers": 0, "offered": 0, "offered_strangers": 0, "oracle": 0, "oracle_strangers": 0}
    # Pools do not depend on the metric, so that transfer is between choices from the same candidates.
    pools = {pool.item.id: pool for pool in make_pools(data, data.items, np.random.default_rng(seed))}
    for member in found.members:
        assert isinstance(member, Ream)
        mine = [pools[item.id] for item in unseen_by(data, member) if item.id not in sets["raw"]]
        annotated = member.annotate([pool.item for pool in mine], [pool.texts for pool in mine], most=MOST, seed=seed)
        for pool, chosen in zip(mine, annotated, strict=True):
            key = pool.item.id
            best = golds.choose(pool, chosen.start, seed)
            sets["raw"][key], sets["ream"][key], sets["oracle"][key] = chosen.start, chosen.references, best
            sets["all"][key] = own_references(pool.item)
            rest = [text for text in pool.texts if text not in chosen.start]
            blind = np.random.default_rng([seed, *key.encode()]).permutation(len(rest))[: len(chosen.added)]
            sets["random"][key] = (*chosen.start, *(rest[int(place)] for place in blind))
            counts["taken"] += len(chosen.added)
            counts["strangers"] += sum(text in pool.strangers for text in chosen.added)
            counts["offered"] += len(rest)
            counts["offered_strangers"] += len(pool.strangers)
            counts["oracle"] += len(best) - len(chosen.start)
            counts["oracle_strangers"] += sum(text in pool.strangers for text in best[len(chosen.start) :])
    seconds = sum(member.record.seconds for member in found.members if isinstance(member, Ream))
    return {"sets": sets, "counts": counts, "items": len(sets["raw"]), "train_seconds": seconds}


class Golds:
    """The gold reliability of sets of references of an item (equations 1 and 2), from its rated outputs."""

    def __init__(self, data: Dataset, question: Question, metric: str) -> None:
        found = load(metric)
        assert isinstance(found, PairEvaluator)
        self.metric = found
        rated = rated_records(data, question.aspect, question.ratings)  # type: ignore[arg-type]
        self.outputs: dict[str, list[tuple[str, float]]] = {}
        for record, mean in zip(rated.records, rated.means(), strict=True):
            self.outputs.setdefault(record.item, []).append((record.text, float(mean)))

    def choose(self, pool: Pool, start: Sequence[str], seed: int) -> tuple[str, ...]:
        """As ream chooses, with the truth in place of the prediction; the start alone where no truth is defined."""
        outputs = self.outputs.get(pool.item.id, [])
        texts = list(dict.fromkeys([*start, *pool.texts]))
        (matrix,) = self.metric.all_pairs([Query([text for text, _ in outputs], texts)])
        gold = ItemGold(np.asarray(matrix), np.array([mean for _, mean in outputs]), len(texts))
        place = {text: number for number, text in enumerate(texts)}

        def judge(sets: Sequence[Sequence[str]]) -> list[float]:
            found = gold.reliabilities([tuple(place[text] for text in each) for each in sets])
            return np.where(np.isnan(found), -1.0, found).tolist()  # type: ignore[no-any-return]

        rng = np.random.default_rng([seed, *pool.item.id.encode()])
        return choose_references(pool.item.id, start, pool.texts, judge, most=MOST, rng=rng).references


def measure(store: Store, data: Dataset, question: Question, metric: str, seed: int) -> Result:
    """The metric against people with each set of references, and the differences on the same outputs."""
    other = next(name for name in METRICS if name != metric)
    choice = store.rows[f"{question.name}/{metric}/chosen", seed]
    own = choice["sets"]
    theirs = store.rows[f"{question.name}/{other}/chosen", seed]["sets"]
    sets: dict[str, Mapping[str, Sequence[str]]] = {**own, "transfer": theirs["ream"]}
    sets["mix"] = {key: list(dict.fromkeys([*own["ream"][key], *theirs["ream"].get(key, ())])) for key in own["ream"]}
    rated = rated_records(data, question.aspect, question.ratings)  # type: ignore[arg-type]
    keep = [place for place, record in enumerate(rated.records) if own["raw"].get(record.item)]
    records = [rated.records[place] for place in keep]
    human = rated.means()[keep]
    item = np.array([record.item for record in records], dtype=object)
    system = np.array([record.system for record in records], dtype=object)
    cluster = np.array([group_of(record.group, record.item) for record in records], dtype=object)
    measure_ = load(metric)
    values, found = {}, {}
    for name in SETS:
        chosen = sets[name]
        texts = [replace(record, references=tuple(chosen.get(record.item, ()))) for record in records]
        values[name] = measure_.evaluate(texts).values
        pooled = correlate(
            values[name],
            human,
            item,
            system,
            bootstrap=Bootstrap(cluster=cluster),
            settings=CorrelationSettings(coefficients=("pearson", "kendall")),
        )
        within = correlate(
            values[name],
            human,
            item,
            system,
            bootstrap=Bootstrap(cluster=cluster),
            settings=CorrelationSettings(grouping="item", nan_rule="zero", coefficients=("pearson",)),
        )
        found[name] = {
            "pearson": pooled["pearson"].as_dict(), "kendall": pooled["kendall"].as_dict(),
            "within": within["pearson"].as_dict(),
            "n_references": float(np.mean([len(texts) for texts in chosen.values()])),
        }  # fmt: skip
    differences = {
        f"{a} - {b}": compare(values[a], values[b], human, item, system, bootstrap=Bootstrap(cluster=cluster)).as_dict()
        for a, b in PAIRS
    }
    counted = {"outputs": len(records), "items": choice["items"], "counts": choice["counts"]}
    return {"sets": found, "differences": differences, **counted}


# What follows makes the page from the results.


def page(given: Given, store: Store) -> list[str]:
    """The page, from what the store holds."""
    lines = [
        "# Metrics with references that ream chose",
        "",
        "Of every item one reference is kept and the others are held back. ream chooses from those held back, mixed",
        f"with as many references of other items, until nothing improves or there are {MOST}.",
        f"Cross-fitted in {FOLDS} folds by group, so that each item is judged by a model that did not see its group;",
        f"sizes {SIZES} as far as an item has references, {SETTINGS['combinations']} sets of a size and item,",
        f"{SETTINGS['epochs']} epochs at most.",
        "",
        *(f"- **{name}**: {text}" for name, text in MEANING.items()),
        "",
        what_was_read(given),
        "",
        f"Made by `docs/results/enhanced.py`. {machine_line(store.figures(), store.code, store.checks)}",
        "",
        "Intervals: 95 %, resampled groups of items, first seed; mean ± SD over seeds. Within items: the mean of the",
        "correlations over the outputs of each item, undefined ones counted as 0. p: two-sided, by resamples that are",
        "the same for both sets.",
    ]
    return [*lines, *sections(lambda question: of_question(given, store, question))]


def of_question(given: Given, store: Store, question: Question) -> list[str]:
    by_metric = found_of(given, store, question)
    if not any(by_metric.values()):
        return [ABSENT]
    some = next(found[0] for found in by_metric.values() if found)
    lines = [size_line(question, some["items"], some["outputs"]), ""]
    for metric, found in by_metric.items():
        if found:
            lines += [verdict(metric, found), ""]
    lines += [*correlations(by_metric), "", *differences(by_metric), "", *shares(by_metric)]
    return lines


def verdict(metric: str, found: Sequence[Result]) -> str:
    """Whether ream beats random choice, in words, and by which figures."""
    rows = [result["differences"]["ream - random"] for result in found]
    values = [row["value"] for row in rows if row["value"] is not None]
    if not values:
        return f"**{metric}**: the difference between ream and random choice is undefined."
    better = sum(row["low"] is not None and row["low"] > 0 for row in rows)
    worse = sum(row["high"] is not None and row["high"] < 0 for row in rows)
    mean = float(np.mean(values))
    over_seeds = len(values) > 1 and t_interval(values)[0] > 0
    if better == len(rows) or (better and over_seeds):
        said = "ream beats random choice"
    elif worse == len(rows):
        said = "ream is worse than random choice"
    else:
        said = "it is not shown that ream beats random choice"
    return (
        f"**{metric}: {said}** ({number(mean)} in Pearson on average over the seeds; of {len(rows)} intervals {better} "
        f"lie above 0, {worse} below)."
    )


def correlations(by_metric: Mapping[str, Sequence[Result]]) -> list[str]:
    head = [
        "metric",
        "references",
        "how many",
        "Pearson",
        "over seeds",
        "Kendall",
        "over seeds",
        "within items, Pearson",
    ]
    rows = []
    for metric, found in by_metric.items():
        for name in SETS if found else ():
            each = [result["sets"][name] for result in found]
            rows.append(
                [
                    metric, name, number(float(np.mean([one["n_references"] for one in each])), 1),
                    estimate(each[0]["pearson"]), mean_sd([one["pearson"]["value"] for one in each]),
                    estimate(each[0]["kendall"]), mean_sd([one["kendall"]["value"] for one in each]),
                    mean_sd([one["within"]["value"] for one in each]),
                ]
            )  # fmt: skip
    return table(head, rows)


def differences(by_metric: Mapping[str, Sequence[Result]]) -> list[str]:
    """Differences of Pearson correlations on the same outputs."""
    head = ["metric", "difference", "first seed", "p", "p (Williams)", "mean over seeds [95 % by t]"]
    rows = []
    for metric, found in by_metric.items():
        for a, b in PAIRS if found else ():
            each = [result["differences"][f"{a} - {b}"] for result in found]
            rows.append(
                [
                    metric, f"{a} − {b}", estimate(each[0]), number(each[0]["p"]), number(each[0]["williams"]),
                    mean_interval([one["value"] for one in each]),
                ]
            )  # fmt: skip
    return table(head, rows)


def shares(by_metric: Mapping[str, Sequence[Result]]) -> list[str]:
    """How many wrong references were offered and taken."""
    rows = []
    for metric, found in by_metric.items():
        if not found:
            continue
        counts = [result["counts"] for result in found]
        rows.append(
            [
                metric,
                *(
                    mean_sd([one[part] / one[whole] if one[whole] else None for one in counts])
                    for part, whole in (
                        ("offered_strangers", "offered"), ("strangers", "taken"), ("oracle_strangers", "oracle"),
                    )
                ),
            ]
        )  # fmt: skip
    head = ["metric", "wrong among those offered", "among those ream took", "among those the oracle took"]
    return table(head, rows)


if __name__ == "__main__":
    make_page("enhanced", __doc__ or "", compute, page)
