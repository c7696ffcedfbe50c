"""Where the files of a corpus lie below CORPORA_DIR, removing them, and the lock of whoever changes its index."""

from __future__ import annotations

import fcntl
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from retrieval.models import CorpusPart


def folder_of(corpus_id: int) -> Path:
    return Path(settings.CORPORA_DIR) / str(corpus_id)


def raw_path(part: CorpusPart) -> Path:
    """A file as it was received, until it is checked."""
    return folder_of(part.corpus_id) / f"received-{part.pk}"


def part_path(part: CorpusPart) -> Path:
    """The checked pairs of a stored part, one JSON object a line; never changed again."""
    return folder_of(part.corpus_id) / f"part-{part.pk}.jsonl"


def index_path(corpus_id: int) -> Path:
    """The embedded index; it is replaced in one step inside this folder."""
    return folder_of(corpus_id) / "index"


def remove_files(corpus_id: int) -> None:
    shutil.rmtree(folder_of(corpus_id), ignore_errors=True)


@contextmanager
def alone(corpus_id: int, wait: Callable[[], None]) -> Iterator[None]:
    """One at a time changes the index of a corpus. `wait` is called while somebody else does and may raise. A worker
    that is killed lets go."""
    folder_of(corpus_id).mkdir(parents=True, exist_ok=True)
    with (folder_of(corpus_id) / ".lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                wait()
                time.sleep(0.2)
        yield
