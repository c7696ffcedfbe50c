"""Small data with every source for a comparative evaluator, in which the better text is obvious."""

from __future__ import annotations

import numpy as np
import torch

from scoring.ml.artefact import Artefact
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.evaluators.comparative.evaluator import Comparative
from scoring.ml.evaluators.comparative.inputs import PairReader
from scoring.ml.evaluators.comparative.network import ComparativeNetwork
from scoring.ml.registry import get_entry
from scoring.ml.training.record import TrainingRecord
from scoring.ml.types import Aspect, Comparison, Dataset, Item, Output, Rating, System

WORDS = ["cat", "dog", "sat", "on", "mat", "tea", "you", "like", "ran"]
STEPS = (100, 400, 700, 1000)


def make(
    n_items: int = 10,
    seed: int = 3,
    *,
    ratings: bool = True,
    comparisons: bool = True,
    steps: bool = True,
    references: bool = True,
    prefix: str = "i",
) -> Dataset:
    """People write "yes", machines "no"; later checkpoints have fewer "no". Ratings and comparisons follow the number
    of "no"; systems m1 (few) and m2 (many) have no steps, ngram has four."""
    rng = np.random.default_rng(seed)

    def text(n_no: int) -> str:
        words = [*rng.choice(WORDS, 2).tolist(), *["no"] * n_no, *["yes"] * (3 - n_no)]
        return " ".join(words)

    items, outputs, rows, pairs = [], [], [], []
    for number in range(n_items):
        item = f"{prefix}{number}"
        context = (" ".join(rng.choice(WORDS, 3)), " ".join(rng.choice(WORDS, 2)))
        people = (text(0), text(0)) if references else ()
        items.append(Item(item, context, references=people, group=f"g-{prefix}{number // 2}"))
        made: dict[tuple[str, int | None], int] = {("m1", None): 1, ("m2", None): 3}
        if steps:
            made |= {("ngram", step): n_no for step, n_no in zip(STEPS, (3, 3, 2, 1), strict=True)}
        for (system, step), n_no in made.items():
            outputs.append(Output(item, system, text(n_no), step))
            if ratings:
                rows += [Rating(f"r{k}", "fluency", 5.0 - n_no, item, system, step, simulated=True) for k in range(2)]
        if comparisons:
            pairs.append(Comparison(item, "m1", "m2", "r0", "fluency", "a", simulated=True))
    return Dataset(
        "made", aspects=(Aspect("fluency", 1, 5),), systems=(System("m1"), System("m2"), System("ngram")),
        items=tuple(items), outputs=tuple(outputs), ratings=tuple(rows), comparisons=tuple(pairs),
    )  # fmt: skip


def untrained(source: EncoderSource, seed: int, *groups: str, outcome: str = "") -> Comparative:
    """An evaluator as saved after training on these groups, but untrained; without an `outcome`, one saved before that
    was recorded."""
    entry = get_entry("comparative")
    options = entry.train_defaults("recommended") | {"features": "joint"}
    torch.manual_seed(seed)
    separator, between = PairReader(source).separator
    sizes = {"tie": True, "single": False, "separator": separator, "between": between}
    network = ComparativeNetwork.from_source(source, {"pooling": options["pooling"], **sizes})
    torch.nn.init.normal_(network.classifier.weight)
    record = TrainingRecord("none", "0" * 8, {}, groups, (), 0, 0.0, 0, {})
    state = {"references": [], "classes": ["worse", "tie", "better"], **({"outcome": outcome} if outcome else {})}
    return Comparative(entry, Artefact("comparative", "recommended", seed, (), options, state, record, network, source))
