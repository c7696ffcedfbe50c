"""ream for bleu-star and bertscore: is reliability predicted, and do the references it keeps help?

    python docs/results/ream.py --out FOLDER [--only dstc7_dev dstc7_dev-machines e2e dailydialog_multiref]

Cross-fitted in five folds by group, sizes 1, 2, 3, 5, 7, 10 as far as an item can fill them. Everything below is
measured on items of groups the model did not see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ream_parts import (
    FOLDS,
    METRICS,
    QUESTIONS,
    SETTINGS,
    SIZES,
    Question,
    cross_fitted,
    found_of,
    make_page,
    make_pools,
    own_references,
    part_of,
    rated_part,
    sections,
    size_line,
    training_folder,
    unseen_by,
    with_people,
)
from store import (
    ABSENT,
    Given,
    Result,
    Store,
    estimate,
    forget,
    machine_line,
    mean_interval,
    mean_sd,
    minutes,
    number,
    table,
    what_was_read,
    work_folder,
)

from scoring.ml import Dataset, fit
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.evaluators.ream import training
from scoring.ml.evaluators.ream.entry import NEGATIVES
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.training.job import FitJob

TEST_SETS = 5
#: What else was tried where the figures stay below the constant, on a held-out part: rates, more sets, more items, the
#: losses, and an encoder that learns.
TRIED_ON = "e2e"
TRIED: dict[str, dict[str, Any]] = {
    "as everywhere": {},
    "learning rate 1e-4": {"learning_rate": 1e-4},
    "learning rate 2e-3": {"learning_rate": 2e-3},
    "without the contrastive loss": {"contrast": 0.0},
    "weight decay .01": {"weight_decay": 0.01},
    "three times the sets": {"combinations": 30},
    "twice the items": {"items": 2},
    "four times the items": {"items": 4},
    "all items": {"items": 100},
    "an encoder that learns, a third of the sets, 2 epochs": {"tune_encoder": True, "combinations": 3, "epochs": 2},
}
SETS = ("raw", "random", "augmented", "all")


def compute(given: Given, store: Store, question: Question) -> None:
    data = rated_part(given, question)
    for seed in given.seeds:
        for metric in METRICS:
            if given.quick and metric == "bertscore" and seed != given.seeds[0]:
                continue
            store.once(
                f"{question.name}/{metric}", seed,
                lambda seed=seed, metric=metric: run(given, data, question, metric, seed),
            )  # fmt: skip


def try_others(given: Given, store: Store) -> None:
    for name in list(TRIED)[: 2 if given.quick else None]:
        store.once(f"tried/{name}", given.seeds[0], lambda name=name: attempt(given, name, given.seeds[0]))


def run(given: Given, data: Dataset, question: Question, metric: str, seed: int) -> Result:
    """Cross-fit, then both questions on the items each model did not see."""
    found = cross_fitted(given, data, question, metric, seed)
    references, share, annotated = choose(data, found, seed)
    folder = training_folder(given, question, metric, seed)
    folds = reports(data, found, question, seed, folder)
    forget(folder)
    return {
        "folds": folds,
        "sets": {name: with_people(data, question, metric, chosen) for name, chosen in references.items()},
        "strangers": share,
        "items": annotated,
        "train_seconds": sum(member.record.seconds for member in found.members),
        "outputs": len(data.outputs),
    }


def reports(data: Dataset, found: CrossFitted, question: Question, seed: int, folder: Path) -> list[dict[str, Any]]:
    """The four figures of each fold's model on sets of the items it did not see."""
    rows = []
    for number_, member in enumerate(found.members):
        assert isinstance(member, Ream)
        unseen = part_of(data, unseen_by(data, member))
        row = report_on(unseen, member, question, seed, folder / f"test-{number_}")
        rows += [] if row is None else [row]
    return rows


