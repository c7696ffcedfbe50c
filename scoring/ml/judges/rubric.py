"""What a judge is asked: question, scale, labels and guidelines, as people were asked in a campaign."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from evalapp.translation import gettext as _
from scoring.ml.errors import ScoringError

#: More points than these are asked as a number, without log-probabilities: servers return at most 20 alternatives.
MOST_POINTS = 20


class RubricError(ScoringError):
    """A rubric or template that no judge can use."""


@dataclass(frozen=True)
class Rubric:
    """`question`, the scale from `low` to `high` in steps of `step` (None: any number), texts of points by number
    (`labels`), and `guidelines` for raters. Raises `RubricError` for a scale without two points."""

    question: str
    low: float
    high: float
    step: float | None = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)
    guidelines: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high)) or self.low >= self.high:
            raise RubricError(_("The scale must have a lowest point below the highest one."))
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise RubricError(_("The step of the scale must be positive and fit between its ends."))

    @cached_property
    def points(self) -> tuple[float, ...]:
        """The points of the scale, or () if they are too many to list."""
        if self.step is None:
            return ()
        n = int((self.high - self.low) / self.step + 1e-9) + 1
        return tuple(round(self.low + k * self.step, 9) for k in range(n)) if n <= MOST_POINTS else ()

    @cached_property
    def answers(self) -> dict[str, float]:
        """The answer text of each point with its value, such as {"1": 1.0, "2": 2.0}."""
        return {f"{point:g}": point for point in self.points}

    def describe_scale(self) -> str:
        """Return the scale as text for a prompt, a line per point that has a label.

        >>> print(Rubric("Fluent?", 1, 3, labels={"1": "bad", "3": "good"}).describe_scale())
        a whole number from 1 to 3:
        1 = bad
        3 = good
        """
        return self._scale_text

    @cached_property
    def _scale_text(self) -> str:
        is_whole = self.step is not None and float(self.step).is_integer() and float(self.low).is_integer()
        noun = "a whole number" if is_whole else "a number"
        head = f"{noun} from {self.low:g} to {self.high:g}"
        if self.step is not None and not is_whole:
            head += f" in steps of {self.step:g}"
        named = {f"{float(point):g}": text for point, text in self.labels.items() if text}
        lines = [f"{point} = {text}" for point, text in sorted(named.items(), key=lambda pair: float(pair[0]))]
        return "\n".join([f"{head}:", *lines]) if lines else head
