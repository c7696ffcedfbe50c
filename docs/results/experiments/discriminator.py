"""perception: the order of systems on e2e by cross-fitted discriminators, and robustness on dailydialog_pp."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from experiments.replies import make_samples, reply, respell, train_model
from study import Result, Run, Tables, forget, over_seeds, row, with_ends

from evalapp.stats.correlation.coefficients import spearman
from evalapp.stats.resampling.bootstrap import percentile_interval
from scoring.ml import Dataset, Item, Output, Record, cross_fit, fit, load
from scoring.ml.evaluators.perception.evaluator import Perception
from scoring.ml.evaluators.perception.robustness import least_overlapping, robustness
from scoring.ml.training.cross_fit import fold_parts
from scoring.ml.training.gold import collect_rated_outputs
from scoring.ml.training.record import name_group

ASPECTS = ("quality", "naturalness")
KINDS = ("MGE", "HWE", "LDHWE", "HWEBQ", "AE", "random reply")
RESAMPLES = 1000


def compute(run: Run) -> None:
    settings, first = run.settings, run.seeds[0]
    if any(run.wants(part) for part in run.study.parts if part != "robustness"):
        data = read_e2e(run)
        compute_floors(run, data, "")
        if run.wants("choice"):
            for rate in settings["learning_rates"][: 2 if run.quick else None]:
                run.once(f"choice/{rate:g}", first, lambda rate=rate: try_rate(run, data, rate, first))
        rate = choose_rate(run)
        if run.wants("shared"):
            for seed in run.seeds:
                run.once(
                    "shared", seed, lambda seed=seed: cross(run, data, "shared", seed, settings["folds"], rate, {})
                )
        for name, options in settings["ablations"].items() if run.wants("ablations") else ():
            run.once(
                f"ablation/{name}", first,
                lambda n=name, o=options: cross(run, data, n, first, settings["ablation_folds"], rate, o),
            )  # fmt: skip
        if run.wants("per_system"):
            part, options = spread_systems(run, data), {"models": "per_system", **settings["few_per_system"]}
            run.once("per_system", first, lambda: cross(run, part, "per_system", first, 2, rate, options))
        if run.wants("longer") and run.items:
            compute_longer(run, rate)
    if run.wants("robustness"):
        compute_robustness(run)


def compute_floors(run: Run, data: Dataset, prefix: str) -> None:
    records = data.outputs_with_context()
    for name in run.settings["baselines"]:
        run.once(
            f"{prefix}floor/{name}", 0,
            lambda name=name: {"values": fill_matrix(data, records, load(name).evaluate(records).values.tolist())},
        )  # fmt: skip


def compute_longer(run: Run, rate: float) -> None:
    """More items of e2e and more steps, with the gradient penalty and without it."""
    first, more = run.seeds[0], run.settings["longer"]
    wide = replace(run, items=more["items"])
    data = read_e2e(wide)
    compute_floors(run, data, "longer/")
    for name, options in more["models"].items():
        asked = options if run.quick else {"max_steps": more["steps"], **options}
        run.once(
            f"longer/{name}", first,
            lambda n=name, o=asked: cross(wide, data, f"longer {n}", first, run.settings["ablation_folds"], rate, o),
        )  # fmt: skip


def compute_robustness(run: Run) -> None:
    first = run.seeds[0]
    for name, spec in run.settings["robustness"]["models"].items():
        longer = spec.get("longer", False)
        if longer and not run.items:
            continue
        for seed in (first,) if longer else run.seeds:
            options = dict(spec.get("options", {}))
            if longer:
                rate = run.store.rows["robustness/n-gram models", first]["rate"]
                steps = 5 * run.settings["few"]["max_steps"]
                options = {"max_steps": steps, "learning_rates": f"{rate:g}", **options}
            run.once(
                f"robustness/{name}", seed,
                lambda n=name, s=spec, seed=seed, o=options: test_robustness(run, n, bool(s.get("others")), seed, o),
            )  # fmt: skip


def read_e2e(run: Run) -> Dataset:
    """The set with its ratings; a trial has four systems."""
    data = run.draw(run.read("e2e"), quick=20)
    systems = sorted({output.system for output in data.outputs})[: 4 if run.quick else None]
    return keep_systems(replace(data, comparisons=()), systems)


def keep_systems(data: Dataset, systems: Sequence[str]) -> Dataset:
    return replace(
        data,
        outputs=tuple(entry for entry in data.outputs if entry.system in systems),
        ratings=tuple(entry for entry in data.ratings if entry.system in systems),
    )


def spread_systems(run: Run, data: Dataset) -> Dataset:
    """Six systems evenly spread over the human order by quality, without ratings."""
    means = np.nanmean(rank_outputs(data)["quality"], axis=1)
    order = np.argsort(means)
    places = np.unique(np.linspace(0, len(order) - 1, min(6, len(order))).round().astype(int))
    names = list_systems(data)
    return replace(keep_systems(data, [names[int(order[place])] for place in places]), ratings=())


def list_systems(data: Dataset) -> list[str]:
    return sorted({output.system for output in data.outputs})


def fill_matrix(data: Dataset, records: Sequence[Record], values: Sequence[float]) -> np.ndarray:
    """(systems, items), nan where there is no value."""
    rows = {name: place for place, name in enumerate(list_systems(data))}
    columns = {item.id: place for place, item in enumerate(data.items)}
    found = np.full((len(rows), len(columns)), np.nan)
    for record, value in zip(records, values, strict=True):
        found[rows[str(record.system)], columns[record.item]] = value
    return found.round(5)


def rank_outputs(data: Dataset) -> dict[str, np.ndarray]:
    """Mean rank of each output within what one person rated together, by aspect: raw magnitudes have outliers."""
    found = {}
    for aspect in ASPECTS:
        rated = collect_rated_outputs(data, aspect, "rank")
        found[aspect] = fill_matrix(data, rated.records, rated.means().tolist())
    return found


def training_options(run: Run) -> dict[str, Any]:
    """Options of every training. The penalty is fixed: its effect is a question of its own."""
    few = run.settings["few"] if run.items else {}
    more = {"epochs": 1, "max_steps": 3, "batch_size": 8} if run.quick else few
    return {"encoder": run.encoder, "penalty": "pair", **more}


def try_rate(run: Run, data: Dataset, rate: float, seed: int) -> Result:
    """The dev log-loss of a learning rate on the first fold."""
    train, dev = next(iter(fold_parts("perception", data, run.settings["folds"], seed)))
    folder = run.folder("choice", rate, seed)
    found = fit(
        "perception", train, dev=dev, seed=seed, learning_rate=rate, folder=folder, **training_options(run)
    )  # fmt: skip
    forget(folder)
    return {"rate": rate, "losses": [found.record.metrics["loss"]], "loss": found.record.metrics["loss"]}


def choose_rate(run: Run) -> float:
    """The learning rate with the least dev loss, tried with the first seed alone."""
    tried = [seeds[run.seeds[0]] for seeds in run.store.find("choice/").values() if run.seeds[0] in seeds]
    if not tried:
        raise SystemExit(f"No learning rate was tried with seed {run.seeds[0]}: add `choice` to --only")
    return float(min(tried, key=lambda one: one["loss"])["rate"])


def cross(run: Run, data: Dataset, name: str, seed: int, folds: int, rate: float, options: Mapping[str, Any]) -> Result:
    """P, confidence and certainty of every output by the model that has not seen its group, (systems, items)."""
    folder = run.folder(name, seed)
    found = cross_fit(
        "perception", data, folds=2 if run.quick else folds, seed=seed, learning_rate=rate, folder=folder,
        **{**training_options(run), **options},
    )  # fmt: skip
    columns: dict[str, list[float]] = {"p": [], "c": [], "m": []}
    records: list[Record] = []
    for member in found.members:
        assert isinstance(member, Perception)
        member.options["mc_passes"] = 2 if run.quick else run.settings["passes"]
        unseen = [r for r in data.outputs_with_context() if name_group(r.group, r.item) not in member.trained_on]
        unseen = [r for r in unseen if r.text.strip() and r.references]
        scores = member.evaluate(unseen)
        certain, _ = member.certainty(unseen)
        records += unseen
        for key, column in zip("pcm", (scores.values, scores.components["confidence"], certain), strict=True):
            columns[key] += column.tolist()
    forget(folder)
    metrics = [member.record.metrics for member in found.members]
    names = ("loss", "accuracy", "calibration_error", "confidence")
    return {
        **{key: fill_matrix(data, records, column) for key, column in columns.items()},
        "systems": list_systems(data),
        "dev": {name: float(np.mean([one[name] for one in metrics])) for name in names},
        "train_seconds": sum(member.record.seconds for member in found.members),
        "folds": len(found.members),
        "rate": rate,
    }


# Robustness


def test_robustness(run: Run, name: str, others: bool, seed: int, options: Mapping[str, Any]) -> Result:
    """Train on machine replies to contexts without adversarial negatives; score each kind of text on the rest."""
    train, test, answers = split_dialogues(run, others, seed)
    learned, dev = train.split(seed=seed, shares=(0.9, 0.1))
    folder = run.folder("robust", name, seed)
    asked = {
        "learning_rates": run.settings["robustness"]["learning_rates"], **training_options(run),
        **({} if run.quick else options),
    }  # fmt: skip
    found = fit("perception", learned, dev=dev, seed=seed, folder=folder, **asked)
    found.options["mc_passes"] = 2 if run.quick else run.settings["passes"]
    kinds = make_kinds(test, answers, seed)
    scorers = {"perception": found, **{name: load(name) for name in run.settings["robustness"]["metrics"]}}
    names = ("kind", "n", "score", "mean", "sd")
    rows = {
        name: [{key: getattr(one, key) for key in names} for one in robustness(scorer, kinds)]
        for name, scorer in scorers.items()
    }
    forget(folder)
    rate = next(iter(found.artefact.state["learning_rates"].values()))
    examples = {"train items": len(train.items), "test items": len(test), "rate": rate, "steps": found.record.steps}
    return {"rows": rows, "dev": dict(found.record.metrics), "train_seconds": found.record.seconds, **examples}


def split_dialogues(run: Run, others: bool, seed: int) -> tuple[Dataset, list[Item], dict[str, str]]:
    """Training data with replies of two n-gram models (2 and 4 words), test items, and replies to those.

    All texts are respelled alike. The models learn from a third part of the items; test groups are in no other part.
    """
    whole = run.read("dailydialog_pp")
    items = [respell_item(item) for item in whole.items]
    tested = [item for item in items if item.meta.get("adversarial_negatives")]
    taken = {name_group(item.group, item.id) for item in tested}
    rng = random.Random(seed)
    rest = [item for item in items if name_group(item.group, item.id) not in taken]
    rng.shuffle(rest)
    rng.shuffle(tested)
    sizes = run.settings["robustness"]["few" if run.items else "all"]
    n_train, n_test = (40, 12) if run.quick else sizes
    learned, known, tested = rest[n_train : 3 * n_train], rest[:n_train], tested[:n_test]
    samples = make_samples(learned)
    rng.shuffle(samples)
    models = {order: train_model(samples, order) for order in (2, 4)}
    outputs = [
        Output(item.id, f"{order}-gram", reply(model, item, seed)) for order, model in models.items() for item in known
    ]
    answers = {item.id: reply(models[4], item, seed) for item in tested}
    for item in known if others else ():
        other = rng.choice([one for one in known if name_group(one.group, one.id) != name_group(item.group, item.id)])
        outputs.append(Output(item.id, "other context", rng.choice(other.references)))
    train = replace(whole, items=tuple(known), outputs=tuple(outputs), ratings=(), comparisons=(), dialogues=())
    return train, tested, answers


def respell_item(item: Item) -> Item:
    negatives = ("adversarial_negatives", "random_negatives")
    return replace(
        item,
        context=tuple(map(respell, item.context)),
        references=tuple(map(respell, item.references)),
        meta={key: [respell(text) for text in item.meta.get(key) or []] for key in negatives},
    )


def make_kinds(items: Sequence[Item], answers: Mapping[str, str], seed: int) -> dict[str, list[Record]]:
    """The texts of each kind, with the first human reply as the original."""
    found: dict[str, list[Record]] = {kind: [] for kind in KINDS}
    for item in items:
        rng, original = random.Random(f"{seed}:{item.id}"), item.references[0]
        others = tuple(text for text in item.references[1:] if text != original)
        if not others:
            continue
        texts = {
            "MGE": answers[item.id],
            "HWE": rng.choice(others),
            "LDHWE": others[least_overlapping(original, others)],
            "AE": rng.choice(item.meta["adversarial_negatives"]),
            "random reply": rng.choice(item.meta["random_negatives"]),
        }
        for kind, text in texts.items():
            if text != original:
                record = Record(text, (original,), item.context, item.source, item.id, kind, group=item.group)
                found[kind].append(record)
    return found


# Tables


def to_array(values: Any) -> np.ndarray:
    return np.array(values, dtype=float)


def average_systems(p: np.ndarray, weights: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """Weighted mean of each system over the items, each item taken `counts` times."""
    weights = np.where(np.isnan(p), 0.0, weights) * (1.0 if counts is None else counts)
    total = weights.sum(axis=1)
    return (weights * np.nan_to_num(p)).sum(axis=1) / np.where(total > 0, total, np.nan)


def average_seeds(found: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Means over seeds of P and of the weights c + m."""
    weights = [np.nan_to_num(to_array(one["c"])) + np.nan_to_num(to_array(one["m"])) for one in found]
    return np.mean([to_array(one["p"]) for one in found], axis=0), np.mean(weights, axis=0)


