"""What a program asks of a run, read member by member against the fields of the wishes that it becomes. Whether it can
be had is seen where the run is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from evalapp.common.errors import BadInput, Fault

T = TypeVar("T")


#: The least and the greatest seed: all that every library which draws by it takes.
LEAST_SEED, GREATEST_SEED = 0, 2**31 - 1


def faults_of_seed(seed: int) -> list[Fault]:
    """A fault where no run can draw by this seed; the same bounds for pages, programs and commands."""
    if LEAST_SEED <= seed <= GREATEST_SEED:
        return []
    return [Fault(f"seed is a whole number from {LEAST_SEED} to {GREATEST_SEED}.", field="seed")]


def check_seed(seed: int) -> None:
    if faults := faults_of_seed(seed):
        raise BadInput(faults[0].message, faults=faults)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


#: By the annotation of a field: what fits, and what it is called.
_SHAPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda value: isinstance(value, str), "a text"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "int": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    "float": (_is_number, "a number"),
    "list[str]": (_is_names, "a list of names"),
    "tuple[str, ...]": (_is_names, "a list of names"),
    "dict[str, Any]": (lambda value: isinstance(value, dict), "an object of names and values"),
    "Mapping[str, Any]": (lambda value: isinstance(value, dict), "an object of names and values"),
    "dict[str, list[str]]": (
        lambda value: isinstance(value, dict) and all(map(_is_names, value.values())), "an object of lists of names"
    ),
}  # fmt: skip


def read_wishes(kind: type[T], params: Mapping[str, Any], *, need: Mapping[str, str], null: bool = False) -> T:
    """`kind` with the members of the request. `need`: what is said of a member that has to be there. `null`: null is
    the same as no such member. Raises `BadInput` with a fault for everything that is unknown, missing or of a wrong
    shape."""
    shapes = {field.name: str(field.type).removesuffix(" | None") for field in fields(kind)}  # type: ignore[arg-type]
    faults = [Fault(f"{name} is not known here.", field=name) for name in sorted(set(params) - set(shapes))]
    values = {name: value for name, value in params.items() if name in shapes and not (null and value is None)}
    for name, value in values.items():
        fits, noun = _SHAPES[shapes[name]]
        if not fits(value):
            faults.append(Fault(f"{name} is {noun}.", field=name))
    faults += [Fault(said, field=name) for name, said in need.items() if not values.get(name)]
    if faults:
        raise BadInput("The request has faults. " + " ".join(fault.message for fault in faults), faults=faults)
    given = {n: tuple(value) if shapes[n].startswith("tuple") else value for n, value in values.items()}
    return kind(**given)
