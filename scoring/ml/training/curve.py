"""The state of a training besides weights: curve, best evaluation, patience and progress reports; and its result."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from scoring.ml.network import Network
from scoring.ml.training.job import FitJob, TrainingProgress
from scoring.ml.training.store import read_tensors, write_json, write_tensors

DONE, BEST = "done.json", "best.safetensors"
Evaluate = Callable[[Network], Mapping[str, float]]


@dataclass(frozen=True)
class FinetuneResult:
    """The training curve and the evaluation of the chosen weights (the last weights without an evaluation)."""

    log: tuple[Mapping[str, Any], ...]
    metrics: Mapping[str, float]
    steps: int
    seconds: float


class Curve:
    """Chooses the weights by the metric `better` and ends a training after `patience` evaluations without improvement.

    Files are in the `folder` of a phase: the best weights, and the result once the phase is finished.
    """

    #: State that must survive a restart besides weights, optimiser and random generators.
    STATE = ("log", "best", "best_step", "metrics", "latest", "worse")

    def __init__(self, job: FitJob, phase: str, better: str, *, lower_is_better: bool, patience: int | None) -> None:
        self.job, self.phase, self.folder = job, phase, job.phase_folder(phase)
        self.better, self.sign, self.patience = better, -1.0 if lower_is_better else 1.0, patience
        self.log: list[dict[str, Any]] = []
        self.best: float | None = None
        self.best_step: int | None = None
        self.metrics: dict[str, float] = {}
        self.latest: dict[str, float] = {}
        self.worse = 0
        self.steps = self.first_step = 0
        self.seconds_before = 0.0
        self.began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds of training, including those before a restart."""
        return self.seconds_before + time.monotonic() - self.began

    def state(self) -> dict[str, Any]:
        """The state as JSON values."""
        return {name: getattr(self, name) for name in self.STATE}

    def judge(self, network: Network, figures: Mapping[str, float]) -> bool:
        """Store the weights if their evaluation is the best so far. Returns whether patience has run out."""
        value = figures[self.better]
        if math.isfinite(value) and (self.best is None or self.sign * value > self.sign * self.best):
            self.best, self.best_step, self.worse = value, self.steps, 0
            self.metrics = {name: figure for name, figure in figures.items() if math.isfinite(figure)}
            self.write_best(network)
            return False
        self.worse += 1
        return self.patience is not None and self.worse >= self.patience

    def write_best(self, network: Network) -> None:
        """Store the network's weights as the best ones."""
        write_tensors(self.folder / BEST, network.state_dict())

    def diverge(self, epoch: float) -> None:
        """Log the end of a training whose weights are not finite; `kept` is the step of its best weights, if any."""
        row = {"step": self.steps, "epoch": epoch, "loss": None, "diverged": True, "kept": self.best_step}
        self.log.append(row)

    def report(self, total: int, epoch: float, loss: float | None, *, saving: bool, shown: tuple[str, ...]) -> None:
        """Report a step; `shown` are the metrics to show after the one that chooses the weights."""
        elapsed, gained = time.monotonic() - self.began, self.steps - self.first_step
        rate = gained / elapsed if elapsed > 0 and gained else None
        self.job.report(
            TrainingProgress(
                done=self.steps,
                total=total,
                phase=self.phase,
                loss=loss,
                rate=rate,
                seconds_left=(total - self.steps) / rate if rate else None,
                epoch=epoch,
                metrics=self.latest,
                saving=saving,
                evaluated=float(self.log[-1]["epoch"]) if self.log else None,
                foremost=tuple(dict.fromkeys((self.better, *shown))),
            )
        )

    def finish(self) -> FinetuneResult:
        """Store and return the result of the phase."""
        result = FinetuneResult(tuple(self.log), self.metrics, self.steps, self.seconds)
        write_json(self.folder / DONE, asdict(result))
        return result


def read_result(folder: Path, network: Network) -> FinetuneResult | None:
    """The result of the finished phase in a folder, whose weights are loaded into the network; None if unfinished."""
    if not (folder / DONE).is_file():
        return None
    content = json.loads((folder / DONE).read_text(encoding="utf-8"))
    network.load_state_dict(read_tensors(folder / BEST))
    network.eval()
    return FinetuneResult(tuple(content["log"]), content["metrics"], content["steps"], content["seconds"])


def all_finite(network: torch.nn.Module) -> bool:
    """Whether all weights of the `network` are numbers."""
    values = (value for value in network.state_dict().values() if value.is_floating_point())
    return all(bool(torch.isfinite(value).all()) for value in values)


def finite_or_none(value: float) -> float | None:
    """The `value` as JSON can represent it: None for nan and infinity."""
    return value if math.isfinite(value) else None
