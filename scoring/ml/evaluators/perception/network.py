"""T, l1, l2 and the loss of the Perception Model: equations 5 to 13 (Gu, Wu & Yu 2021).

Explained in docs/explanation/evaluators/perception.md#loss.
"""

from __future__ import annotations

from typing import Any, cast

import torch

from scoring.ml.encoders.forward import pooled_vectors
from scoring.ml.engine import Batch
from scoring.ml.layers.pooling import pool
from scoring.ml.network import TowerNetwork

TINY = 1e-6
LAMBDA_START = 0.1
#: Steps and learning rate of the confidence on features of the frozen encoder.
CONFIDENCE_STEPS, CONFIDENCE_RATE = 100, 1e-3
Inputs = dict[str, torch.Tensor]


class PerceptionNetwork(TowerNetwork):
    """`network`: pooling, confidence, penalty, penalty_weight, penalty_every, towers (1, or one per system).

    Training looks at the first tower only; further ones are trained as networks of their own and put in place.
    Buffers: `confidence_weight` is lambda of equation 13, which `adapt` moves; `steps` counts training steps.
    """

    heads_by_tower = ("l1", "l2")
    confidence_weight: torch.Tensor
    steps: torch.Tensor

    def build(self, network: dict[str, Any], width: int) -> None:
        self.settings = dict(network)
        towers = int(network.get("towers", 1))
        self.add_towers(towers)
        self.l1 = torch.nn.ModuleList(torch.nn.Linear(width, 1) for _ in range(towers))
        self.l2 = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
            for _ in range(towers)
        )
        self.register_buffer("confidence_weight", torch.tensor(LAMBDA_START))
        self.register_buffer("steps", torch.tensor(0, dtype=torch.int64))
        self.last_confidence_loss: float | None = None

    def vectors(self, inputs: Inputs, tower: int = 0) -> torch.Tensor:
        """T(.): (rows, width)."""
        hidden = self.tower(tower)(**inputs).last_hidden_state
        return pool(hidden, inputs["attention_mask"], "cls" if self.settings["pooling"] == "cls" else "mean")

    def read(self, batch: Batch, tower: int = 0) -> torch.Tensor:
        """T(.) at inference, over the encoder's unpadded forward where there is one; dropout has no place there."""
        vectors = pooled_vectors(self.tower(tower), batch, "cls" if self.settings["pooling"] == "cls" else "mean")
        return vectors.to(next(self.l1.parameters()).dtype)

    def grade(self, vectors: torch.Tensor, tower: int = 0) -> torch.Tensor:
        """l1(T(.)): (rows,)."""
        return cast("torch.Tensor", self.l1[tower](vectors).squeeze(-1))

    def read_features(self, batch: Batch) -> torch.Tensor:
        """(rows, width) T(.) of the first tower at inference, whose differences the head grades."""
        return self.read(batch)

    @property
    def head_layer(self) -> torch.nn.Linear:
        """l1 of the first tower."""
        return cast("torch.nn.Linear", self.l1[0])

    def head_loss(self, logits: torch.Tensor) -> torch.Tensor:
        """-log P_ref of l1(T(x) - T(x^)), (pairs, 1): equation 11 without confidence."""
        return torch.nn.functional.softplus(-logits).mean()

    def fit_confidence(self, p_ref: torch.Tensor, both: torch.Tensor, budget: float) -> None:
        """Fit l2 by Adam on all pairs, half without hint, with lambda as in training.

        `p_ref` (pairs,) and `both` (pairs, width), T(x^) + T(x), have no gradients; `budget` is that of the loss.
        """
        optimiser = torch.optim.Adam(self.l2[0].parameters(), lr=CONFIDENCE_RATE)
        for _ in range(CONFIDENCE_STEPS):
            c = self.confide(both)
            confidence_loss = -c.clamp(TINY, 1 - TINY).log().mean()
            hinted = -(c * p_ref + 1 - c).clamp(TINY, 1 - TINY).log().mean()
            loss = hinted / 2 + self.confidence_weight * confidence_loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            self.last_confidence_loss = float(confidence_loss.detach())
            self.adapt(budget)

    def confide(self, both: torch.Tensor, tower: int = 0) -> torch.Tensor:
        """c = sigmoid(l2(T(x^) + T(x))): (rows,)."""
        return torch.sigmoid(self.l2[tower](both).squeeze(-1))

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """The loss of pairs: `gen_*` and `ref_*` are the two sides' inputs, row by row."""
        generated, reference = _side(inputs, "gen_"), _side(inputs, "ref_")
        every = int(self.settings["penalty_every"])
        mode = str(self.settings["penalty"])
        penalised = self.training and mode != "none" and int(self.steps) % every == 0
        if penalised and mode == "pair":
            generated, reference = self._embedded(generated), self._embedded(reference)
        vector_gen, vector_ref = self.vectors(generated), self.vectors(reference)
        if penalised and mode == "pooled" and not vector_ref.requires_grad:
            vector_ref.requires_grad_()
        grade_gen, grade_ref = self.grade(vector_gen), self.grade(vector_ref)
        p_ref = torch.sigmoid(grade_ref - grade_gen)
        loss, confidence_loss = self._likelihood(p_ref, vector_gen + vector_ref)
        if penalised:
            if mode == "pooled":
                penalty = gradient_penalty(grade_ref, [vector_ref], [None])
            else:
                penalty = self._penalty(mode, generated, reference, grade_ref - grade_gen)
            loss = loss + float(self.settings["penalty_weight"]) * every * penalty
        if self.training:
            self.steps += 1
            self.last_confidence_loss = (
                None if confidence_loss is None else self.over_all(float(confidence_loss.detach()))
            )
        return {"loss": self.note_loss(loss), "p_ref": p_ref}

    def adapt(self, budget: float) -> None:
        """After each step: lambda / 1.01 where the budget exceeds L_c, else lambda / 0.99 (DeVries & Taylor)."""
        if self.last_confidence_loss is not None:
            self.confidence_weight /= 1.01 if budget > self.last_confidence_loss else 0.99

    def _likelihood(self, p_ref: torch.Tensor, both: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """L_t + lambda L_c; a random half of each batch gets no hint."""
        if not self.settings["confidence"]:
            return -p_ref.clamp(TINY, 1 - TINY).log().mean(), None
        c = self.confide(both)
        used = c
        if self.training:
            hint = torch.bernoulli(torch.full_like(c, 0.5))
            used = c * hint + (1 - hint)
        target = used * p_ref + (1 - used)
        confidence_loss = -c.clamp(TINY, 1 - TINY).log().mean()
        loss = -target.clamp(TINY, 1 - TINY).log().mean()
        return loss + self.confidence_weight * confidence_loss, confidence_loss

    def _penalty(self, mode: str, generated: Inputs, reference: Inputs, difference: torch.Tensor) -> torch.Tensor:
        """mean over pairs of (||grad D|| - 1)^2 by embeddings (eq 5). Modes:
        docs/explanation/evaluators/perception.md#gradient-penalty."""
        if mode == "interpolate":
            inputs = _between(self._embedded(generated), self._embedded(reference))
            value = self.grade(self.vectors(inputs))
            return gradient_penalty(value, [inputs["inputs_embeds"]], [inputs["attention_mask"]])
        embeddings = [generated["inputs_embeds"], reference["inputs_embeds"]]
        return gradient_penalty(difference, embeddings, [generated["attention_mask"], reference["attention_mask"]])

    def _embedded(self, inputs: Inputs) -> Inputs:
        """The same inputs as differentiable word embeddings; padding is at the end, so that the places
        the encoder counts by itself are right."""
        assert self.encoder is not None
        words = self.encoder.get_input_embeddings()(inputs["input_ids"])  # type: ignore[operator]
        if not words.requires_grad:
            words.requires_grad_()
        rest = {name: value for name, value in inputs.items() if name != "input_ids"}
        return {"inputs_embeds": words, **rest}


def gradient_penalty(value: torch.Tensor, by: list[torch.Tensor], masks: list[torch.Tensor | None]) -> torch.Tensor:
    """Return the mean over rows of (sqrt(sum of squares of d value_row / d by) - 1)^2, over all of `by` together.

    `value` is (rows,); positions where the `masks` are 0 are left out. The result can be differentiated again.
    """
    gradients = torch.autograd.grad(value.sum(), by, create_graph=True)
    squares = torch.zeros_like(value)
    for gradient, mask in zip(gradients, masks, strict=True):
        square = gradient.pow(2)
        if mask is not None:
            square = square * mask.unsqueeze(-1)
        squares = squares + square.flatten(start_dim=1).sum(dim=1)
    return ((squares + 1e-12).sqrt() - 1).pow(2).mean()


def _side(inputs: Inputs, prefix: str) -> Inputs:
    return {name[len(prefix) :]: value for name, value in inputs.items() if name.startswith(prefix)}


def _between(one: Inputs, two: Inputs) -> Inputs:
    """eps E(x) + (1 - eps) E(x^), eps ~ U(0, 1) per pair, both padded with zeros to the longer, and the union of their
    masks: what else is in the batch does not count."""
    longest = max(one["inputs_embeds"].shape[1], two["inputs_embeds"].shape[1])
    first, second = _padded(one, longest), _padded(two, longest)
    share = torch.rand(len(first["inputs_embeds"]), 1, 1, device=first["inputs_embeds"].device)
    result = {
        "inputs_embeds": share * first["inputs_embeds"] + (1 - share) * second["inputs_embeds"],
        "attention_mask": torch.maximum(first["attention_mask"], second["attention_mask"]),
    }
    if "token_type_ids" in first:
        result["token_type_ids"] = torch.maximum(first["token_type_ids"], second["token_type_ids"])
    return result


def _padded(inputs: Inputs, longest: int) -> Inputs:
    more = longest - inputs["attention_mask"].shape[1]
    pad = torch.nn.functional.pad
    # The word vector of padding inside a batch need not be zero.
    words = inputs["inputs_embeds"] * inputs["attention_mask"].unsqueeze(-1)
    rest = {name: pad(value, (0, more)) for name, value in inputs.items() if name != "inputs_embeds"}
    return {"inputs_embeds": pad(words, (0, 0, 0, more)), **rest}
