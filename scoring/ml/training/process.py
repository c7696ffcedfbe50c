"""A process that shares a training with others: `python -m scoring.ml.training.process MEETING`, started by
`several.py`.

Standard input: the job as a pickle, then an empty message for every report that was received. Standard output: messages
in JSON; all other output goes to standard error. When standard input ends, the parent has ended, and this process ends
as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoring.ml.training.job import FitJob, Report

Say = Callable[[dict[str, Any]], None]


def main() -> int:
    """Train and report progress. 1 if it failed."""
    owner, say = open_channel()
    job: FitJob = pickle.loads(owner.recv_bytes())
    taken = threading.Semaphore(0)
    threading.Thread(target=listen, args=(owner, taken), daemon=True, name="owner").start()
    from scoring.ml.errors import ScoringError

    try:
        _train(job, _teller(say, taken))
    except ScoringError as error:
        say({"refused": str(error)})
        return 1
    except BaseException:  # noqa: BLE001 - the waiting parent must learn of any error
        traceback.print_exc()
        sys.stderr.flush()
        say({"failed": True})
        return 1
    return 0


def _train(job: FitJob, report: Report) -> None:
    from scoring.ml.engine import resolve_device
    from scoring.ml.training import together

    rank = int(os.environ["RANK"])
    device = resolve_device(job.text("train_device"))
    if device.startswith("cuda"):
        import torch
        from accelerate.utils import check_cuda_p2p_ib_support

        # Tensors put on "cuda" go to this process's own GPU.
        torch.cuda.set_device(rank)
        if not check_cuda_p2p_ib_support():
            # As accelerate's launcher does for GPUs that cannot reach each other's memory.
            os.environ.setdefault("NCCL_P2P_DISABLE", "1")
            os.environ.setdefault("NCCL_IB_DISABLE", "1")
    together.join(Path(sys.argv[1]), rank, job.processes, device)
    job.entry.load_implementation().train(replace(job, report=report) if rank == 0 else job)
    together.leave()


def _teller(say: Say, taken: threading.Semaphore) -> Report:
    def report(progress: Any) -> None:
        """A synchronous call: it returns once the parent has received the report, so progress is stored before a
        checkpoint."""
        say({"progress": asdict(progress)})
        taken.acquire()

    return report


def open_channel() -> tuple[Connection, Say]:
    """Standard input, and a function that writes a message to standard output; prints go to standard error."""
    owner, channel = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    os.dup2(2, 1)
    return owner, lambda message: channel.send_bytes(json.dumps(message).encode())


def listen(owner: Connection, taken: threading.Semaphore) -> None:
    """Count received reports until the parent has ended, then end this process."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            owner.recv_bytes()
            taken.release()
    # Ending within a step is safe: checkpoints are complete or absent.
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
