"""ream: trained by contrast alone on references, without ratings."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from study import Result, Run, Tables, forget, row, t_interval

from scoring.ml import Dataset, Item, fit
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.ream.report import DRAWS
from scoring.ml.evaluators.ridge.features import Rows
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder
from scoring.ml.training.record import name_group

SPLIT_SEED, COSINE = 13, "cosine with the query"


def compute(run: Run) -> None:
    for name, variant, seed in product(run.study.parts, run.settings["variants"], run.seeds):
        if run.wants(name):
            run.once(f"{name}, {variant}", seed, lambda n=name, v=variant, s=seed: measure(run, n, v, s))


def read_items(run: Run, name: str) -> Dataset:
    """The items of a set with references, at most 30 of each, without outputs and ratings."""
    data = run.read(name)
    items = [item for item in data.items if any(text.strip() for text in item.references)]
    if name == "dailydialog_pp":
        items = [item for item in items if item.meta.get("adversarial_negatives")]
    items = [replace(item, references=item.references[:30]) for item in items]
    return replace(data, items=tuple(items), outputs=(), ratings=(), comparisons=(), dialogues=())


def split(run: Run, name: str) -> tuple[Dataset, Dataset]:
    """What is learned from, and the held-out items; no group is in both."""
    data = read_items(run, name)
    if name != "dailydialog_multiref":
        train, test = data.split(seed=SPLIT_SEED, shares=(2 / 3, 1 / 3))
    else:
        train, test = read_items(run, "dailydialog_pp"), data
        taken = {name_group(item.group, item.id) for item in test.items}
        kept = tuple(item for item in train.items if name_group(item.group, item.id) not in taken)
        train = replace(train, items=kept)
    most = 30 if run.quick else run.settings["most"]
    return replace(train, items=train.items[:most] if run.quick else train.items), replace(
        test, items=test.items[:most]
    )


def measure(run: Run, name: str, variant: str, seed: int) -> Result:
    train, test = split(run, name)
    if variant == COSINE:
        return measure_cosine(run, test, seed)
    folder = run.folder(name, variant, seed)
    options = run.settings["variants"][variant]
    evaluator: Any = fit("ream", train, seed=seed, encoder=run.encoder, folder=folder, **options)
    found = evaluator.preference(test, seed=seed)
    taken = count_taken(evaluator, test.items, np.random.default_rng(seed), seed)
    forget(folder)
    return {"items": len(test.items), "learned": evaluator.record.examples["queries for contrast"], **found, **taken}


def measure_cosine(run: Run, test: Dataset, seed: int) -> Result:
    """The same preference by the mean cosine of the references with the query (context or source), without training."""
    items = [item for item in test.items if item.context or item.source]
    rows, rng = Rows([item.make_record() for item in items]), np.random.default_rng(seed)
    sides = ["context" if item.context else "source" for item in items]
    queries = [rows.sides[side][place][0] for place, side in enumerate(sides)]
    own = [[rows.table.add(text) for text in dict.fromkeys(item.references)] for item in items]
    encoder = UtteranceEncoder(find_encoder(run.encoder))
    vectors = encoder.vectors(encoder.tokenize(rows.table.texts, rows.table.left).encodings)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    right: dict[str, list[float]] = {"add": [], "replace": []}
    for place, (query, texts) in enumerate(zip(queries, own, strict=True)):
        cosines = unit[texts] @ unit[query]
        for _ in range(DRAWS):
            drawn = rng.permutation(cosines)[: rng.integers(1, len(texts) + 1)]
            other = rng.choice([n for n in range(len(items)) if n != place])
            foreign = unit[rng.choice(own[other])] @ unit[query]
            for kind, rest in (("add", drawn), ("replace", drawn[1:])):
                gap = drawn.mean() - np.append(rest, foreign).mean()
                right[kind].append(float(gap > 0) + 0.5 * float(gap == 0))
    return {"items": len(items), **{kind: float(np.mean(values)) for kind, values in right.items()}}


def count_taken(evaluator: Any, items: tuple[Item, ...], rng: np.random.Generator, seed: int) -> dict[str, float]:
    """Shares of own and of wrong candidates that first-fit selection takes, from one own reference on."""
    rich = [item for item in items if len(set(item.references)) > 1][:200]
    starts, candidates, wrong = [], [], []
    for place, item in enumerate(rich):
        first, *rest = dict.fromkeys(item.references)
        others = rng.choice([n for n in range(len(rich)) if n != place], len(rest))
        foreign = [str(rng.choice(rich[n].references)) for n in others.tolist()]
        foreign = [text for text in dict.fromkeys(foreign) if text not in item.references]
        starts.append(replace(item, references=(first,)))
        candidates.append([*rest, *foreign])
        wrong.append(foreign)
    chosen = evaluator.annotate(starts, candidates, seed=seed, most=1000)
    counts = np.zeros(4)
    for one, listed, foreign in zip(chosen, candidates, wrong, strict=True):
        bad = len(set(one.added) & set(foreign))
        counts += (bad, len(foreign), len(one.added) - bad, len(listed) - len(foreign))
    return {"wrong": float(counts[0] / counts[1]), "own": float(counts[2] / counts[3])}


def tabulate(run: Run) -> Tables:
    for name, variant in product(run.study.parts, run.settings["variants"]):
        results = run.store.get(f"{name}, {variant}", run.seeds)
        if results:
            columns = {key: t_interval([one.get(key) for one in results]) for key in ("add", "replace", "wrong", "own")}
            yield row(
                "preference", "set", f"{name}, {variant}", seeds=len(results), items=results[0]["items"], **columns
            )  # fmt: skip
