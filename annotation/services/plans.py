"""Plans of campaigns as people send them: read, or refused with every fault by its field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from annotation.allocation.answers import Problem
from annotation.allocation.texts import UNSTORABLE, is_storable
from evalapp.common.errors import BadInput, Fault

P = TypeVar("P")


def refused(problems: Sequence[Problem]) -> BadInput:
    faults = [Fault(message, field=where) for where, message in problems]
    text = str(faults[0]) if len(faults) == 1 else f"The plan has {len(faults)} faults. Nothing was stored."
    return BadInput(text, faults=faults)


def read_with(read: Callable[[Any], tuple[P | None, list[Problem]]], raw: Any) -> P:
    """The plan that `read` makes of it; BadInput when it finds faults."""
    if not is_storable(raw):
        raise BadInput(UNSTORABLE)
    plan, problems = read(raw)
    if plan is None:
        raise refused(problems)
    return plan
