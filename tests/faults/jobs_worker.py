"""Imported by the workers of test_jobs (`--include`): everything a job needs is loaded before the pool forks, so that a
killed process is replaced at once, and a process kills itself at a named point when the test has requested it."""

from __future__ import annotations

import functools
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
from tests.faults.jobs_points import FREEZE, ORDER, POINTS
from tests.scoring.ml.training import toy  # noqa: F401
from tests.scoring.ml.training.toy_entry import ENTRY

torch.set_num_threads(1)
registry.LEARNED = (*registry.LEARNED, ENTRY)
registry.catalogue.cache_clear()
# A short training must write checkpoints often, or there is none to continue from.
finetune.CHECKPOINT_SECONDS = 0.05

_seen: dict[str, int] = {}


def _come_by(name: str) -> str:
    """The action at this point and visit: `die`, `freeze`, or nothing."""
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


#: Held while the heartbeat writes: a process frozen in the middle would also lock the database.
_beating = threading.Lock()
_beat = runner._Heart.beat


def _beat_alone(heart: runner._Heart) -> None:
    with _beating:
        _beat(heart)


runner._Heart.beat = _beat_alone  # type: ignore[method-assign]


def _end(how: str) -> None:
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    with _beating:
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(2 * runner.BEAT_SECONDS)  # its memory is swapped in from disk; its heartbeat runs first


def _deadly(name: str, function: Any, moment: str) -> Any:
    @functools.wraps(function)
    def wrapped(*args: Any, **named: Any) -> Any:
        now = _come_by(name)
        if now and moment == "half":
            work = args[0]
            with work.file.open("ab") as lines:
                lines.write(b'{"pk": 1, "key": "half a li')
        if now and moment != "after":
            _end(now)
            now = ""
        result = function(*args, **named)
        if now:
            _end(now)
        return result

    return wrapped


for _name, (_module, _path, _moment) in POINTS.items():
    _owner: Any = import_module(_module)
    *_within, _last = _path.split(".")
    for _part in _within:
        _owner = getattr(_owner, _part)
    setattr(_owner, _last, _deadly(_name, getattr(_owner, _last), _moment))
