"""MAUDE's rivals learn learnable data (MAUDE itself in `test_training.py`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scoring.ml import fit
from scoring.ml.types import Dataset

READER = {"epochs": 24, "learning_rate": 0.02, "batch_size": 6, "hidden": 16, "embedding": 16, "decoder": 32}
VECTORS = {"epochs": 40, "learning_rate": 0.01, "batch_size": 16, "decoder": 64, "cache_dtype": "fp32"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [("ruber", READER), ("infersent", READER), ("bert-nli", VECTORS)])
def test_learns_which_reply_belongs_to_which_context(
    encoder: str, dialogues: Dataset, name: str, options: dict[str, Any]
) -> None:
    """Twelve contexts, each with one reply: a true reply for one is false for the others, so neither context nor reply
    is informative alone."""
    few = replace(dialogues, dialogues=tuple(replace(one, turns=one.turns[:2]) for one in dialogues.dialogues[:12]))
    evaluator = fit(name, few, dev=few, encoder=encoder, negatives="semantics", patience=None, dropout=0.0, **options)
    log, metrics = evaluator.record.log, evaluator.record.metrics
    assert metrics["loss"] < 0.65 * log[0]["dev_loss"]
    assert metrics["below"] > 0.9
    assert metrics["true"] > 0.3 + metrics["false"]
