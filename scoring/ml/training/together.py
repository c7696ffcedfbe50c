"""The group of processes that share a training, as each process sees it; each has its rows of every batch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist

from scoring.ml.encoders.separate import PLACES, take_rows
from scoring.ml.errors import ScoringError
from scoring.ml.network import Network

T = TypeVar("T")

#: The key of a share's weight in the loss.
WEIGHT = "weight of the share"
# The others wait for an evaluation by the first process, however long it takes. The parent notices at once when a
# process dies.
PATIENCE = timedelta(days=7)


@dataclass(frozen=True)
class Together:
    """The processes that share the training; a single process agrees with itself."""

    rank: int = 0
    processes: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and decides."""
        return self.rank == 0

    def agree(self, decide: Callable[[], T]) -> T:
        """The first process's decision, in all processes: it may depend on the clock, on files or on an evaluation. If
        each process decided for itself, one could wait forever for another. An error in the decision is raised in every
        process."""
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
        return cast(T, said[0])

    def mean(self, value: float) -> float:
        """The mean of the processes' values, equal in all."""
        if self.processes == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(total)
        return float(total) / self.processes

    def wait(self) -> None:
        """Wait until all processes have reached this point."""
        self.mean(0.0)


_here = Together()


def current_group() -> Together:
    """The processes that this one has joined; process groups of other programs do not count."""
    return _here


def join(meeting: Path, rank: int, processes: int, device: str) -> None:
    """Join the other `processes` through the file `meeting`, as number `rank` on `device`. Decisions are exchanged
    between processors, gradients between devices."""
    global _here
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    dist.init_process_group(backend, init_method=f"file://{meeting}", rank=rank, world_size=processes, timeout=PATIENCE)
    _here = Together(rank, processes)


def leave() -> None:
    """Leave once all processes are done."""
    global _here
    _here.wait()
    dist.destroy_process_group()
    _here = Together()


class Shares(torch.utils.data.Dataset[dict[str, Any]]):
    """Ready batches, each divided into a share per process: row `n * processes + rank` is the share of `rank` of batch
    n. accelerate hands the rows out in turn, so that a step of all processes is one batch."""

    def __init__(self, batches: Any, network: Network, processes: int) -> None:
        self.batches, self.network, self.processes = batches, network, processes

    def __len__(self) -> int:
        return len(self.batches) * self.processes

    def __getitem__(self, number: int) -> dict[str, Any]:
        batch, rank = divmod(number, self.processes)
        return take_share(self.batches[batch], self.network, rank, self.processes)


def take_share(
    batch: Mapping[str, torch.Tensor], network: Network, rank: int, processes: int
) -> dict[str, torch.Tensor | float]:
    """Return every `processes`-th row of a `batch`, from `rank` on, and the weight of its loss in the `network`.

    The weight is chosen so that the mean over the processes is the loss of the batch: an epoch's last batch may not
    divide evenly, and some rows may have no label. If there are fewer rows than processes, a process reads the first
    row with weight 0, because all must take the step.
    """
    rows = len(next(iter(batch.values())))
    chosen = slice(rank, None, processes) if rank < rows else slice(0, 1)
    share = take_rows(batch, chosen) if PLACES in batch else {name: values[chosen] for name, values in batch.items()}
    counted = network.counted(share) if rank < rows else 0.0
    return {**share, WEIGHT: processes * counted / max(network.counted(batch), 1.0)}


def portable(error: Exception) -> Exception:
    """The error itself if another process can rebuild it from its class and plain arguments, else one with the same
    message."""
    kind = type(error)
    known = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    if known and all(isinstance(value, str | int | float | None) for value in error.args):
        # The constructor of an error class may raise anything.
        with contextlib.suppress(Exception):
            if str(kind(*error.args)) == str(error):
                return error
    return ScoringError(str(error)) if isinstance(error, ScoringError) else RuntimeError(repr(error))
