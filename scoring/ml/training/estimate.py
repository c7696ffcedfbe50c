"""Estimates how long the training of an encoder takes: a formula with the measured training speed of this machine."""

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
# The share of the speed of bare training steps that a training reaches; the rest goes to padding, evaluations of the
# held-out part, the heads, and threads that wait for each other.
EFFICIENCY = 0.5
# Shortest and longest time of a training as multiples of its estimate; wider if nothing was measured on this machine.
# `tests/scoring/ml/training/test_estimate.py` names the trainings behind these figures.
RANGE, RANGE_UNMEASURED, RANGE_TIMED = (0.4, 3.5), (0.2, 7.0), (0.6, 1.75)
# The upper bound grows with the load by other work on the machine, up to this factor.
MOST_SLOWED = 4.0
_MEASUREMENTS, _MEASURED_SECONDS = 3, 0.5


class Counts(NamedTuple):
    """What a training reads: `steps` that train the encoder, and without gradients `head_rows` to fit the head and
    `evaluated` rows in all evaluations together."""

    steps: int
    head_rows: int
    evaluated: int

    def repeat(self, times: int) -> Counts:
        """The same for several trainings."""
        return Counts(self.steps * times, self.head_rows * times, self.evaluated * times)


def layer_parameters(source: EncoderSource) -> int:
    """Return the number of weights in the layers of the encoder of `source` (attention 4 h^2, feed-forward 2 h f),
    without embeddings."""
    width = source.width
    config = source.config
    inner = int(config.get("intermediate_size") or config.get("hidden_dim") or 4 * width)
    return source.n_layers * (4 * width * width + 2 * width * inner)


def training_seconds(source: EncoderSource, n_tokens: float, device: str = "auto") -> float:
    """Return the seconds to train the encoder of `source` on `n_tokens` tokens (all epochs) on a `device`.

    6 operations per weight and token, forward and backward, at half of the speed that training a layer of the encoder's
    width reaches on the device.
    """
    speed = layer_speed(resolve_device(device), source.width)
    return 6.0 * layer_parameters(source) * n_tokens / (EFFICIENCY * speed.rate)


def scoring_seconds(source: EncoderSource, n_tokens: float, device: str = "auto") -> float:
    """Return the seconds in which the encoder of `source` reads `n_tokens` tokens on a `device`: the forward pass, a
    third of `training_seconds`."""
    return training_seconds(source, n_tokens, device) / 3


def count_rated_outputs(dataset: Dataset | None, aspect: str | None) -> int:
    """Return the number of held-out outputs in a `dataset` with ratings of an `aspect`, or of any: each is scored for
    the card."""
    rows = dataset.ratings if dataset is not None else ()
    return len({(r.item, r.system, r.step) for r in rows if r.item and aspect in (None, r.aspect)})


def find_compared_pairs(dataset: Dataset | None, aspect: str | None) -> set[tuple[_Key, _Key]]:
    """Return the held-out pairs of outputs in a `dataset` with comparisons of an `aspect`, or of any: the card
    evaluates each."""
    rows = dataset.comparisons if dataset is not None else ()
    return {
        ((row.item, row.system_a, row.step_a), (row.item, row.system_b, row.step_b))
        for row in rows
        if row.system_b is not None and aspect in (None, row.aspect)
    }


def held_out_seconds(job: FitJob) -> float:
    """Return the seconds in which a `job` scores the judged held-out texts and the fixtures for the card."""
    tokens = count_held_out_tokens(job)
    return scoring_seconds(job.encoder, tokens, str(job.options.get("train_device", "auto"))) if tokens else 0.0


def count_held_out_tokens(job: FitJob) -> float:
    """Return the tokens of the judged held-out texts and the fixtures that a `job` scores for the card, each with its
    references and context.

    A text that was rated and compared is read for both; evaluators that compare read each pair from both sides.
    """
    dev = job.dev
    if dev is None or job.entry.level != "segment" or "encoder" not in job.entry.needs:
        return 0.0
    readings: Counter[_Key] = Counter(
        {(r.item, r.system, r.step) for r in dev.ratings if r.item and job.aspect in (None, r.aspect)}
    )
    compared = [key for pair in find_compared_pairs(dev, job.aspect) for key in pair]
    readings.update(compared * 2 if job.entry.compares else set(compared))
    tokens_of_item = {item.id: sum(map(estimate_tokens, (*item.references, *item.context))) for item in dev.items}
    tokens = [
        (readings[key], estimate_tokens(row.text) + tokens_of_item.get(row.item, 0.0))
        for row in dev.outputs
        if (key := (row.item, row.system, row.step)) in readings
    ]
    if not tokens:
        return 0.0
    fixtures = N_FIXTURES * sum(length for _, length in tokens) / len(tokens)
    return sum(times * length for times, length in tokens) + fixtures


def estimate_tokens(text: str) -> float:
    """Approximate number of tokens of a text: 1.3 per word and two special ones; a letter counts as a word in scripts
    without spaces."""
    return 2 + 1.3 * (len(text.split()) + (0 if text.isascii() else len(_UNSPACED.findall(text))))


_UNSPACED = re.compile(f"[{UNSPACED_BLOCKS}]")


def estimate_range(seconds: float, *, measured: bool = True, timed: bool = False) -> tuple[float, float]:
    """Return the shortest and longest time of a training that is estimated at `seconds`: on an idle machine, and with
    the present load by other work. The range is wider unless the speed was `measured`, and narrower if two of its own
    steps were `timed`, with the load as it is."""
    if timed:
        return RANGE_TIMED[0] * seconds, RANGE_TIMED[1] * seconds
    low, high = RANGE if measured else RANGE_UNMEASURED
    slowed = max((min(MOST_SLOWED, one.slowed) for one in _speeds.values()), default=1.0)
    return low * seconds, high * seconds * slowed


class Speed(NamedTuple):
    """Operations per second of the whole device, and the factor by which other work on the machine slowed them."""

    rate: float
    slowed: float


_speeds: dict[tuple[str, int], Speed] = {}  # by device and width, for the range


@cache
def layer_speed(device: str, width: int) -> Speed:
    """Return the speed of steps on `device` that train one layer of an encoder of this `width`: forward, backward,
    optimiser. It takes about half a second, once per process.

    On processors one thread is measured by its processor time: elapsed time, and threads that wait for each other,
    would say more about the other work at that moment than about the machine.
    """
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
        # Uses random numbers of its own, so that the check does not change the training that follows.
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
