"""About how long a training of an encoder will take: a rule, with the speed of training steps of this machine."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evalapp.words import UNSPACED_BLOCKS
from scoring.ml.artefact import N_FIXTURES
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.engine import resolve_device
from scoring.ml.types import Dataset

if TYPE_CHECKING:
    from scoring.ml.training.job import FitJob

_Key: TypeAlias = tuple[str | None, str | None, int | None]
# What a training reaches of the speed of bare training steps: padding, evaluations of the held-out part, what stands on
# the encoder and threads that wait for each other cost the rest.
EFFICIENCY = 0.5
# Shortest and longest time of a training as shares of its estimate; where nothing of this machine was measured, twice
# as far. `tests/scoring/ml/training/test_estimate.py` names the trainings behind these figures.
RANGE, RANGE_UNMEASURED = (0.4, 3.5), (0.2, 7.0)
# The longest grows with how much of a processor other work on the machine takes now, up to so many times.
MOST_SLOWED = 4.0
_MEASUREMENTS, _MEASURED_SECONDS = 3, 0.5


def layer_parameters(source: EncoderSource) -> int:
    """Weights of the encoder's layers (attention 4 h^2, feed-forward 2 h f), without embeddings."""
    width = source.width
    config = source.config
    inner = int(config.get("intermediate_size") or config.get("hidden_dim") or 4 * width)
    return source.n_layers * (4 * width * width + 2 * width * inner)


def training_seconds(source: EncoderSource, n_tokens: float, device: str = "auto") -> float:
    """Seconds to learn from `n_tokens` tokens (all epochs): 6 operations for each weight and token, forward and back,
    at half of the rate that training a layer of the encoder's width reaches on the device."""
    speed = layer_speed(resolve_device(device), source.width)
    return 6.0 * layer_parameters(source) * n_tokens / (EFFICIENCY * speed.rate)


def scoring_seconds(source: EncoderSource, n_tokens: float, device: str = "auto") -> float:
    """Seconds to read `n_tokens` tokens: the forward third of `training_seconds`."""
    return training_seconds(source, n_tokens, device) / 3


def judged_texts(dataset: Dataset | None, aspect: str | None) -> int:
    """How many outputs of a held-out part people rated, in an aspect or in any: each of them is scored for the card."""
    rows = dataset.ratings if dataset is not None else ()
    return len({(r.item, r.system, r.step) for r in rows if r.item and aspect in (None, r.aspect)})


def compared_pairs(dataset: Dataset | None, aspect: str | None) -> set[tuple[_Key, _Key]]:
    """The pairs of outputs of a held-out part that people compared, in an aspect or in any: the card says what the
    evaluator says of each of them."""
    rows = dataset.comparisons if dataset is not None else ()
    return {
        ((row.item, row.system_a, row.step_a), (row.item, row.system_b, row.step_b))
        for row in rows
        if row.system_b is not None and aspect in (None, row.aspect)
    }


def held_out_seconds(job: FitJob) -> float:
    """Seconds to score the judged texts of the held-out part for the card, and the fixtures: each is read with its
    references and its context. One that was rated and compared is read for both; what compares reads each pair from
    both sides."""
    dev = job.dev
    if dev is None or job.entry.level != "segment" or "encoder" not in job.entry.needs:
        return 0.0
    readings: Counter[_Key] = Counter(
        {(r.item, r.system, r.step) for r in dev.ratings if r.item and job.aspect in (None, r.aspect)}
    )
    compared = [key for pair in compared_pairs(dev, job.aspect) for key in pair]
    readings.update(compared * 2 if job.entry.compares else set(compared))
    beside = {item.id: sum(map(estimate_tokens, (*item.references, *item.context))) for item in dev.items}
    tokens = [
        (readings[key], estimate_tokens(row.text) + beside.get(row.item, 0.0))
        for row in dev.outputs
        if (key := (row.item, row.system, row.step)) in readings
    ]
    if not tokens:
        return 0.0
    fixtures = N_FIXTURES * sum(length for _, length in tokens) / len(tokens)
    total = sum(times * length for times, length in tokens)
    return scoring_seconds(job.encoder, total + fixtures, str(job.options.get("train_device", "auto")))


def estimate_tokens(text: str) -> float:
    """About how many tokens an encoder reads for a text: 1.3 a word and two special ones; in scripts that set no spaces
    a letter counts as a word."""
    return 2 + 1.3 * (len(text.split()) + (0 if text.isascii() else len(_UNSPACED.findall(text))))


_UNSPACED = re.compile(f"[{UNSPACED_BLOCKS}]")


def estimate_range(seconds: float, *, measured: bool = True) -> tuple[float, float]:
    """Shortest and longest time of a training that is estimated at so many seconds: on a machine that has nothing else
    to do, and on one that has as much other work as now."""
    low, high = RANGE if measured else RANGE_UNMEASURED
    slowed = max((min(MOST_SLOWED, one.slowed) for one in _speeds.values()), default=1.0)
    return low * seconds, high * seconds * slowed


class Speed(NamedTuple):
    """Operations a second of the whole device, and how many times as long other work on the machine made them take."""

    rate: float
    slowed: float


_speeds: dict[tuple[str, int], Speed] = {}  # by device and width, for the range


@cache
def layer_speed(device: str, width: int) -> Speed:
    """The speed of steps that train one layer of an encoder of this width: forward, backward, optimiser. About half a
    second, once in a process.

    On processors one thread is measured by the time that it was given: time by the clock, and threads that wait for
    each other, would tell more of the other work at that moment than of the machine."""
    import torch

    on_cpu = device == "cpu"
    rows, length = (16, 32) if on_cpu else (64, 128)
    operations = 6.0 * 12 * width * width * rows * length
    threads = torch.get_num_threads()
    spent: list[float] = []
    given: list[float] = []
    try:
        if on_cpu:
            torch.set_num_threads(1)
        # Its random numbers are its own: a check changes nothing of the training behind it.
        with torch.random.fork_rng(devices=[device] if device.startswith("cuda") else []):
            step = _layer_step(device, width, rows, length)
            step()  # the first one also loads the library
            end = time.perf_counter() + _MEASURED_SECONDS
            while len(spent) < _MEASUREMENTS or time.perf_counter() < end:
                begin, begin_given = time.perf_counter(), time.thread_time()
                step()
                spent.append(time.perf_counter() - begin)
                given.append(time.thread_time() - begin_given if on_cpu else spent[-1])
    finally:
        torch.set_num_threads(threads)
    if on_cpu:
        speed = Speed(threads * operations / median(given), max(1.0, sum(spent) / sum(given)))
    else:
        speed = Speed(operations / median(spent), max(spent) / median(spent))
    _speeds[device, width] = speed
    return speed


def _layer_step(device: str, width: int, rows: int, length: int) -> Callable[[], None]:
    import torch

    layer = torch.nn.TransformerEncoderLayer(width, 1, 4 * width, batch_first=True, device=device)
    optimiser = torch.optim.AdamW(layer.parameters(), lr=1e-4)
    batch = torch.randn(rows, length, width, device=device)

    def step() -> None:
        loss = layer(batch).square().mean()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        loss.item()
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    return step
