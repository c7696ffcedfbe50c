"""Types of stored tables. A model checks a table from a file, names the place of each error and gives the JSON schema;
whether the figures are right is the question of `recompute`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

#: (path, problem).
Fault: TypeAlias = tuple[str, str]

_SLUG = re.compile(r"[-a-zA-Z0-9_]{1,100}")
_PROBLEMS = {
    "missing": "is missing",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
}
#: The default of members that may be absent; if present, they are checked.
ABSENT: Any = None


class Part(BaseModel):
    """An object; members that it does not name are not checked."""

    model_config = ConfigDict(extra="allow", strict=True)


def fault(problem: str, path: str = "") -> PydanticCustomError:
    """An error of a validator, at `path` below the checked object."""
    return PydanticCustomError("fault", "{problem}", {"problem": problem, "path": path})


def _check_number(value: Any) -> Any:
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and (not fits or abs(value) > 1e300 or not math.isfinite(value)):
        raise fault("must be a number or null")
    return value


def _check_defined(value: Any) -> Any:
    if value is None:
        raise fault("must be a number")
    return _check_number(value)


def _check_slug(value: Any) -> Any:
    if not isinstance(value, str) or not _SLUG.fullmatch(value):
        raise fault("must be letters, digits and hyphens, at most 100")
    return value


def one_of(*names: str) -> Any:
    """The type of a text that is one of these."""

    def check(value: Any) -> Any:
        if value not in names:
            raise fault(f"must be one of {', '.join(names)}")
        return value

    return Annotated[str, PlainValidator(check, json_schema_input_type=str)]


#: A number, or null for one that is undefined; one that is defined; a name that can be part of an address.
Number = Annotated[float | None, PlainValidator(_check_number, json_schema_input_type=float | None)]
Defined = Annotated[float, PlainValidator(_check_defined, json_schema_input_type=float)]
Slug = Annotated[str, PlainValidator(_check_slug, json_schema_input_type=str)]


class Estimate(Part):
    """A figure with its interval."""

    value: Number
    low: Number
    high: Number
    n: Number
    note: str


class Filter(Part):
    name: str
    digest: str
    raters: Number = ABSENT
    reason: str = ABSENT


class BoardTable(Part):
    """What the table of every board has; each board adds its rows."""

    kind: str
    aspect: str
    signature: str
    note: str
    n_simulated: Number
    filter: Filter | None = None
    failed: list[str] = ABSENT
    counted: list[str] = ABSENT
    n_items: Number = ABSENT
    n_systems: Number = ABSENT
    n_raters: Number = ABSENT
    n_ratings: Number = ABSENT
    n_outputs: Number = ABSENT
    n_excluded: Number = ABSENT
    n_clusters: Number = ABSENT
    n_filtered: Number = ABSENT


class EvaluatorPart(Part):
    """What every row of an evaluator tells of it."""

    evaluator: Slug
    name: str
    kind: str
    is_sentinel: bool
    signature: str


class TestPart(Part):
    """A p for every two evaluators that were tested."""

    names: list[str]
    p_holm: list[list[Number]]
    signature: str
    note: str
    alpha: Number = ABSENT
    k: Number = ABSENT
    n_rows: Number = ABSENT
    smallest_p: Number = ABSENT
    test: str = ABSENT
    population: str = ABSENT
    changed: str = ABSENT


def check_square(test: TestPart, path: str = ".test") -> None:
    """A p for every two names."""
    n = len(test.names)
    if len(test.p_holm) != n or any(len(line) != n for line in test.p_holm):
        raise fault(f"must be {n} by {n}, as many as there are names", f"{path}.p_holm")


def check_cells(rows: Sequence[Any], heads: Sequence[Any], name: str) -> None:
    """As many cells in each row as there are heads."""
    for place, row in enumerate(rows):
        if len(row.cells) != len(heads):
            raise fault(f"must be {len(heads)}, as many as there are {name}", f".rows[{place}].cells")


def find_faults(model: Any, value: Any, where: str) -> Iterator[Fault]:
    """The errors of a value, each with its path from `where`."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        for one in error.errors(include_url=False, include_input=False):
            steps = (f"[{step}]" if isinstance(step, int) else f".{step[:50]}" for step in one["loc"])
            context = one.get("ctx", {})
            path = f"{where}{''.join(steps)}{context.get('path', '')}"
            yield path, _problem(one["type"], context) or one["msg"]


def _problem(kind: str, context: Any) -> str:
    if kind == "fault":
        return str(context["problem"])
    return f"must be a list of {context['min_length']} or more" if kind == "too_short" else _PROBLEMS.get(kind, "")


def list_of(kind: Any, least: int) -> Any:
    """The type of a list with at least `least` members."""
    return Annotated[list[kind], Field(min_length=least)]