def correlate_systems(p: np.ndarray, weights: np.ndarray, human: np.ndarray) -> dict[str, Any]:
    """Spearman over systems; items and systems are resampled together."""

    def coefficient(rows: np.ndarray, counts: np.ndarray | None) -> float:
        scores = average_systems(p, weights, counts)[rows]
        return float(spearman(scores, average_systems(human, np.ones_like(human), counts)[rows]).value)

    rng, n = np.random.default_rng(0), p.shape[1]
    draws = [
        coefficient(rng.integers(0, len(p), len(p)), rng.multinomial(n, np.full(n, 1 / n)).astype(float))
        for _ in range(RESAMPLES)
    ]
    return with_ends(coefficient(np.arange(len(p)), None), percentile_interval(np.array(draws)))


def tabulate(run: Run) -> Tables:
    store, first = run.store, run.seeds[:1]
    human = rank_outputs(read_e2e(run))
    wide = rank_outputs(read_e2e(replace(run, items=run.settings["longer"]["items"]))) if run.items else {}

    def compare(table: str, label: str, results: Sequence[Result], known: Mapping[str, np.ndarray]) -> Tables:
        if results:
            dev = [one["dev"]["accuracy"] for one in results]
            cells = {a: correlate_systems(*average_seeds(results), known[a]) for a in ASPECTS}
            yield row(table, "score", label, seeds=len(results), **cells, accuracy=float(np.mean(dev)))

    yield from compare("order", "perception, 40 items, 5 folds", store.get("shared", run.seeds), human)
    for name in run.settings["longer"]["models"]:
        label = f"perception, 160 items, 5 times the steps, {name}"
        yield from compare("order", label, store.get(f"longer/{name}", first), wide)
    for prefix, known, size in (("", human, "40 items"), ("longer/", wide, "160 items")):
        for name in run.settings["baselines"]:
            for result in store.get(f"{prefix}floor/{name}", [0]):
                values = to_array(result["values"])
                cells = {a: correlate_systems(values, np.ones_like(values), known[a]) for a in ASPECTS}
                yield row("order", "score", f"{name}, {size}", **cells)
    for name in run.settings["ablations"]:
        yield from compare("ablations", name, store.get(f"ablation/{name}", first), human)
    for name in run.settings["robustness"]["models"]:
        results = store.get(f"robustness/{name}", run.seeds)
        cells = {}
        for place, kind in enumerate(KINDS if results else ()):
            each = [one["rows"]["perception"][place] for one in results]
            if each[0]["n"]:
                cells[kind] = over_seeds([one["score"] for one in each])
        if results:
            accuracy = float(np.mean([one["dev"]["accuracy"] for one in results]))
            yield row("robustness", "trained", f"against {name}", seeds=len(results), **cells, accuracy=accuracy)