def report_on(part: Dataset, member: Ream, question: Question, seed: int, folder: Path) -> dict[str, Any] | None:
    """The four figures on sets of these items; None where they have no outputs to learn a gold from."""
    items = training.query_items(part, question.aspect, question.ratings)  # type: ignore[arg-type]
    if not items:
        return None
    job = FitJob(member.entry, part, None, member.artefact.profile, member.settings, seed, folder)
    prepared = training.Preparer(job, member.metric, member.pair_encoder).prepare(items, "test")
    samples, _ = training.draw_samples(prepared.gold, training.sizes_of(job), TEST_SETS, job.rng("test sets"))
    if not samples:
        return None
    report = training.report(member.network, prepared, samples, job.rng("test perturbations"))
    figures = {name: getattr(report, name) for name in ("n", "mse", "constant", "r2", "spearman")}
    return {**figures, "accuracy": dict(report.accuracy), "n_pairs": dict(report.n_pairs)}


def attempt(given: Given, name: str, seed: int) -> Result:
    """One way of learning on two thirds of the groups of e2e, BLEU*; its figures on the last third, which also chose
    the epoch."""
    question = next(one for one in QUESTIONS if one.name == TRIED_ON)
    more = TRIED[name]
    wanted = replace(given, items=given.items and given.items * int(more.get("items", 1)))
    data = rated_part(wanted, question)
    train, dev = data.split(seed=seed, shares=(2.0, 1.0))
    folder = work_folder(given, "ream-tried", name, seed)
    options = {**SETTINGS, "sizes": SIZES, "metric": METRICS[0], "ratings": question.ratings}
    options |= {"epochs": 1, "combinations": 2} if given.quick else {}
    found = fit(
        "ream", train, dev=dev, aspect=question.aspect, encoder=given.encoder, seed=seed, folder=folder,
        **{**options, **{key: value for key, value in more.items() if key != "items"}},
    )  # fmt: skip
    assert isinstance(found, Ream)
    row = report_on(dev, found, question, seed, folder / "report")
    forget(folder)
    return {"report": row, "steps": found.record.steps, "train_seconds": found.record.seconds}


def choose(
    data: Dataset, found: CrossFitted, seed: int
) -> tuple[dict[str, dict[str, tuple[str, ...]]], float | None, int]:
    """References of each item by kind of set; the share of answers to other items among what was added; items.

    raw: one reference drawn by seed. augmented: what ream takes beside it from the item's other references and from as
    many answers to other items (first-fit, at most ten). random: as many drawn from the same. all: all of its own.
    """
    rng = np.random.default_rng(seed)
    sets: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in SETS}
    taken = strange = 0
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
            extra = [rest[int(place)] for place in rng.permutation(len(rest))[: len(chosen.added)]]
            sets["random"][item.id] = (*chosen.start, *extra)
            taken += len(chosen.added)
            strange += sum(text in pool.strangers for text in chosen.added)
    return sets, strange / taken if taken else None, len(sets["raw"])


# What follows makes the page from the results.


def page(given: Given, store: Store) -> list[str]:
    """The page, from what the store holds."""
    lines = [
        "# ream for bleu-star and bertscore",
        "",
        "Is the reliability of a set of references predicted on unseen items, and does the metric agree better with",
        f"people when ream chose its references? Cross-fitted in {FOLDS} folds by group; sizes {SIZES} as far as",
        f"an item has references; {SETTINGS['combinations']} sets of a size and item,",
        f"{SETTINGS['epochs']} epochs at most.",
        "",
        what_was_read(given),
        "",
        f"Made by `docs/results/ream.py`. {machine_line(store.figures(), store.code, store.checks)}",
        "",
        "R2 = 1 − MSE / constant; the constant predictor is the mean gold of each size on the test items themselves.",
        "Accuracy: how often the better of a set and the same set with one reference removed, one answer to another",
        "item added, or one replaced by such an answer is predicted; .5 is chance. Mean [95 % interval by t over",
        "folds].",
    ]
    lines += sections(lambda question: of_question(given, store, question))
    return [*lines, "", "## What else was tried", "", *of_tries(given, store)]


