"""Times two steps of a training on this machine, and computes from them how long all of it will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch

from scoring.ml.encoders.separate import PLACES, Inputs, TextRows, take_rows
from scoring.ml.engine import resolve_device
from scoring.ml.network import Network
from scoring.ml.training.batches import read_features
from scoring.ml.training.estimate import Counts, count_held_out_tokens
from scoring.ml.training.head import PARTS, PENALTIES, HasHead
from scoring.ml.training.job import FitJob

#: Tokens of a timed step, and of a timed reading without gradients, at most.
TIMED_TOKENS = 4096
#: Batches whose lengths are looked at.
BATCHES = 16
#: Evaluations of the loss while a head is fitted: for each penalty and part, and at the end.
ROUGH_EVALUATIONS, EXACT_EVALUATIONS = 12, 150
#: Seconds of a training besides all that is counted: files, the trainer, the card.
REST = 1.0
#: Seconds for which a measurement is used again.
KEPT_SECONDS = 60.0


class Sample(Protocol):
    """Batches as in the training."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Work:
    """A training of `network` with `counts` on batches like those of `sample`; `inputs` are such rows.

    `read` are tokens that are read without gradients after the training, besides those of the card, which are among
    them if `scored`. With `every` above 0 each `every`-th step is one after `network.steps` was a multiple of it, and
    takes longer.
    """

    network: Callable[[], Network]
    sample: Sample
    inputs: Inputs
    counts: Counts
    read: float = 0.0
    every: int = 0
    scored: bool = False


class Timing(NamedTuple):
    """Processor seconds: `reading` of a token without gradients; a step takes `fixed` and `by_token` for each of its
    tokens, and every `every`-th step `longer` times as long. `slowed`: seconds by the clock for each of the processor.
    `measured` is when. With a graphics card all seconds are by the clock."""

    reading: float
    fixed: float
    by_token: float
    longer: float
    slowed: float
    measured: float


# The folds of a cross-fitting are checked one after another: the second begins with what was measured for the first.
recent: dict[object, Timing] = {}


def time_work(job: FitJob, works: Sequence[Work]) -> tuple[float, float]:
    """Return the seconds of all `works` of a `job`, and the seconds after its last step.

    Processor time is measured, and the ratio of the clock to it: load by other work changes the latter alone. A short
    step by the clock may be many times too long.
    """
    seconds = after = 0.0
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        for number, work in enumerate(works):
            key = (job.name, job.profile, number, *sorted(map(str, job.options.items())), job.encoder.weights)
            timing = recent.get(key)
            network = work.network().to(torch.device(resolve_device(job.text("train_device"))))  # type: ignore[arg-type]
            batches = sorted((work.sample[n] for n in range(min(len(work.sample), BATCHES))), key=_padded)
            if timing is None or time.monotonic() - timing.measured > KEPT_SECONDS:
                timing = recent[key] = measure_steps(network, work, batches)
            tokens = _count_tokens(work.inputs) / max(len(work.inputs), 1)
            used = (work.counts.evaluated + work.counts.head_rows) * tokens * timing.reading
            if work.counts.steps:
                mean = sum(map(_padded, batches)) / len(batches)
                share = (timing.longer - 1) / work.every if work.every else 0.0
                used += work.counts.steps * (timing.fixed + timing.by_token * mean) * (1 + share)
            if work.counts.head_rows and isinstance(network, HasHead):
                used += _time_head(network.head_layer, work.counts.head_rows)
            seconds += used * timing.slowed + REST
            if number == len(works) - 1:
                rest = work.read + (0 if work.scored else count_held_out_tokens(job))
                after = timing.reading * rest * timing.slowed
    return seconds + after, after


def measure_steps(network: Network, work: Work, batches: Sequence[dict[str, Any]]) -> Timing:
    """Return the times of a short and a long step of `work` on `batches`, the shortest first: forward, backward,
    optimiser. They give the time of any number of tokens, so that only a part of a large batch is read."""
    timer = _choose_timer(network)
    began, used = time.perf_counter(), timer()
    reading = _time_reading(network, work.inputs, timer)
    fixed, by_token, longer = _time_steps(network, work, batches, timer) if work.counts.steps else (0.0, 0.0, 1.0)
    slowed = (time.perf_counter() - began) / max(timer() - used, 1e-9)
    return Timing(reading, fixed, by_token, longer, slowed, time.monotonic())


