"""Fits the linear head of a network to its optimum on features of the frozen encoder, before the encoder learns.

LP-FT: Kumar, Raghunathan, Jones, Ma and Liang 2022, Fine-Tuning can Distort Pretrained Features and Underperform
Out-of-Distribution. Explained in docs/explanation/evaluators/README.md#head-first.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize

from scoring.ml.training.job import FitJob, TrainingProgress
from scoring.ml.training.store import read_tensors, write_json, write_tensors

#: Penalties that are tried, from the strongest on: each solution is near the previous one.
PENALTIES = tuple(10.0**power for power in (1, 0.5, 0, -0.5, -1, -1.5, -2, -2.5, -3))
#: After so many weaker penalties without a lower loss the search ends: the weakest ones take longest.
PAST = 2
#: Parts of the groups that are left out in turn to choose the penalty, and the most rows that are read for that.
PARTS, MOST_ROWS = 3, 4000
#: Tolerances of the relative decrease of the loss: while the penalty is chosen, and for the final fit.
ROUGH, EXACT = 1e-6, 1e-13
HEAD = "head"
#: Features are divided by their spread, but by at least this share of the median spread.
LEAST_SPREAD = 0.1
Doubles = npt.NDArray[np.float64]


@runtime_checkable
class HasHead(Protocol):
    """A network with a linear head that reads features of the encoder."""

    @property
    def head_layer(self) -> torch.nn.Linear:
        """The layer that reads the features."""

    def head_loss(self, logits: torch.Tensor, **values: torch.Tensor) -> torch.Tensor:
        """The mean loss of the logits (rows, outputs) of the head layer, convex in them."""


@dataclass(frozen=True)
class HeadData:
    """What a head learns from: `features` (rows, k) of the frozen encoder, `values` by name with a row each, and the
    split group of each row. `centred`: the loss depends on differences of features only, so the bias has no effect.
    `finish` fits the parts of the head that are not linear, once the linear layer is fitted."""

    features: torch.Tensor
    values: Mapping[str, torch.Tensor]
    groups: Sequence[str]
    centred: bool = False
    finish: Callable[[], object] | None = None


@dataclass(frozen=True)
class HeadFit:
    """The result: `penalty` as a share of the features' mean square, the value of the `objective`, and `iterations`."""

    penalty: float
    objective: float
    iterations: int
    seconds: float


def fit_head(network: HasHead, data: HeadData, job: FitJob, phase: str, *, near: bool = False) -> HeadFit:
    """Set the head of `network` to the minimum of its loss on `data` plus penalty * k / (2 n) * |W - W0|^2.

    W are the weights for features of mean 0 and spread 1 (n, k), less for nearly constant ones; W0 is 0, or with `near`
    those the head has. The penalty of `PENALTIES` with the least loss on groups left out is taken; with one group, 1.
    `job` and `phase` name random numbers and progress.
    """
    began = time.monotonic()
    problem = _Problem.of(network, data, near=near)
    penalty = _choose_penalty(problem, data, job, phase)
    rows = np.arange(len(data.features))
    flat, objective, iterations = problem.solve(rows, penalty, problem.start, EXACT)
    problem.store(flat)
    if data.finish is not None:
        data.finish()
    job.report(TrainingProgress(1, 1, phase=f"{phase}, {HEAD}"))
    return HeadFit(penalty, objective, iterations, time.monotonic() - began)


def restore_head(network: torch.nn.Module, folder: Path) -> HeadFit | None:
    """Load the head that `store_head` wrote to `folder` into `network`; None if there is none."""
    if not (folder / f"{HEAD}.json").is_file():
        return None
    network.load_state_dict(read_tensors(folder / f"{HEAD}.safetensors"), strict=False)
    return HeadFit(**json.loads((folder / f"{HEAD}.json").read_text(encoding="utf-8")))


def store_head(network: torch.nn.Module, fitted: HeadFit, folder: Path) -> None:
    """Write the weights of `network` outside its encoders to `folder`, then the small file that completes them."""
    state = {name: value for name, value in network.state_dict().items() if is_head(name)}
    write_tensors(folder / f"{HEAD}.safetensors", state)
    write_json(folder / f"{HEAD}.json", fitted.__dict__)


def is_head(name: str) -> bool:
    """Whether a weight with this `name` belongs to the head, not to an encoder."""
    return not name.startswith(("encoder.", "others."))


