"""The parameters of a run, declared once: the fields of a dataclass say what a program may send, what is checked, and
what the OpenAPI document describes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from .errors import BadInput, Fault

T = TypeVar("T")

#: The least and the greatest seed: all that every library which draws by it takes.
LEAST_SEED, GREATEST_SEED = 0, 2**31 - 1


def param(
    default: Any = MISSING,
    *,
    help: str,
    low: float | None = None,
    high: float | None = None,
    choices: Collection[str] = (),
    needed: str = "",
) -> Any:
    """A field with its description and bounds. `low` and `high` bound a number, or the length of a list,
    whose names must then differ; `needed` is the message where a field without a default is missing. A list or a dict
    is copied."""
    about = {"help": help, "low": low, "high": high, "choices": tuple(choices), "needed": needed}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=about)
    return field(default=default, metadata=about)


def seed_param(default: int = 13) -> Any:
    return param(
        default, help="The same seed, data and options give the same result.", low=LEAST_SEED, high=GREATEST_SEED
    )


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_NAMES = {"type": "array", "items": {"type": "string"}}
_IS_OBJECT: Callable[[Any], bool] = lambda value: isinstance(value, dict)  # noqa: E731
#: By the annotation of a field: what fits, what it is called, its JSON schema.
_SHAPES: dict[str, tuple[Callable[[Any], bool], str, dict[str, Any]]] = {
    "str": (lambda value: isinstance(value, str), "a text", {"type": "string"}),
    "bool": (lambda value: isinstance(value, bool), "true or false", {"type": "boolean"}),
    "int": (lambda value: _is_number(value) and isinstance(value, int), "a whole number", {"type": "integer"}),
    "float": (_is_number, "a number", {"type": "number"}),
    "list[str]": (_is_names, "a list of names", _NAMES),
    "tuple[str, ...]": (_is_names, "a list of names", _NAMES),
    "dict[str, Any]": (_IS_OBJECT, "an object of names and values", {"type": "object", "additionalProperties": {}}),
    "Mapping[str, Any]": (_IS_OBJECT, "an object of names and values", {"type": "object", "additionalProperties": {}}),
    "dict[str, list[str]]": (
        lambda value: isinstance(value, dict) and all(map(_is_names, value.values())),
        "an object of lists of names",
        {"type": "object", "additionalProperties": _NAMES},
    ),
}


def _shape(one: Field[Any]) -> tuple[Callable[[Any], bool], str, dict[str, Any]]:
    return _SHAPES[str(one.type).removesuffix(" | None")]


def _takes_null(one: Field[Any]) -> bool:
    return str(one.type).endswith(" | None")


def _is_needed(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def read_params(kind: type[T], params: Mapping[str, Any]) -> T:
    """`kind` with the members of the request. Raises `BadInput` with a fault for
    every member that is unknown, missing, of another type or beyond its bounds."""
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    faults = [
        Fault(_("%(name)s is unknown. Known: %(known)s.") % {"name": name, "known": ", ".join(known)}, field=name)
        for name in sorted(set(params) - set(known))
    ]
    values = {name: value for name, value in params.items() if name in known}
    for name, value in values.items():
        fits, noun = _shape(known[name])[:2]
        if fits(value) or (value is None and _takes_null(known[name])):
            faults += _bound_faults(known[name], value)
        else:
            faults.append(Fault(_("%(name)s must be %(noun)s.") % {"name": name, "noun": noun}, field=name))
    for name, one in known.items():
        if _is_needed(one) and values.get(name, "") in ("", []):
            faults.append(Fault(one.metadata.get("needed") or _("%(name)s is missing.") % {"name": name}, field=name))
    if faults:
        raise BadInput(_("The request has faults.") + " " + " ".join(fault.message for fault in faults), faults=faults)
    return kind(**{n: tuple(v) if str(known[n].type).startswith("tuple") else v for n, v in values.items()})


def bounds(kind: type, name: str) -> tuple[Any, Any]:
    """The least and the greatest value of a field, for forms; None: no bound."""
    about = next(one.metadata for one in fields(kind) if one.name == name)
    return about["low"], about["high"]


def value_faults(params: Any) -> list[Fault]:
    """A fault for each field of the dataclass whose value is beyond its bounds: the same for pages, programs and
    commands."""
    return [fault for one in fields(params) for fault in _bound_faults(one, getattr(params, one.name))]


def check_values(params: Any) -> None:
    if faults := value_faults(params):
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)


def _bound_faults(one: Field[Any], value: Any) -> list[Fault]:
    about = one.metadata
    low, high, choices = about.get("low"), about.get("high"), about.get("choices")
    if value is None:
        return []
    if choices and value not in choices:
        text = _("%(name)s must be one of %(choices)s, not “%(value)s”.")
        known = ", ".join(choice for choice in choices if choice)
        return [Fault(text % {"name": one.name, "choices": known, "value": value}, field=one.name)]
    size, noun, repeated = value, _shape(one)[1], False
    if isinstance(value, list | tuple):
        size, noun = len(value), "a list of different names,"
        repeated = low is not None and len(set(value)) < size
    if repeated or (low is not None and size < low) or (high is not None and size > high):
        bounded = None not in (low, high)
        text = (
            _("%(name)s must be %(noun)s from %(low)s to %(high)s.")
            if bounded
            else _("%(name)s must be %(noun)s of at least %(low)s.")
        )
        return [Fault(text % {"name": one.name, "noun": noun, "low": low, "high": high}, field=one.name)]
    return []


def params_schema(params: type, **more: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema (OpenAPI 3.0) of what `read_params` reads; `more` are further members, which are required."""
    known = fields(params)
    needed = [*more, *(one.name for one in known if _is_needed(one))]
    properties = {**more, **{one.name: _property(one) for one in known}}
    return {"type": "object", "required": needed, "additionalProperties": False, "properties": properties}


def _property(one: Field[Any]) -> dict[str, Any]:
    about, schema = one.metadata, dict(_shape(one)[2])
    is_list, is_text = schema["type"] == "array", schema["type"] == "string"
    if about.get("low") is not None:
        schema |= {"minItems": about["low"], "uniqueItems": True} if is_list else {"minimum": about["low"]}
    if about.get("high") is not None:
        schema["maxItems" if is_list else "maximum"] = about["high"]
    if about.get("choices"):
        schema["enum"] = list(about["choices"])
    if _is_needed(one):
        schema |= {"minLength": 1} if is_text and "enum" not in schema else {}
        schema |= {"minItems": schema.get("minItems", 1)} if is_list else {}
    if _takes_null(one):
        schema["nullable"] = True
    elif isinstance(one.default, str | int | float):  # an empty list or object needs no saying
        schema["default"] = one.default
    return schema | {"description": about.get("help", "")}
