"""T, l1, l2 and the loss of the Perception Model: equations 5 to 13 (Gu, Wu & Yu 2021).

Explained in docs/explanation/evaluators/perception.md#loss.
"""

from __future__ import annotations

from typing import Any, cast

import torch

from scoring.ml.encoders.forward import pooled_vectors
from scoring.ml.encoders.separate import PARTS, join_vectors
from scoring.ml.engine import Batch
from scoring.ml.layers.pooling import pool
from scoring.ml.network import TowerNetwork

TINY = 1e-6
LAMBDA_START = 0.1
#: Steps and learning rate of the confidence on features of the frozen encoder.
CONFIDENCE_STEPS, CONFIDENCE_RATE = 100, 1e-3
Inputs = dict[str, torch.Tensor]


class PerceptionNetwork(TowerNetwork):
    """`network`: pooling, confidence, penalty, penalty_weight, penalty_every, towers (1, or one per system), and texts:
    with 2 a text and its context are each read alone, and T(.) are the features of both (`encoders.separate`).

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
        k = PARTS.get(int(network.get("texts", 0)), 1) * width
        self.l1 = torch.nn.ModuleList(torch.nn.Linear(k, 1) for _ in range(towers))
        self.l2 = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(k, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
            for _ in range(towers)
        )
        self.register_buffer("confidence_weight", torch.tensor(LAMBDA_START))
        self.register_buffer("steps", torch.tensor(0, dtype=torch.int64))
        self.last_confidence_loss: float | None = None

    def vectors(self, inputs: Inputs, tower: int = 0) -> torch.Tensor:
        """(rows, width) vectors of inputs of the encoder."""
        hidden = self.tower(tower)(**inputs).last_hidden_state
        return pool(hidden, inputs["attention_mask"], "cls" if self.settings["pooling"] == "cls" else "mean")

    def read(self, batch: Batch, tower: int = 0) -> torch.Tensor:
        """`vectors` at inference, over the encoder's unpadded forward if it has one; dropout has no place there."""
        vectors = pooled_vectors(self.tower(tower), batch, "cls" if self.settings["pooling"] == "cls" else "mean")
        return vectors.to(next(self.l1.parameters()).dtype)

    def grade(self, vectors: torch.Tensor, tower: int = 0) -> torch.Tensor:
        """l1(T(.)): (rows,)."""
        return cast("torch.Tensor", self.l1[tower](vectors).squeeze(-1))

    def read_features(self, batch: Batch) -> torch.Tensor:
        """(rows, width) T(.) of the first tower at inference, whose differences the head grades."""
        return self.read(batch)

    def read_texts(self, batch: Batch) -> torch.Tensor:
        """(texts, width) vectors by the first tower of texts that are read alone, at inference."""
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

    def forward(
        self, places: torch.Tensor, units: torch.Tensor | None = None, **inputs: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """The loss of pairs: `places` (pairs, 2) are generation and reference of each among the `inputs`, or among the
        `units` (n, 2), text and context among the inputs. What several pairs have in common is read once."""
        every = int(self.settings["penalty_every"])
        mode = str(self.settings["penalty"])
        penalised = self.training and mode != "none" and int(self.steps) % every == 0
        if penalised and mode == "pair":
            if units is not None:
                inputs, units = _repeat_texts(inputs, units)
            inputs = self._embedded(inputs)
        texts = self.vectors(inputs)
        vectors = texts if units is None else join_vectors(texts, units)
        if penalised and mode == "pooled" and not vectors.requires_grad:
            vectors.requires_grad_()
        grades = self.grade(vectors)
        generated, reference = places.T
        p_ref = torch.sigmoid(grades[reference] - grades[generated])
        loss, confidence_loss = self._likelihood(p_ref, vectors[generated] + vectors[reference])
        if penalised:
            if mode == "pooled":
                penalty = _distance_to_one(gradient_squares(grades, vectors, None)[reference])
            elif mode == "pair":
                n = len(grades)
                squares = gradient_squares(grades, inputs["inputs_embeds"], inputs["attention_mask"])[:n]
                penalty = _distance_to_one(squares[generated] + squares[reference])
            else:
                penalty = self._interpolated_penalty(places, units, inputs, texts)
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

    def _interpolated_penalty(
        self, places: torch.Tensor, units: torch.Tensor | None, inputs: Inputs, texts: torch.Tensor
    ) -> torch.Tensor:
        """The penalty between both texts of each pair (WGAN-GP). Modes:
        docs/explanation/evaluators/perception.md#gradient-penalty."""
        own = places if units is None else units[places, 0]
        sides = [{name: value[column] for name, value in inputs.items()} for column in own.T]
        between = _between(*map(self._embedded, sides))
        vectors = self.vectors(between)
        if units is not None:
            n = len(vectors)
            pairs = torch.arange(n, device=places.device)
            contexts = units[places[:, 0], 1]
            vectors = join_vectors(
                torch.cat([vectors, texts]), torch.stack([pairs, torch.where(contexts < 0, contexts, contexts + n)], 1)
            )
        return gradient_penalty(self.grade(vectors), between["inputs_embeds"], between["attention_mask"])

    def _embedded(self, inputs: Inputs) -> Inputs:
        """The same inputs as differentiable word embeddings; padding is at the end, so that the places
        the encoder counts by itself are right."""
        assert self.encoder is not None
        words = self.encoder.get_input_embeddings()(inputs["input_ids"])  # type: ignore[operator]
        if not words.requires_grad:
            words.requires_grad_()
        rest = {name: value for name, value in inputs.items() if name != "input_ids"}
        return {"inputs_embeds": words, **rest}


def gradient_penalty(value: torch.Tensor, by: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Return the mean over rows of (sqrt(sum of squares of d value_row / d by) - 1)^2; arguments as in
    `gradient_squares`. Equation 5."""
    return _distance_to_one(gradient_squares(value, by, mask))


def gradient_squares(value: torch.Tensor, by: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Return (n,) the sum of squares of d value_row / d by_row for each row of `by` (n, ...).

    `value` is (rows,); positions where the `mask` is 0 are left out. The result can be differentiated again.
    """
    (gradient,) = torch.autograd.grad(value.sum(), by, create_graph=True)
    square = gradient.pow(2)
    if mask is not None:
        square = square * mask.unsqueeze(-1)
    return square.flatten(start_dim=1).sum(dim=1)


def _distance_to_one(squares: torch.Tensor) -> torch.Tensor:
    return ((squares + 1e-12).sqrt() - 1).pow(2).mean()


def _repeat_texts(inputs: Inputs, units: torch.Tensor) -> tuple[Inputs, torch.Tensor]:
    """The inputs with a text for each unit first, so that its gradient is that of its own unit, then the contexts."""
    contexts, numbers = units[:, 1].unique(return_inverse=True)
    n = len(units)
    chosen = torch.cat([units[:, 0], contexts.clamp_min(0)])
    second = torch.where(units[:, 1] < 0, units[:, 1], numbers + n)
    repeated = {name: value[chosen] for name, value in inputs.items()}
    return repeated, torch.stack([torch.arange(n, device=units.device), second], dim=1)


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
