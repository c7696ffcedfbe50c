"""Checks of option values beyond their type: devices, lists of numbers or names. They run when options are parsed,
before anything is read or loaded. No torch here."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

#: Returns the fault of a value, as the end of a sentence that begins with the option's name; "" if valid.
Check: TypeAlias = Callable[[Any], str]
#: "auto" is the first GPU, or the processor where there is none.
DEVICE = re.compile(r"auto|cpu|cuda(:\d{1,3})?")


def device(value: Any) -> str:
    """Return the fault of a device name `value` that `resolve_device` does not accept; that function checks whether
    this machine has the device."""
    return "" if DEVICE.fullmatch(str(value)) else f"must be auto, cpu, cuda or cuda:N, not “{value}”"


def whole_numbers(value: Any) -> str:
    """Return the fault of a `value` that is not a list of whole numbers from 1, with commas between."""
    parts = [part.strip() for part in str(value).split(",")]
    if all(part.isdecimal() and part.isascii() and int(part[:19]) >= 1 for part in parts):
        return ""
    return f"must be whole numbers from 1 with commas between, not “{value}”"


def learning_rates(value: Any) -> str:
    """Return the fault of a `value` that is not a list of numbers above 0 and up to 1, with commas between."""
    result = _numbers(value)
    if result and all(0 < number <= 1 for number in result):
        return ""
    return f"must be numbers above 0, up to 1, with commas between, not “{value}”"


def shares_or(*words: str) -> Check:
    """Return a check for one of the `words`, or numbers between 0 and 1 with commas between; their number is checked
    later."""

    def check(value: Any) -> str:
        result = _numbers(value)
        if value in words or (result and all(0 < number < 1 for number in result)):
            return ""
        return f"must be {', '.join(words)}, or numbers between 0 and 1 with commas between, not “{value}”"

    return check


def any_names(names: Sequence[str]) -> Check:
    """Return a check for any of the `names`, with commas between."""

    def check(value: Any) -> str:
        parts = [part.strip() for part in str(value).split(",") if part.strip()]
        return "" if set(parts) <= set(names) else f"must be among {', '.join(names)}, with commas between"

    return check


def below_one(value: Any) -> str:
    """Return the fault of a `value` that is not less than 1."""
    return "" if float(value) < 1 else "must be less than 1"


def _numbers(value: Any) -> list[float]:
    """The numbers of a list; none where a part is no number."""
    try:
        return [float(part) for part in str(value).split(",")]
    except ValueError:
        return []
