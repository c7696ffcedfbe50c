"""Parameters of runs, declared as dataclasses whose fields give type, bounds and description. Requests are validated by
them (pydantic checks the types), and the OpenAPI document is generated from them."""

import math
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, field, fields
from functools import cache
from typing import Any, TypeVar, get_type_hints

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from pydantic import TypeAdapter, ValidationError

from .errors import BadInput, Fault

T = TypeVar("T")

#: Bounds of seeds that all libraries accept.
LEAST_SEED, GREATEST_SEED = 0, 2**31 - 1
#: JSON type -> noun in messages.
_NOUNS = {
    "string": _lazy("a text"),
    "boolean": _lazy("true or false"),
    "integer": _lazy("a whole number"),
    "number": _lazy("a number"),
    "array": _lazy("a list of names"),
    "object": _lazy("an object of names and values"),
}


def param(
    default: Any = MISSING,
    *,
    help: str,
    low: float | None = None,
    high: float | None = None,
    choices: Collection[str] = (),
    needed: str = "",
) -> Any:
    """Return a field with a description and bounds. `low` and `high` bound a number, or the length of a list, whose
    names must then differ. `needed` is the message if a field without a default is missing. A list or dictionary as
    default is copied."""
    about = {"help": help, "low": low, "high": high, "choices": tuple(choices), "needed": needed}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=about)
    return field(default=default, metadata=about)


def seed_param(default: int = 13) -> Any:
    return param(
        default, help="The same seed, data and options give the same result.", low=LEAST_SEED, high=GREATEST_SEED
    )


@cache
def _load_types(kind: type) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind)
    return {each.name: TypeAdapter(hints[each.name]) for each in fields(kind)}


@cache
def _type_schema(kind: type, name: str) -> dict[str, Any]:
    """Return the JSON schema (OpenAPI 3.0) of the type of a field."""
    schema = _load_types(kind)[name].json_schema()
    if "anyOf" in schema:  # the other option is null
        schema = {**next(option for option in schema["anyOf"] if option["type"] != "null"), "nullable": True}
    return schema


def _name_type(kind: type, name: str) -> str:
    schema = _type_schema(kind, name)
    if isinstance(schema.get("additionalProperties"), dict):
        return _("an object of lists of names")
    return str(_NOUNS[schema["type"]])


def _is_required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def read_params(kind: type[T], params: Mapping[str, Any]) -> T:
    """Return an object of `kind` with the members of a request. Raises `BadInput` with a fault for each member that is
    unknown, missing, of the wrong type or out of bounds."""
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    faults = [
        Fault(_("%(name)s is unknown. Known: %(known)s.") % {"name": name, "known": ", ".join(known)}, field=name)
        for name in sorted(set(params) - set(known))
    ]
    given, values = {name: value for name, value in params.items() if name in known}, {}
    for name, value in given.items():
        is_tuple = isinstance(value, list) and str(known[name].type).startswith("tuple")
        try:
            adapter = _load_types(kind)[name]  # type: ignore[arg-type]
            values[name] = adapter.validate_python(tuple(value) if is_tuple else value, strict=True)
        except ValidationError:
            text = _("%(name)s must be %(noun)s.") % {"name": name, "noun": _name_type(kind, name)}
            faults.append(Fault(text, field=name))
        else:
            faults += _find_bound_faults(kind, known[name], value)
    for name, one in known.items():
        if _is_required(one) and given.get(name, "") in ("", []):
            needed = one.metadata.get("needed")
            text = _(needed) if needed else _("%(name)s is missing.") % {"name": name}
            faults.append(Fault(text, field=name))
    if faults:
        raise BadInput(_("The request has faults.") + " " + " ".join(fault.message for fault in faults), faults=faults)
    return kind(**values)


def bounds(kind: type, name: str) -> tuple[Any, Any]:
    """Return the lower and upper bound of a field, for forms; None: no bound."""
    about = next(one.metadata for one in fields(kind) if one.name == name)
    return about["low"], about["high"]


def value_faults(params: Any) -> list[Fault]:
    """Return a fault for each field whose value is out of bounds, for pages, API and commands."""
    return [
        fault for one in fields(params) for fault in _find_bound_faults(type(params), one, getattr(params, one.name))
    ]


def check_values(params: Any) -> None:
    if faults := value_faults(params):
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)


def _find_bound_faults(kind: type, one: Field[Any], value: Any) -> list[Fault]:
    about = one.metadata
    low, high, choices = about.get("low"), about.get("high"), about.get("choices")
    if value is None:
        return []
    if choices and value not in choices:
        text = _("%(name)s must be one of %(choices)s, not “%(value)s”.")
        known = ", ".join(choice for choice in choices if choice)
        return [Fault(text % {"name": one.name, "choices": known, "value": value}, field=one.name)]
    if isinstance(value, float) and not math.isfinite(value):
        text = _("%(name)s must be a number, not “%(value)s”.")
        return [Fault(text % {"name": one.name, "value": value}, field=one.name)]
    size, has_duplicates = value, False
    if isinstance(value, list | tuple):
        size = len(value)
        has_duplicates = low is not None and len(set(value)) < size
    if has_duplicates or (low is not None and size < low) or (high is not None and size > high):
        is_list = isinstance(value, list | tuple)
        noun = _("a list of different names,") if is_list else _name_type(kind, one.name)
        text = (
            _("%(name)s must be %(noun)s of at least %(low)s.")
            if None in (low, high)
            else _("%(name)s must be %(noun)s from %(low)s to %(high)s.")
        )
        return [Fault(text % {"name": one.name, "noun": noun, "low": low, "high": high}, field=one.name)]
    return []


def params_schema(params: type, **more: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema (OpenAPI 3.0) of what `read_params` reads; `more` are further required members."""
    known = fields(params)
    required = [*more, *(one.name for one in known if _is_required(one))]
    properties = {**more, **{one.name: _property_schema(params, one) for one in known}}
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


def _property_schema(kind: type, one: Field[Any]) -> dict[str, Any]:
    about, schema = one.metadata, dict(_type_schema(kind, one.name))
    is_list = schema["type"] == "array"
    if about.get("low") is not None:
        schema |= {"minItems": about["low"], "uniqueItems": True} if is_list else {"minimum": about["low"]}
    if about.get("high") is not None:
        schema["maxItems" if is_list else "maximum"] = about["high"]
    if about.get("choices"):
        schema["enum"] = list(about["choices"])
    if _is_required(one):
        schema |= {"minLength": 1} if schema["type"] == "string" and "enum" not in schema else {}
        schema |= {"minItems": schema.get("minItems", 1)} if is_list else {}
    if isinstance(one.default, str | int | float) and not schema.get("nullable"):
        schema["default"] = one.default
    return schema | {"description": str(about.get("help", ""))}
