"""Which kind of unit an annotator gets next: practice first, then controls and repeats mixed in at their rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .streams import draw

Step = Literal["practice", "control", "repeat", "normal"]


@dataclass(frozen=True)
class Standing:
    """Where one annotator stands: `practised` and `given` count what was handed out (practice; all other)."""

    seed: int
    practised: int
    given: int


def is_marked(share: float, place: int, *stream: int | str) -> bool:
    """Whether `place` (0, 1, 2, ...) is marked, when `share` of the places are. Places are cut into blocks, the k-th
    from round(k / share) on; one place of each is marked, at random: the rate is kept and nobody can foresee it."""
    if share <= 0:
        return False
    if share >= 1:
        return True
    block = int(place * share)
    while round((block + 1) / share) <= place:
        block += 1
    while round(block / share) > place:
        block -= 1
    start, end = round(block / share), round((block + 1) / share)
    return place - start == draw(*stream, block) % (end - start)


def choose_step(
    standing: Standing, *, practice: int, controls: int, control_rate: float = 0.0, repeat_share: float = 0.0
) -> Step:
    """What to hand out next in a campaign with so many `practice` and `controls` units. A wish only: where there
    is no unit of the kind left, the service hands out a normal one."""
    if standing.practised < practice:
        return "practice"
    if controls and is_marked(control_rate, standing.given, standing.seed, "control"):
        return "control"
    if is_marked(repeat_share, standing.given, standing.seed, "repeat"):
        return "repeat"
    return "normal"
