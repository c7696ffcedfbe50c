"""One epoch of MAUDE on cached utterance vectors, against the same network with the encoder in the loop.

The loop encodes the distinct turns and replies of each batch again, sorted by length, in padded batches of 32, like a
plain training with transformers; it gets single replies like the released code. Both draw the same false replies and
take the same optimiser steps. A few steps of the loop are timed and scaled. The single encoding of all texts for the
cache is timed separately, and included in `times_faster_whole_training`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch
from _texts import OWN, machine, spread

from scoring.ml import read_dataset
from scoring.ml.encoders.loading import load_model
from scoring.ml.evaluators.unreferenced.maude import MaudeNetwork
from scoring.ml.evaluators.unreferenced.network import VectorStore
from scoring.ml.evaluators.unreferenced.planning import get_sets
from scoring.ml.evaluators.unreferenced.samples import KINDS, SampleOptions, TextTable, make_samples
from scoring.ml.evaluators.unreferenced.tools import Tools
from scoring.ml.evaluators.unreferenced.training import Epochs, TrainingTexts, network_sizes, prepare_texts
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder
from scoring.ml.registry import get_entry
from scoring.ml.training.job import FitJob
from scoring.ml.types import Dataset, Dialogue


class EncodingStore(VectorStore):
    """Encodes texts whenever they are requested."""

    def __init__(self, encoder: UtteranceEncoder, texts: list[str]) -> None:
        self.device = "cpu"
        self.encodings = encoder.tokenize(texts).encodings
        self.pad = encoder.tokenizing.pad_id
        self.model = load_model(encoder.source).eval()

    def take(self, rows: np.ndarray) -> torch.Tensor:
        distinct, places = np.unique(rows, return_inverse=True)
        chosen = self.encodings.take(distinct)
        order = np.argsort(chosen.lengths, kind="stable")
        found = torch.empty((len(distinct), self.model.config.hidden_size))
        for start in range(0, len(order), 32):
            part = order[start : start + 32]
            longest = int(chosen.lengths[part].max())
            ids = torch.full((len(part), longest), self.pad)
            mask = torch.zeros((len(part), longest), dtype=torch.long)
            for place, row in enumerate(part):
                tokens = chosen[int(row)].ids
                ids[place, : len(tokens)] = torch.tensor(tokens)
                mask[place, : len(tokens)] = 1
            with torch.no_grad():
                hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
            found[part] = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return found[torch.from_numpy(places)]


def own_dialogues(n: int, seed: int) -> Dataset:
    rng = random.Random(seed)
    talk = [Dialogue(f"d{i:06}", tuple(rng.choice(OWN) for _ in range(rng.randint(4, 12)))) for i in range(n)]
    return Dataset("own", dialogues=tuple(talk))


def time_steps(job: FitJob, prepared: TrainingTexts, steps: int | None) -> tuple[float, int]:
    """Seconds and number of the first steps of an epoch, or of all."""
    torch.manual_seed(1)
    network = MaudeNetwork.from_source(None, network_sizes(job)).train()
    optimiser = torch.optim.Adam(network.parameters(), lr=job.number("learning_rate"))
    epochs = Epochs(job, prepared)
    started, n = time.perf_counter(), 0
    for loss in islice(epochs.losses(network, 0), steps):
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), job.number("max_grad_norm"))
        optimiser.step()
        n += 1
    return time.perf_counter() - started, n


def in_the_loop(job: FitJob) -> TrainingTexts:
    table, sets = TextTable(), get_sets(job)
    parts = [
        make_samples(
            part, table, SampleOptions(KINDS["all"]),
            rng=lambda purpose, name=name: job.rng(f"{name}:{purpose}"),
        )
        for name, part in (("train", sets.train), ("dev", sets.dev))
    ]  # fmt: skip
    apart = [replace(part, shared=False) for part in parts]
    return TrainingTexts(apart[0], apart[1], EncodingStore(UtteranceEncoder(job.encoder), table.texts), len(table))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="interchange folder with dialogues; without it own sentences")
    parser.add_argument("--dialogues", type=int, default=2000)
    parser.add_argument("--loop-steps", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20, help="of the whole training that is reckoned")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=13)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)

    data = read_dataset(given.data) if given.data else own_dialogues(given.dialogues, given.seed)
    data = replace(data, dialogues=data.dialogues[: given.dialogues])
    entry = get_entry("maude")
    with tempfile.TemporaryDirectory() as folder:
        options = entry.parse_train_options("recommended", {})
        job = FitJob(entry, data, None, "recommended", options, given.seed, Path(folder))
        started = time.perf_counter()
        cached = prepare_texts(MaudeNetwork, job, get_sets(job), Tools())
        once = time.perf_counter() - started
        slow_job = replace(job, options={**options, "batches": "replies"})
        slow = in_the_loop(slow_job)
        epochs, loops, ratios, wholes = [], [], [], []
        steps = 0
        for _ in range(given.runs):
            own, steps = time_steps(job, cached, None)
            few, n = time_steps(slow_job, slow, given.loop_steps)
            loop = few / n * -(-len(slow.train) // job.integer("batch_size"))
            epochs.append(own)
            loops.append(loop)
            ratios.append(loop / own)
            wholes.append(given.epochs * loop / (once + given.epochs * own))
    n_pairs = len(cached.train)
    report = {
        "benchmark": "maude_training",
        "machine": machine(),
        "texts": given.data.name if given.data else "own",
        "seed": given.seed,
        "runs": given.runs,
        "true_replies": n_pairs,
        "distinct_texts": cached.n_texts,
        "steps": steps,
        "encoding_once_seconds": once,
        "texts_encoded_per_second": cached.n_texts / once,
        "epoch_seconds": spread(epochs),
        "epoch_seconds_of_100k_pairs": spread([seconds * 100_000 / n_pairs for seconds in epochs]),
        "loop_epoch_seconds": spread(loops),
        "times_faster_epoch": spread(ratios),
        "epochs_reckoned": given.epochs,
        "times_faster_whole_training": spread(wholes),
        "aims": {"times_faster_epoch": 50},
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
