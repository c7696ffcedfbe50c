"""Checking a model against its own predecessors while it trains: keeps the texts of the last checkpoints, asks a
comparer within a time-out, applies the rule of `evalapp.stats.planning.stopping`. Knows no training library; the
callback for `transformers` is in `evalapp.client.callback`."""

from __future__ import annotations

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
from evalapp.stats.planning.stopping import PATIENCE, PREVIOUS, Check, StoppingRule, from_either_side

log = logging.getLogger(__name__)
T = TypeVar("T")

#: What a text is generated for: one text, or the turns of a dialogue, oldest first.
Input: TypeAlias = str | Sequence[str]


@runtime_checkable
class Comparer(Protocol):
    """Verdicts of a[i] over b[i], (n,): > 0 better, 0 tie, < 0 worse, nan undecided. The comparative evaluator of
    `scoring.ml` is one, so is one that the server has trained: `client.evaluator("comparative-1", project="weekend")`,
    by the name that it got there."""

    def compare(self, a: Sequence[Any], b: Sequence[Any]) -> ArrayLike: ...


class TookTooLong(ClientError):
    """Something did not end within its time."""


class _LeftOut(TookTooLong):
    """A check that was not begun, for what an earlier one took."""


def load_comparer(given: Comparer | str | Path) -> Comparer:
    """The comparer itself, or the evaluator in a folder, which needs `scoring.ml`.

    Raises ClientError when `scoring.ml` is not there or the evaluator compares nothing, and InvalidArgument, with what
    `scoring.ml` says, for a folder that is not there or is damaged and for the bare name of what has to be trained.
    """
    if isinstance(given, str | Path):
        try:
            library = importlib.import_module("scoring.ml")
        except ImportError as error:
            raise ClientError(
                f"an evaluator in a folder needs scoring.ml, which cannot be imported: {error}"
            ) from error
        try:
            given = library.load(given)
        except library.ScoringError as error:
            raise InvalidArgument(str(error)) from error
    if not isinstance(given, Comparer):
        raise ClientError(f"{type(given).__name__} has no compare(a, b); give the comparative evaluator")
    return given


