"""ream: is the reliability of reference sets predicted on unseen items, and do the references it chooses help?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from study import Result, Run, Tables, forget, plain, row, share_vectors, t_interval

from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml import Dataset, Item, Record, cross_fit, fit, load
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.evaluators.ream import training
from scoring.ml.evaluators.ream.entry import NEGATIVES
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.evaluators.ream.report import report as make_report
from scoring.ml.training.gold import collect_rated_outputs
from scoring.ml.training.job import FitJob
from scoring.ml.training.record import name_group

#: Candidates of an item: at most so many of its own references, and of answers to other items.
OWN_CANDIDATES, OTHER_CANDIDATES = 40, 20
TEST_SETS = 5
SETS = ("raw", "random", "augmented", "all")
Chosen = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Source:
    """A data set, one aspect, the systems left out, and how ratings are made comparable."""

    name: str
    folder: str
    aspect: str
    without: tuple[str, ...] = ()
    ratings: Any = "raw"


def read_sources(run: Run) -> list[Source]:
    return [Source(**{**entry, "without": tuple(entry.get("without", ()))}) for entry in run.settings["sources"]]


def compute(run: Run) -> None:
    for source in read_sources(run):
        data = read_rated(run, source) if run.wants(source.name) else None
        for seed in run.seeds if data else ():
            for metric in run.settings["metrics"]:
                run.once(
                    f"{source.name}/{metric}", seed,
                    lambda d=data, o=source, m=metric, seed=seed: measure(run, d, o, m, seed),
                )  # fmt: skip
    for name in run.settings["tried"] if run.wants("tried") else ():
        run.once(f"tried/{name}", run.seeds[0], lambda name=name: try_other(run, name, run.seeds[0]))


def read_rated(run: Run, source: Source) -> Dataset:
    """Items with references, rated outputs only, without the systems left out."""
    data = run.draw(run.read(source.folder), quick=24)
    items = tuple(item for item in data.items if any(text.strip() for text in item.references))
    known = {item.id for item in items}
    ratings = tuple(
        r for r in data.ratings if r.aspect == source.aspect and r.item in known and r.system not in source.without
    )
    keys = {(r.item, r.system) for r in ratings}
    outputs = tuple(output for output in data.outputs if (output.item, output.system) in keys)
    return replace(data, items=items, outputs=outputs, ratings=ratings, comparisons=())


def cross_fitted(run: Run, data: Dataset, source: Source, metric: str, seed: int) -> CrossFitted:
    """The models of all folds: the saved ones, or newly trained and saved. Both studies of ream use the same."""
    checkpoints = run.out / "work" / run.folder(source.name, metric, seed).name.removeprefix(f"{run.study.name}-")
    folder = run.out / "models" / checkpoints.name
    if (folder / "evaluator.json").is_file():
        found = load(folder, verify=False)
    else:
        options = {**run.settings["training"], "metric": metric, "ratings": source.ratings}
        options |= {"epochs": 1, "combinations": 2} if run.quick else {}
        share_vectors(checkpoints, run.out / "work" / f"texts-{source.folder}{run.items or ''}")
        found = cross_fit(
            "ream", data, folds=2 if run.quick else run.settings["folds"], seed=seed, aspect=source.aspect,
            encoder=run.encoder, folder=checkpoints, **options,
        )  # fmt: skip
        found.save_pretrained(folder)
        forget(checkpoints)
    assert isinstance(found, CrossFitted)
    return found


def measure(run: Run, data: Dataset, source: Source, metric: str, seed: int) -> Result:
    """Predicted reliability, and the metric with chosen references, on items that each model has not seen."""
    found = cross_fitted(run, data, source, metric, seed)
    references, others, items = choose(data, found, seed)
    folder = run.folder("reports", source.name, metric, seed)
    folds = []
    for number, member in enumerate(found.members):
        assert isinstance(member, Ream)
        report = report_on(keep_items(data, unseen_by(data, member)), member, source, seed, folder / f"test-{number}")
        folds += [] if report is None else [report]
    forget(folder)
    return {
        "folds": folds,
        "sets": {name: correlate_metric(data, source, metric, chosen) for name, chosen in references.items()},
        "strangers": others,
        "items": items,
        "train_seconds": sum(member.record.seconds for member in found.members),
        "outputs": len(data.outputs),
    }


def report_on(part: Dataset, member: Ream, source: Source, seed: int, folder: Path) -> dict[str, Any] | None:
    """R2, rank correlation and accuracies on sets of the items; None if their outputs give no gold reliability."""
    items = training.query_items(part, source.aspect, source.ratings)
    if not items:
        return None
    job = FitJob(member.entry, part, None, member.artefact.profile, member.settings, seed, folder)
    prepared = training.Preparer(job, member.metric, member.pair_encoder).prepare(items, "test")
    samples, _ = training.draw_samples(prepared.gold, training.parse_sizes(job), TEST_SETS, job.rng("test sets"))
    if not samples:
        return None
    report = make_report(member.network, prepared, samples, job.rng("test perturbations"))
    figures = {name: getattr(report, name) for name in ("n", "mse", "constant", "r2", "spearman")}
    return {**figures, "accuracy": dict(report.accuracy), "n_pairs": dict(report.n_pairs)}


def try_other(run: Run, name: str, seed: int) -> Result:
    """Another way of learning, on two thirds of the groups; tested on the last third, which also chose the epoch."""
    source = next(one for one in read_sources(run) if one.name == run.settings["tried_on"])
    more = dict(run.settings["tried"][name])
    wider = replace(run, items=run.items and run.items * int(more.pop("items", 1)))
    train, dev = read_rated(wider, source).split(seed=seed, shares=(2.0, 1.0))
    folder = run.folder("tried", name, seed)
    options = {**run.settings["training"], "metric": run.settings["metrics"][0], "ratings": source.ratings}
    options |= {"epochs": 1, "combinations": 2} if run.quick else {}
    found = fit(
        "ream", train, dev=dev, aspect=source.aspect, encoder=run.encoder, seed=seed, folder=folder,
        **{**options, **more},
    )  # fmt: skip
    assert isinstance(found, Ream)
    report = report_on(dev, found, source, seed, folder / "report")
    forget(folder)
    return {"report": report, "steps": found.record.steps, "train_seconds": found.record.seconds}


def unseen_by(data: Dataset, member: Ream) -> list[Item]:
    return [item for item in data.items if name_group(item.group, item.id) not in member.trained_on]


def keep_items(data: Dataset, items: Sequence[Item]) -> Dataset:
    known = {item.id for item in items}
    return replace(
        data,
        items=tuple(items),
        outputs=tuple(output for output in data.outputs if output.item in known),
        ratings=tuple(rating for rating in data.ratings if rating.item in known),
    )


@dataclass(frozen=True)
class Pool:
    """Candidate references of an item: its own, and answers to other items."""

    item: Item
    own: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def texts(self) -> list[str]:
        return [*self.own, *self.others]


def own_references(item: Item) -> tuple[str, ...]:
    """Each text once, blank ones left out."""
    return tuple(dict.fromkeys(text for text in item.references if text.strip()))


def make_pools(data: Dataset, items: Sequence[Item], rng: np.random.Generator) -> list[Pool]:
    """For each item its own references and as many answers to other items, up to the limits above."""
    every = [(item.id, text) for item in data.items for text in item.references if text.strip()]
    pools = []
    for item in items:
        texts = own_references(item)
        own = [texts[int(place)] for place in rng.permutation(len(texts))[:OWN_CANDIDATES]]
        others: list[str] = []
        for place in rng.permutation(len(every))[: 4 * OTHER_CANDIDATES]:
            other, text = every[int(place)]
            if other != item.id and text not in item.references and len(others) < min(OTHER_CANDIDATES, len(own)):
                others.append(text)
        pools.append(Pool(item, tuple(own), tuple(others)))
    return pools


def choose(data: Dataset, found: CrossFitted, seed: int) -> tuple[dict[str, Chosen], float | None, int]:
    """References of each item by kind of set; the share of answers to other items among those added; items.

    raw: one reference drawn by seed. augmented: what ream adds from the item's other references and from as many
    answers to other items (first-fit, at most ten). random: as many drawn from the same. all: all of its own.
    """
    rng = np.random.default_rng(seed)
    sets: dict[str, dict[str, Sequence[str]]] = {name: {} for name in SETS}
    added = wrong = 0
    for member in found.members:
        assert isinstance(member, Ream)
        items = [item for item in unseen_by(data, member) if item.id not in sets["raw"]]
        pools = make_pools(data, items, rng)
        annotated = member.annotate(items, [pool.texts for pool in pools], seed=seed)
        for item, pool, chosen in zip(items, pools, annotated, strict=True):
            sets["raw"][item.id] = chosen.start
            sets["augmented"][item.id] = chosen.references
            sets["all"][item.id] = own_references(item)
            rest = [text for text in pool.texts if text not in chosen.start]
            drawn = [rest[int(place)] for place in rng.permutation(len(rest))[: len(chosen.added)]]
            sets["random"][item.id] = (*chosen.start, *drawn)
            added += len(chosen.added)
            wrong += sum(text in pool.others for text in chosen.added)
    return sets, wrong / added if added else None, len(sets["raw"])


def rated_columns(
    data: Dataset, source: Source, known: Chosen
) -> tuple[list[Record], np.ndarray, tuple[np.ndarray, ...]]:
    """Rated outputs of items with references; mean ratings; item, system and group of each."""
    rated = collect_rated_outputs(data, source.aspect, source.ratings)
    used = [place for place, record in enumerate(rated.records) if known.get(record.item)]
    records = [rated.records[place] for place in used]
    columns = (
        np.array(values, dtype=object)
        for values in zip(*((r.item, r.system, name_group(r.group, r.item)) for r in records), strict=True)
    )
    return records, rated.means()[used], tuple(columns)


def score_with(metric: str, records: Sequence[Record], chosen: Chosen) -> np.ndarray:
    texts = [replace(record, references=tuple(chosen.get(record.item, ()))) for record in records]
    return np.asarray(load(metric).evaluate(texts).values)


def correlate_metric(
    data: Dataset, source: Source, metric: str, chosen: Chosen, nan_rule: Any = None
) -> dict[str, Any]:
    """The metric with these references and human ratings: over all outputs, and within items."""
    records, human, (item, system, cluster) = rated_columns(data, source, chosen)
    values = score_with(metric, records, chosen)
    return correlate_values(values, human, item, system, cluster, **({"nan_rule": nan_rule} if nan_rule else {})) | {
        "n_references": float(np.mean([len(texts) for texts in chosen.values()]))
    }


def correlate_values(
    values: np.ndarray, human: np.ndarray, item: np.ndarray, system: np.ndarray, cluster: np.ndarray, **within: Any
) -> dict[str, Any]:
    bootstrap = Bootstrap(cluster=cluster)
    over_all = CorrelationSettings(coefficients=("pearson", "kendall"))
    pooled = correlate(values, human, item, system, bootstrap=bootstrap, settings=over_all)
    in_items = CorrelationSettings(grouping="item", coefficients=("pearson",), **within)
    inside = correlate(values, human, item, system, bootstrap=bootstrap, settings=in_items)["pearson"]
    found = {"pearson": pooled["pearson"], "kendall": pooled["kendall"], "within": inside}
    return {name: estimate.as_dict() for name, estimate in found.items()}


def average_folds(results: Sequence[Result], read: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any] | None:
    """Mean over seeds, with the interval over folds."""
    columns: list[float | None] = []
    for fold in range(min(len(result["folds"]) for result in results)):
        defined = [value for result in results if (value := read(result["folds"][fold])) is not None]
        columns.append(float(np.mean(defined)) if defined else None)
    return t_interval(columns)


def tabulate(run: Run) -> Tables:
    for source in read_sources(run):
        for metric in run.settings["metrics"]:
            results = run.store.get(f"{source.name}/{metric}", run.seeds)
            if not results:
                continue
            accuracies = {
                kind: average_folds(results, lambda fold, kind=kind: fold["accuracy"][kind]) for kind in NEGATIVES
            }
            yield row(
                "reliability", "set", f"{source.name}, {metric}", seeds=len(results), items=results[0]["items"],
                r2=average_folds(results, lambda fold: fold["r2"]),
                spearman=average_folds(results, lambda fold: fold["spearman"]), **accuracies,
            )  # fmt: skip
    for name in run.settings["tried"]:
        for result in run.store.get(f"tried/{name}", run.seeds[:1]):
            report = result["report"]
            yield row(
                "tried", "way", name, sets=report["n"], r2=report["r2"], spearman=report["spearman"],
                **report["accuracy"],
            )  # fmt: skip


def plain_set(result: Mapping[str, Any], name: str) -> dict[str, Any]:
    return plain(result["sets"][name]["pearson"])
