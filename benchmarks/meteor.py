"""METEOR of all pairs, 14 replies x 200 references per query, against nltk in the same run, without synonyms.

Our time covers everything from texts to matrices. nltk gets tokenised texts and an empty WordNet; it is timed on a few
of the same queries, because its cost per pair is constant. CPU seconds in one thread, which other load disturbs less.
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
from nltk.translate.meteor_score import single_meteor_score

from scoring.ml import load
from scoring.ml.text.tokens import tokenize


class NoWords:
    """An empty WordNet."""

    def synsets(self, word: str) -> list[object]:
        return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="interchange folder; without it own sentences are recombined")
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--hypotheses", type=int, default=14)
    parser.add_argument("--references", type=int, default=200)
    parser.add_argument("--peer-queries", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()

    queries = make_queries(
        read_texts(options.data), options.queries, options.hypotheses, options.references, options.seed
    )
    few = queries[: options.peer_queries]
    tokens = [[[tokenize(text, "13a") for text in side] for side in query] for query in few]
    pairs = options.queries * options.hypotheses * options.references
    few_pairs = len(few) * options.hypotheses * options.references

    ours, peer, errors = [], [], []
    for _ in range(options.runs):
        start = time.process_time()
        metric: Any = load("meteor", synonyms="none")
        found = metric.all_pairs(queries)
        ours.append((time.process_time() - start) / pairs)

        start = time.process_time()
        expected = [
            [[single_meteor_score(ref, hyp, wordnet=NoWords()) for ref in refs] for hyp in hyps]
            for hyps, refs in tokens
        ]
        peer.append((time.process_time() - start) / few_pairs)
        errors.append(max(np.abs(np.array(e) - f).max() for e, f in zip(expected, found, strict=False)))

    result = {
        "machine": machine(),
        "pairs": pairs,
        "seconds": spread([own * pairs for own in ours]),
        "times_nltk": spread([theirs / own for theirs, own in zip(peer, ours, strict=True)]),
        "largest_difference": max(errors),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
