"""Types of tables. A model checks the shape of a table from a file and is the schema of the API; `recompute` checks the
figures."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, WithJsonSchema
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


def optional(description: str) -> Any:
    """Return the default of a member that may be absent, with its description."""
    return Field(ABSENT, description=description)


def about(description: str) -> Any:
    """Return the description of a required member."""
    return Field(description=description)


class Part(BaseModel):
    """An object. Members that the type does not name are allowed and not checked."""

    model_config = ConfigDict(extra="allow", strict=True)


def fault(problem: str, path: str = "") -> PydanticCustomError:
    """Return the error of a validator, at `path` below the checked object."""
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
    """Return the type of a text that is one of `names`."""

    def check(value: Any) -> Any:
        if value not in names:
            raise fault(f"must be one of {', '.join(names)}")
        return value

    return Annotated[str, PlainValidator(check, json_schema_input_type=str)]


#: A number, null if it is undefined.
Number = Annotated[float | None, PlainValidator(_check_number, json_schema_input_type=float | None)]
#: A number that is never undefined.
Defined = Annotated[float, PlainValidator(_check_defined, json_schema_input_type=float)]
#: A name that can be part of an address.
Slug = Annotated[str, PlainValidator(_check_slug, json_schema_input_type=str)]
#: The name of a score set in an export; its primary key in the API.
ScoreSetName = Annotated[
    str | None, WithJsonSchema({"oneOf": [{"type": "integer"}, {"type": "string"}], "nullable": True})
]


class Estimate(Part):
    """A figure with its 95 % interval. A null value is undefined; `note` says why."""

    value: Number
    low: Number
    high: Number
    n: Number
    note: str


class Filter(Part):
    """The filter whose raters are left out."""

    name: str
    digest: str
    raters: Number = ABSENT
    reason: str = ABSENT


class BoardTable(Part):
    """Members of every board's table; each board adds its rows."""

    kind: str
    aspect: str
    signature: str
    note: str
    n_simulated: Number
    filter: Filter | None = None
    failed: list[str] = optional("Figures that are missing because of an internal error.")
    counted: list[str] = optional("Sentences on which judgements count.")
    n_items: Number = ABSENT
    n_systems: Number = ABSENT
    n_raters: Number = ABSENT
    n_ratings: Number = ABSENT
    n_outputs: Number = ABSENT
    n_excluded: Number = optional("Judged outputs left out because an evaluator was trained on their group.")
    n_clusters: Number = ABSENT
    n_filtered: Number = ABSENT


class EvaluatorPart(Part):
    """Members of every row of an evaluator."""

    evaluator: Slug
    name: str
    kind: str
    is_sentinel: bool
    signature: str


class TestPart(Part):
    """Tests of all pairs of evaluators, in the order of `names`.

    `p` is the one-sided p that the row's evaluator is better than the column's. `p_holm` is the two-sided p of their
    difference after Holm's correction, null on and below the diagonal. `note` says why nothing was tested.
    """

    names: list[str]
    p_holm: list[list[Number]]
    signature: str
    note: str
    p: list[list[Number]] = ABSENT
    alpha: Number = ABSENT
    k: Number = ABSENT
    n_rows: Number = ABSENT
    smallest_p: Number = optional("The smallest two-sided p the test can give before the correction; null: no limit.")
    test: str = ABSENT
    population: str = optional("The systems and items to which the test generalises.")
    changed: str = optional("How the test differs from that of version 0.1.0.")


LETTERS = "Evaluators that share a letter are not significantly different."
CLUSTER = "Rank cluster: a new one begins where an evaluator is significantly worse."
CHOSEN = "The evaluators that were chosen; empty: all are compared."


def check_square(test: TestPart, path: str = ".test") -> None:
    """Check that there is a p for each pair of names."""
    n = len(test.names)
    if len(test.p_holm) != n or any(len(line) != n for line in test.p_holm):
        raise fault(f"must be {n} by {n}, as many as there are names", f"{path}.p_holm")


def check_cells(rows: Sequence[Any], heads: Sequence[Any], name: str) -> None:
    """Check that each row has a cell for each column head."""
    for place, row in enumerate(rows):
        if len(row.cells) != len(heads):
            raise fault(f"must be {len(heads)}, as many as there are {name}", f".rows[{place}].cells")


def find_faults(model: Any, value: Any, where: str) -> Iterator[Fault]:
    """Yield the errors of a value, each with its path from `where`."""
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
    """Return the type of a list with at least `least` members."""
    return Annotated[list[kind], Field(min_length=least)]
