"""Records and references as the network of `perception` reads them, and its grades."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from scoring.ml.base import Floats
from scoring.ml.encoders.separate import map_inputs
from scoring.ml.engine import Batch, Engine
from scoring.ml.evaluators.perception.arithmetic import probability_of_generation
from scoring.ml.evaluators.perception.network import PerceptionNetwork
from scoring.ml.evaluators.perception.pairs import Sides
from scoring.ml.layers.counter_dropout import row_seeds


class Reading:
    """The tokenised sides of records and their references."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self.owner = np.repeat(np.arange(len(sides.n)), sides.n)
        starts = np.cumsum(sides.n) - sides.n
        self.reference = np.arange(int(sides.n.sum())) + np.repeat(sides.first - starts, sides.n)
        cut = np.zeros(len(sides.n), dtype=np.bool_)
        np.logical_or.at(cut, self.owner, sides.reference_truncated[self.reference])
        self.truncated = cut | sides.truncated

    def probabilities(self, grades: tuple[Floats, Floats]) -> Floats:
        """(n,) P_gen, the mean over the references of each text."""
        return self.over_references(self.grade_pairs(grades))

    def grade_pairs(self, grades: tuple[Floats, Floats]) -> Floats:
        """(pairs,) P_gen of every text with each of its references."""
        return probability_of_generation(grades[0][self.owner], grades[1][self.reference])

    def combine(
        self,
        grades: tuple[Floats, Floats],
        vectors: tuple[torch.Tensor, torch.Tensor],
        net: PerceptionNetwork,
        tower: int,
    ) -> tuple[Floats, Floats]:
        """P_gen and confidence, (n,) each."""
        if not net.settings["confidence"]:
            return self.probabilities(grades), np.ones(len(self.sides.n))
        confidences = np.empty(len(self.owner))
        for start in range(0, len(self.owner), 4096):
            part = slice(start, start + 4096)
            both = vectors[0][self.owner[part]] + vectors[1][self.reference[part]]
            with torch.inference_mode():
                weight = net.l2[tower][0].weight  # type: ignore[index]
                result = net.confide(both.to(weight.device, weight.dtype), tower)
            confidences[part] = result.float().cpu().double().numpy()
        return self.probabilities(grades), self.over_references(confidences)

    def over_references(self, values: Floats) -> Floats:
        """(n,) the mean of (pairs,) values over the references of each text."""
        n = self.sides.n
        return np.asarray(np.bincount(self.owner, values, len(n)) / n)


def grade_sides(
    network: PerceptionNetwork, sides: Sides, engine: Engine, tower: int, state: Any = None, seed: int = 0
) -> tuple[Any, Any]:
    """Return l1 of generations and references, ((n,), (r,)), and their vectors, ((n, width), (r, width)).

    `network` reads `sides` with its `tower` on the `engine`. With `state`, dropout is active as `monte_carlo` has it,
    and `seed` sets its masks.
    """

    def read(batch: Batch) -> torch.Tensor:
        if state is None:
            return network.read(batch, tower)
        inputs = batch.inputs
        state.seeds = row_seeds(inputs["input_ids"], inputs["attention_mask"], seed)
        return network.vectors(inputs, tower)

    def finish(vectors: torch.Tensor) -> torch.Tensor:
        vectors = vectors.to(next(network.l1.parameters()).dtype)
        return torch.cat([network.grade(vectors, tower).unsqueeze(-1), vectors], dim=-1)

    result = map_inputs(engine, sides.inputs, lambda batch: finish(read(batch)), read, finish)
    n = len(sides.n)
    grades = result[:, 0].double().numpy()
    return (grades[:n], grades[n:]), (result[:n, 1:], result[n:, 1:])
