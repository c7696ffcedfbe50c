"""shared-bert: predicting good and bad outputs by aspect, on unseen groups and on unseen rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from experiments.yardstick import Judged, RatedSet
from scipy import stats
from study import Result, Run, Tables, forget, over_seeds, row, t_interval

from evalapp.stats.core.multiple_tests import holm
from scoring.ml import Dataset, fit, load
from scoring.ml.evaluators.shared_bert.evaluator import SharedBert
from scoring.ml.evaluators.shared_bert.labels import label_outputs
from scoring.ml.evaluators.shared_bert.report import classify, compare_over_seeds
from scoring.ml.training.gold import output_key

FIRST, RIDGE = "head first", "ridge"
#: Models whose head is fitted before the encoder learns; all have the rates that were chosen for the first one.
HEAD_FIRST = {"head": FIRST, "graded": "graded labels", "nearest": "nearest reference"}
FIGURES = ("accuracy", "balanced_accuracy", "mcc", "auroc", "f1")
STORED = (*FIGURES, "n", "positives", "majority", "majority_f1", "collapsed")


def compute(run: Run) -> None:
    """The learning rate, then the shared model of all seeds, then the others; three models take three times as long."""
    data, first = read_ratings(run), run.seeds[0]
    together = [model for model in run.settings["models"] if model not in HEAD_FIRST.values()]
    rate = choose_rate(run, data, first) if together else 0.0
    for model in sorted(together, key=lambda name: name == "three"):
        for seed in run.seeds:
            for split in ("group", "row"):
                alone = "alone" in model
                if run.wants("sentinels" if alone else split) and not (alone and (split == "row" or seed != first)):
                    run.once(
                        f"{split}/{model}", seed,
                        lambda s=split, m=model, seed=seed: train_one(run, data, s, m, seed, rate),
                    )  # fmt: skip

    for seed in run.seeds if run.wants("ridge") else ():
        run.once(f"group/{RIDGE}", seed, lambda seed=seed: test_ridge(run, data, seed))
    wanted = [model for part, model in HEAD_FIRST.items() if run.wants(part) and model in run.settings["models"]]
    if wanted:
        tries: dict[str, dict[str, Any]] = run.settings["head_tries"]
        found = {
            name: run.once(f"choice/{FIRST}/{name}", first, lambda own=own: try_head(run, data, own, first))
            for name, own in list(tries.items())[: 1 if run.quick else None]
        }
        best = tries[max(found, key=lambda name: found[name]["auroc"])]
        for model in wanted:
            for seed in run.seeds:
                run.once(
                    f"group/{model}", seed,
                    lambda m=model, seed=seed: train_one(run, data, "group", m, seed, best["learning_rate"], best),
                )  # fmt: skip


def read_ratings(run: Run) -> Dataset:
    """The set with the ratings by its aspects."""
    data, aspects = run.draw(run.read(run.settings["set"]), quick=40), run.settings["aspects"]
    ratings = tuple(rating for rating in data.ratings if rating.aspect in aspects)
    return replace(data, ratings=ratings, comparisons=())


def choose_rate(run: Run, data: Dataset, seed: int) -> float:
    """The learning rate with the highest macro-F1 on the dev part."""
    rates = run.settings["learning_rates"][: 2 if run.quick else None]
    tried = [run.once(f"choice/{rate:g}", seed, lambda rate=rate: try_rate(run, data, rate, seed)) for rate in rates]
    return float(max(tried, key=lambda one: one["macro_f1"])["rate"])


def make_options(run: Run, model: str, seed: int, rate: float) -> dict[str, Any]:
    few = run.settings["few"] if run.items or run.quick else {}
    quick = {"epochs": 1} if run.quick else {}
    return {
        **few, **run.settings["usual"], **run.settings["models"][model], "encoder": run.encoder, "seed": seed,
        "learning_rate": rate, **quick,
    }  # fmt: skip


def try_rate(run: Run, data: Dataset, rate: float, seed: int) -> Result:
    """Macro-F1 on the dev part with one learning rate, mean over aspects."""
    train, dev, _ = data.split(seed=seed)
    folder = run.folder("choice", rate, seed)
    found = fit("shared-bert", train, dev=dev, folder=folder, **make_options(run, "shared", seed, rate))
    forget(folder)
    return {"rate": rate, "macro_f1": found.record.metrics["macro_f1"], "train_seconds": found.record.seconds}


def try_head(run: Run, data: Dataset, own: Mapping[str, Any], seed: int) -> Result:
    """AUROC on the dev part with the head first and the options `own`, mean over aspects, and what was kept."""
    train, dev, _ = data.split(seed=seed)
    folder = run.folder("choice", FIRST, *own.values(), seed)
    found = fit(
        "shared-bert", train, dev=dev, folder=folder,
        **{**make_options(run, FIRST, seed, own["learning_rate"]), **own},
    )  # fmt: skip
    forget(folder)
    curve = [{name: row.get(f"dev_{name}") for name in ("auroc", "macro_f1")} for row in found.record.log]
    kept = found.record.log[0].get("kept_stage")
    return {
        "auroc": found.record.metrics["auroc"], "curve": curve, "kept": kept, "train_seconds": found.record.seconds,
    }  # fmt: skip


def train_one(
    run: Run, data: Dataset, split: str, model: str, seed: int, rate: float, own: Mapping[str, Any] | None = None
) -> Result:
    """Train a model and test it on groups, or on rows, that it has not seen."""
    options, folder = {**make_options(run, model, seed, rate), **(own or {})}, run.folder(split, model, seed)
    if split == "row":
        found = fit("shared-bert", data, folder=folder, split="row", **options)
        metrics = found.record.metrics
        aspects = {a: {name: metrics.get(f"test_{name}_{a}") for name in STORED} for a in found.aspects}
    else:
        train, dev, test = data.split(seed=seed)
        found = fit("shared-bert", train, dev=dev, folder=folder, **options)
        assert isinstance(found, SharedBert)
        aspects = test_groups(found, test, run.settings["baselines"])
    forget(folder)
    kept = {"kept": found.record.log[0].get("kept_stage")} if model in HEAD_FIRST.values() else {}
    return {"aspects": aspects, "train_seconds": found.record.seconds, "steps": found.record.steps, **kept}


def test_groups(model: SharedBert, test: Dataset, baselines: Sequence[str]) -> dict[str, Any]:
    labelled = label_outputs(test, model.aspects)
    scores = model.score(labelled.records)
    found = {}
    for place, aspect in enumerate(model.aspects):
        labels = labelled.labels[:, place]
        report = classify(labels, scores[:, place])
        floors = {name: classify(labels, load(name).score(labelled.records)).auroc for name in baselines}
        found[aspect] = {**{name: getattr(report, name) for name in STORED}, "floors": floors}
    return found


def test_ridge(run: Run, data: Dataset, seed: int) -> Result:
    """AUROC of `ridge`, which learns the median ratings of the training part, on the test part of the group split."""
    rated = RatedSet(run, run.settings["set"], {"aspects": run.settings["aspects"]})
    train, _, test = data.split(seed=seed)
    learned = {item.id for item in train.items}
    labelled = label_outputs(test, tuple(run.settings["aspects"]))
    places = [rated.places[output_key(record)] for record in labelled.records]
    aspects = {}
    for number, aspect in enumerate(run.settings["aspects"]):
        judged = Judged(rated, aspect)
        rows = np.array([str(item) in learned for item in judged.items])
        scores = judged.fit_rows(rows)[places]
        aspects[aspect] = {"auroc": classify(labelled.labels[:, number], scores).auroc, "n": len(places)}
    return {"aspects": aspects}


def read_values(results: Sequence[Result], aspect: str, name: str) -> list[Any]:
    return [result["aspects"][aspect][name] for result in results]


def compare(one: Sequence[float | None], other: Sequence[float | None]) -> dict[str, float] | None:
    """other - one with its interval, paired by seed."""
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a is not None and b is not None]
    if len(pairs) < 2:
        return None
    gap = compare_over_seeds([a for a, _ in pairs], [b for _, b in pairs]).difference
    return {"value": gap.value, "low": gap.low, "high": gap.high}


def tabulate(run: Run) -> Tables:
    """Skill and leakage from all items, the comparison with three models from the part that has both."""
    whole, part = run.with_items(run.settings["all_items"]), run.with_items(run.study.items)
    group, rows, few = (
        one.store.get(f"{split}/shared", run.seeds)
        for one, split in ((whole, "group"), (whole, "row"), (part, "group"))
    )
    three = part.store.get("group/three", run.seeds)
    yield from tabulate_rivals(whole)
    for aspect in run.settings["aspects"] if group else ():
        floors = [result["aspects"][aspect]["floors"] for result in group]
        yield row(
            "skill", "aspect", aspect, seeds=len(group),
            mcc=t_interval(read_values(group, aspect, "mcc")), auroc=t_interval(read_values(group, aspect, "auroc")),
            accuracy=t_interval(read_values(group, aspect, "accuracy")),
            majority=over_seeds(read_values(group, aspect, "majority")),
            few=t_interval(read_values(few, aspect, "mcc")),
            **{name: over_seeds([one[name] for one in floors]) for name in run.settings["baselines"]},
        )  # fmt: skip
    for aspect in run.settings["aspects"] if rows else ():
        by_row, by_group = (read_values(found, aspect, "mcc") for found in (rows, group))
        yield row(
            "leakage", "aspect", aspect, by_row=over_seeds(by_row), by_group=over_seeds(by_group),
            difference=compare(by_group, by_row),
        )  # fmt: skip
    for aspect in run.settings["aspects"] if three else ():
        for name in ("mcc", "auroc"):
            one, other = read_values(three, aspect, name), read_values(few, aspect, name)
            yield row(
                "shared", "aspect", f"{aspect}, {name.upper()}", three=over_seeds(one), shared=over_seeds(other),
                difference=compare(one, other),
            )  # fmt: skip
    yield from tabulate_inputs(part, run.seeds[:1])


def tabulate_rivals(run: Run) -> Tables:
    """AUROC of each shared model minus that of ridge, paired by seed; p of the paired t-test by Holm over all rows."""
    rows, tests = [], []
    models = {"together": "shared", **{model: model for model in HEAD_FIRST.values()}}
    for aspect in run.settings["aspects"]:
        for label, model in models.items():
            both = [
                [read_values(run.store.get(f"group/{name}", [seed]), aspect, "auroc") for name in (model, RIDGE)]
                for seed in run.seeds
            ]
            pairs = [(own[0], ridge[0]) for own, ridge in both if own and ridge]
            if pairs:
                own, ridge = [a for a, _ in pairs], [b for _, b in pairs]
                tests.append(float(stats.ttest_rel(own, ridge).pvalue) if len(pairs) > 2 else None)
                rows.append(row(
                    "rivals", "aspect", f"{aspect}, {label}", seeds=len(pairs), auroc=t_interval(own),
                    ridge=t_interval(ridge), difference=compare(ridge, own),
                ))  # fmt: skip
    for one, p in zip(rows, holm(tests), strict=True):
        yield {**one, "p": None if p is None else f"{p:.3f}"}


def tabulate_inputs(run: Run, seeds: Sequence[int]) -> Tables:
    for model in [name for name in run.settings["models"] if name not in HEAD_FIRST.values()]:
        for result in run.store.get(f"group/{model}", seeds):
            aspects: Mapping[str, Any] = result["aspects"]
            yield row("inputs", "model", model, **{aspect: found["mcc"] for aspect, found in aspects.items()})
