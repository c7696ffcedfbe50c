"""The number of threads a training uses, kept for its whole life: another number sums in another order."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from scoring.ml.training.store import write_json

THREADS = "threads.json"


def share_threads(folder: Path, processes: int) -> int:
    """Return the number of threads for each of the `processes` of a shared training in `folder`: an equal part of this
    process's threads, or the number that the training began with."""
    path = folder / THREADS
    if not path.is_file():
        write_json(path, max(1, torch.get_num_threads() // processes))
    return int(json.loads(path.read_text(encoding="utf-8")))


def keep_threads(folder: Path) -> int:
    """Set and return the number of threads that the training in `folder` began with, so that a continued training gives
    the same result."""
    path = folder / THREADS
    if path.is_file():
        threads = int(json.loads(path.read_text(encoding="utf-8")))
    else:
        threads = torch.get_num_threads()
        write_json(path, threads)
    torch.set_num_threads(threads)
    return threads
