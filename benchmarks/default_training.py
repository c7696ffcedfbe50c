"""Training with default options and scoring of the learned evaluators on 240 outputs, and the estimates before it.

`--evaluators` names those to measure; `--data` is an interchange folder whose first judged outputs are taken (without
it, own sentences with made ratings). Seconds are by the clock and of the processor; other work disturbs the latter
less. With `--option NAME=VALUE` an option of the training is changed. `--estimates` trains each in ten sizes instead,
and compares the range that `plan` gives with the time that the training took.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from _texts import OWN, machine

from scoring.ml import fit, plan
from scoring.ml.dataset import read_dataset
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
    learned, dev, _ = data.split(seed=seed, by="group")
    checked, check = timed(lambda: plan(name, learned, dev=dev, seed=seed, **options))
    found, training = timed(lambda: fit(name, learned, dev=dev, seed=seed, **options))
    records = data.outputs_with_context()
    scored, scoring = timed(lambda: found.evaluate(records))
    by_system: dict[str, list[Any]] = {}
    for record in records:
        by_system.setdefault(record.system, []).append(record)
    systems = None
    if hasattr(found, "system_weights"):
        systems = timed(lambda: [found.system_weights(some) for some in by_system.values()])[1]
    return {
        "evaluator": name, "outputs": len(records), "check": check, "training": training, "scoring": scoring,
        "scoring of systems": systems, "steps": found.record.steps, "estimate": checked.seconds_range,
        "held-out metrics": {key: round(value, 4) for key, value in found.record.metrics.items()},
        "scored": int(sum(not reason for reason in scored.reasons)),
    }  # fmt: skip


def compare_estimates(name: str, data: Callable[[int, int], Dataset], seed: int, options: dict[str, Any]) -> list[Any]:
    """The range of the estimate and the true time of ten trainings of different sizes."""
    rows = []
    for number in range(10):
        sentences, n = 1 + number % 3, 40 + 12 * number
        whole = data(n, sentences)
        learned, dev, _ = whole.split(seed=seed + number, by="group")
        how = {**options, "max_steps": 4 + number} if number % 2 else {**options, "epochs": 1}
        checked = plan(name, learned, dev=dev, seed=seed, **how)
        took = timed(lambda learned=learned, dev=dev, how=how: fit(name, learned, dev=dev, seed=seed, **how))[1]
        assert checked.seconds_range is not None
        low, high = checked.seconds_range
        rows.append({"outputs": n, "low": low, "high": high, **took, "held": low <= took["clock"] <= high})
        print(json.dumps({"evaluator": name, **rows[-1]}), file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluators", nargs="+", default=EVALUATORS)
    parser.add_argument("--data", type=Path, help="an interchange folder; without it own sentences")
    parser.add_argument("--outputs", type=int, default=240)
    parser.add_argument("--option", nargs="+", default=[], help="NAME=VALUE, JSON or a word")
    parser.add_argument("--estimates", action="store_true")
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
    results: list[Any] = []
    for name in given.evaluators:
        if given.estimates:
            rows = compare_estimates(name, lambda n, s: make_data(n, given.seed, s), given.seed, options)
            results.append({"evaluator": name, "trainings": rows, "held": sum(row["held"] for row in rows)})
            continue
        data = make_data(given.outputs, given.seed)
        if given.data is not None:
            data = take_outputs(read_dataset(given.data), given.outputs)
        results.append(measure(name, data, given.seed, options))
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    report = {"benchmark": "default_training", "machine": machine(), "threads": torch.get_num_threads()}
    print(json.dumps({**report, "options": options, "data": str(given.data or "own"), "results": results}, indent=1))


if __name__ == "__main__":
    main()
