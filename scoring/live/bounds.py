"""What one online request may ask for, and for how long the worker may be at it: one worker answers everybody, one
request after the other. No evaluator is imported here."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoring.ml import Evaluator, Record, Scores

#: Characters that are read for one text, and for all texts of a request.
MOST_OF_ONE, MOST_OF_ALL = 200_000, 2_000_000
#: Characters that are read between two looks at the clock, some ten texts as long as an encoder reads.
SLICE = 20_000
#: References that are read between two looks at the clock.
REFERENCES_SLICE = 16


def cost_of(text: str, context: Sequence[str] = (), references: Sequence[str] = ()) -> int:
    """Characters that are read to score a text: an evaluator reads every reference beside text and context."""
    return max(1, len(references)) * (len(text) + sum(map(len, context))) + sum(map(len, references))


def cost_of_pair(pair: Mapping[str, Any]) -> int:
    """The same of a text with what it may be measured against, or of two texts for one context."""
    context = pair.get("context", ())
    if "a" in pair:
        return cost_of(pair["a"], context) + cost_of(pair["b"], context)
    return cost_of(pair.get("text", ""), context, pair.get("references", ()))


class TooLate(Exception):
    """Nobody waits for this answer any more."""


class Deadline:
    """Raises `TooLate` when it is called after so many seconds; None for never. It can be the `progress` of an
    evaluator, whatever that tells it."""

    def __init__(self, seconds: float | None) -> None:
        self.end = None if seconds is None else time.monotonic() + seconds

    def __call__(self, *_: object) -> None:
        if self.end is not None and time.monotonic() >= self.end:
            raise TooLate


NEVER = Deadline(None)


def evaluate_in_time(evaluator: Evaluator, records: Sequence[Record], check: Deadline) -> Scores:
    """`evaluator.evaluate(records)`, a slice after the other: some tell of their progress at the end only."""
    from scoring.ml import Scores

    if evaluator.depends_on_batch:
        return evaluator.evaluate(records, progress=check)
    found = []
    for part in _slices(records):
        check()
        found.append(evaluator.evaluate(part, progress=check))
    if len(found) == 1:
        return found[0]
    import numpy as np

    return Scores(
        values=np.concatenate([part.values for part in found]),
        reasons=tuple(reason for part in found for reason in part.reasons),
        signature=evaluator.signature,
        n_truncated=sum(part.n_truncated for part in found),
        n_empty=sum(part.n_empty for part in found),
        # One may repeat what stands in an earlier slice.
        n_duplicate=len(records) - len({evaluator.identity(record) for record in records}),
        remarks=evaluator.remarks,
    )


def _slices(records: Sequence[Record]) -> list[Sequence[Record]]:
    parts, begin, cost = [], 0, 0
    for place, record in enumerate(records):
        own = cost_of(record.text, record.context, record.references)
        if place > begin and cost + own > SLICE:
            parts.append(records[begin:place])
            begin, cost = place, 0
        cost += own
    return [*parts, records[begin:]]
