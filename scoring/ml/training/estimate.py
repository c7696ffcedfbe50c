"""About how long a training of an encoder will take: a rule, with this machine's own speed of matrix products."""

from __future__ import annotations

import re
import time
from collections import Counter
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

from evalapp.words import UNSPACED_BLOCKS
from scoring.ml.artefact import N_FIXTURES
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.engine import resolve_device
from scoring.ml.types import Dataset

if TYPE_CHECKING:
    from scoring.ml.training.job import FitJob

_Key: TypeAlias = tuple[str | None, str | None, int | None]
# What a training reaches of the rate of bare matrix products: attention, norms, optimiser and padding cost the rest.
EFFICIENCY = 0.4
# A training takes from half of an estimate to four times as long; where nothing of this machine was measured, twice as
# far. Measured on two cores that had other work, short texts: adem .7 of its estimate, shared-bert 4.1 times.
RANGE, RANGE_UNMEASURED = (0.5, 4.0), (0.25, 8.0)
_MEASUREMENTS, _MEASURED_SECONDS = 5, 0.5


def layer_parameters(source: EncoderSource) -> int:
    """Weights of the encoder's layers (attention 4 h^2, feed-forward 2 h f), without embeddings."""
    width = source.width
    config = source.config
    inner = int(config.get("intermediate_size") or config.get("hidden_dim") or 4 * width)
    return source.n_layers * (4 * width * width + 2 * width * inner)


def training_seconds(source: EncoderSource, n_tokens: float, device: str = "auto") -> float:
    """Seconds to learn from `n_tokens` tokens (all epochs): 6 operations for each weight and token, forward and back,
    at 0.4 of the rate that matrix products of the encoder's width reach on the device now."""
    return 6.0 * layer_parameters(source) * n_tokens / (EFFICIENCY * matrix_rate(resolve_device(device), source.width))


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
    """Shortest and longest time of a training that is estimated at so many seconds. The longest grows with how much
    slower than the best rate the middle one was: that is what else runs on the machine."""
    low, high = RANGE if measured else RANGE_UNMEASURED
    return low * seconds, high * max(_slowdowns.values(), default=1.0) * seconds


_slowdowns: dict[tuple[str, int], float] = {}  # by device and width


@cache
def matrix_rate(device: str, width: int) -> float:
    """Operations a second of (512, width) x (width, 4 width): the best of what half a second shows, since whatever else
    runs on the machine can only make it slower. Measured once in a process."""
    import torch

    rates: list[float] = []
    with torch.inference_mode():
        left, right = torch.ones(512, width, device=device), torch.ones(width, 4 * width, device=device)
        (left @ right).sum().item()  # the first one also loads the library
        end = time.perf_counter() + _MEASURED_SECONDS
        while len(rates) < _MEASUREMENTS or time.perf_counter() < end:
            began = time.perf_counter()
            (left @ right).sum().item()
            rates.append(2.0 * 512 * width * 4 * width / (time.perf_counter() - began))
    _slowdowns[device, width] = max(rates) / median(rates)
    return max(rates)