@dataclass(frozen=True)
class _Problem:
    network: HasHead
    features: torch.Tensor
    values: Mapping[str, torch.Tensor]
    mean: torch.Tensor
    spread: torch.Tensor
    #: The weights whose distance is penalised, and the bias, for features of mean 0 and spread 1.
    start: Doubles
    centred: bool

    @classmethod
    def of(cls, network: HasHead, data: HeadData, *, near: bool) -> _Problem:
        features = data.features.double()
        mean = torch.zeros(features.shape[1], dtype=torch.float64) if data.centred else features.mean(dim=0)
        spread = (features - mean).square().mean(dim=0).sqrt()
        # A nearly constant feature would get a huge weight, and the first step of the encoder would make it explode.
        least = LEAST_SPREAD * spread.median()
        spread = torch.where(spread > 0, spread, torch.ones_like(spread)).clamp_min(float(least))
        values = {name: value.double() if value.is_floating_point() else value for name, value in data.values.items()}
        layer = network.head_layer
        weights, bias = layer.weight.detach().cpu().double(), layer.bias.detach().cpu().double()
        start = torch.cat([(weights * spread).flatten(), bias + weights @ mean])
        start = start if near else 0 * start
        return cls(network, (features - mean) / spread, values, mean, spread, start.numpy(), data.centred)

    @property
    def shape(self) -> tuple[int, int]:
        layer = self.network.head_layer
        return layer.out_features, layer.in_features

    def split(self, flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        outputs, k = self.shape
        return flat[: outputs * k].view(outputs, k), flat[outputs * k :]

    def loss(self, flat: torch.Tensor, features: torch.Tensor, values: Mapping[str, torch.Tensor]) -> torch.Tensor:
        weights, bias = self.split(flat)
        logits = torch.nn.functional.linear(features, weights, None if self.centred else bias)
        return self.network.head_loss(logits, **values)

    def take(self, rows: npt.NDArray[np.intp]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        chosen = torch.from_numpy(rows)
        return self.features[chosen], {name: value[chosen] for name, value in self.values.items()}

    def solve(
        self, rows: npt.NDArray[np.intp], penalty: float, start: Doubles, tolerance: float
    ) -> tuple[Doubles, float, int]:
        """The minimum on some rows, its value, and the number of iterations."""
        features, values = self.take(rows)
        n_weights = self.shape[0] * self.shape[1]
        weight = penalty * self.shape[1] / (2 * len(rows))
        centre = torch.from_numpy(self.start[:n_weights])

        def value_and_slope(point: Doubles) -> tuple[float, Doubles]:
            flat = torch.from_numpy(point).requires_grad_()
            value = self.loss(flat, features, values) + weight * (flat[:n_weights] - centre).square().sum()
            (slope,) = torch.autograd.grad(value, flat)
            return value.item(), slope.numpy()

        found = minimize(
            value_and_slope, start, jac=True, method="L-BFGS-B",
            options={"maxiter": 2000, "maxfun": 4000, "gtol": 1e-8 if tolerance == EXACT else 1e-4, "ftol": tolerance},
        )  # fmt: skip
        return np.asarray(found.x, dtype=np.float64), float(found.fun), int(found.nit)

    def store(self, flat: Doubles) -> None:
        """Write the solution into the head, for features as they are."""
        weights, bias = self.split(torch.from_numpy(flat))
        layer = self.network.head_layer
        plain = weights / self.spread
        with torch.no_grad():
            layer.weight.copy_(plain)
            if not self.centred:
                layer.bias.copy_(bias - plain @ self.mean)


def _choose_penalty(problem: _Problem, data: HeadData, job: FitJob, phase: str) -> float:
    names = {name: number % PARTS for number, name in enumerate(sorted(set(data.groups)))}
    if len(names) < 2:
        return 1.0
    rows = np.arange(len(data.features))
    if len(rows) > MOST_ROWS:
        rows = np.sort(job.rng(f"{phase}:{HEAD}").choice(len(rows), MOST_ROWS, replace=False))
    parts = np.array([names[data.groups[row]] for row in rows.tolist()])
    numbers = [number for number in range(PARTS) if 0 < (parts == number).sum() < len(parts)]
    flats = dict.fromkeys(numbers, problem.start)
    losses: list[float] = []
    for place, penalty in enumerate(PENALTIES):
        job.report(TrainingProgress(place, len(PENALTIES), phase=f"{phase}, {HEAD}"))
        losses.append(0.0)
        for number in numbers:
            held = rows[parts == number]
            features, values = problem.take(held)
            flats[number], _, _ = problem.solve(rows[parts != number], penalty, flats[number], ROUGH)
            with torch.no_grad():
                losses[-1] += float(problem.loss(torch.from_numpy(flats[number]), features, values)) * len(held)
        if place - int(np.argmin(losses)) == PAST:
            break
    return PENALTIES[int(np.argmin(losses))]


def describe_stages(log: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a note for the card for each row of a training `log` that compares the head alone with the fine-tuned
    network on the held-out part."""
    notes = []
    for row in log:
        if "kept_stage" in row:
            which = ", ".join(str(row[name]) for name in ("phase", "aspect", "system") if name in row)
            tuned = "not measured" if row["tuned"] is None else f"{row['tuned']:.4g}"
            notes.append(
                f"{row['chosen_by']} on the held-out part{f' ({which})' if which else ''}: head alone "
                f"{row['alone']:.4g}, fine-tuned {tuned}. Kept: {row['kept_stage']}."
            )
    return notes
