"""perception against Turing M1: how often people rate an output at least as high as the reference of its item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from study import Result, Run, Tables, forget, over_seeds, plain, row, with_ends

from evalapp.stats.correlation.coefficients import spearman
from evalapp.stats.ranking.m1_ratings import ReferenceVerdicts, compare_with_reference
from evalapp.stats.ranking.systems import rank_by_m1
from evalapp.stats.resampling.bootstrap import Bootstrap, percentile_interval
from scoring.ml import Dataset, Record, cross_fit, load
from scoring.ml.evaluators.perception.evaluator import Perception
from scoring.ml.training.record import name_group

Floats = npt.NDArray[np.float64]
RESAMPLES = 2000


@dataclass(frozen=True)
class M1Set:
    """A rated set whose `reference` was rated as a system."""

    run: Run
    name: str
    reference: str
    aspects: tuple[str, ...]

    @cached_property
    def whole(self) -> Dataset:
        return self.run.draw(self.run.read(self.name), 20)

    @cached_property
    def data(self) -> Dataset:
        """Outputs of the other systems, without judgements: perception learns from texts alone."""
        outputs = tuple(one for one in self.whole.outputs if one.system != self.reference and one.text.strip())
        return replace(self.whole, outputs=outputs, ratings=(), comparisons=(), dialogues=())

    @cached_property
    def systems(self) -> list[str]:
        return sorted({one.system for one in self.data.outputs})

    @cached_property
    def groups(self) -> list[str]:
        """The group of each item."""
        return [name_group(item.group, item.id) for item in self.data.items]

    def read_verdicts(self, aspect: str) -> ReferenceVerdicts:
        rows = [one for one in self.whole.ratings if one.aspect == aspect and one.dialogue is None]
        return compare_with_reference(
            [str(one.item) for one in rows], [str(one.system) for one in rows], [one.rater for one in rows],
            [one.value for one in rows], self.reference,
        )  # fmt: skip

    def make_matrix(self, items: Sequence[Any], systems: Sequence[Any], values: Sequence[float]) -> Floats:
        """(systems, items) sums of values."""
        places = {item.id: place for place, item in enumerate(self.data.items)}
        found = np.zeros((len(self.systems), len(places)))
        for item, system, value in zip(items, systems, values, strict=True):
            found[self.systems.index(system), places[item]] += value
        return found


def read_sets(run: Run) -> list[M1Set]:
    return [
        M1Set(run, name, entry["reference"], tuple(entry["aspects"])) for name, entry in run.settings["sets"].items()
    ]


def compute(run: Run) -> None:
    for one in read_sets(run):
        if not run.wants(one.name):
            continue
        for name in run.settings["baselines"]:
            run.once(f"{one.name}/{name}", 0, lambda o=one, n=name: score_baseline(o, n))
        for name, options in run.settings["tries"].items():
            for seed in run.seeds[:1]:
                run.once(f"{one.name}/{name}", seed, lambda o=one, n=name, s=seed, w=options: cross(o, n, s, w))
        name, options = choose(run, one)
        for seed in run.seeds:
            run.once(f"{one.name}/{name}", seed, lambda o=one, n=name, s=seed, w=options: cross(o, n, s, w))
        for ablation, changes in run.settings["ablations"].items():
            for seed in run.seeds[: run.settings["ablation_seeds"]]:
                run.once(
                    f"{one.name}/{name}/{ablation}", seed,
                    lambda o=one, n=f"{name} {ablation}", s=seed, w={**options, **changes}: cross(o, n, s, w),
                )  # fmt: skip


def choose(run: Run, one: M1Set) -> tuple[str, Mapping[str, Any]]:
    """The try with the least mean log loss on the dev parts of its folds, with the first seed."""
    tries: Mapping[str, Mapping[str, Any]] = run.settings["tries"]
    known = {name: run.store.get(f"{one.name}/{name}", run.seeds[:1]) for name in tries}
    best = min((name for name in tries if known[name]), key=lambda name: known[name][0]["dev"]["loss"])
    return best, tries[best]


def cross(one: M1Set, name: str, seed: int, options: Mapping[str, Any]) -> Result:
    """P and confidence of every output by the model that has not seen its group, (systems, items)."""
    run = one.run
    folder = run.folder(one.name, name, seed)
    quick = {"max_steps": 2} if run.quick else {}
    found = cross_fit(
        "perception", one.data, folds=run.settings["folds"], seed=seed, folder=folder, encoder=run.encoder,
        **{**run.settings["training"], **options, **quick},
    )  # fmt: skip
    records: list[Record] = []
    p: list[float] = []
    weights: list[float] = []
    for member in found.members:
        assert isinstance(member, Perception)
        unseen = [r for r in one.data.outputs_with_context() if name_group(r.group, r.item) not in member.trained_on]
        unseen = [r for r in unseen if r.references]
        scores = member.evaluate(unseen)
        records += unseen
        p += scores.values.tolist()
        weights += scores.components["confidence"].tolist()
    forget(folder)
    items, systems = [record.item for record in records], [record.system for record in records]
    metrics = [member.record.metrics for member in found.members]
    return {
        "p": one.make_matrix(items, systems, p).round(5),
        "weight": one.make_matrix(items, systems, weights).round(5),
        "dev": {key: float(np.mean([each[key] for each in metrics])) for key in ("loss", "accuracy")},
        "stages": [member.record.log[0].get("kept_stage") for member in found.members],
        "train_seconds": sum(member.record.seconds for member in found.members),
    }


def score_baseline(one: M1Set, name: str) -> Result:
    records = one.data.outputs_with_context()
    values = load(name).score(records)
    items, systems = [record.item for record in records], [record.system for record in records]
    known = np.isfinite(values)
    scores = np.where(known, values, 0.0).tolist()
    return {
        "p": one.make_matrix(items, systems, scores).round(5),
        "weight": one.make_matrix(items, systems, known.astype(float).tolist()),
    }


# Tables


def order_systems(one: M1Set, results: Sequence[Result], aspect: str) -> dict[str, Any]:
    """Spearman over systems of the weighted mean score, mean over seeds, with M1; groups of items are resampled, the
    systems are these."""
    verdicts = one.read_verdicts(aspect)
    good = one.make_matrix(verdicts.items, verdicts.systems, [float(v != "b") for v in verdicts.verdicts])
    asked = one.make_matrix(verdicts.items, verdicts.systems, [1.0] * len(verdicts.verdicts))
    codes = np.unique(one.groups, return_inverse=True)[1]

    def coefficient(counts: Floats) -> float:
        m1 = (good @ counts) / (asked @ counts)
        found = []
        for result in results:
            p, weight = np.asarray(result["p"]), np.asarray(result["weight"])
            found.append(spearman((p * weight) @ counts / (weight @ counts), m1).value)
        return float(np.mean([np.nan if value is None else value for value in found]))

    rng, n = np.random.default_rng(13), int(codes.max()) + 1
    with np.errstate(invalid="ignore"):
        draws = np.array([
            coefficient(rng.multinomial(n, np.full(n, 1 / n)).astype(float)[codes]) for _ in range(RESAMPLES)
        ])  # fmt: skip
    return with_ends(coefficient(np.ones(len(codes))), percentile_interval(draws))


def tabulate(run: Run) -> Tables:
    for one in read_sets(run):
        yield from tabulate_m1(one)
    for one in read_sets(run):
        if not run.store.get(f"{one.name}/{next(iter(run.settings['tries']))}", run.seeds[:1]):
            continue
        chosen, _options = choose(run, one)
        perception = run.store.get(f"{one.name}/{chosen}", run.seeds)
        listed = [("perception", perception)]
        listed += [(name, run.store.get(f"{one.name}/{name}", [0])) for name in run.settings["baselines"]]
        for aspect in one.aspects:
            for name, results in listed:
                if results:
                    yield row(
                        "order", "score", f"{name}, {one.name}, {aspect}", systems=len(one.systems),
                        items=len(one.data.items), seeds=len(results) if name == "perception" else None,
                        spearman=order_systems(one, results, aspect),
                    )  # fmt: skip
        yield from tabulate_tries(run, one, chosen)
        yield from tabulate_ablations(run, one, chosen)


def tabulate_m1(one: M1Set) -> Tables:
    """M1 of each system with its interval over items."""
    groups = {item.id: group for item, group in zip(one.data.items, one.groups, strict=True)}
    for aspect in one.aspects:
        verdicts = one.read_verdicts(aspect)
        bootstrap = Bootstrap(cluster=[groups[item] for item in verdicts.items], resamples=RESAMPLES, seed=13)
        for score in rank_by_m1(verdicts.items, verdicts.systems, verdicts.verdicts, bootstrap=bootstrap).systems:
            yield row(
                "m1", "system", f"{one.name}, {aspect}: {score.system}", judgements=score.n_ratings,
                outputs=score.n_outputs, m1=plain(score.estimate), better=score.shares["better"],
                rank=f"{score.rank_low}-{score.rank_high}",
            )  # fmt: skip


def tabulate_tries(run: Run, one: M1Set, chosen: str) -> Tables:
    """Every try on the first aspect, with its dev figures."""
    for name in run.settings["tries"]:
        results = run.store.get(f"{one.name}/{name}", run.seeds[:1])
        if results:
            p = [np.asarray(result["p"]).sum() / np.count_nonzero(result["weight"]) for result in results]
            yield row(
                "parts", "model", f"{one.name}, {name}", chosen="yes" if name == chosen else "",
                loss=results[0]["dev"]["loss"], accuracy=results[0]["dev"]["accuracy"], p=over_seeds(p),
                spearman=order_systems(one, results, one.aspects[0]),
            )  # fmt: skip


def tabulate_ablations(run: Run, one: M1Set, chosen: str) -> Tables:
    """The chosen model and its ablations on the first aspect, each over the seeds that all have."""
    settings = {"full": f"{one.name}/{chosen}"}
    settings |= {name: f"{one.name}/{chosen}/{name}" for name in run.settings["ablations"]}
    computed = [[seed for seed in run.seeds if run.store.get(setting, [seed])] for setting in settings.values()]
    seeds = sorted(set(computed[0]).intersection(*computed[1:]))
    for name, setting in settings.items() if seeds else ():
        results = run.store.get(setting, seeds)
        yield row(
            "ablations", "model", f"{one.name}, {name}", seeds=len(seeds),
            loss=over_seeds([result["dev"]["loss"] for result in results]),
            accuracy=over_seeds([result["dev"]["accuracy"] for result in results]),
            spearman=order_systems(one, results, one.aspects[0]),
        )  # fmt: skip
