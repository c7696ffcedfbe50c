"""The kind of unit an annotator gets next: practice first, then control and repeated units at their rates."""

from dataclasses import dataclass
from typing import Literal

from .streams import draw

Step = Literal["practice", "control", "repeat", "normal"]


@dataclass(frozen=True)
class MemberCounts:
    """The counts of an annotator's assignments: `practised` (practice) and `given` (all others)."""

    seed: int
    practised: int
    given: int


def is_marked(share: float, place: int, *stream: int | str) -> bool:
    """Whether `place` (0, 1, 2, ...) is marked if a `share` of all places is. Places are divided into blocks, the k-th
    starting at round(k / share); one random place per block is marked, so that the rate is exact and unpredictable."""
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
    standing: MemberCounts, *, practice: int, controls: int, control_rate: float = 0.0, repeat_share: float = 0.0
) -> Step:
    """The kind of the next unit in a campaign with `practice` practice units and `controls` control units. If no unit
    of that kind is left, the caller assigns a normal one."""
    if standing.practised < practice:
        return "practice"
    if controls and is_marked(control_rate, standing.given, standing.seed, "control"):
        return "control"
    if is_marked(repeat_share, standing.given, standing.seed, "repeat"):
        return "repeat"
    return "normal"
