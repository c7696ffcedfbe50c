"""Whether trainings of the sizes in the papers complete on a device: comparative with a BERT-large, perception with a
RoBERTa-base, by `fit`, as users call it. The weights are random, because only sizes determine memory and time; the
resulting evaluators know nothing. Reports seconds, peak memory, that all scores are finite, and the difference to the
scores of the saved and reloaded evaluator."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch
import transformers
from _texts import machine, spread
from finetune import make_data

from scoring.ml import fit, load
from scoring.ml.encoders.loading import load_tokenizer
from scoring.ml.encoders.source import find_encoder
from tests.scoring.ml.tiny import save_tokenizer

#: Evaluator, and the sizes of the published model.
MODELS: dict[str, tuple[str, Any]] = {
    "bert-large": (
        "comparative",
        lambda: transformers.BertConfig(
            vocab_size=30522, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
        ),
    ),
    "roberta-base": (
        "perception",
        lambda: transformers.RobertaConfig(
            vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, pad_token_id=1, bos_token_id=0,
            eos_token_id=2,
        ),
    ),
}  # fmt: skip


def save_encoder(name: str, folder: Path) -> int:
    """Saves a random encoder of this size; returns its number of weights. RoBERTa's tokens are bytes here, which makes
    texts longer."""
    folder.mkdir()
    if name.startswith("roberta"):
        save_tokenizer("roberta", folder, 512)
    else:
        load_tokenizer(find_encoder()).save_pretrained(folder)
    torch.manual_seed(13)
    model = transformers.AutoModel.from_config(MODELS[name][1]())
    model.save_pretrained(folder)
    return sum(one.numel() for one in model.parameters())


def train_options(evaluator: str, options: argparse.Namespace) -> dict[str, Any]:
    common = {
        "train_device": options.device, "train_dtype": "bf16" if options.bf16 else "fp32", "epochs": 1,
        "batch_size": options.batch_size,
    }  # fmt: skip
    if evaluator == "comparative":
        saving = {"gradient_checkpointing": options.gradient_checkpointing}  # excluded by a penalty on gradients
        return {**common, **saving, "weak": "no", "human": "no", "pairs_per_epoch": options.batch_size * options.steps}
    return {**common, "max_steps": options.steps, "learning_rate": 3e-5}


def run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    evaluator = MODELS[name][0]
    stamps: list[float] = []
    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        weights = save_encoder(name, folder / "encoder")
        data = make_data(options.items)
        started = time.monotonic()
        made = fit(evaluator, data, encoder=str(folder / "encoder"), folder=folder / "work", seed=13,
                   progress=lambda progress: stamps.append(time.monotonic()),
                   **train_options(evaluator, options))  # fmt: skip
        whole = time.monotonic() - started
        made.save_pretrained(folder / "saved")
        records = data.outputs_with_context()[: options.scored]
        again = load(folder / "saved", device=options.device)
        scores, more = (np.asarray(one.score(records), dtype=float) for one in (made, again))
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peak = torch.cuda.max_memory_allocated() if options.device == "cuda" else held
    return {
        "evaluator": evaluator, "weights": weights, "steps": made.record.steps, "seconds_of_fit": round(whole, 2),
        "seconds_of_training": round(made.record.seconds, 2),
        "seconds_between_reports": spread(np.diff(stamps).tolist()) if len(stamps) > 2 else None,
        "peak_gb": round(peak / 1e9, 2),
        "scores_are_numbers": bool(np.isfinite(scores).all()), "n_scored": len(scores),
        "largest_difference_once_loaded": float(np.abs(scores - more).max()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--items", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--scored", type=int, default=8)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--gradient-checkpointing", action="store_true")
    parser.add_argument("--threads", type=int, help="threads of torch; without it all cores")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    report = {
        "benchmark": "large_models",
        "machine": {**machine(), "device": options.device, "threads": torch.get_num_threads()},
        "batch_size": options.batch_size,
        "bf16": options.bf16,
        "models": {name: run(name, options) for name in options.models},
        "aims": "both complete a run",
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
