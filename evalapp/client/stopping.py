"""Compare a model with its own earlier checkpoints while it trains: store the texts of the last checkpoints, call a
comparer with a time-out, apply the rule of `evalapp.stats.planning.stopping`. Independent of training libraries; the
callback for `transformers` is in `evalapp.client.callback`."""

import hashlib
import importlib
import json
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from evalapp.client.errors import BadRequest, ClientError, InvalidArgument, NotAllowed, NotFound, NotSignedIn
from evalapp.client.evaluators import Evaluator, Record
from evalapp.extras import explain_install
from evalapp.stats.planning.stopping import PATIENCE, PREVIOUS, Check, StoppingRule, from_either_side

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Input of generation: a text, or the turns of a dialogue, oldest first.
Input: TypeAlias = str | Sequence[str]


@runtime_checkable
class Comparer(Protocol):
    """An object that compares texts: the comparative evaluator of `scoring.ml`, or one that the server has trained,
    such as `client.evaluator("comparative-1", project="weekend")`."""

    def compare(self, a: Sequence[Any], b: Sequence[Any]) -> ArrayLike:
        """Return verdicts on `a[i]` and `b[i]`, shape (n,): > 0 if `a[i]` is better, 0 tie, < 0 worse, nan
        undecided."""


class TookTooLong(ClientError):
    """A call exceeded its time."""


class _Skipped(TookTooLong):
    """A check was skipped because an earlier one took too long."""


def load_comparer(given: Comparer | str | Path) -> Comparer:
    """Return `given` if it is a comparer, or load the evaluator in the folder `given`, which needs `scoring.ml`.

    Raises `ClientError` if `scoring.ml` is not installed or the evaluator does not compare, and `InvalidArgument` for a
    missing or damaged folder and for the name of an evaluator that has to be trained.
    """
    if isinstance(given, str | Path):
        try:
            library = importlib.import_module("scoring.ml")
        except ImportError as error:
            raise ClientError(
                f"an evaluator in a folder needs scoring.ml, which cannot be imported ({error}). "
                f"{explain_install('torch')}"
            ) from error
        try:
            given = library.load(given)
        except library.ScoringError as error:
            raise InvalidArgument(str(error)) from error
    if not isinstance(given, Comparer):
        raise ClientError(f"{type(given).__name__} has no compare(a, b); pass the comparative evaluator")
    return given


