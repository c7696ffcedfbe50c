"""The report of REAM# on held-out reference sets: predicted against gold reliability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import torch

from evalapp.stats.correlation.coefficients import spearman
from scoring.ml.evaluators.ream.contrast import draw_own, list_worse
from scoring.ml.evaluators.ream.entry import NEGATIVES
from scoring.ml.evaluators.ream.gold import Floats, Nodes, Sample, draw_foreign, measure_noise
from scoring.ml.evaluators.ream.network import ReamNetwork
from scoring.ml.evaluators.ream.training import PreparedItems, predict_sets
from scoring.ml.network import Network

#: Sets of each item whose preference is measured.
DRAWS = 3


@dataclass(frozen=True, slots=True)
class ReliabilityReport:
    """Predicted against gold reliability on sets of held-out items (docs/explanation/evaluators/ream.md#training).

    `constant` is the MSE of predicting the mean gold of the set's size; R2 = 1 - mse / constant. `accuracy` by kind:
    how often the better of a set and its perturbation is predicted, within a query; gold ties are left out.

    `ceiling` is the greatest R2 to be expected, because gold is partly chance (`gold.measure_noise`). `preference`:
    `measure_preference`.

    A set without gold (the metric scores all outputs alike) is left out of the metrics; `zero` has mse, constant, r2
    and spearman over all `n + n_undefined` sets with 0 as the missing gold.
    """

    n: int
    mse: float
    constant: float
    r2: float
    spearman: float
    accuracy: Mapping[str, float]
    n_pairs: Mapping[str, int]
    n_undefined: int
    zero: Mapping[str, float]
    ceiling: float
    preference: Mapping[str, float]


def measure_preference(network: Network, prepared: PreparedItems, rng: np.random.Generator) -> dict[str, float]:
    """Return how often a `network` prefers a set of an item's own references to the same set with an answer to another
    query, by kind: added to the set, or in place of a reference.

    `DRAWS` sets of each of the `prepared` items, drawn by `rng`; chance level is 0.5, and equal predictions count half.
    1 - add is also the share of wrong references that a set would accept.
    """
    samples = draw_own(prepared.gold, list(range(len(prepared.gold))) * DRAWS, rng)
    own = predict(network, prepared, [(sample.item, sample.nodes) for sample in samples])
    found = {}
    for kind in ("add", "replace"):
        worse = list_worse(samples, [kind], prepared, rng)
        others = predict(network, prepared, [pair for _, pair in worse])
        gap = own[[place for place, _ in worse]] - others
        found[kind] = float(((gap > 0) + (gap == 0) / 2).mean()) if len(gap) else float("nan")
    return found


def report(
    network: Network,
    prepared: PreparedItems,
    samples: Sequence[Sample],
    rng: np.random.Generator,
    undefined: Sequence[tuple[int, Nodes]] = (),
) -> ReliabilityReport:
    """Return the metrics of a `network` on `samples` of `prepared` items; `rng` draws one perturbation of each kind per
    sample. `undefined` are drawn sets without gold."""
    predicted = predict(network, prepared, [(s.item, s.nodes) for s in samples])
    gold = np.array([sample.gold for sample in samples])
    size = np.array([len(sample.nodes) for sample in samples])
    figures = _figures(predicted, gold, size)
    zero = figures
    if undefined:
        more = predict(network, prepared, undefined)
        zero = _figures(
            np.concatenate([predicted, more]), np.concatenate([gold, np.zeros(len(more))]),
            np.concatenate([size, [len(nodes) for _, nodes in undefined]]),
        )  # fmt: skip
    accuracy, n_pairs = {}, {}
    for kind in NEGATIVES:
        right = _orderings(kind, network, prepared, samples, predicted, rng)
        n_pairs[kind] = len(right)
        accuracy[kind] = float(np.mean(right)) if len(right) else float("nan")
    return ReliabilityReport(
        len(samples), **figures, accuracy=accuracy, n_pairs=n_pairs, n_undefined=len(undefined), zero=zero,
        ceiling=measure_noise(samples, prepared.gold).ceiling, preference=measure_preference(network, prepared, rng),
    )  # fmt: skip


def _figures(predicted: Floats, gold: Floats, size: npt.NDArray[np.int64]) -> dict[str, float]:
    """Of sets with their predicted and gold reliabilities and sizes, each (n,)."""
    guess = np.empty(len(gold))
    for value in np.unique(size):
        guess[size == value] = gold[size == value].mean()
    mse, constant = float(((predicted - gold) ** 2).mean()), float(((guess - gold) ** 2).mean())
    r2 = 1 - mse / constant if constant > 0 else float("nan")
    return {"mse": mse, "constant": constant, "r2": r2, "spearman": spearman(predicted, gold).value}


def predict(network: Network, prepared: PreparedItems, chosen: Sequence[tuple[int, Nodes]]) -> Floats:
    """Return (n,) the reliabilities that a `network` predicts for the `chosen` (item, nodes) of `prepared` items."""
    values = np.empty(len(chosen))
    read_vectors = prepared.make_reader(str(next(network.parameters()).device))
    with torch.no_grad():
        for at in range(0, len(chosen), 512):
            found = predict_sets(cast(ReamNetwork, network), prepared, chosen[at : at + 512], read_vectors)
            values[at : at + 512] = found.double().cpu().numpy()
    return values


def _orderings(
    kind: str,
    network: Network,
    prepared: PreparedItems,
    samples: Sequence[Sample],
    predicted: Floats,
    rng: np.random.Generator,
) -> list[bool]:
    """For each sample whether the better of it and its perturbation was predicted; `remove` takes any reference."""
    others: list[tuple[int, Nodes]] = []
    place: list[int] = []
    for row, sample in enumerate(samples):
        item = prepared.gold[sample.item]
        if kind == "remove":
            if len(sample.nodes) < 2:
                continue
            out = int(rng.integers(len(sample.nodes)))
            nodes: Nodes = sample.nodes[:out] + sample.nodes[out + 1 :]
        else:
            result = draw_foreign(kind, sample, item, rng)
            if result is None:
                continue
            nodes = result[0]
        others.append((sample.item, nodes))
        place.append(row)
    if not others:
        return []
    scores = predict(network, prepared, others)
    right = []
    for score, (item_number, nodes), row in zip(scores, others, place, strict=True):
        gold = float(prepared.gold[item_number].reliabilities([nodes])[0])
        gap = samples[row].gold - gold
        if np.isfinite(gap) and abs(gap) > 1e-12:
            right.append(bool((predicted[row] - score) * gap > 0))
    return right
