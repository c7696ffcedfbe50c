"""Training a small network on cached features (the encoder is frozen): a plain loop with checkpoint and early stop."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from scoring.ml.network import Network
from scoring.ml.training.curve import BEST, Curve, Evaluate, FinetuneResult, all_finite, finite_or_none, read_result
from scoring.ml.training.job import FitJob
from scoring.ml.training.store import read_tensors, write_json, write_tensors
from scoring.ml.training.threads import keep_threads

STATE = "state"


@dataclass(frozen=True)
class LoopSettings:
    """Adam (`weight_decay` is its L2 term, as torch's Adam has it); `better` as in `FinetuneSettings`."""

    learning_rate: float
    max_epochs: int
    better: str = "loss"
    lower_is_better: bool = True
    weight_decay: float = 0.0
    max_grad_norm: float | None = None
    patience: int | None = 5
    max_steps: int | None = None
    #: The learning rate of the weights under `encoder.`, if the encoder learns.
    encoder_learning_rate: float | None = None


def train_loop(
    network: Network,
    epoch_losses: Callable[[int], Iterator[torch.Tensor]],
    settings: LoopSettings,
    job: FitJob,
    *,
    steps_per_epoch: int,
    phase: str = "training",
    evaluate: Evaluate | None = None,
) -> FinetuneResult:
    """Train `network` in place; it ends with its best weights, in evaluation mode.

    `epoch_losses(epoch)` yields the loss of each batch of an epoch, `steps_per_epoch` of them, and must depend on the
    epoch only; torch is seeded for each epoch, so that an interrupted training continues from its last complete epoch
    to the same weights. `settings` say when the training ends and which metric of `evaluate` chooses the weights;
    checkpoints are in `job.phase_folder(phase)`. A diverging training ends as in `finetune`.
    """
    folder = job.phase_folder(phase)
    folder.mkdir(parents=True, exist_ok=True)
    result = read_result(folder, network)
    if result is not None:
        return result
    keep_threads(job.folder)
    return _Loop(network, epoch_losses, settings, job, steps_per_epoch, phase, evaluate).run()


class _Loop(Curve):
    def __init__(
        self,
        network: Network,
        epoch_losses: Callable[[int], Iterator[torch.Tensor]],
        settings: LoopSettings,
        job: FitJob,
        steps_per_epoch: int,
        phase: str,
        evaluate: Evaluate | None,
    ) -> None:
        super().__init__(
            job, phase, settings.better, lower_is_better=settings.lower_is_better, patience=settings.patience
        )
        self.network, self.epoch_losses, self.settings = network, epoch_losses, settings
        self.steps_per_epoch, self.evaluate = steps_per_epoch, evaluate
        self.optimiser = torch.optim.Adam(_groups(network, settings), weight_decay=settings.weight_decay)
        self.epoch = 0
        self.ended = False

    def run(self) -> FinetuneResult:
        self._restore()
        self.first_step = self.steps
        while self.epoch < self.settings.max_epochs and not self.ended:
            self._train_epoch()
            self.epoch += 1
            self._save()
        if self.best is None:
            self.write_best(self.network)
        else:
            self.network.load_state_dict(read_tensors(self.folder / BEST))
        self.network.eval()
        result = self.finish()
        (self.folder / f"{STATE}.json").unlink(missing_ok=True)
        for path in self.folder.glob(f"{STATE}-*.safetensors"):
            path.unlink()
        return result

    def _train_epoch(self) -> None:
        torch.manual_seed(self.job.torch_seed(f"{self.phase}:{self.epoch}"))
        self.network.train()
        sum_losses, n = 0.0, 0
        for loss in self.epoch_losses(self.epoch):
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            if self.settings.max_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.max_grad_norm)
            self.optimiser.step()
            value = float(loss.detach())
            sum_losses, n = sum_losses + value, n + 1
            self.steps += 1
            saving = self.steps % self.steps_per_epoch == 0 or self.steps == self.total
            self.report(self.total, float(self.epoch), value, saving=saving, shown=tuple(self.latest))
            if not math.isfinite(value):
                break
            if self.settings.max_steps is not None and self.steps >= self.settings.max_steps:
                self.ended = True
                break
        # Comparisons with nan could give a valid metric that looks like the best one.
        if not math.isfinite(sum_losses) or not all_finite(self.network):
            self.diverge(self.epoch + 1)
            self.ended = True
            return
        mean = sum_losses / n if n else None
        row: dict[str, Any] = {"step": self.steps, "epoch": self.epoch + 1, "loss": mean}
        if self.evaluate is not None:
            self.network.eval()
            with torch.no_grad():
                figures = {key: float(value) for key, value in self.evaluate(self.network).items()}
            row |= {f"dev_{key}": finite_or_none(value) for key, value in figures.items()}
            self.latest = {key: value for key, value in figures.items() if math.isfinite(value)}
            self.ended = self.judge(self.network, figures) or self.ended
        self.log.append(row)

    @property
    def total(self) -> int:
        """The most steps that there can be."""
        every = self.steps_per_epoch * self.settings.max_epochs
        return every if self.settings.max_steps is None else min(every, self.settings.max_steps)

    def _save(self) -> None:
        """Write the tensors under the epoch's name first; the small file that names them completes the checkpoint."""
        tensors = {f"network.{key}": value for key, value in self.network.state_dict().items()}
        for number, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{key}": torch.as_tensor(value) for key, value in state.items()}
        name = f"{STATE}-{self.epoch}.safetensors"
        write_tensors(self.folder / name, tensors)
        counts = {"epoch": self.epoch, "steps": self.steps, "seconds": self.seconds, "ended": self.ended}
        content = {**self.state(), **counts, "tensors": name, "total": self.total}
        write_json(self.folder / f"{STATE}.json", content)
        for path in self.folder.glob(f"{STATE}-*.safetensors"):
            if path.name != name:
                path.unlink()

    def _restore(self) -> None:
        path = self.folder / f"{STATE}.json"
        if not path.is_file():
            return
        content = json.loads(path.read_text(encoding="utf-8"))
        tensors = read_tensors(self.folder / content["tensors"])
        self.seconds_before = content["seconds"]
        for name in (*self.STATE, "epoch", "steps", "ended"):
            setattr(self, name, content[name])
        prefix = "network."
        self.network.load_state_dict({k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)})
        states: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("optimiser."):
                _, number, field = key.split(".", 2)
                states.setdefault(int(number), {})[field] = value
        self.optimiser.load_state_dict({"state": states, "param_groups": self.optimiser.state_dict()["param_groups"]})


def _groups(network: Network, settings: LoopSettings) -> list[dict[str, Any]]:
    """Parameters by step size."""
    rates: dict[float, list[torch.nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            slow = name.startswith("encoder.") and settings.encoder_learning_rate is not None
            rate = settings.encoder_learning_rate if slow else settings.learning_rate
            rates.setdefault(float(rate or 0.0), []).append(parameter)
    return [{"params": parameters, "lr": rate} for rate, parameters in rates.items()]
