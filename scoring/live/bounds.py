"""Limits of one online request in size and time: one worker answers all requests in turn. Imports no evaluator."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoring.ml import Evaluator, Record, Scores

#: Most characters of a text, and of all texts of a request.
MOST_OF_ONE, MOST_OF_ALL = 200_000, 2_000_000
#: Characters read between two checks of the deadline, about ten texts of an encoder's length.
SLICE = 20_000
#: References read between two checks of the deadline.
REFERENCES_SLICE = 16


def count_characters(text: str, context: Sequence[str] = (), references: Sequence[str] = ()) -> int:
    """Return the characters read to score a text: text and context are read again with every reference."""
    return max(1, len(references)) * (len(text) + sum(map(len, context))) + sum(map(len, references))


def count_pair_characters(pair: Mapping[str, Any]) -> int:
    """Return the characters of a request entry: a text with its references, or two texts for one context."""
    context = pair.get("context", ())
    if "a" in pair:
        return count_characters(pair["a"], context) + count_characters(pair["b"], context)
    return count_characters(pair.get("text", ""), context, pair.get("references", ()))


class TooLate(Exception):
    """The client has stopped waiting."""


class Deadline:
    """Raises `TooLate` when called after `seconds`; None: never. Can serve as an evaluator's `progress` callback."""

    def __init__(self, seconds: float | None) -> None:
        self.end = None if seconds is None else time.monotonic() + seconds

    def __call__(self, *_: object) -> None:
        if self.end is not None and time.monotonic() >= self.end:
            raise TooLate


NEVER = Deadline(None)


def evaluate_in_time(evaluator: Evaluator, records: Sequence[Record], check: Deadline) -> Scores:
    """Evaluate the records slice by slice, because some evaluators report progress only at the end."""
    from scoring.ml import Scores

    if evaluator.depends_on_batch:
        return evaluator.evaluate(records, progress=check)
    result = []
    for part in _slices(records):
        check()
        result.append(evaluator.evaluate(part, progress=check))
    if len(result) == 1:
        return result[0]
    import numpy as np

    return Scores(
        values=np.concatenate([part.values for part in result]),
        reasons=tuple(reason for part in result for reason in part.reasons),
        signature=evaluator.signature,
        n_truncated=sum(part.n_truncated for part in result),
        n_empty=sum(part.n_empty for part in result),
        # A record may repeat one of an earlier slice.
        n_duplicate=len(records) - len({evaluator.identity(record) for record in records}),
        remarks=evaluator.remarks,
    )


def _slices(records: Sequence[Record]) -> list[Sequence[Record]]:
    parts, begin, cost = [], 0, 0
    for place, record in enumerate(records):
        own = count_characters(record.text, record.context, record.references)
        if place > begin and cost + own > SLICE:
            parts.append(records[begin:place])
            begin, cost = place, 0
        cost += own
    return [*parts, records[begin:]]
