"""Progress of runs and transfers, and progress bars for `progress=True`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from evalapp.client.errors import MissingPackage


@dataclass(frozen=True)
class Progress:
    """Progress of a run or transfer: `done` of `total` (None: unknown) in `unit`, at `rate` units per second."""

    phase: str
    done: int
    total: int | None
    unit: str = ""
    rate: float | None = None
    seconds_left: float | None = None

    @property
    def share(self) -> float | None:
        """Progress from 0 to 1; None if the total is unknown."""
        return min(1.0, self.done / self.total) if self.total else None

    @classmethod
    def from_wire(cls, row: Mapping[str, Any] | None, phase: str = "") -> Self:
        """Return the progress in a JSON object `row` of the API; `phase` is the default."""
        row = row or {}
        return cls(
            phase=str(row.get("phase") or phase),
            done=int(row.get("done") or 0),
            total=row.get("total"),
            unit=str(row.get("unit") or ""),
            rate=row.get("rate"),
            seconds_left=row.get("seconds_left"),
        )


Callback: TypeAlias = Callable[[Progress], None]
#: A function that is called with each `Progress`, or True for a progress bar.
OnProgress: TypeAlias = Callback | bool


class Bar:
    """Shows each phase as a bar in notebooks and terminals. Raises `MissingPackage` without tqdm."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise MissingPackage("tqdm", "progress=True") from error
        self._make = tqdm
        self._bar: Any = None
        self._phase: str | None = None

    def __call__(self, step: Progress) -> None:
        """Show a step."""
        if self._bar is None or step.phase != self._phase:
            self.close()
            unit = "B" if step.unit == "bytes" else step.unit or "it"
            self._bar = self._make(total=step.total, desc=step.phase or None, unit=unit, unit_scale=unit == "B")
            self._phase = step.phase
        self._bar.total = step.total
        self._bar.update(step.done - self._bar.n)

    def close(self) -> None:
        """End the current bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __del__(self) -> None:
        self.close()


def make_callback(progress: OnProgress | None) -> Callback | None:
    """Return the function that `progress` asks for: a `Bar` for True, none for None and False."""
    if isinstance(progress, bool):
        return Bar() if progress else None
    return progress
