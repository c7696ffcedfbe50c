"""A `ream` with a random, untrained network: sufficient where only its arithmetic or its surroundings matter."""

from __future__ import annotations

from typing import Any

import torch

from scoring.ml.artefact import Artefact
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.evaluators.ream.network import ReamNetwork
from scoring.ml.registry import get_entry
from scoring.ml.training.record import TrainingRecord


def untrained(
    encoder: EncoderSource, *, groups: tuple[str, ...] = (), items: tuple[str, ...] = (), seed: int = 5, **settings: Any
) -> Ream:
    """With the recommended settings unless others are given; `groups`, and `items` in them, are recorded as training
    data."""
    entry = get_entry("ream")
    options = {**entry.train_defaults("recommended"), "heads": 2, "metric": "token-f1", **settings}
    torch.manual_seed(seed)
    sizes = {"width": encoder.width, "attention_kind": options["attention_kind"], "heads": options["heads"]}
    network = ReamNetwork.from_source(None, sizes)
    record = TrainingRecord("none", "0" * 8, {}, groups, (), 0, 0.0, 0, {}, items=items)
    artefact = Artefact(
        "ream", "recommended", seed, ("overall",), options, {}, record, network, encoder, embedded=False
    )  # fmt: skip
    return Ream(entry, artefact)
