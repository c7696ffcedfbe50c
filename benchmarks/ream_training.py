"""One training epoch of ream on cached vectors and dense matrices, against edge lists with the encoder in the loop.

All draw the same sets and negatives and start from the same weights; their first losses are compared. The alternative
reads each distinct pair of a batch once, with the frozen encoder, sorted by length; its attention is torch-geometric's
GATv2Conv. Its time is measured on some steps and scaled to the epoch. Reading every pair once before the first epoch is
timed separately. A second alternative has cached vectors and dense matrices, but projects the vectors of every set
anew.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from _texts import machine, make_queries, read_texts, spread
from torch_geometric.nn import GATv2Conv

from scoring.ml.evaluators.ream import training
from scoring.ml.evaluators.ream.network import ReamNetwork, attend_edges
from scoring.ml.evaluators.ream.vectors import PairEncoder, Reading, resolve_layer
from scoring.ml.registry import get_entry, load
from scoring.ml.training.job import FitJob
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating

OUTPUTS = 14


class EdgeNetwork(torch.nn.Module):
    """The same network over edge lists, with trainable weights."""

    def __init__(self, dense: ReamNetwork) -> None:
        super().__init__()
        own = dense.attention
        self.attention = GATv2Conv(
            own.heads * own.size, own.size, heads=own.heads, negative_slope=0.2, add_self_loops=False
        )
        self.attention.load_state_dict(own.state_dict())
        self.out = torch.nn.Linear(own.heads * own.size, 1)
        self.out.load_state_dict(dense.out.state_dict())

    def forward(self, x: torch.Tensor, groups: Sequence[torch.Tensor]) -> torch.Tensor:
        z = torch.cat([attend_edges(self.attention, x, rows).amax(dim=1) for rows in groups])
        return torch.tanh(self.out(z).squeeze(-1))


class SeparateSets(torch.nn.Module):
    """The same network, in which every set projects its own vectors, though several sets may have them."""

    def __init__(self, dense: ReamNetwork) -> None:
        super().__init__()
        self.dense = dense

    def forward(self, x: torch.Tensor, groups: Sequence[torch.Tensor]) -> torch.Tensor:
        attention = self.dense.attention
        return self.dense.read(torch.cat([attention(attention.project(x[rows])).amax(dim=1) for rows in groups]))


def make_data(texts: list[str], queries: int, references: int, seed: int) -> Dataset:
    """Queries with up to `references` references (at least half of that) and 14 rated outputs each."""
    rng = random.Random(seed)
    items, outputs, ratings = [], [], []
    for number, (replies, answers) in enumerate(make_queries(texts, queries, OUTPUTS, references, seed)):
        name = f"q{number}"
        kept = answers[: rng.randint(references // 2, references)]
        items.append(Item(name, context=(rng.choice(texts),), references=tuple(kept), group=name))
        for system, text in enumerate(replies):
            outputs.append(Output(name, f"s{system}", text))
            ratings.append(Rating("r", "overall", float(rng.randint(1, 5)), name, f"s{system}"))
    aspects = (Aspect("overall", 1, 5),)
    return Dataset("bench", aspects=aspects, items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings))


def one_epoch(network: torch.nn.Module, losses: Iterator[torch.Tensor], steps: int | None) -> tuple[float, int, float]:
    """Seconds, steps and the first loss."""
    optimiser = torch.optim.Adam(network.parameters(), lr=5e-4)
    started, done, first = time.perf_counter(), 0, float("nan")
    for loss in losses:
        first = float(loss.detach()) if not done else first
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        done += 1
        if steps is not None and done >= steps:
            break
    return time.perf_counter() - started, done, first


def fresh(job: FitJob, width: int) -> ReamNetwork:
    torch.manual_seed(job.torch_seed("network"))
    sizes = {"width": width, "attention_kind": "gatv2", "heads": 4}
    return ReamNetwork.from_source(None, sizes)


def list_records(items: Sequence[training.QueryItem], job: FitJob) -> list:
    """Every pair in the order of the cached vectors."""
    foreign = training.foreign_answers(items, job.integer("foreign"), job.rng("foreign:train"))
    return [
        replace(item.query, text=text)
        for item, more in zip(items, foreign, strict=True)
        for text in (*item.references, *more)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="an interchange folder; without it own sentences")
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--references", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--loop-steps", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=20, help="for the ratio of a whole training")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)

    data = make_data(read_texts(options.data), options.queries, options.references, options.seed)
    entry = get_entry("ream")
    with tempfile.TemporaryDirectory() as folder:
        job = FitJob(
            entry, data, None, "recommended", entry.train_defaults("recommended"), options.seed, Path(folder)
        )  # fmt: skip
        layer = resolve_layer(job.encoder, job.integer("layer"))

        def encoder() -> PairEncoder:
            return PairEncoder(job.encoder, Reading(layer, max_length=job.integer("max_length")))

        items = training.query_items(data, "overall", "raw")
        first = encoder()
        first.model  # noqa: B018  (loading it is not part of the time)
        records = list_records(items, job)
        started = time.perf_counter()
        first.vectors(records)
        once = time.perf_counter() - started
        prepared = training.Preparer(job, load("bleu-star"), first).prepare(items, "train")
    samples, _ = training.draw_samples(prepared.gold, training.parse_sizes(job), 25, job.rng("sets"))
    ours, apart, loops, gaps = [], [], [], []
    for _ in range(options.runs):
        network = fresh(job, job.encoder.width)
        epochs = training.Epochs(network, prepared, samples, job, prepared.make_reader("cpu"))
        seconds, steps, loss = one_epoch(network, epochs(0), None)
        ours.append(seconds)
        network = SeparateSets(fresh(job, job.encoder.width))
        epochs = training.Epochs(network, prepared, samples, job, prepared.make_reader("cpu"))
        seconds, _, other = one_epoch(network, epochs(0), None)
        apart.append(seconds)
        gaps.append(abs(loss - other))
        edges = EdgeNetwork(fresh(job, job.encoder.width))
        reader = encoder()
        reader.model  # noqa: B018

        def read(rows, reader=reader):
            encodings = reader.tokenize([records[int(row)] for row in rows]).encodings
            return reader.engine.map(encodings, reader.pool)

        loop = training.Epochs(edges, prepared, samples, job, read)
        seconds, done, other = one_epoch(edges, loop(0), options.loop_steps)
        loops.append(seconds / done * steps)
        gaps.append(abs(loss - other))
    whole = [(once + a * options.epochs, b * options.epochs) for a, b in zip(ours, loops, strict=True)]
    print(
        json.dumps(
            {
                "what": f"one epoch of ream, {options.queries} queries x {OUTPUTS} outputs "
                f"x up to {options.references}",
                "machine": machine(),
                "threads": torch.get_num_threads(),
                "sets": len(samples),
                "steps": steps,
                "pairs": len(records),
                "seconds": {
                    "cached": spread(ours),
                    "each set projected alone": spread(apart),
                    "in the loop": spread(loops),
                    "reading all pairs once": once,
                },
                "times faster than each set alone": spread([b / a for a, b in zip(ours, apart, strict=True)]),
                "times faster": spread([b / a for a, b in zip(ours, loops, strict=True)]),
                f"times faster over {options.epochs} epochs": spread([b / a for a, b in whole]),
                "largest difference of the first loss": max(gaps),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
