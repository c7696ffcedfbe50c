"""Refusal of options that a statistic does not use."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def refuse_options(options: Any, *names: str) -> None:
    """Check that fields of an options object that the calling statistic does not use have their default.

    `options`: a dataclass instance; `names`: its unused fields. Raises ValueError for one with another value, because
    the caller would take it for applied."""
    defaults = {field.name: field.default for field in fields(options)}
    for name in names:
        value, default = getattr(options, name), defaults[name]
        if type(value) is not type(default) or value != default:
            raise ValueError(f"{name} has no effect on this statistic: leave it at {default!r}")
