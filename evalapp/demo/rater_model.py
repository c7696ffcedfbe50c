"""The simulated raters of the demonstration. Every row has `"simulated": true`.

An output has a latent value per aspect from the features of its text (`quality.latent`). On top of it come

1. a taste that no feature explains, common to all raters: normal, sd 0.25 per output and aspect;
2. the rater: value = 3 + bias + spread * (latent + taste - 3) + normal(0, noise), rounded and clipped to 1 ... 5.
   Ten raters `sim-01` to `sim-10`: bias normal(0, 0.3), spread uniform(0.85, 1.15), noise uniform(0.4, 0.8).
   Two are unusual, to be found in reports on raters: `sim-09` is careless (noise 1.5), `sim-10` prefers the middle of
   the scale (spread 0.5);
3. a comparison: difference d = (latent + taste of a) - (latent + taste of b) + normal(0, noise of the rater). |d| below
   the rater's tie width (uniform 0.25 to 0.5) is a tie; a tie of two outputs below 2 is `both_bad`. Sides are random;
4. a Turing question (aspect `human-likeness`): the output and a reference of the item, with the latent naturalness of
   each; |d| below twice the tie width is `cannot_decide`.

Each output is rated by three raters, each chosen pair and each Turing question by two. Raters with the fewest tasks
come first, ties are broken at random. Everything is determined by the seed.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalapp.demo.quality import ASPECTS
from evalapp.demo.systems import Output

HUMAN_LIKENESS = "human-likeness"
COMPARED = ("naturalness", "relevance")
RATERS_PER_OUTPUT = 3
RATERS_PER_PAIR = 2
PAIRS_PER_ITEM = 5
LOW, HIGH = 1, 5

Latents = Mapping[str, float]


@dataclass(frozen=True)
class Rater:
    name: str
    bias: float
    spread: float
    noise: float
    tie_width: float

    def rate(self, value: float, rng: random.Random) -> int:
        """Return a rating of an output with this latent value (including taste)."""
        shown = 3 + self.bias + self.spread * (value - 3) + rng.gauss(0, self.noise)
        return min(max(round(shown), LOW), HIGH)

    def compare(self, a: float, b: float, rng: random.Random) -> str:
        difference = a - b + rng.gauss(0, self.noise)
        if abs(difference) < self.tie_width:
            return "both_bad" if max(a, b) < 2 else "tie"
        return "a" if difference > 0 else "b"

    def find_human(self, output: float, reference: float, rng: random.Random) -> str:
        """Return which text a person seems to have written: a the output, b the reference."""
        difference = output - reference + rng.gauss(0, self.noise)
        if abs(difference) < 2 * self.tie_width:
            return "cannot_decide"
        return "a" if difference > 0 else "b"


def make_raters(seed: int) -> list[Rater]:
    rng = random.Random(f"{seed}:raters")
    raters = []
    for number in range(1, 11):
        bias, spread = rng.gauss(0, 0.3), rng.uniform(0.85, 1.15)
        noise, tie_width = rng.uniform(0.4, 0.8), rng.uniform(0.25, 0.5)
        if number == 9:
            noise = 1.5
        if number == 10:
            spread = 0.5
        raters.append(Rater(f"sim-{number:02d}", bias, spread, noise, tie_width))
    return raters


class Panel:
    """Assigns tasks to the raters with the fewest; ties are broken at random."""

    def __init__(self, raters: Sequence[Rater], rng: random.Random) -> None:
        self._raters = raters
        self._rng = rng
        self._load: Counter[str] = Counter()

    def choose(self, number: int) -> list[Rater]:
        order = sorted(self._raters, key=lambda rater: (self._load[rater.name], self._rng.random()))
        chosen = sorted(order[:number], key=lambda rater: rater.name)
        self._load.update(rater.name for rater in chosen)
        return chosen


def with_taste(output: Output, values: Latents, seed: int) -> dict[str, float]:
    """Return the latent values with the taste of the output added."""
    rng = random.Random(f"{seed}:taste:{output.item}:{output.system}:{output.step}")
    return {aspect: values[aspect] + rng.gauss(0, 0.25) for aspect in ASPECTS}


def ratings(outputs: Sequence[Output], values: Sequence[Latents], seed: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of ratings.jsonl in canonical order; `values` are the latents of the outputs with taste."""
    rng = random.Random(f"{seed}:ratings")
    panel = Panel(make_raters(seed), rng)
    for output, value in zip(outputs, values, strict=True):
        for rater in panel.choose(RATERS_PER_OUTPUT):
            for aspect in sorted(ASPECTS):
                row: dict[str, Any] = {"item": output.item, "system": output.system, "rater": rater.name}
                row |= {"aspect": aspect, "value": rater.rate(value[aspect], rng)}
                if output.step is not None:
                    row["step"] = output.step
                yield row | {"simulated": True}


def comparisons(
    outputs: Sequence[Output],
    values: Sequence[Latents],
    references: Mapping[str, Sequence[Latents]],
    seed: int,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of comparisons.jsonl by item: pairs of outputs, then the Turing question. All pairs of contestants
    (systems and steps) are compared about equally often. `references` are the latents of each item's references."""
    rng = random.Random(f"{seed}:comparisons")
    panel = Panel(make_raters(seed), rng)
    met: Counter[frozenset[tuple[str, int | None]]] = Counter()
    asked: Counter[tuple[str, int | None]] = Counter()
    paired = zip(outputs, values, strict=True)
    for item, group in itertools.groupby(paired, key=lambda pair: pair[0].item):
        contestants = list(group)
        pairs = list(itertools.combinations(contestants, 2))
        pairs.sort(key=lambda pair: (met[_meeting(*pair)], rng.random()))
        for pair in pairs[:PAIRS_PER_ITEM]:
            met[_meeting(*pair)] += 1
            (a, value_a), (b, value_b) = pair if rng.random() < 0.5 else pair[::-1]
            for rater in panel.choose(RATERS_PER_PAIR):
                for aspect in COMPARED:
                    verdict = rater.compare(value_a[aspect], value_b[aspect], rng)
                    yield _comparison(a, b.system, b.step, rater, aspect, verdict)
        output, value = min(contestants, key=lambda one: (asked[_contestant(one[0])], rng.random()))
        asked[_contestant(output)] += 1
        number = rng.randrange(len(references[item]))
        other = references[item][number]["naturalness"]
        for rater in panel.choose(RATERS_PER_PAIR):
            verdict = rater.find_human(value["naturalness"], other, rng)
            yield _comparison(output, {"reference": number}, None, rater, HUMAN_LIKENESS, verdict)


def _contestant(output: Output) -> tuple[str, int | None]:
    return output.system, output.step


def _meeting(a: tuple[Output, Latents], b: tuple[Output, Latents]) -> frozenset[tuple[str, int | None]]:
    return frozenset((_contestant(a[0]), _contestant(b[0])))


def _comparison(
    a: Output, system_b: str | dict[str, int], step_b: int | None, rater: Rater, aspect: str, verdict: str
) -> dict[str, Any]:
    row: dict[str, Any] = {"item": a.item, "system_a": a.system, "system_b": system_b, "rater": rater.name}
    row |= {"aspect": aspect, "verdict": verdict}
    if a.step is not None:
        row["step_a"] = a.step
    if step_b is not None:
        row["step_b"] = step_b
    return row | {"simulated": True}
