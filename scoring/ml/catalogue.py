"""What an evaluator says about itself: its entry in the catalogue and its options.

The list of entries stands in `registry.py`; the evaluators stand one a file beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from scoring.ml.errors import InvalidOption

if TYPE_CHECKING:
    from scoring.ml.base import Evaluator

OptionValue: TypeAlias = bool | int | float | str | None
Options: TypeAlias = Mapping[str, OptionValue]
Kind: TypeAlias = Literal["sentinel", "baseline", "trained"]
Need: TypeAlias = Literal["references", "context", "encoder"]


@dataclass(frozen=True, slots=True)
class Option:
    """One keyword of `load(name, ...)`: its type, its default and what it does."""

    name: str
    type: Literal["bool", "int", "float", "str"]
    default: OptionValue
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None

    def parse(self, evaluator: str, value: Any) -> OptionValue:
        """The value in the option's type; texts as a form or a command line gives them are understood."""
        if value is None and self.default is None:
            return None
        parsed = self._convert(evaluator, value)
        if self.choices and parsed not in self.choices:
            raise InvalidOption(evaluator, self.name, f"must be one of {', '.join(self.choices)}")
        if self.minimum is not None and isinstance(parsed, int | float) and parsed < self.minimum:
            raise InvalidOption(evaluator, self.name, f"must be at least {self.minimum:g}")
        return parsed

    def _convert(self, evaluator: str, value: Any) -> OptionValue:
        if self.type == "bool":
            if isinstance(value, bool):
                return value
            words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
            if str(value).lower() in words:
                return words[str(value).lower()]
            raise InvalidOption(evaluator, self.name, f"must be true or false, found {value!r}")
        if self.type == "str":
            return str(value)
        if isinstance(value, bool):
            raise InvalidOption(evaluator, self.name, f"must be a number, found {value!r}")
        try:
            return int(value) if self.type == "int" else float(value)
        except (TypeError, ValueError) as error:
            noun = "whole number" if self.type == "int" else "number"
            raise InvalidOption(evaluator, self.name, f"must be a {noun}, found {value!r}") from error


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the catalogue.

    `scale` is the range of a score (None = open); `level` is where the evaluator is defined, `system_score`
    whether a system's score is the mean over its texts or computed from all of them at once.
    """

    name: str
    kind: Kind
    summary: str
    build: Callable[[Entry, dict[str, OptionValue]], Evaluator]
    scale: tuple[float | None, float | None]
    needs: tuple[Need, ...] = ()
    options: tuple[Option, ...] = ()
    level: Literal["segment", "system"] = "segment"
    system_score: Literal["mean", "corpus"] = "mean"
    higher_is_better: bool = True
    profiles: tuple[str, ...] = ()
    citation: str = ""

    def parse_options(self, given: Mapping[str, Any]) -> dict[str, OptionValue]:
        """All options with their values: defaults, overridden by what was given. Raises `InvalidOption`."""
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                names = ", ".join(known) or "none"
                raise InvalidOption(self.name, name, f"does not exist; it has: {names}")
        return {
            name: option.parse(self.name, given[name]) if name in given else option.default
            for name, option in known.items()
        }
