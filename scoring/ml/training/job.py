"""A training as plain values: data, options, seed and progress callback."""

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
from scoring.ml.encoders.tokenizing import PairTokenizer

if TYPE_CHECKING:
    from scoring.ml.types import Dataset

#: The phase before the first step, and the number of rows between two progress reports in it.
PREPARING, ROWS_BETWEEN = "preparing", 512
T = TypeVar("T")
_PLAIN = re.compile(r"\w[\w .@+-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """The state of a training. `done` of `total` steps; `rate` in steps per second; `metrics` of the last evaluation,
    after `evaluated` epochs; `foremost` names the metrics to show, the one that chooses the weights first. `saving`: a
    checkpoint may follow and this step is not reported again, so store the progress now."""

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


def ignore_progress(progress: TrainingProgress) -> None:
    """No-op progress callback."""


class RowTracker(Protocol):
    """Iterates over rows and may report progress."""

    def __call__(self, rows: Sequence[T], /) -> Iterable[T]: ...


def without_progress(rows: Sequence[T]) -> Iterable[T]:
    """The rows, without progress reports."""
    return rows


class Start(Protocol):
    """An artefact that a training begins with."""

    @property
    def evaluator(self) -> str:
        """Its name in the catalogue."""

    @property
    def aspects(self) -> tuple[str, ...]:
        """What it learned."""

    @property
    def encoder(self) -> EncoderSource | None:
        """Its encoder."""

    @property
    def network(self) -> Any:
        """Its network, with encoder and head."""

    @property
    def record(self) -> Any:
        """The record of its training."""


@dataclass(frozen=True)
class FitJob:
    """Everything a training depends on. The same job gives the same weights on the same kind of machine.

    `folder` holds checkpoints: an interrupted job continues from them if it is started again with the same folder.
    `report` is called after every step; an exception it raises ends the training, and the checkpoints remain.
    """

    entry: Entry
    train: Dataset
    dev: Dataset | None
    profile: str
    options: Mapping[str, OptionValue]
    seed: int
    folder: Path
    aspect: str | None = None
    report: Report = ignore_progress
    #: Folder shared by several trainings on the same texts (the folds of a cross-fitting); None is `folder`.
    shared: Path | None = None
    #: The evaluator whose weights the training begins with.
    init: Start | None = None
    #: The hash of its weights.
    init_weights: str | None = None
    #: Values that both dry check and training need; see `once`.
    _found: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """The value of `make`, computed the first time this name is requested."""
        if name not in self._found:
            self._found[name] = make()
        return cast(T, self._found[name])

    def track(self, rows: Sequence[T]) -> Iterator[T]:
        """The rows, with a progress report every `ROWS_BETWEEN` rows."""
        for number, row in enumerate(rows):
            if number and number % ROWS_BETWEEN == 0:
                self.report_rows(number, len(rows))
            yield row

    def report_rows(self, done: int, total: int) -> None:
        """Report the progress of the preparation: `done` of `total` rows."""
        self.report(TrainingProgress(done, total, phase=PREPARING))

    def report_phase(self, phase: str) -> Callable[[int, int], object]:
        """A callback (done, total) that reports the progress of a named `phase`."""
        return lambda done, total: self.report(TrainingProgress(done, total, phase=phase))

    @property
    def texts(self) -> Path:
        """The folder of stored vectors of texts by a frozen encoder, and of values of a metric."""
        return (self.shared or self.folder) / "texts"

    @property
    def chooses_weights(self) -> bool:
        """Whether a held-out part decides anything in this training."""
        return bool(self.entry.load_implementation().chooses_weights(self))

    @property
    def processes(self) -> int:
        """The number of processes that share the training; 1 without the option."""
        return int(cast(int, self.options.get("processes", 1)))

    def phase_folder(self, phase: str) -> Path:
        """The folder of a phase's checkpoints. Phases may be named after systems: a name that is not a plain folder
        name is replaced by its hash."""
        if _PLAIN.fullmatch(phase):
            return self.folder / phase
        return self.folder / f"phase-{hashlib.sha256(phase.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    @property
    def name(self) -> str:
        """The evaluator's name in the catalogue."""
        return self.entry.name

    @cached_property
    def encoder(self) -> EncoderSource:
        """The encoder of the option `encoder`, by default the installed one; that of `init` if the training begins
        with an evaluator."""
        if self.init is not None and self.init.encoder is not None:
            return self.init.encoder
        name = self.options.get("encoder")
        return find_encoder(None if name is None else str(name))

    def tokenizer(self) -> PairTokenizer:
        """Tokenises texts and pairs of texts for the encoder, with the option `max_length`."""
        return PairTokenizer(self.encoder, max_length=self.optional_integer("max_length"))

    def text(self, name: str) -> str:
        """A text option."""
        return str(self.options[name])

    def integer(self, name: str) -> int:
        """An integer option."""
        return int(cast(int, self.options[name]))

    def optional_integer(self, name: str) -> int | None:
        """An integer option or None."""
        value = self.options[name]
        return None if value is None else int(cast(int, value))

    def number(self, name: str) -> float:
        """A numeric option."""
        return float(cast(float, self.options[name]))

    def flag(self, name: str) -> bool:
        """A boolean option."""
        return bool(self.options[name])

    def rng(self, purpose: str) -> np.random.Generator:
        """A random generator per purpose, so that draws for one purpose never shift those for another."""
        digest = hashlib.sha256(f"{self.seed}:{purpose}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def torch_seed(self, purpose: str) -> int:
        """A seed for torch per purpose."""
        digest = hashlib.sha256(f"{self.seed}:torch:{purpose}".encode()).digest()
        return int.from_bytes(digest[:4], "big")


@dataclass(frozen=True, slots=True)
class Plan:
    """The dry check of a training: examples, steps, estimated time and warnings.

    `seconds` is the estimate, `seconds_range` the shortest and longest time to expect; both are None if unknown.
    """

    examples: Mapping[str, int]
    steps: int
    seconds: float | None = None
    notes: tuple[str, ...] = ()
    #: The part of `seconds` after the last step, in which the held-out part is scored for the card.
    afterwards: float = 0.0
    seconds_range: tuple[float, float] | None = None
    #: Times steps of this training: (`seconds`, `afterwards`). Called by the dry check only, because it takes seconds.
    measure: Callable[[], tuple[float, float]] | None = None
    #: Without `measure`: whether the dry check trains on a small part of the data to time it (`trial`).
    by_trials: bool = False
