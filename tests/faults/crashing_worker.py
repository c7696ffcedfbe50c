"""Imported by the workers of test_jobs (`--include`). Everything a job needs is loaded before the pool forks, so that a
killed process is replaced quickly. A process kills itself at the point that the test has requested."""

from __future__ import annotations

import functools
import gc
import os
import signal
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers.convert_slow_tokenizer
import transformers.models.bert.modeling_bert  # noqa: F401

import scoring.ml
import scoring.ml.training.cross_fit  # noqa: F401
from evalapp.common import runner
from scoring.ml import registry
from scoring.ml.evaluators.ream import annotate, evaluator  # noqa: F401
from scoring.ml.training import finetune
from tests.evalapp.common import quick_pool  # noqa: F401
from tests.faults.crash_points import FREEZE, ORDER, POINTS
from tests.scoring.ml.training import toy  # noqa: F401
from tests.scoring.ml.training.toy_entry import ENTRY

torch.set_num_threads(1)
registry.LEARNED = (*registry.LEARNED, ENTRY)
registry.catalogue.cache_clear()
# A short training must write checkpoints often to have one to continue from.
finetune.CHECKPOINT_SECONDS = 0.05

_seen: dict[str, int] = {}


def _get_action(name: str) -> str:
    """Return the action at this visit of a point: `die`, `freeze`, or an empty string."""
    order = Path(os.environ[ORDER])
    try:
        point, number, times = order.read_text().split("\t")
    except FileNotFoundError:
        _seen.clear()
        return ""
    if point != name:
        return ""
    _seen[name] = _seen.get(name, 0) + 1
    if _seen[name] < int(number):
        return ""
    if times == FREEZE:
        order.unlink()
        return "freeze"
    if int(times) > 1:
        order.write_text(f"{point}\t{number}\t{int(times) - 1}")
    else:
        order.unlink()
    return "die"


#: Locked while the heartbeat writes: a process frozen during the write would also lock the database.
_beat_lock = threading.Lock()
_beat = runner._Heart.beat


def _beat_with_lock(heart: runner._Heart) -> None:
    with _beat_lock:
        _beat(heart)


runner._Heart.beat = _beat_with_lock  # type: ignore[method-assign]


def _crash(action: str) -> None:
    if action == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    with _beat_lock:
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(2 * runner.BEAT_SECONDS)  # after it continues, the heartbeat runs first


def _add_crash_point(name: str, function: Any, moment: str) -> Any:
    @functools.wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        action = _get_action(name)
        if action and moment == "half":
            with args[0].file.open("ab") as lines:
                lines.write(b'{"pk": 1, "key": "half a li')
        if action and moment != "after":
            _crash(action)
            action = ""
        result = function(*args, **options)
        if action:
            _crash(action)
        return result

    return wrapped


for _name, (_module, _path, _moment) in POINTS.items():
    _owner: Any = import_module(_module)
    *_parents, _last = _path.split(".")
    for _part in _parents:
        _owner = getattr(_owner, _part)
    setattr(_owner, _last, _add_crash_point(_name, getattr(_owner, _last), _moment))

# Celery collects garbage before it replaces a process; without this, it would look at everything that is loaded.
gc.collect()
gc.freeze()
