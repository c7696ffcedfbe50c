"""Training with default options and scoring of the learned evaluators on 240 outputs, and the estimates before it.

`--evaluators` names those to measure; `--data` is an interchange folder whose first judged outputs are taken (without
it, own sentences with made ratings). Seconds are by the clock and of the processor; other work disturbs the latter
less. With `--option NAME=VALUE` an option of the training is changed. `--estimates` runs small trainings of the
evaluators with different sizes and options instead, ten in which the encoder learns and ten in which it is frozen,
and compares the range that `plan` gives with the time that each took.
`--tokens` counts what the encoder reads in each of the four trainings that fine-tune it, without training: exact, and
the same on every machine.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from _texts import OWN, machine

from scoring.ml import fit, plan
from scoring.ml.dataset import read_dataset
from scoring.ml.encoders.separate import TextRows
from scoring.ml.evaluators.comparative.material import get_material
from scoring.ml.evaluators.comparative.training import choose_references
from scoring.ml.registry import get_entry
from scoring.ml.training.fit import make_job
from scoring.ml.training.job import FitJob
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating

EVALUATORS = ("shared-bert", "adversarial", "maude", "ream", "perception", "comparative")


def make_data(n_outputs: int, seed: int, sentences: int = 2) -> Dataset:
    """Four systems, items with contexts of four turns and two references; three raters, who prefer long outputs."""
    rng = random.Random(seed)
    items, outputs, ratings = [], [], []

    def write(most: int) -> str:
        return " ".join(rng.choice(OWN) for _ in range(rng.randint(1, most)))

    for number in range(n_outputs // 4):
        name = f"i{number}"
        context = tuple(write(sentences) for _ in range(4))
        items.append(Item(name, context, references=(write(sentences), write(sentences)), group=f"g{number}"))
        for system in "abcd":
            text = write(sentences)
            outputs.append(Output(name, system, text))
            for rater in "xyz":
                value = min(5, max(1, round(len(text) / 40 + rng.gauss(1, 1))))
                ratings.append(Rating(rater, "quality", value, name, system))
    return Dataset(
        "own", aspects=(Aspect("quality", 1, 5),), items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings)
    )


def take_outputs(data: Dataset, n: int) -> Dataset:
    """The first items of `data` whose judged outputs are at most `n`."""
    judged = {(row.item, row.system) for row in data.ratings}
    judged |= {(row.item, system) for row in data.comparisons for system in (row.system_a, row.system_b)}
    chosen, count = set(), 0
    for item in data.items:
        count += sum(output.item == item.id and (item.id, output.system) in judged for output in data.outputs)
        if count > n:
            break
        chosen.add(item.id)
    return replace(
        data,
        items=tuple(item for item in data.items if item.id in chosen),
        **{
            name: tuple(row for row in getattr(data, name) if row.item in chosen)
            for name in ("outputs", "ratings", "comparisons")
        },
    )


def timed(call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What `call` returns, with its seconds."""
    began, used = time.monotonic(), time.process_time()
    result = call()
    return result, {"clock": round(time.monotonic() - began, 1), "processor": round(time.process_time() - used, 1)}


