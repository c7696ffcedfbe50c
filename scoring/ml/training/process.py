"""A process that shares a training with others: `python -m scoring.ml.training.process MEETING`, started by
`several.py`.

Standard input: the job (its length in 8 bytes, then a pickle), then a byte for every report that was received. Standard
output: lines of JSON; all other output goes to standard error. When standard input ends, the parent has ended, and this
process ends as well.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoring.ml.training.job import FitJob, Report

LENGTH_BYTES = 8
Say = Callable[[dict[str, Any]], None]


def main() -> int:
    """Train and report progress. 1 if it failed."""
    say = _channel()
    job: FitJob = pickle.loads(_read(int.from_bytes(_read(LENGTH_BYTES), "big")))
    taken = threading.Semaphore(0)
    threading.Thread(target=_listen, args=(taken,), daemon=True, name="owner").start()
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


def _channel() -> Say:
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    return say


def _read(n: int) -> bytes:
    result = b""
    while len(result) < n:
        part = os.read(0, n - len(result))
        if not part:
            os._exit(1)
        result += part
    return result


def _listen(taken: threading.Semaphore) -> None:
    while os.read(0, 1):
        taken.release()
    # Ending within a step is safe: checkpoints are complete or absent.
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