class Worker:
    """Runs one thing at a time beside the caller, who waits no longer than it wants. What takes longer is left to
    itself, and until it ends nothing else is begun: what hangs holds one thread, not one for each call."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def call(self, work: Callable[[], T], seconds: float) -> T:
        """What `work` returns or raises. Raises TookTooLong after `seconds`, or at once while another is left over."""
        if self.is_busy:
            raise TookTooLong("what was begun before has not ended yet")
        answers: queue.SimpleQueue[tuple[T | None, Exception | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                answers.put((work(), None))
            except Exception as error:  # noqa: BLE001 - handed to the caller, who raises it
                answers.put((None, error))

        self._thread = threading.Thread(target=run, daemon=True, name="comparative-stopping")
        self._thread.start()
        try:
            value, error = answers.get(timeout=max(0.0, seconds))
        except queue.Empty:
            raise TookTooLong(f"no answer within {seconds:.3g} s") from None
        self._thread.join()
        if error is not None:
            raise error
        return value  # type: ignore[return-value]


@dataclass(frozen=True)
class _Seen:
    check: Check
    texts: tuple[str, ...] | None


class Monitor:
    """The newest checkpoint against the previous ones, on fixed inputs, never for longer than `timeout` seconds.

    A check whose texts or verdicts do not come in time, or at all, counts as one without comparisons, and training
    goes on; the first such failure is logged. After one that has used up its time the next check is left out, after
    another one the next 2, then 4, 8, ..., until one ends in time: what is too slow costs ever less. Each of these is
    logged. `journal` is a JSONL file with texts and counts of each check, from which `resume` goes on; each line
    carries a hash of the inputs.
    """

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
        if isinstance(inputs, str):  # else each of its characters would be one
            raise InvalidArgument("inputs is a list of inputs, not one text: write [text]")
        if previous < 1 or timeout <= 0:
            raise InvalidArgument("previous must be at least 1 and timeout greater than 0")
        self.comparer = load_comparer(comparer)
        self.inputs = list(inputs)
        self.previous, self.patience, self.timeout, self.journal = previous, patience, timeout, journal
        self.missed = 0
        self.worker = Worker()
        self._contexts = [(one,) if isinstance(one, str) else tuple(one) for one in self.inputs]
        self._inputs_hash = hashlib.sha256(json.dumps(self._contexts).encode()).hexdigest()[:16]
        self.reset()

    def reset(self) -> None:
        """As before the first check."""
        self.rule = StoppingRule(self.patience)
        self._kept: deque[tuple[str, ...]] = deque(maxlen=self.previous)
        #: How many checks are still to be left out, and how many the next one that uses up its time will cost.
        self._left_out, self._cost = 0, 1

    def resume(self, step: int) -> None:
        """Go on after the checkpoint of `step`, from the journal; 0 begins anew. Later checks are dropped.

        The texts of other inputs are compared with nothing: their journal is kept under another name, which is logged,
        and the checks begin anew.
        """
        self.reset()
        rows = [row for row in self._journal() if row.check.checkpoint <= step] if step else []  # type: ignore[operator]
        for row in rows:
            if not self.rule.should_stop:
                self._take(row.check, row.texts)
        if self.journal is not None:
            self.journal.parent.mkdir(parents=True, exist_ok=True)
            lines = "".join(map(self._line, rows))
            draft = self.journal.with_name(f".{self.journal.name}.part")
            draft.write_text(lines, encoding="utf-8", errors="backslashreplace")
            draft.replace(self.journal)

    def ask_first(self) -> None:
        """Ask the server for one verdict before anything rests on it. Raises what it refuses (BadRequest, NotSignedIn,
        NotAllowed, NotFound): that does not pass by waiting, and no check would ever compare. What may pass, no
        connection or no answer in time, is logged."""
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
                "%r could not be asked before training begins (%s: %s). Training goes on; each check asks anew.",
                self.comparer,
                type(error).__name__,
                error,
            )

    def check(self, step: int, generate: Callable[[float], Sequence[str]], *, beside: bool = True) -> Check:
        """Compare the checkpoint of `step` with its predecessors and apply the rule; `rule` says what follows.

        `generate` gets the seconds that are left and returns one text for each input. With `beside` it runs in a
        thread of its own, so that it cannot hold up training; without, it must keep to the seconds itself, and training
        is held up for as long as it does not.
        """
        deadline = time.monotonic() + self.timeout
        texts: tuple[str, ...] | None = None
        check = Check(step)
        try:
            self._begin()
            texts = self._texts(generate, beside)
            if time.monotonic() >= deadline:
                raise TookTooLong(f"the texts took all of {self.timeout:.3g} s")
            if self._kept:
                check = Check.from_verdicts(step, self._verdicts(texts, deadline - time.monotonic()))
        except Exception as error:  # noqa: BLE001 - whatever a model, a comparer or a server does, training goes on
            used_up = isinstance(error, TookTooLong) or time.monotonic() >= deadline
            self._miss(step, error, used_up=used_up and not isinstance(error, _LeftOut))
        else:
            self._cost = 1
        self._take(check, texts)
        self._note(_Seen(check, texts))
        return check

    def _begin(self) -> None:
        """Raises when this check is left out."""
        waits, self._left_out = self._left_out > 0, max(0, self._left_out - 1)
        if self.worker.is_busy:
            raise _LeftOut("what was begun at an earlier check has not ended yet")
        if waits:
            raise _LeftOut("an earlier check used up its time")

    def _take(self, check: Check, texts: tuple[str, ...] | None) -> None:
        self.rule.add(check)
        if texts is not None:
            self._kept.append(texts)

    def _texts(self, generate: Callable[[float], Sequence[str]], beside: bool) -> tuple[str, ...]:
        found = self.worker.call(lambda: generate(self.timeout), self.timeout) if beside else generate(self.timeout)
        texts = tuple(found)
        if len(texts) != len(self.inputs) or not all(isinstance(text, str) for text in texts):
            raise InvalidArgument(
                f"generate gave {len(texts)} values for {len(self.inputs)} inputs; it must give texts"
            )
        return texts

    def _verdicts(self, texts: tuple[str, ...], seconds: float) -> np.ndarray:
        earlier = list(self._kept)

        def work() -> np.ndarray:
            new = self._records(texts)
            return np.stack([from_either_side(self.comparer.compare, new, self._records(old)) for old in earlier])

        return self.worker.call(work, seconds)

    def _records(self, texts: tuple[str, ...]) -> list[Record]:
        return [Record(text, context=context) for text, context in zip(texts, self._contexts, strict=True)]

    def _miss(self, step: int, error: Exception, *, used_up: bool) -> None:
        self.missed += 1
        after = "this is said once"
        if used_up:
            after = "the next check is left out" if self._cost == 1 else f"the next {self._cost} checks are left out"
            self._left_out, self._cost = self._cost, 2 * self._cost
        log.log(
            logging.WARNING if used_up or self.missed == 1 else logging.DEBUG,
            "step %s is not compared with its predecessors (%s: %s). Training goes on; %s.",
            step,
            type(error).__name__.lstrip("_"),
            error,
            after,
        )

    def _note(self, row: _Seen) -> None:
        if self.journal is None:
            return
        try:
            # Half a pair of UTF-16, which a model may well give, becomes its escape in JSON.
            with self.journal.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(self._line(row))
        except OSError as error:
            log.warning("%s cannot be written (%s); a resumed training will not know this check", self.journal, error)

    def _journal(self) -> list[_Seen]:
        if self.journal is None or not self.journal.exists():
            return []
        found = []
        for line in self.journal.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                row = json.loads(line)
                check = Check(int(row["step"]), int(row["wins"]), int(row["ties"]), int(row["losses"]))
                texts = None if row["texts"] is None else tuple(map(str, row["texts"]))
                inputs = row.get("inputs")
            except (ValueError, KeyError, TypeError, AttributeError):
                break  # cut off while it was written: what follows is not to be trusted either
            if inputs != self._inputs_hash:
                self._put_aside(self.journal)
                return []
            found.append(_Seen(check, texts))
        return found

    def _put_aside(self, journal: Path) -> None:
        number = 1
        while (place := journal.with_name(f"{journal.name}.{number}")).exists():
            number += 1
        journal.rename(place)
        log.warning(
            "%s holds texts for other inputs, which cannot be compared. It is kept as %s; the checks begin anew.",
            journal,
            place.name,
        )

    def _line(self, row: _Seen) -> str:
        check = row.check
        counts = {"step": check.checkpoint, "wins": check.wins, "ties": check.ties, "losses": check.losses}
        return json.dumps({**counts, "inputs": self._inputs_hash, "texts": row.texts}, ensure_ascii=False) + "\n"