def _choose_timer(network: torch.nn.Module) -> Callable[[], float]:
    """The time of the processor, or the clock where a graphics card works while the processor waits."""
    is_cuda = any(one.is_cuda for one in network.parameters())
    return time.perf_counter if is_cuda else time.process_time


def _time_steps(
    network: Network, work: Work, batches: Sequence[dict[str, Any]], timer: Callable[[], float]
) -> tuple[float, float, float]:
    """Fixed seconds of a step, those of a token, and how many times longer an `every`-th step takes."""
    short, long = (_cut(batch, share) for batch, share in ((batches[0], 0.4), (batches[-1], 1.0)))
    optimiser = torch.optim.AdamW(network.parameters(), lr=0.0, fused=True)
    network.train()

    def step(batch: Mapping[str, torch.Tensor], number: int = 1) -> float:
        device = next(network.parameters()).device
        inputs = {name: value.to(device) for name, value in batch.items()}
        if work.every:
            network.steps.fill_(number)  # type: ignore[operator]
        began = timer()
        network(**inputs)["loss"].backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return timer() - began

    # The first step also loads the library, and makes the optimiser's state.
    step(short)
    fixed, by_token = fit_line(_padded(short), step(short), _padded(long), plain := step(long))
    longer = step(long, 0) / plain if work.every > 1 else 1.0
    return fixed, by_token, max(longer, 1.0)


def fit_line(first: int, seconds: float, second: int, more: float) -> tuple[float, float]:
    """Return the fixed seconds of a step and those of a token, from two steps: `seconds` for `first` tokens and `more`
    for `second` ones; in proportion if these do not differ enough."""
    if second < 1.5 * first or more <= seconds:
        return 0.0, (seconds + more) / (first + second)
    slope = (more - seconds) / (second - first)
    fixed = max(0.0, seconds - slope * first)
    return fixed, (more - fixed) / second


def _padded(batch: Mapping[str, torch.Tensor]) -> int:
    return int(batch["input_ids"].numel())


def _cut(batch: dict[str, Any], share: float) -> dict[str, Any]:
    """As many rows of a batch as give a `share` of the tokens to be timed."""
    n = len(batch[PLACES] if PLACES in batch else batch["input_ids"])
    rows = max(1, min(n, int(n * share * TIMED_TOKENS / max(_padded(batch), 1))))
    if PLACES in batch:
        return take_rows(batch, slice(rows))
    return {name: value[:rows] for name, value in batch.items()}


def _time_reading(network: Any, inputs: Inputs, timer: Callable[[], float]) -> float:
    """Seconds for a token that is read without gradients."""
    network.eval()
    rows = torch.arange(len(inputs)).numpy()
    some, n = inputs.take(rows[:1]), 1
    while n < len(rows) and _count_tokens(some) < TIMED_TOKENS:
        n = min(len(rows), 2 * n)
        some = inputs.take(rows[:n])
    times = []
    for _ in range(2):
        began = timer()
        read_features(network, some, 0, lambda done, total: None)
        times.append(timer() - began)
    return times[-1] / max(_count_tokens(some), 1)


def _count_tokens(inputs: Inputs) -> int:
    """The tokens of distinct inputs."""
    return inputs.encodings.n_tokens if isinstance(inputs, TextRows) else inputs.distinct()[0].n_tokens


def _time_head(layer: torch.nn.Linear, rows: int) -> float:
    """Processor seconds in which a linear layer is fitted to features of some `rows`: two products an evaluation."""
    some = min(rows, 512)
    features = torch.randn(some, layer.in_features, dtype=torch.float64)
    weights = torch.randn(layer.in_features, layer.out_features, dtype=torch.float64)
    times = []
    for _ in range(3):
        began = time.process_time()
        features.T @ (features @ weights)
        times.append(time.process_time() - began)
    once = sorted(times)[1] * rows / some + 5e-4
    rough = len(PENALTIES) * PARTS * ROUGH_EVALUATIONS * (1 - 1 / PARTS)
    return once * (rough + EXACT_EVALUATIONS)
