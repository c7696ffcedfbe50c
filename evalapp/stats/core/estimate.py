"""`Estimate`, the return type of every statistic: value, interval, n, and the reason if undefined."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import Any

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval.

    `value` is nan when undefined, and `note` then gives the reason. `low` and `high` are the ends of the interval, nan
    when there is none (`note` gives the reason unless none was requested). `n` counts the units behind the value:
    pairs, groups, systems or units of agreement, as documented by the function that returns it."""

    value: float
    low: float
    high: float
    n: int
    note: str = ""

    @classmethod
    def undefined(cls, note: str, n: int = 0) -> Estimate:
        """Return an estimate without a value; `note` is the reason."""
        if not note:
            raise ValueError("an undefined estimate needs its reason")
        return cls(NAN, NAN, NAN, n, note)

    @classmethod
    def point(cls, value: float, n: int, note: str = "") -> Estimate:
        """Return an estimate without an interval."""
        return cls(float(value), NAN, NAN, n, note)

    @property
    def is_defined(self) -> bool:
        """Return whether there is a value."""
        return not math.isnan(self.value)

    @property
    def has_interval(self) -> bool:
        """Return whether there is a value with both ends of its interval."""
        return self.is_defined and not (math.isnan(self.low) or math.isnan(self.high))

    def with_note(self, note: str) -> Estimate:
        """Return the same figures with `note` appended."""
        return replace(self, note="; ".join(part for part in (self.note, note) if part))

    def __str__(self) -> str:
        """The figures in four digits: `0.5123 [0.4701, 0.5528], n = 80`, with the note if there is one.

        >>> print(Estimate(0.51234, 0.47, 0.5528, 80))
        0.5123 [0.47, 0.5528], n = 80
        """
        value = f"{self.value:.4g}" if self.is_defined else "undefined"
        interval = f" [{self.low:.4g}, {self.high:.4g}]" if self.has_interval else ""
        return f"{value}{interval}, n = {self.n:,}" + (f" ({self.note})" if self.note else "")

    def _repr_html_(self) -> str:
        """The figures, for notebooks."""
        return f"<span>{escape(str(self))}</span>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The same inside lists and dictionaries, for notebooks."""
        printer.text(str(self))

    def as_dict(self) -> dict[str, float | int | str | None]:
        """Return keys value, low, high, n, note; nan and infinities become None, so that the result is valid JSON."""
        return {
            "value": _finite(self.value),
            "low": _finite(self.low),
            "high": _finite(self.high),
            "n": self.n,
            "note": self.note,
        }


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
