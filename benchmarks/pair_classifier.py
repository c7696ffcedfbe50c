"""Scoring with a pair classifier against sentence-transformers' CrossEncoder.predict in the same run.

Pairs are the contexts and outputs of interchange folders, each distinct pair once, none longer than the encoder's
limit. The classifier is the installed encoder with a random head. The peer is run at several batch sizes, and its
fastest counts. For comparison, the model's own forward pass over length-sorted, tokenised batches: tokens per second.
Clock time is reported with CPU time, which other load disturbs less. `--device cuda --bf16` on a GPU: the target there
is half the rate of a bare forward pass in bf16.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch
from _texts import OWN, machine, spread
from sentence_transformers import CrossEncoder
from transformers import AutoConfig, AutoModelForSequenceClassification

from scoring.ml.dataset import read_dataset
from scoring.ml.encoders.forward import sequence_logits
from scoring.ml.encoders.loading import load_tokenizer
from scoring.ml.encoders.source import find_encoder
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.encodings import Encodings
from scoring.ml.engine import Engine, collate


class Run(NamedTuple):
    """Clock seconds, CPU seconds of all cores, and the scores."""

    clock: float
    processor: float
    found: np.ndarray | None


def read_pairs(folders: list[Path], n: int, seed: int) -> list[tuple[str, str]]:
    """Distinct pairs of context and output, drawn equally from all folders; built-in sentences without folders."""
    rng = random.Random(seed)
    found: list[tuple[str, str]] = []
    for folder in folders:
        records = read_dataset(folder).outputs_with_context()
        pairs = {(" ".join(r.context) or r.source or "", r.text): None for r in records if r.text.strip()}
        found += rng.sample(sorted(pairs), min(len(pairs), -(-n // len(folders))))
    while len(found) < n and not folders:
        found.append((" ".join(rng.sample(OWN, rng.randint(1, 9))), rng.choice(OWN)))
    rng.shuffle(found)
    return found[:n]


def save_classifier(folder: str) -> None:
    """The installed encoder with a random head of 3 classes, as sentence-transformers loads it."""
    source = find_encoder()
    torch.manual_seed(13)
    config = AutoConfig.from_pretrained(source.folder, num_labels=3)
    model = AutoModelForSequenceClassification.from_pretrained(source.folder, config=config)
    model.save_pretrained(folder)
    tokenizer = load_tokenizer(source)
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.save_pretrained(folder)


def timed(work) -> Run:
    start, processor = time.perf_counter(), time.process_time()
    found = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return Run(time.perf_counter() - start, time.process_time() - processor, found)


def bare_forward(model, encodings: Encodings, size: int, pad: int, device: str) -> None:
    """The model alone over batches of `size` inputs sorted by tokens."""
    order = np.argsort(-encodings.lengths, kind="stable")
    with torch.inference_mode():
        for start in range(0, len(order), size):
            batch = collate(encodings.take(order[start : start + size]), pad, device)
            model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids)


def seconds(runs: list[Run]) -> dict:
    return {name: spread([getattr(run, name) for run in runs]) for name in ("clock", "processor")}


def times(others: list[Run], ours: list[Run]) -> dict:
    """Our speed-up factor, by clock and by CPU time."""
    return {
        name: spread([getattr(o, name) / getattr(u, name) for o, u in zip(others, ours, strict=True)])
        for name in ("clock", "processor")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="interchange folders; without, own sentences")
    parser.add_argument("--pairs", type=int, default=600)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[16, 32, 64])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--threads", type=int, help="threads of torch; without it all cores")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--bf16", action="store_true", help="also time bf16 (slow on a CPU without AMX or AVX512-BF16)")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)

    with tempfile.TemporaryDirectory() as folder:
        save_classifier(folder)
        peer = CrossEncoder(folder, device=options.device, num_labels=3, local_files_only=True)
        model = (
            AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="sdpa")
            .eval()
            .to(options.device)
        )
        tokenizer = PairTokenizer(find_encoder(folder))
        tokenizer.tokenizer  # noqa: B018  (read it before its folder goes)
    half = AutoModelForSequenceClassification.from_config(model.config).eval()
    half.load_state_dict(model.state_dict())
    half = half.to(options.device, torch.bfloat16)

    def tokenize(pairs):
        return tokenizer.pairs([one for one, _ in pairs], [two for _, two in pairs], cut="left")

    pairs = read_pairs(options.data, options.pairs, options.seed)
    pairs = [pair for pair, cut in zip(pairs, tokenize(pairs).truncated, strict=True) if not cut]
    encodings = tokenize(pairs).encodings
    engine = Engine(device=options.device, pad_id=tokenizer.pad_id)

    def score(used):
        return engine.score(pairs, tokenize, lambda batch: sequence_logits(used, batch))[0].float().cpu().numpy()

    def predict(size):
        return peer.predict(pairs, batch_size=size, activation_fn=torch.nn.Identity(), show_progress_bar=False)

    def bare(used, size):
        bare_forward(used, encodings, size, tokenizer.pad_id, options.device)

    warm = pairs[:8]
    peer.predict(warm)
    engine.score(warm, tokenize, lambda batch: sequence_logits(model, batch))
    ours, halves, bare_halves = [], [], []
    peers = {size: [] for size in options.batch_sizes}
    bares = {size: [] for size in options.batch_sizes}
    for _ in range(options.runs):
        for size in options.batch_sizes:
            peers[size].append(timed(lambda size=size: predict(size)))
        ours.append(timed(lambda: score(model)))
        for size in options.batch_sizes:
            bares[size].append(timed(lambda size=size: bare(model, size)))
        if options.bf16:
            halves.append(timed(lambda: score(half)))
            bare_halves.append(min(timed(lambda size=size: bare(half, size)) for size in options.batch_sizes))
    fastest = min(peers, key=lambda size: min(run.processor for run in peers[size]))
    fastest_bare = min(bares, key=lambda size: min(run.processor for run in bares[size]))
    report = {
        "benchmark": "pair_classifier",
        "machine": {**machine(), "device": options.device, "threads": torch.get_num_threads()},
        "texts": [folder.name for folder in options.data] or "own",
        "encoder": f"{find_encoder().short_name} with 3 classes, fp32",
        "seed": options.seed,
        "pairs": len(pairs),
        "tokens": {"all": encodings.n_tokens, **spread(encodings.lengths.tolist())},
        "runs": options.runs,
        "seconds": seconds(ours),
        "tokens_per_second": spread([encodings.n_tokens / run.clock for run in ours]),
        "cross_encoder": {str(size): seconds(rows) for size, rows in peers.items()},
        "fastest_batch_size": fastest,
        "times_faster": times(peers[fastest], ours),
        "bare_sorted_forward": {str(size): seconds(rows) for size, rows in bares.items()},
        "rate_of_bare_sorted_forward": times(bares[fastest_bare], ours),
        "seconds_bf16": seconds(halves) if halves else None,
        "times_faster_than_fp32": times(ours, halves) if halves else None,
        "rate_of_bare_sorted_forward_bf16": times(bare_halves, halves) if halves else None,
        "largest_difference": float(np.abs(ours[0].found - peers[fastest][0].found).max()),
        "largest_difference_bf16": float(np.abs(halves[0].found - ours[0].found).max()) if halves else None,
        "aims": {
            "times_faster": 1.4,
            "rate_of_bare_sorted_forward": 0.95,
            "difference": 1e-5,
            "rate_of_bare_sorted_forward_bf16": 0.5,
        },
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
