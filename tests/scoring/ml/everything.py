"""A data set with training data for every learned evaluator, and the options that keep each one small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.scoring.ml.tiny import WORDS

ASPECTS = ("naturalness", "quality")
N_ITEMS = 24
#: How each is kept small; everything else has its default.
SMALL: dict[str, dict[str, Any]] = {
    "comparative": {"epochs": 1, "human_epochs": 1, "aspect": "naturalness", "max_steps": 6},
    "ream": {"epochs": 2, "aspect": "naturalness", "metric": "bleu-star", "combinations": 3, "foreign": 3},
    "perception": {"epochs": 1},
    "shared-bert": {"epochs": 1},
    "maude": {"epochs": 1, "hidden": 16, "down": 12, "decoder": 16},
    "adversarial": {"epochs": 1},
}
#: Equally small, for trainings whose scores do not matter.
SMALLEST: dict[str, dict[str, Any]] = {
    **{name: {"max_steps": 1} for name in ("maude", "ruber", "infersent", "bert-nli", "adversarial", "perception")},
    **{name: {"max_steps": 1, "aspect": "quality"} for name in ("comparative", "adem")},
    "ridge": {"aspects": "quality"},
    "shared-bert": {"max_steps": 1},
    "ream": {**SMALL["ream"], "epochs": 1},
}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_everything(root: Path) -> Path:
    """An interchange folder with training data for each; fewer "no" means better."""
    rng = np.random.default_rng(7)

    def text(n_no: int) -> str:
        return " ".join([*rng.choice(WORDS, 3).tolist(), *["no"] * n_no, *["yes"] * (4 - n_no)])

    items, outputs, ratings, comparisons, dialogues = [], [], [], [], []
    for number in range(N_ITEMS):
        item = f"i{number}"
        context = [" ".join(rng.choice(WORDS, 4)), " ".join(rng.choice(WORDS, 2))]
        references = [text(0) for _ in range(3)]
        items.append({"id": item, "context": context, "references": references, "group": f"g{number}"})
        for n_no in range(4):
            system = f"s{n_no}"
            outputs.append({"item": item, "system": system, "text": text(n_no), "step": None, "meta": {}})
            for aspect in ASPECTS:
                for rater in ("r1", "r2"):
                    value = min(5, max(1, 5 - n_no + int(rng.integers(0, 2))))
                    row = {"item": item, "system": system, "rater": rater, "aspect": aspect, "value": value}
                    ratings.append(row)
        comparisons.append(
            {"item": item, "system_a": "s0", "system_b": "s3", "rater": "r1", "aspect": "naturalness", "verdict": "a"}
        )
        dialogues.append({"id": f"d{number}", "turns": [*context, references[0], " ".join(rng.choice(WORDS, 3))]})
    header = {"name": "set", "task": "dialogue", "aspects": [{"name": name, "min": 1, "max": 5} for name in ASPECTS]}
    (root / "dataset.json").write_text(json.dumps(header), encoding="utf-8")
    rows = {"items": items, "outputs": outputs, "ratings": ratings, "comparisons": comparisons, "dialogues": dialogues}
    for name, content in rows.items():
        write(root / f"{name}.jsonl", content)
    return root
