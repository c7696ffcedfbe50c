"""Training a small network on cached features (the encoder is frozen): a plain loop with checkpoint and early stop."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from scoring.ml.network import Network
from scoring.ml.training.finetune import BEST, DONE, FinetuneResult, all_finite, diverged_row
from scoring.ml.training.job import FitJob, TrainingProgress
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
    evaluate: Callable[[Network], Mapping[str, float]] | None = None,
) -> FinetuneResult:
    """Train `network` in place; it ends with its best weights, in evaluation mode.

    `epoch_losses(epoch)` yields the loss of each batch of an epoch and must depend on the epoch only; torch is seeded
    for each epoch, so that an interrupted training continues from its last complete epoch to the same weights. A
    diverging training ends as in `finetune`.
    """
    folder = job.phase_folder(phase)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / DONE).is_file():
        content = json.loads((folder / DONE).read_text(encoding="utf-8"))
        network.load_state_dict(read_tensors(folder / BEST))
        network.eval()
        return FinetuneResult(tuple(content["log"]), content["metrics"], content["steps"], content["seconds"])
    keep_threads(job.folder)
    return _Loop(network, epoch_losses, settings, job, steps_per_epoch, phase, evaluate).run()


class _Loop:
    def __init__(
        self,
        network: Network,
        epoch_losses: Callable[[int], Iterator[torch.Tensor]],
        settings: LoopSettings,
        job: FitJob,
        steps_per_epoch: int,
        phase: str,
        evaluate: Callable[[Network], Mapping[str, float]] | None,
    ) -> None:
        self.network, self.epoch_losses, self.settings, self.job = network, epoch_losses, settings, job
        self.steps_per_epoch, self.phase, self.evaluate = steps_per_epoch, phase, evaluate
        self.folder = job.phase_folder(phase)
        self.optimiser = torch.optim.Adam(_groups(network, settings), weight_decay=settings.weight_decay)
        self.kept: dict[str, Any] = {
            "epoch": 0, "steps": 0, "log": [], "best": None, "best_step": None, "metrics": {}, "latest": {},
            "worse": 0, "seconds": 0.0, "ended": False,
        }  # fmt: skip
        self.began = time.monotonic()
        self.first_step = 0

    def run(self) -> FinetuneResult:
        self._restore()
        self.first_step = self.kept["steps"]
        kept = self.kept
        while kept["epoch"] < self.settings.max_epochs and not kept["ended"]:
            self._epoch(kept["epoch"])
            kept["epoch"] += 1
            self._save()
        if kept["best"] is None:
            write_tensors(self.folder / BEST, self.network.state_dict())
        else:
            self.network.load_state_dict(read_tensors(self.folder / BEST))
        self.network.eval()
        content = {key: kept[key] for key in ("log", "metrics", "steps", "seconds")}
        write_json(self.folder / DONE, content)
        (self.folder / f"{STATE}.json").unlink(missing_ok=True)
        for path in self.folder.glob(f"{STATE}-*.safetensors"):
            path.unlink()
        return FinetuneResult(tuple(kept["log"]), kept["metrics"], kept["steps"], kept["seconds"])

    def _epoch(self, epoch: int) -> None:
        torch.manual_seed(self.job.torch_seed(f"{self.phase}:{epoch}"))
        self.network.train()
        total, n = 0.0, 0
        for loss in self.epoch_losses(epoch):
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            if self.settings.max_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.max_grad_norm)
            self.optimiser.step()
            value = float(loss.detach())
            total, n = total + value, n + 1
            self.kept["steps"] += 1
            self._report(value, epoch)
            if not math.isfinite(value):
                break
            if self.settings.max_steps is not None and self.kept["steps"] >= self.settings.max_steps:
                self.kept["ended"] = True
                break
        # Comparisons with nan could give a valid metric that looks like the best one.
        if not math.isfinite(total) or not all_finite(self.network):
            self.kept["log"].append(diverged_row(self.kept["steps"], epoch + 1, self.kept["best_step"]))
            self.kept["ended"] = True
            return
        row: dict[str, Any] = {"step": self.kept["steps"], "epoch": epoch + 1, "loss": total / n if n else None}
        if self.evaluate is not None:
            self.network.eval()
            with torch.no_grad():
                found = {key: float(value) for key, value in self.evaluate(self.network).items()}
            row |= {f"dev_{key}": value if math.isfinite(value) else None for key, value in found.items()}
            self.kept["latest"] = {key: value for key, value in found.items() if math.isfinite(value)}
            self._keep(found)
        self.kept["log"].append(row)

    def _keep(self, found: Mapping[str, float]) -> None:
        kept, value = self.kept, found[self.settings.better]
        sign = -1.0 if self.settings.lower_is_better else 1.0
        if math.isfinite(value) and (kept["best"] is None or sign * value > sign * kept["best"]):
            kept |= {"best": value, "best_step": kept["steps"], "worse": 0}
            kept["metrics"] = {k: v for k, v in found.items() if math.isfinite(v)}
            write_tensors(self.folder / BEST, self.network.state_dict())
            return
        kept["worse"] += 1
        if self.settings.patience is not None and kept["worse"] >= self.settings.patience:
            kept["ended"] = True

    @property
    def total(self) -> int:
        """The most steps that there can be."""
        every = self.steps_per_epoch * self.settings.max_epochs
        return every if self.settings.max_steps is None else min(every, self.settings.max_steps)

    def _report(self, loss: float, epoch: int) -> None:
        steps, total = self.kept["steps"], self.total
        elapsed = time.monotonic() - self.began
        rate = (steps - self.first_step) / elapsed if elapsed > 0 else None
        self.job.report(
            TrainingProgress(
                done=steps,
                total=total,
                phase=self.phase,
                loss=loss,
                rate=rate,
                seconds_left=(total - steps) / rate if rate else None,
                epoch=float(epoch),
                metrics=self.kept["latest"],
                saving=steps % self.steps_per_epoch == 0 or steps == total,
                evaluated=float(self.kept["log"][-1]["epoch"]) if self.kept["log"] else None,
                foremost=tuple(dict.fromkeys((self.settings.better, *self.kept["latest"]))),
            )
        )

    def _save(self) -> None:
        """Write the tensors under the epoch's name first; the small file that names them completes the checkpoint."""
        self.kept["seconds"] += time.monotonic() - self.began
        self.began, self.first_step = time.monotonic(), self.kept["steps"]
        tensors = {f"network.{key}": value for key, value in self.network.state_dict().items()}
        for number, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{key}": torch.as_tensor(value) for key, value in state.items()}
        name = f"{STATE}-{self.kept['epoch']}.safetensors"
        write_tensors(self.folder / name, tensors)
        write_json(self.folder / f"{STATE}.json", {**self.kept, "tensors": name, "total": self.total})
        for path in self.folder.glob(f"{STATE}-*.safetensors"):
            if path.name != name:
                path.unlink()

    def _restore(self) -> None:
        path = self.folder / f"{STATE}.json"
        if not path.is_file():
            return
        content = json.loads(path.read_text(encoding="utf-8"))
        tensors = read_tensors(self.folder / content.pop("tensors"))
        self.kept |= content
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
