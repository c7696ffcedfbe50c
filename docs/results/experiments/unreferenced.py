"""Evaluators trained on dialogues alone, correlated with human ratings of sets they have not seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from study import Result, Run, Tables, forget, row, with_ends

from evalapp.stats.correlation.coefficients import spearman
from evalapp.stats.resampling.bootstrap import percentile_interval
from scoring.ml import Dataset, fit, load
from scoring.ml.evaluators.unreferenced.conversations import collect_conversations
from scoring.ml.evaluators.unreferenced.delta import GROUPS, delta_table
from scoring.ml.evaluators.unreferenced.dialogues import context_bins
from scoring.ml.training.gold import RatedOutputs, collect_rated_outputs

RESAMPLES = 1000
#: Kinds of changed replies that should score lower than the true one.
FALSE = tuple(kind for kind, group in GROUPS.items() if "negative" in group)


def compute(run: Run) -> None:
    whole = run.read(run.settings["train"])
    run.once("floors", 0, lambda: score_baselines(run))
    run.once("leakage", 0, lambda: count_shared(whole, run))
    few = 40 if run.quick else run.items
    part = replace(whole, dialogues=whole.dialogues[:few])
    for model, spec in run.settings["models"].items():
        # One seed is enough for a model that sees only one side.
        for seed in run.seeds[:1] if spec.get("one_seed") else run.seeds:
            if run.wants(model):
                setting = f"{model}/{len(part.dialogues)}"
                run.once(setting, seed, lambda m=model, s=spec, seed=seed: train_one(run, m, s, seed, part))


def read_rated(run: Run) -> Iterator[tuple[str, RatedOutputs]]:
    """The rated sets without the systems left out."""
    for test in run.settings["tests"]:
        data, without = run.read(test["set"]), test.get("without", ())
        outputs = tuple(entry for entry in data.outputs if entry.system not in without)
        ratings = tuple(entry for entry in data.ratings if entry.system not in without)
        yield test["set"], collect_rated_outputs(replace(data, outputs=outputs, ratings=ratings), test["aspect"])


def average_ratings(rated: RatedOutputs) -> Result:
    """Mean rating of each output, and the number of its group."""
    groups = [record.group or f"item:{record.item}" for record in rated.records]
    return {"means": rated.means(), "groups": np.unique(groups, return_inverse=True)[1]}


def score_baselines(run: Run) -> Result:
    found: Result = {name: {} for name in run.settings["baselines"]}
    for set_name, rated in read_rated(run):
        for name, scores in found.items():
            if name != "token-f1" or any(record.references for record in rated.records):
                scores[set_name] = load(name).score(rated.records)
    return found


def count_shared(train: Dataset, run: Run) -> Result:
    """How many different context turns and outputs of six words or more also occur in the training data, by set."""
    known = {normalise(turn) for dialogue in train.dialogues for turn in dialogue.turns}
    found = {}
    for name, rated in read_rated(run):
        turns = {normalise(turn) for record in rated.records for turn in record.context}
        outputs = {normalise(record.text) for record in rated.records}
        counts: Result = {}
        for kind, texts in (("turns", turns), ("outputs", outputs)):
            long = {text for text in texts if len(text.split()) >= 6}
            counts |= {f"shared {kind}": len(long & known), f"{kind} in all": len(long)}
        found[name] = counts
    return found


def normalise(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def train_one(run: Run, model: str, spec: Mapping[str, Any], seed: int, data: Dataset) -> Result:
    """Train on 80 % of the dialogues, choose the epoch on 10 %, test on 10 % and on every rated set."""
    train, dev, test = data.split(seed=seed)
    options = {**spec.get("options", {}), **(spec.get("few", {}) if run.items else {})}
    if run.quick:
        options |= {"epochs": 1, "max_steps": 3}
    folder = run.folder(model, len(data.dialogues), seed)
    evaluator = fit(spec["evaluator"], train, dev=dev, seed=seed, folder=folder, encoder=run.encoder, **options)
    values, bins = {}, {}
    for set_name, rated in read_rated(run):
        values[set_name] = evaluator.score(rated.records)
        found = context_bins(rated.records, values[set_name], rated.means())
        bins[set_name] = [[one.low, one.high, one.n, one.mean, one.spearman] for one in found]
    delta = delta_table(evaluator, collect_conversations(test, True), n=1000, seed=seed)
    forget(folder)
    return {
        "signature": evaluator.signature,
        "examples": dict(evaluator.record.examples),
        "metrics": dict(evaluator.record.metrics),
        "epochs": options.get("epochs"),
        "steps": evaluator.record.steps,
        "training_seconds": evaluator.record.seconds,
        "values": values,
        "bins": bins,
        "delta": {one.kind: [one.n, one.mean, one.sd, one.below] for one in delta},
    }


def list_trained(run: Run) -> list[tuple[str, list[Result]]]:
    """Label and results of all seeds of everything trained, by model and number of dialogues."""
    found: dict[tuple[int, int], tuple[str, list[Result]]] = {}
    models = list(run.settings["models"])
    for setting, results in run.store.find("").items():
        model, _, size = setting.rpartition("/")
        if model in models:
            key = (models.index(model), int(size))
            label = f"{model}, {int(size):,} dialogues"
            found[key] = (label, [results[seed] for seed in sorted(results)])
    return [found[key] for key in sorted(found)]


def correlate_seeds(values: Sequence[np.ndarray], means: np.ndarray) -> float:
    """Spearman's coefficient, mean over seeds; undefined scores are left out."""
    found = [spearman(row[~np.isnan(row)], means[~np.isnan(row)]).value for row in values]
    return float(np.mean([np.nan if value is None else value for value in found]))