def of_tries(given: Given, store: Store) -> list[str]:
    rows = []
    for name in TRIED:
        for result in store.of(f"tried/{name}", given.seeds[:1]):
            found = result["report"]
            figures = [number(found[key]) for key in ("mse", "constant", "r2", "spearman")]
            accuracies = [number(found["accuracy"][kind]) for kind in NEGATIVES]
            rows.append([name, str(found["n"]), *figures, *accuracies, minutes([result])])
    if not rows:
        return [ABSENT]
    head = ["way", "sets", "MSE", "constant", "R2", "Spearman", *(f"accuracy, {k}" for k in NEGATIVES), "minutes"]
    said = f"{METRICS[0]} on {TRIED_ON}, seed {given.seeds[0]}: learned on two thirds of the groups, measured on the"
    return [
        said,
        "others, which also chose the epoch. Nothing above was chosen by it. With more items the part measured on",
        "grows too, so that lines of other numbers of sets are compared by R2, each with its own constant.",
        "",
        *table(head, rows),
    ]


def of_question(given: Given, store: Store, question: Question) -> list[str]:
    by_metric = found_of(given, store, question)
    if not any(by_metric.values()):
        return [ABSENT]
    some = next(found for found in by_metric.values() if found)
    lines = [size_line(question, some[0]["items"], some[0]["outputs"]), ""]
    rows = []
    for metric, found in by_metric.items():
        if found:
            rows.append([metric, *figures(found), minutes(found)])
    head = [
        "metric",
        "seeds",
        "sets",
        "MSE",
        "constant",
        "R2",
        "Spearman",
        *(f"accuracy, {k}" for k in NEGATIVES),
        "minutes",
    ]
    lines += table(head, rows)
    lines += [
        "",
        "Agreement with people by reference set (first seed with its interval over groups; mean ± SD over seeds):",
    ]
    lines += ["", *table(*correlations(by_metric))]
    shares = [f"{m} {mean_sd([r['strangers'] for r in found])}" for m, found in by_metric.items() if found]
    lines += ["", f"Share of answers to other items among what ream added (offered: about half): {', '.join(shares)}."]
    return lines


def figures(found: Sequence[Result]) -> list[str]:
    """Means over seeds first, then the interval over folds."""
    n_folds = min(len(result["folds"]) for result in found)

    def over_folds(value: Any) -> list[float | None]:
        columns = []
        for fold in range(n_folds):
            each = [value(result["folds"][fold]) for result in found]
            defined = [one for one in each if one is not None]
            columns.append(float(np.mean(defined)) if defined else None)
        return columns

    cells = [str(len(found)), str(sum(fold["n"] for fold in found[0]["folds"]))]
    for name in ("mse", "constant", "r2", "spearman"):
        cells.append(mean_interval(over_folds(lambda fold, name=name: fold[name])))
    for kind in NEGATIVES:
        cells.append(mean_interval(over_folds(lambda fold, kind=kind: fold["accuracy"][kind])))
    return cells


def correlations(by_metric: Mapping[str, Sequence[Result]]) -> tuple[list[str], list[list[str]]]:
    head = [
        "metric",
        "references",
        "how many",
        "Pearson",
        "over seeds",
        "Kendall",
        "within items, Pearson",
        "over seeds",
    ]
    rows = []
    for metric, found in by_metric.items():
        for name in SETS if found else ():
            each = [result["sets"][name] for result in found]
            rows.append(
                [
                    metric,
                    name,
                    number(float(np.mean([one["n_references"] for one in each])), 1),
                    estimate(each[0]["pearson"]),
                    mean_sd([one["pearson"]["value"] for one in each]),
                    estimate(each[0]["kendall"]),
                    estimate(each[0]["within"]),
                    mean_sd([one["within"]["value"] for one in each]),
                ]
            )
    return head, rows


if __name__ == "__main__":
    make_page("ream", __doc__ or "", compute, page, more={"tried": try_others})
