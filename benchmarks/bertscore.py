"""BERTScore of all pairs on the installed encoder against the bert-score package in the same run.

The package is run at several batch sizes, and its fastest counts. Its time is split into encoding and matching by
timing its encoding function; ours likewise. Equality is checked at its batch size 1 on some of the pairs. Clock time is
reported with CPU time, which other load disturbs less.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import bert_score.utils
import numpy as np
import torch
from _texts import machine, make_queries, read_texts, spread
from bert_score import BERTScorer

from scoring.ml import load


class Clock:
    """Adds up the time spent inside a function."""

    def __init__(self, function) -> None:
        self.function, self.seconds = function, 0.0

    def __call__(self, *args, **options):
        start = time.perf_counter()
        try:
            return self.function(*args, **options)
        finally:
            self.seconds += time.perf_counter() - start


class Run(NamedTuple):
    """Seconds of a run: clock time, matching alone, CPU time of all cores; and the scores."""

    whole: float
    matching: float
    processor: float
    found: Any


def run_ours(evaluator, queries) -> Run:
    clock = Clock(evaluator.matrices)
    evaluator.matrices = clock
    start, processor = time.perf_counter(), time.process_time()
    found = evaluator.all_pairs(queries)
    whole, processor = time.perf_counter() - start, time.process_time() - processor
    evaluator.matrices = clock.function
    return Run(whole, clock.seconds, processor, found)


def run_peer(scorer, queries, batch_size) -> Run:
    hyps = [h for hs, rs in queries for h in hs for _ in rs]
    refs = [r for hs, rs in queries for _ in hs for r in rs]
    clock = Clock(bert_score.utils.get_bert_embedding)
    bert_score.utils.get_bert_embedding = clock
    start, processor = time.perf_counter(), time.process_time()
    found = scorer.score(hyps, refs, batch_size=batch_size)[2].numpy()
    whole, processor = time.perf_counter() - start, time.process_time() - processor
    bert_score.utils.get_bert_embedding = clock.function
    return Run(whole, whole - clock.seconds, processor, found)


def seconds(runs: list[Run]) -> dict:
    return {name: spread([getattr(run, name) for run in runs]) for name in ("whole", "matching", "processor")}


def times(peers: list[Run], ours: list[Run], name: str) -> dict:
    return spread([getattr(p, name) / getattr(o, name) for p, o in zip(peers, ours, strict=True)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="interchange folder; without it own sentences are recombined")
    parser.add_argument("--queries", type=int, default=2)
    parser.add_argument("--hypotheses", type=int, default=14)
    parser.add_argument("--references", type=int, default=200)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, help="threads of torch; without it all cores")
    parser.add_argument("--bf16", action="store_true", help="also time bf16 (slow on a CPU without AMX or AVX512-BF16)")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)

    queries = make_queries(read_texts(given.data), given.queries, given.hypotheses, given.references, given.seed)
    options = {"device": given.device}
    evaluator: Any = load("bertscore", **options)
    half = load("bertscore", dtype="bf16", **options) if given.bf16 else None
    layer, folder = evaluator.layer, str(evaluator.source.folder)
    scorer = BERTScorer(model_type=folder, num_layers=layer, device=given.device)
    warm = [(queries[0][0][:2], queries[0][1][:2])]
    for each in filter(None, (evaluator, half)):
        run_ours(each, warm)
    run_peer(scorer, warm, 64)

    ours, peers, halves = [], {size: [] for size in given.batch_sizes}, []
    for _ in range(given.runs):
        ours.append(run_ours(evaluator, queries))
        for size in given.batch_sizes:
            peers[size].append(run_peer(scorer, queries, size))
        if given.bf16:
            halves.append(run_ours(half, queries))
    fastest = min(peers, key=lambda size: min(run.processor for run in peers[size]))

    small = [(queries[0][0][:4], queries[0][1][:25])]
    exact, found = run_peer(scorer, small, 1).found, run_ours(evaluator, small).found[0]
    pairs = given.queries * given.hypotheses * given.references
    report = {
        "benchmark": "bertscore",
        "machine": {**machine(), "device": given.device, "threads": torch.get_num_threads()},
        "texts": given.data.name if given.data else "own",
        "encoder": evaluator.signature,
        "seed": given.seed,
        "queries": given.queries,
        "pairs": pairs,
        "runs": given.runs,
        "seconds": seconds(ours),
        "seconds_bf16": seconds(halves) if halves else None,
        "bert_score": {str(size): seconds(rows) for size, rows in peers.items()},
        "fastest_batch_size": fastest,
        "times_faster_whole": times(peers[fastest], ours, "whole"),
        "times_faster_processor": times(peers[fastest], ours, "processor"),
        "times_faster_matching": times(peers[fastest], ours, "matching"),
        "largest_difference_at_batch_size_1": float(np.abs(exact.reshape(found.shape) - found).max()),
        "aims": {"whole": 1.5, "matching": 10, "difference": 1e-5},
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
