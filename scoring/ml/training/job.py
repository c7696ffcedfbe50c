"""One training as plain values: the data, the options, the seed, and how it tells its progress."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np

from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.encoders.source import EncoderSource, find_encoder

if TYPE_CHECKING:
    from scoring.ml.types import Dataset

#: What is done before the first step, and after how many rows of it that is told: whoever ends a training by its report
#: shall not wait for the end of a preparation.
PREPARING, ROWS_BETWEEN = "preparing", 512
T = TypeVar("T")
_PLAIN = re.compile(r"\w[\w .@+-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """Where a training stands. `done` of `total` steps; `rate` in steps a second; `metrics` of the last evaluation,
    which was after `evaluated` epochs; `foremost` names those to be told, the one that chooses the weights first.
    `saving`: a checkpoint may follow, so that this step is not told again: whoever keeps what is told does so now."""

    done: int
    total: int | None
    phase: str = "training"
    loss: float | None = None
    rate: float | None = None
    seconds_left: float | None = None
    epoch: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    saving: bool = False
    evaluated: float | None = None
    foremost: Sequence[str] = ()


Report: TypeAlias = Callable[[TrainingProgress], object]


def silent(progress: TrainingProgress) -> None:
    """The report of those who do not ask."""


class Told(Protocol):
    """Rows that are gone through, with a report now and then or without any."""

    def __call__(self, rows: Sequence[T], /) -> Iterable[T]: ...


def untold(rows: Sequence[T]) -> Iterable[T]:
    """The rows of those who have nobody to report to."""
    return rows


@dataclass(frozen=True)
class FitJob:
    """Everything a training depends on. The same job gives the same weights on the same kind of machine.

    `folder` holds checkpoints: a job that was cut off goes on from them when it is started again with the same
    folder. `report` is called after every step; an exception it raises ends the training, its checkpoints stay.
    """

    entry: Entry
    train: Dataset
    dev: Dataset | None
    profile: str
    options: Mapping[str, OptionValue]
    seed: int
    folder: Path
    aspect: str | None = None
    report: Report = silent
    #: What several trainings on the same texts have in common (the folds of a cross-fitting); none is `folder`.
    shared: Path | None = None
    #: What dry check and training both need of the data; see `once`.
    _found: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` gives, made the first time it is asked for by this name."""
        if name not in self._found:
            self._found[name] = make()
        return cast(T, self._found[name])

    def told(self, rows: Sequence[T]) -> Iterator[T]:
        """The rows of a preparation, with a report after every so many of them."""
        for number, row in enumerate(rows):
            if number and number % ROWS_BETWEEN == 0:
                self.tell(number, len(rows))
            yield row

    def tell(self, done: int, total: int) -> None:
        """How far a preparation is."""
        self.report(TrainingProgress(done, total, phase=PREPARING))

    @property
    def texts(self) -> Path:
        """Where vectors of texts by a frozen encoder are kept."""
        return (self.shared or self.folder) / "texts"

    @property
    def processes(self) -> int:
        """How many processes share the training; those without the option are trained by one."""
        return int(cast(int, self.options.get("processes", 1)))

    def folder_of(self, phase: str) -> Path:
        """Where a phase's checkpoints stand. A phase may be named after a system: what is no plain name of a folder
        inside `folder` is replaced by its hash."""
        if _PLAIN.fullmatch(phase):
            return self.folder / phase
        return self.folder / f"phase-{hashlib.sha256(phase.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    @property
    def name(self) -> str:
        """The evaluator's name in the catalogue."""
        return self.entry.name

    @cached_property
    def encoder(self) -> EncoderSource:
        """The encoder of the option `encoder`; none is the one that is installed."""
        name = self.options.get("encoder")
        return find_encoder(None if name is None else str(name))

    def text(self, name: str) -> str:
        """An option that is a text."""
        return str(self.options[name])

    def integer(self, name: str) -> int:
        """An option that is a whole number."""
        return int(cast(int, self.options[name]))

    def optional_integer(self, name: str) -> int | None:
        """An option that is a whole number or not given."""
        value = self.options[name]
        return None if value is None else int(cast(int, value))

    def number(self, name: str) -> float:
        """An option that is a number."""
        return float(cast(float, self.options[name]))

    def flag(self, name: str) -> bool:
        """An option that is a switch."""
        return bool(self.options[name])

    def rng(self, purpose: str) -> np.random.Generator:
        """A generator of its own for each purpose, so that one part's draws never shift another's."""
        digest = hashlib.sha256(f"{self.seed}:{purpose}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def torch_seed(self, purpose: str) -> int:
        """A seed for torch, likewise."""
        digest = hashlib.sha256(f"{self.seed}:torch:{purpose}".encode()).digest()
        return int.from_bytes(digest[:4], "big")


@dataclass(frozen=True, slots=True)
class Plan:
    """The dry check of a training: what it would learn from, how many steps, about how long; and warnings.

    `seconds` is the estimate, `seconds_range` the shortest and the longest time to expect; both are None where it
    cannot be known. `measured`: the estimate comes from the speed of this machine."""

    examples: Mapping[str, int]
    steps: int
    seconds: float | None
    notes: tuple[str, ...] = ()
    #: Of the seconds, those after the last step: the held-out part is scored for the card.
    afterwards: float = 0.0
    measured: bool = True
    seconds_range: tuple[float, float] | None = None
