"""What a process knows of those it shares a training with: one of several, each with its rows of every batch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from scoring.ml.errors import ScoringError
from scoring.ml.network import Network

T = TypeVar("T")

#: The key of a share that says what its loss weighs.
WEIGHT = "weight of the share"
# The others wait for an evaluation of the first one, however long it takes. Who died is seen at once by the process
# that started all of them.
PATIENCE = timedelta(days=7)


@dataclass(frozen=True)
class Together:
    """The processes that share the training this one takes part in; one alone agrees with itself."""

    rank: int = 0
    processes: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes the files and decides."""
        return self.rank == 0

    def agree(self, decide: Callable[[], T]) -> T:
        """What the first process decides, for all: by the clock, from files or from an evaluation. Were each to decide
        for itself, one would wait for ever for what another does not do. An error there is raised everywhere."""
        if self.processes == 1:
            return decide()
        said: list[Any] = [None, None]
        if self.first:
            try:
                said[0] = decide()
            except Exception as error:
                dist.broadcast_object_list([None, portable(error)], src=0)
                raise
        dist.broadcast_object_list(said, src=0)
        if said[1] is not None:
            raise said[1]
        found: T = said[0]
        return found

    def mean(self, value: float) -> float:
        """The mean of the processes' values, the same everywhere."""
        if self.processes == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(total)
        return float(total) / self.processes

    def wait(self) -> None:
        """Until all have come here."""
        self.mean(0.0)


_here = Together()


def here() -> Together:
    """The processes this one has joined. A group that a program of somebody else's made is none of ours."""
    return _here


def join(meeting: Path, rank: int, processes: int, device: str) -> None:
    """Meet the others by a file. Figures and decisions go between the processors, gradients between the devices."""
    global _here
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    dist.init_process_group(backend, init_method=f"file://{meeting}", rank=rank, world_size=processes, timeout=PATIENCE)
    _here = Together(rank, processes)


def leave() -> None:
    """Once all are done, so that nobody is missed."""
    global _here
    _here.wait()
    dist.destroy_process_group()
    _here = Together()


class Shares(torch.utils.data.Dataset[dict[str, Any]]):
    """Ready batches, each cut into a share for every process: row `n * processes + rank` is the share of `rank` of
    batch n. accelerate hands the rows out in turn, so that a step of all processes is one batch."""

    def __init__(self, batches: Any, network: Network, processes: int) -> None:
        self.batches, self.network, self.processes = batches, network, processes

    def __len__(self) -> int:
        return len(self.batches) * self.processes

    def __getitem__(self, number: int) -> dict[str, Any]:
        batch, rank = divmod(number, self.processes)
        return share_of(self.batches[batch], self.network, rank, self.processes)


def share_of(
    batch: Mapping[str, torch.Tensor], network: Network, rank: int, processes: int
) -> dict[str, torch.Tensor | float]:
    """Every `processes`-th row of a batch, from `rank` on, and what its loss weighs, so that the mean over the
    processes is the loss of the batch: an epoch's last batch does not divide evenly, and of some rows nothing is known.
    Where there are fewer rows than processes one reads the first row for nothing: all must take the step."""
    rows = len(next(iter(batch.values())))
    chosen = slice(rank, None, processes) if rank < rows else slice(0, 1)
    share = {name: values[chosen] for name, values in batch.items()}
    counted = network.counted(share) if rank < rows else 0.0
    return {**share, WEIGHT: processes * counted / max(network.counted(batch), 1.0)}


def portable(error: Exception) -> Exception:
    """The error as another process can make it again, from its class and plain arguments: itself, or one that says the
    same."""
    kind = type(error)
    known = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    if known and all(isinstance(value, str | int | float | None) for value in error.args):
        # Whatever a class of errors does with its arguments.
        with contextlib.suppress(Exception):
            if str(kind(*error.args)) == str(error):
                return error
    return ScoringError(str(error)) if isinstance(error, ScoringError) else RuntimeError(repr(error))
