"""A training step of perception with the lazy gradient penalty (every 4th step) against a step without it.

The same batches and the installed encoder. With the penalty, attention cannot use the fused kernel, which is not twice
differentiable; without it, it does. Runs alternate. Clock time is reported with CPU time, which other load disturbs
less.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch
from _texts import machine, make_queries, read_texts, spread

from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.evaluators.perception.network import PerceptionNetwork
from scoring.ml.evaluators.perception.pairs import PairBatches, encode_sides
from scoring.ml.registry import get_entry
from scoring.ml.training.job import FitJob
from scoring.ml.types import Dataset, Record


def make_records(texts: list[str], n: int, seed: int) -> list[Record]:
    rng = random.Random(seed)
    found = []
    for replies, answers in make_queries(texts, -(-n // 2), 2, 2, seed):
        context = (rng.choice(texts), rng.choice(texts))
        found += [Record(text, tuple(answers), context, system="s") for text in replies]
    return found[:n]


def timed_steps(job: FitJob, batches: PairBatches, penalty: str, every: int, steps: int) -> np.ndarray:
    """(steps, 2) clock and CPU seconds of each step: forward, backward, AdamW."""
    names = ("pooling", "confidence", "penalty_weight")
    settings = {**{name: job.options[name] for name in names}, "penalty": penalty, "penalty_every": every, "towers": 1}
    torch.manual_seed(job.seed)
    attention = None if penalty == "none" else "eager"
    network = PerceptionNetwork.from_source(job.encoder, settings, attention=attention)
    network.train()
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-5, fused=True)
    found = []
    for number in range(steps):
        batch = batches[number % len(batches)]
        started, processor = time.perf_counter(), time.process_time()
        optimiser.zero_grad(set_to_none=True)
        network(**batch)["loss"].backward()
        optimiser.step()
        found.append((time.perf_counter() - started, time.process_time() - processor))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="an interchange folder; without it own sentences")
    parser.add_argument("--steps", type=int, default=8, help="steps of a run, a multiple of 4")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    entry = get_entry("perception")
    options = {**entry.train_defaults("recommended"), "batch_size": given.batch_size}
    job = FitJob(entry, Dataset("bench"), None, "recommended", options, given.seed, Path())
    records = make_records(read_texts(given.data), given.steps * given.batch_size, given.seed)
    tokenizer = PairTokenizer(job.encoder)
    sides = encode_sides(tokenizer, [replace(r, item=str(n)) for n, r in enumerate(records)], form="both")
    batches = PairBatches(
        sides,
        [record.system for record in records],
        [record.item for record in records],
        job,
        pad_id=tokenizer.pad_id,
        phase="bench",
    )
    timed_steps(job, batches, "none", 1, 1)
    kinds = ("without penalty", "penalty every 4th, mean", "its steps without", "its steps with")
    runs: dict[str, list[np.ndarray]] = {kind: [] for kind in kinds}
    for _ in range(given.runs):
        runs[kinds[0]].append(timed_steps(job, batches, "none", 1, given.steps).mean(axis=0))
        steps = timed_steps(job, batches, "pair", 4, given.steps)
        with_it = np.arange(len(steps)) % 4 == 0
        for kind, some in zip(kinds[1:], (steps, steps[~with_it], steps[with_it]), strict=True):
            runs[kind].append(some.mean(axis=0))
    ratios = [lazy / none for lazy, none in zip(runs[kinds[1]], runs[kinds[0]], strict=True)]
    clocks = ("clock", "processor")
    longest = sides.generated_lengths.max()
    print(
        json.dumps(
            {
                "what": f"a training step of {given.batch_size} pairs, at most {longest} tokens a text",
                "machine": machine(),
                "threads": torch.get_num_threads(),
                "seconds": {
                    kind: {clock: spread([float(one[n]) for one in found]) for n, clock in enumerate(clocks)}
                    for kind, found in runs.items()
                },
                "times slower on average": {
                    clock: spread([float(one[n]) for one in ratios]) for n, clock in enumerate(clocks)
                },
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
