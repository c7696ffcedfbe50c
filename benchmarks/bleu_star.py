"""BLEU* of all pairs, 14 replies x 200 references per query, against NLTK and sacrebleu in the same run.

Our time covers everything from texts to matrices. NLTK gets tokenised texts; sacrebleu caches its tokens. Both peers
are timed on a few of the same queries, because their cost per pair is constant. Clock time is reported with CPU time,
which other load disturbs less.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from _texts import machine, make_queries, read_texts, spread
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu.metrics.bleu import BLEU

from scoring.ml import load
from scoring.ml.text.tokens import tokenize


class Clock:
    """Clock and CPU seconds since its creation, per unit of work."""

    def __init__(self) -> None:
        self.start = time.perf_counter(), time.process_time()

    def per(self, count: int) -> tuple[float, float]:
        return (time.perf_counter() - self.start[0]) / count, (time.process_time() - self.start[1]) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="interchange folder; without it own sentences are recombined")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--hypotheses", type=int, default=14)
    parser.add_argument("--references", type=int, default=200)
    parser.add_argument("--peer-queries", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()

    queries = make_queries(
        read_texts(options.data), options.queries, options.hypotheses, options.references, options.seed
    )
    pairs = options.queries * options.hypotheses * options.references
    few = queries[: options.peer_queries]
    few_pairs = len(few) * options.hypotheses * options.references
    tokens = [[[tokenize(text, "13a") for text in side] for side in query] for query in few]
    method1 = SmoothingFunction().method1

    ours, nltk, sacrebleu, errors = [], [], [], []
    for _ in range(options.runs):
        clock = Clock()
        metric: Any = load("bleu-star")
        found = metric.all_pairs(queries)
        ours.append(clock.per(pairs))

        clock = Clock()
        for hyps, refs in tokens:
            for hyp in hyps:
                for ref in refs:
                    sentence_bleu([ref], hyp, smoothing_function=method1)
        nltk.append(clock.per(few_pairs))

        peer = BLEU(effective_order=True)
        clock = Clock()
        expected = [[[peer.sentence_score(h, [r]).score for r in refs] for h in hyps] for hyps, refs in few]
        sacrebleu.append(clock.per(few_pairs))
        errors.append(max(np.abs(np.array(e) - f).max() for e, f in zip(expected, found, strict=False)))

    def times(peer: list[tuple[float, float]]) -> dict[str, dict[str, float]]:
        pairs_of_runs = list(zip(peer, ours, strict=True))
        return {
            kind: spread([theirs[index] / own[index] for theirs, own in pairs_of_runs])
            for index, kind in enumerate(("clock", "processor"))
        }

    report = {
        "benchmark": "bleu_star",
        "machine": machine(),
        "texts": options.data.name if options.data else "own",
        "seed": options.seed,
        "queries": options.queries,
        "pairs": pairs,
        "runs": options.runs,
        "seconds": spread([t * pairs for t, _ in ours]),
        "pairs_per_second": spread([1 / t for t, _ in ours]),
        "times_faster_than_nltk": times(nltk),
        "times_faster_than_sacrebleu": times(sacrebleu),
        "largest_difference_to_sacrebleu": float(max(errors)),
        "aims": {"nltk": 100, "sacrebleu": 50, "difference": 1e-9},
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
