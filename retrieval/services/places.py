"""Paths of the files of a corpus below CORPORA_DIR, their removal, and the lock for changes of its index."""

import fcntl
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from retrieval.models import CorpusPart


def get_folder(corpus_id: int) -> Path:
    return Path(settings.CORPORA_DIR) / str(corpus_id)


def get_raw_path(part: CorpusPart) -> Path:
    """The received file, until it is checked."""
    return get_folder(part.corpus_id) / f"received-{part.pk}"


def get_part_path(part: CorpusPart) -> Path:
    """The checked pairs of a stored part, one JSON object per line. Never changes."""
    return get_folder(part.corpus_id) / f"part-{part.pk}.jsonl"


def index_path(corpus_id: int) -> Path:
    """The folder of the embedded index, which is replaced atomically."""
    return get_folder(corpus_id) / "index"


def remove_files(corpus_id: int) -> None:
    shutil.rmtree(get_folder(corpus_id), ignore_errors=True)


@contextmanager
def lock_index(corpus_id: int, wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock for changes of the corpus' index. `wait` is called while another process holds it and may raise.
    The lock is released when its process ends."""
    get_folder(corpus_id).mkdir(parents=True, exist_ok=True)
    with (get_folder(corpus_id) / ".lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                wait()
                time.sleep(0.2)
        yield
