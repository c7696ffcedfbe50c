"""Constructors of options, and the options that all evaluators with an encoder share. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scoring.ml import option_checks
from scoring.ml.catalogue import Option, OptionValue


def flag(name: str, default: bool | None, help: str, **limits: Any) -> Option:
    """Return a yes-or-no option; `name`, `default`, `help` and `limits` are those of `Option`."""
    return Option(name, "bool", default, help, **limits)


def integer(name: str, default: int | None, help: str, **limits: Any) -> Option:
    """Return an option that is a whole number; `name`, `default`, `help` and `limits` are those of `Option`."""
    return Option(name, "int", default, help, **limits)


def number(name: str, default: float | None, help: str, **limits: Any) -> Option:
    """Return an option that is a number; `name`, `default`, `help` and `limits` are those of `Option`."""
    return Option(name, "float", default, help, **limits)


def text(name: str, default: str | None, help: str, **limits: Any) -> Option:
    """Return an option that is a text; `name`, `default`, `help` and `limits` are those of `Option`."""
    return Option(name, "str", default, help, **limits)


def choice(name: str, choices: Sequence[str], help: str, **limits: Any) -> Option:
    """Return an option with these `choices`, the first by default; `name`, `help` and `limits` as in `Option`."""
    return Option(name, "str", limits.pop("default", choices[0]), help, choices=tuple(choices), **limits)


ENCODER = text(
    "encoder", None, "Name or folder of a transformers encoder; none is the installed MiniLM.", names_model=True
)
POOLING = choice("pooling", ("mean", "cls"), "Vector of a text: the mean of its tokens, or its first token.")
#: Number format, device and batches of scoring.
SCORING = (
    choice("dtype", ("fp32", "bf16"), "Number format of the network; bf16 is faster on a GPU."),
    text("device", "auto", "auto, cpu, cuda or cuda:N.", check=option_checks.device),
    integer("batch_tokens", None, "Token budget of a batch; none suits the device.", minimum=1),
)


def encoder_arguments(options: Mapping[str, OptionValue], *more: str) -> dict[str, Any]:
    """Return the values of `SCORING` and of `more` options, as arguments of a frozen encoder."""
    return {name: options[name] for name in (*(option.name for option in SCORING), *more)}
