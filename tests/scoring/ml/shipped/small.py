"""A small evaluator, built as the shipped one is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from scoring.ml.shipped.build import build
from scoring.ml.trained import TrainedEvaluator
from tests.scoring.ml.tiny import WORDS, tiny_encoder

N_DIALOGUES = 40


def list_turns() -> list[list[str]]:
    """The turns of the dialogues that `build_small` learns from."""
    rng = np.random.default_rng(7)
    return [[" ".join(rng.choice(WORDS, 4)) for _turn in range(4)] for _number in range(N_DIALOGUES)]


def build_small(folder: Path, out: Path, *, work: str = "work", seed: int = 13, **more: Any) -> TrainedEvaluator:
    """Write dialogues and an encoder to `folder` once, and build an evaluator from 30 dialogues in `out`."""
    data, encoder = folder / "corpus", folder / "encoder"
    if not data.is_dir():
        data.mkdir(parents=True)
        rows = [{"id": f"d{number}", "turns": turns} for number, turns in enumerate(list_turns())]
        (data / "dialogues.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (data / "dataset.json").write_text(json.dumps({"name": "talk"}))
        tiny_encoder("bert", encoder)
    options = {"encoder": str(encoder), "epochs": 1, "down": 6, "hidden": 5, "decoder": 4, **more}
    return build(data, folder / work, out, dialogues=30, seed=seed, **options)