class Worker:
    """Runs calls in a thread with a time-out. A call that exceeds it continues, and no other call is started until it
    ends, so that a hanging call occupies only one thread."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Whether an earlier call is still running."""
        return self._thread is not None and self._thread.is_alive()

    def call(self, work: Callable[[], T], seconds: float) -> T:
        """Return the result of `work`, or raise its error. Raises `TookTooLong` after `seconds`, or at once while an
        earlier call is running."""
        if self.is_busy:
            raise TookTooLong("an earlier call has not ended yet")
        results: queue.SimpleQueue[tuple[T | None, Exception | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                results.put((work(), None))
            except Exception as error:  # noqa: BLE001 - raised in the calling thread
                results.put((None, error))

        self._thread = threading.Thread(target=run, daemon=True, name="comparative-stopping")
        self._thread.start()
        try:
            value, error = results.get(timeout=max(0.0, seconds))
        except queue.Empty:
            raise TookTooLong(f"no result within {seconds:.3g} s") from None
        self._thread.join()
        if error is not None:
            raise error
        return value  # type: ignore[return-value]


@dataclass(frozen=True)
class _Entry:
    check: Check
    texts: tuple[str, ...] | None


class Monitor:
    """Compares the newest checkpoint with the last `previous` ones by `comparer`, on fixed `inputs`, in at most
    `timeout` seconds, and stops after `patience` lost checks.

    A check that fails or exceeds its time counts as one without comparisons, and training continues; the first failure
    is logged. After a check that exceeded its time, the next one is skipped, after another one the next 2, then 4, 8,
    ..., until one ends in time; each timeout is logged. `journal` is a JSON Lines file with texts and counts of each
    check, from which `resume` continues; each line has a hash of the inputs."""

    def __init__(
        self,
        comparer: Comparer | str | Path,
        inputs: Sequence[Input],
        *,
        previous: int = PREVIOUS,
        patience: int = PATIENCE,
        timeout: float = 120.0,
        journal: Path | None = None,
    ) -> None:
        if not inputs:
            raise InvalidArgument("there are no inputs to generate for")
        if isinstance(inputs, str):  # its characters would be the inputs
            raise InvalidArgument("inputs is a list of inputs, not one text: write [text]")
        if previous < 1 or timeout <= 0:
            raise InvalidArgument("previous must be at least 1 and timeout greater than 0")
        self.comparer = load_comparer(comparer)
        self.inputs = list(inputs)
        self.previous, self.patience, self.timeout, self.journal = previous, patience, timeout, journal
        self.missed = 0
        self.worker = Worker()
        self._contexts = [(turns,) if isinstance(turns, str) else tuple(turns) for turns in self.inputs]
        self._inputs_hash = hashlib.sha256(json.dumps(self._contexts).encode()).hexdigest()[:16]
        self.reset()

    def reset(self) -> None:
        """Forget all checks."""
        self.rule = StoppingRule(self.patience)
        self._texts: deque[tuple[str, ...]] = deque(maxlen=self.previous)
        #: Number of checks to skip now, and after the next check that exceeds its time.
        self._to_skip, self._penalty = 0, 1

    def resume(self, step: int) -> None:
        """Continue from the journal after the checkpoint of `step`; 0 starts again. Later checks are dropped.

        Texts for other inputs cannot be compared: their journal is renamed, which is logged, and the checks start
        again."""
        self.reset()
        entries = [entry for entry in self._read_journal() if entry.check.checkpoint <= step] if step else []  # type: ignore[operator]
        for entry in entries:
            if not self.rule.should_stop:
                self._add(entry.check, entry.texts)
        if self.journal is not None:
            self.journal.parent.mkdir(parents=True, exist_ok=True)
            lines = "".join(map(self._format_entry, entries))
            draft = self.journal.with_name(f".{self.journal.name}.part")
            draft.write_text(lines, encoding="utf-8", errors="backslashreplace")
            draft.replace(self.journal)

    def try_server(self) -> None:
        """Request a verdict if the comparer is on a server. Raises permanent errors (`BadRequest`, `NotSignedIn`,
        `NotAllowed`, `NotFound`), after which no check would succeed; logs others."""
        if not isinstance(self.comparer, Evaluator):
            return
        compare, context = self.comparer.compare, self._contexts[0]
        try:
            self.worker.call(
                lambda: compare([Record("Yes.", context=context)], [Record("No.", context=context)]), self.timeout
            )
        except (BadRequest, InvalidArgument, NotSignedIn, NotAllowed, NotFound):
            raise
        except ClientError as error:
            log.warning(
                "%r could not be tried before training (%s: %s). Training continues; each check tries it again.",
                self.comparer,
                type(error).__name__,
                error,
            )

    def check(self, step: int, generate: Callable[[float], Sequence[str]], *, in_thread: bool = True) -> Check:
        """Compare the checkpoint of `step` with earlier ones, update `rule`, and return the check.

        `generate` gets the remaining seconds and returns a text for each input. With `in_thread` it runs in a separate
        thread with a time-out; otherwise it must respect the seconds itself.
        """
        deadline = time.monotonic() + self.timeout
        texts: tuple[str, ...] | None = None
        check = Check(step)
        try:
            self._check_skipped()
            texts = self._generate(generate, in_thread)
            if time.monotonic() >= deadline:
                raise TookTooLong(f"the texts took all of {self.timeout:.3g} s")
            if self._texts:
                check = Check.from_verdicts(step, self._compare(texts, deadline - time.monotonic()))
        except Exception as error:  # noqa: BLE001 - training must continue after any error
            exceeded = isinstance(error, TookTooLong) or time.monotonic() >= deadline
            self._log_failure(step, error, exceeded=exceeded and not isinstance(error, _Skipped))
        else:
            self._penalty = 1
        self._add(check, texts)
        self._write_entry(_Entry(check, texts))
        return check

    def _check_skipped(self) -> None:
        """Raise `_Skipped` if this check is skipped."""
        is_skipped, self._to_skip = self._to_skip > 0, max(0, self._to_skip - 1)
        if self.worker.is_busy:
            raise _Skipped("a call of an earlier check has not ended yet")
        if is_skipped:
            raise _Skipped("an earlier check exceeded its time")

    def _add(self, check: Check, texts: tuple[str, ...] | None) -> None:
        self.rule.add(check)
        if texts is not None:
            self._texts.append(texts)

    def _generate(self, generate: Callable[[float], Sequence[str]], in_thread: bool) -> tuple[str, ...]:
        if in_thread:
            texts = tuple(self.worker.call(lambda: generate(self.timeout), self.timeout))
        else:
            texts = tuple(generate(self.timeout))
        if len(texts) != len(self.inputs) or not all(isinstance(text, str) for text in texts):
            raise InvalidArgument(
                f"generate returned {len(texts)} values for {len(self.inputs)} inputs; it must return texts"
            )
        return texts

    def _compare(self, texts: tuple[str, ...], seconds: float) -> np.ndarray:
        earlier = list(self._texts)

        def work() -> np.ndarray:
            new = self._make_records(texts)
            compare = self.comparer.compare
            return np.stack([from_either_side(compare, new, self._make_records(old)) for old in earlier])

        return self.worker.call(work, seconds)

    def _make_records(self, texts: tuple[str, ...]) -> list[Record]:
        return [Record(text, context=context) for text, context in zip(texts, self._contexts, strict=True)]

    def _log_failure(self, step: int, error: Exception, *, exceeded: bool) -> None:
        self.missed += 1
        after = "further failures are not logged"
        if exceeded:
            count = self._penalty
            after = "the next check is skipped" if count == 1 else f"the next {count} checks are skipped"
            self._to_skip, self._penalty = count, 2 * count
        log.log(
            logging.WARNING if exceeded or self.missed == 1 else logging.DEBUG,
            "step %s is not compared with earlier checkpoints (%s: %s). Training continues; %s.",
            step,
            type(error).__name__.lstrip("_"),
            error,
            after,
        )

    def _write_entry(self, entry: _Entry) -> None:
        if self.journal is None:
            return
        try:
            # Models may generate half a surrogate pair, which is escaped.
            with self.journal.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(self._format_entry(entry))
        except OSError as error:
            log.warning("%s cannot be written (%s); a resumed training will not know this check", self.journal, error)

    def _read_journal(self) -> list[_Entry]:
        if self.journal is None or not self.journal.exists():
            return []
        entries = []
        for line in self.journal.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                row = json.loads(line)
                check = Check(int(row["step"]), int(row["wins"]), int(row["ties"]), int(row["losses"]))
                texts = None if row["texts"] is None else tuple(map(str, row["texts"]))
                inputs = row.get("inputs")
            except (ValueError, KeyError, TypeError, AttributeError):
                break  # truncated while it was written; later lines cannot be trusted either
            if inputs != self._inputs_hash:
                self._rename_journal(self.journal)
                return []
            entries.append(_Entry(check, texts))
        return entries

    def _rename_journal(self, journal: Path) -> None:
        number = 1
        while (place := journal.with_name(f"{journal.name}.{number}")).exists():
            number += 1
        journal.rename(place)
        log.warning(
            "%s has texts for other inputs, which cannot be compared. It is renamed to %s; the checks start again.",
            journal,
            place.name,
        )

    def _format_entry(self, entry: _Entry) -> str:
        check = entry.check
        counts = {"step": check.checkpoint, "wins": check.wins, "ties": check.ties, "losses": check.losses}
        return json.dumps({**counts, "inputs": self._inputs_hash, "texts": entry.texts}, ensure_ascii=False) + "\n"