def measure(name: str, data: Dataset, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """Seconds of check, training and scoring of all outputs; for perception, of the systems' scores as well."""
    if get_entry(name).aspect == "one" and "aspect" not in options:
        options = {**options, "aspect": min(row.aspect for row in data.ratings)}
    learned, dev, _ = data.split(seed=seed, by="group")
    checked, check = timed(lambda: plan(name, learned, dev=dev, seed=seed, **options))
    found, training = timed(lambda: fit(name, learned, dev=dev, seed=seed, **options))
    records = data.outputs_with_context()
    scored, scoring = timed(lambda: found.evaluate(records))
    # As a run does: all systems together, so that a reference is read once.
    systems = timed(lambda: found.system_weights(records))[1] if hasattr(found, "system_weights") else None
    return {
        "evaluator": name, "outputs": len(records), "check": check, "training": training, "scoring": scoring,
        "scoring of systems": systems, "steps": found.record.steps, "estimate": checked.seconds_range,
        "held-out metrics": {key: round(value, 4) for key, value in found.record.metrics.items()},
        "scored": int(sum(not reason for reason in scored.reasons)),
    }  # fmt: skip


#: The modules that time a training, by evaluator.
TIMED = {
    "shared-bert": "shared_bert.evaluator",
    "adversarial": "adversarial.evaluator",
    "perception": "perception.training",
    "comparative": "comparative.training",
}


def count_tokens(name: str, data: Dataset, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """Millions of tokens, with padding, that the encoder reads in the steps of a training, forward and backward, and
    those it reads without gradients. `unshared`: in the steps, if each row had texts of its own. `scoring`: comparative
    only, of all outputs."""
    if get_entry(name).aspect == "one":
        options = {"aspect": min(row.aspect for row in data.ratings), **options}
    learned, dev, _ = data.split(seed=seed, by="group")
    works: list[Any] = []

    def note(job: Any, given: list[Any]) -> tuple[float, float]:
        works.extend(given)
        return 1.0, 0.0

    with patch(f"scoring.ml.evaluators.{TIMED[name]}.time_work", note):
        plan(name, learned, dev=dev, seed=seed, **options)
    steps = unshared = reading = 0.0
    for work in works:
        batches = [work.sample[number] for number in range(min(len(work.sample), 16))]
        padded = [batch["input_ids"].numel() for batch in batches]
        steps += work.counts.steps * sum(padded) / len(padded)
        # Each row of a batch reads as many texts as it has places.
        texts = [batch["units"] if "units" in batch else batch.get("places") for batch in batches]
        rows = [
            batch["input_ids"].numel() if where is None else
            batch["places"].shape[1] * len(batch["places"]) * batch["input_ids"].shape[1]
            * (where.shape[1] if "units" in batch else 1)
            for batch, where in zip(batches, texts, strict=True)
        ]  # fmt: skip
        unshared += work.counts.steps * sum(rows) / len(rows)
        # Texts that are read alone are read once.
        alone = isinstance(work.inputs, TextRows)
        one = work.inputs.encodings.n_tokens / len(work.inputs) if alone else float(work.inputs.lengths.mean())
        reading += (work.counts.head_rows + work.counts.evaluated) * one + work.read
    found = {"steps": steps, "unshared": unshared, "reading": reading}
    if name == "comparative":
        found["scoring"] = count_score_tokens(make_job(name, learned, options, dev=dev, seed=seed), data)
    return {"evaluator": name, **{what: round(tokens / 1e6, 3) for what, tokens in found.items()}}


def count_score_tokens(job: FitJob, data: Dataset) -> float:
    """Tokens that comparative reads to score all outputs of `data` after the training of a `job`: each is compared with
    each reference, from both sides if the encoder reads them together."""
    material = get_material(job)
    references = choose_references(material.train, material, job.integer("references"), job.rng("references"))
    records = data.outputs_with_context()
    read = material.reader.pairs([one for one in records for _ in references], references * len(records)).encodings
    return float(read.encodings.n_tokens if isinstance(read, TextRows) else 2 * read.lengths.sum())


#: Small trainings: evaluator, outputs, sentences of a text, options.
SMALL: tuple[tuple[str, int, int, dict[str, Any]], ...] = (
    ("shared-bert", 48, 1, {"epochs": 1}),
    ("shared-bert", 120, 2, {"features": "separate", "stages": "head"}),
    ("shared-bert", 80, 3, {"max_steps": 8}),
    ("adversarial", 60, 2, {"epochs": 2}),
    ("adversarial", 160, 1, {"features": "separate", "epochs": 1}),
    ("perception", 48, 1, {"max_steps": 4}),
    ("perception", 80, 2, {"features": "separate", "max_steps": 6}),
    ("perception", 100, 1, {"stages": "head", "penalty": "none"}),
    ("comparative", 48, 1, {"max_steps": 6, "references": 5}),
    ("comparative", 100, 2, {"features": "separate", "max_steps": 6}),
    ("maude", 80, 1, {}),
    ("maude", 240, 2, {}),
    ("maude", 400, 1, {"epochs": 4}),
    ("maude", 800, 1, {"patience": 1}),
    ("maude", 240, 2, {"inputs": "text"}),
    ("ream", 60, 1, {}),
    ("ream", 240, 2, {}),
    ("ream", 480, 1, {"epochs": 10}),
    ("ream", 240, 1, {"pairing": "joint", "pretrain": 0}),
    ("ream", 800, 2, {"metric": "chrf"}),
)


def compare_estimates(seed: int, evaluators: Sequence[str]) -> list[dict[str, Any]]:
    """The range of the estimate and the true time of each small training of the given `evaluators`."""
    rows = []
    for name, n, sentences, options in SMALL:
        if name not in evaluators:
            continue
        learned, dev, _ = make_data(n, seed, sentences).split(seed=seed, by="group")
        given = {"dev": dev, "seed": seed, **options}
        checked, check = timed(partial(plan, name, learned, **given))
        took = timed(partial(fit, name, learned, **given))[1]
        assert checked.seconds_range is not None
        low, high = checked.seconds_range
        rows.append({
            "evaluator": name, "outputs": n, **options, "low": round(low, 1), "high": round(high, 1),
            "took": took["clock"], "held": low <= took["clock"] <= high, "check": check["clock"],
        })  # fmt: skip
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluators", nargs="+", default=EVALUATORS)
    parser.add_argument("--data", type=Path, help="an interchange folder; without it own sentences")
    parser.add_argument("--outputs", type=int, default=240)
    parser.add_argument("--option", nargs="+", default=[], help="NAME=VALUE, JSON or a word")
    parser.add_argument("--estimates", action="store_true")
    parser.add_argument("--tokens", action="store_true")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    options: dict[str, Any] = {}
    for text in given.option:
        name, _, value = text.partition("=")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value
    report = {"benchmark": "default_training", "machine": machine(), "threads": torch.get_num_threads()}
    if given.estimates:
        rows = compare_estimates(given.seed, given.evaluators)
        print(json.dumps({**report, "trainings": rows, "held": sum(row["held"] for row in rows)}, indent=1))
        return
    results = []
    for name in given.evaluators:
        data = make_data(given.outputs, given.seed)
        if given.data is not None:
            data = take_outputs(read_dataset(given.data), given.outputs)
        run = count_tokens if given.tokens else measure
        results.append(run(name, data, given.seed, options))
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    print(json.dumps({**report, "options": options, "data": str(given.data or "own"), "results": results}, indent=1))


if __name__ == "__main__":
    main()