def resample(values: Sequence[np.ndarray], means: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(resamples,) of the mean coefficient, with the same groups of items for all evaluators."""
    rng = np.random.default_rng(13)
    members = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
    found = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([members[place] for place in rng.integers(0, len(members), len(members))])
        found.append(correlate_seeds([one[rows] for one in values], means[rows]))
    return np.array(found)


def tabulate(run: Run) -> Tables:
    trained = list_trained(run)
    if not trained:
        return
    people = {name: average_ratings(rated) for name, rated in read_rated(run)}
    (floors,) = run.store.get("floors", [0])
    everything = [(label, [result["values"] for result in results]) for label, results in trained]
    everything += [(f"{name} (baseline)", [floors[name]]) for name in run.settings["baselines"]]
    points: dict[tuple[str, str], float] = {}
    draws: dict[tuple[str, str], np.ndarray] = {}
    for label, values in everything:
        for name, known in people.items():
            scores = [np.array(one[name], dtype=float) for one in values if name in one]
            if scores:
                means, groups = np.asarray(known["means"]), np.asarray(known["groups"])
                points[label, name] = correlate_seeds(scores, means)
                draws[label, name] = resample(scores, means, groups)
    for label, values in everything:
        cells = {
            name: with_ends(points[label, name], percentile_interval(draws[label, name]))
            for name in people
            if (label, name) in points
        }
        against = "" if "baseline" in label else summarise(label, points, draws, list(people))
        yield row("agreement", "evaluator", label, seeds=len(values), **cells, against=against)
    published = {test["set"]: test["published"] for test in run.settings["tests"]}
    yield row("agreement", "evaluator", "MAUDE as published", **published)
    for leakage in run.store.get("leakage", [0]):
        counts = {name: found for name, found in leakage.items() if name in people}
        yield {
            "table": "facts", **{f"{name} {key}": n for name, found in counts.items() for key, n in found.items()},
            "most others": max(one["shared outputs"] for name, one in counts.items() if name != "grade_dailydialog"),
        }  # fmt: skip
    for label, results in trained:
        shares = {kind: np.mean([one["delta"][kind][3] for one in results if kind in one["delta"]]) for kind in FALSE
                  if any(kind in one["delta"] for one in results)}  # fmt: skip
        yield row("false", "evaluator", label, seeds=len(results), **shares)


def summarise(
    label: str, points: Mapping[tuple[str, str], float], draws: Mapping[tuple[str, str], np.ndarray], sets: list[str]
) -> str:
    """On how many sets an evaluator is above or below the strongest baseline, by the interval of the difference."""
    above = below = 0
    for name in sets:
        baselines = [key for key in points if key[1] == name and "baseline" in key[0]]
        best = max(baselines, key=lambda key: points[key])
        low, high = percentile_interval(draws[label, name] - draws[best])
        above, below = above + (low > 0), below + (high < 0)
    return f"{above} / {below}"
