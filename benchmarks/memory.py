"""Resident size while a pair classifier scores a million pairs of context and text.

The encoder is random with width 32 and the installed encoder's tokenizer: the benchmark measures the engine and the
common interface of evaluators, which grow with the number of records; an encoder's own size does not.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch
from _texts import OWN, machine
from transformers import AutoModelForSequenceClassification, BertConfig

from scoring.ml.base import Evaluator, Partial
from scoring.ml.catalogue import Entry
from scoring.ml.encoders.forward import sequence_logits
from scoring.ml.encoders.source import find_encoder
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.engine import Engine
from scoring.ml.types import Record

PAGE = resource.getpagesize()


class PairClassifier(Evaluator):
    """The first logit of a classifier over context and text."""

    def __init__(self, folder: str) -> None:
        super().__init__(Entry(name="pairs", summary="", build=PairClassifier, scale=(None, None)), {})
        self.tokenizer = PairTokenizer(find_encoder(folder))
        self.engine = Engine(device="cpu", pad_id=self.tokenizer.pad_id)
        self.model = AutoModelForSequenceClassification.from_pretrained(folder).eval()

    def identity(self, record):
        return (record.context, record.text)

    def signature_fields(self):
        return []

    def measure(self, records, progress):
        found, cut = self.engine.score(
            records, self.tokenizer.records, lambda batch: sequence_logits(self.model, batch), progress=progress
        )
        return Partial(found[:, 0].double().numpy(), cut)


def save_tiny(folder: Path) -> None:
    source = find_encoder()
    for path in source.folder.glob("tokenizer*"):
        shutil.copy(path, folder)
    torch.manual_seed(13)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(**sizes, vocab_size=source.config["vocab_size"], **{"num_labels": 3})
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)


def make_records(n: int, seed: int) -> list[Record]:
    """Distinct records: two turns of a few words each, and a text with a unique number."""
    rng = random.Random(seed)
    words = " ".join(OWN).split()

    def make_words(least: int, most: int) -> str:
        return " ".join(rng.choices(words, k=rng.randint(least, most)))

    return [
        Record(f"{make_words(2, 12)} {row}", context=(make_words(2, 8), make_words(2, 8)), item=str(row))
        for row in range(n)
    ]


def resident() -> float:
    """Current memory in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--threads", type=int, help="threads of torch; without it all cores")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        save_tiny(Path(folder))
        evaluator = PairClassifier(folder)
        evaluator.evaluate(make_records(50, options.seed))
        loaded = resident()
        records = make_records(options.pairs, options.seed)
        held = resident()
        sizes: list[float] = []
        start, processor = time.perf_counter(), time.process_time()
        found = evaluator.evaluate(records, progress=lambda done, total: sizes.append(resident()))
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
    quarter = len(sizes) // 4
    report = {
        "benchmark": "memory",
        "machine": {**machine(), "threads": torch.get_num_threads()},
        "pairs": options.pairs,
        "defined": int(np.isfinite(found.values).sum()),
        "seed": options.seed,
        "seconds": {"clock": seconds, "processor": processor},
        "megabytes": {
            "libraries and model": loaded,
            "with the records": held,
            "after a quarter": max(sizes[: quarter + 1]),
            "at the end": max(sizes[-quarter - 1 :]),
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        },
        "aims": {"peak": 2000},
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
