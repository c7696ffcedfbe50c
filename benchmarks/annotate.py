"""Automatic selection of references for items with many candidates: vectors read once, against scoring every trial set
from scratch.

Ours selects for every item, by first fit and greedily; its trial sets are recorded. The alternative reads each trial
set separately: all its pairs go through the frozen encoder in one batch, then through the same attention. It is timed
on a sample of the recorded trial sets and scaled to all; both must give the same values. The network's weights are
random except for the signs of the last layer, so that sets grow to ten references: the maximum cost of a greedy choice
of ten from a hundred.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from _texts import machine, make_queries, read_texts, spread

from scoring.ml.artefact import Artefact
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.evaluators.ream.network import ReamNetwork
from scoring.ml.registry import get_entry
from scoring.ml.training.record import TrainingRecord
from scoring.ml.types import Item, Record

Trial = tuple[Record, tuple[str, ...], float]


class RecordingReam(Ream):
    """Records every set that it scores."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.trials: list[Trial] = []

    def reliabilities(self, query: Record, sets: Sequence[Sequence[str]]) -> Any:
        found = super().reliabilities(query, sets)
        self.trials += [(query, tuple(texts), float(value)) for texts, value in zip(sets, found, strict=True)]
        return found


def make_evaluator(encoder: str | None, seed: int) -> RecordingReam:
    entry = get_entry("ream")
    source = find_encoder(encoder)
    settings = entry.parse_train_options("recommended", {})
    torch.manual_seed(seed)
    sizes = {"width": source.width, "attention_kind": "gatv2", "heads": 4}
    network = ReamNetwork.from_source(None, sizes)
    with torch.no_grad():
        # Small and positive: max-pooling then makes most additions an improvement, and tanh is far from saturation.
        network.out.weight.abs_().mul_(0.05)
    record = TrainingRecord("bench", "", {}, (), (), 0, 0.0, 0, {})
    artefact = Artefact(
        "ream", "recommended", seed, ("overall",), settings, {}, record, network, source, embedded=False
    )
    return RecordingReam(entry, artefact)


def score_from_scratch(evaluator: Ream, trial: Trial) -> float:
    """Return the reliability of a set, computed without caches."""
    query, texts, _ = trial
    evaluator.pair_encoder._cache.clear()
    vectors, _ = evaluator.pair_encoder.vectors([replace(query, text=text) for text in texts])
    x = torch.from_numpy(vectors)[None].to(evaluator.device)
    with torch.inference_mode():
        return float(evaluator.network(x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device))[0])


def compare_selection(
    options: argparse.Namespace, items: list[Item], candidates: list[list[str]], greedy: bool
) -> dict[str, Any]:
    evaluator = make_evaluator(options.encoder, options.seed)
    score_from_scratch(
        evaluator, (Record("", context=items[0].context), tuple(candidates[0][:2]), 0.0)
    )  # loads the encoder
    evaluator.pair_encoder._cache.clear()
    started = time.perf_counter()
    found = evaluator.annotate(items, candidates, greedy=greedy, seed=options.seed)
    ours = time.perf_counter() - started
    trials = evaluator.trials
    drawn = random.Random(options.seed).sample(trials, min(options.trials, len(trials)))
    largest, started = 0.0, time.perf_counter()
    for trial in drawn:
        largest = max(largest, abs(score_from_scratch(evaluator, trial) - trial[2]))
    theirs = (time.perf_counter() - started) / len(drawn) * len(trials)
    return {
        "ours": ours, "anew": theirs, "ratio": theirs / ours, "trials": len(trials), "difference": largest,
        "pairs_read": sum(len(texts) + 1 for texts in candidates),
        "pairs_of_trials": sum(len(texts) for _, texts, _ in trials),
        "chosen": sum(len(each.added) for each in found),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="an interchange folder to recombine texts from")
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--trials", type=int, default=100, help="trial sets that are read again")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--encoder")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    texts = read_texts(options.data)
    queries = make_queries(texts, options.items, 1, options.candidates + 1, options.seed)
    items = [Item(f"q{n}", (reply[0],), references=(answers[0],)) for n, (reply, answers) in enumerate(queries)]
    candidates = [answers[1:] for _, answers in queries]
    found: dict[str, Any] = {
        "items": options.items,
        "candidates": options.candidates,
        "seed": options.seed,
        **machine(),
    }
    for name, greedy in (("first-fit", False), ("greedy", True)):
        runs = [compare_selection(options, items, candidates, greedy) for _ in range(options.runs)]
        found[name] = {key: spread([run[key] for run in runs]) for key in ("ours", "anew", "ratio", "difference")}
        found[name] |= {key: runs[0][key] for key in ("trials", "pairs_read", "pairs_of_trials", "chosen")}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
