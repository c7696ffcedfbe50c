"""Rows as canonical text: equal rows have equal bytes, on every database. Keys are in the order of the format, keys of
`meta` are sorted, and integers have no `.0`."""

import json
from decimal import Decimal
from typing import Any

import orjson

from evalapp.markup import FORMULA_STARTS

EXACT = 2**53  # up to here every integer is a distinct double

COLUMNS: dict[str, tuple[str, ...]] = {
    "systems": ("id", "kind", "meta"),
    "items": ("id", "context", "source", "references", "group", "meta"),
    "outputs": ("item", "system", "text", "step", "meta"),
    "dialogues": ("id", "turns", "system", "speakers", "meta"),
    "ratings": ("item", "system", "rater", "aspect", "value", "step", "dialogue", "simulated", "meta"),
    "comparisons": (
        "item", "system_a", "system_b", "rater", "aspect", "verdict", "step_a", "step_b", "simulated", "meta",
    ),
    "corpus": ("query", "response", "meta"),
    "references": ("set", "item", "position", "text", "meta", "written"),
    "attempts": (
        "campaign", "item", "annotator", "arm", "annotator_group", "set", "number", "round", "decision", "why",
        "candidate", "candidate_source", "text_before", "text", "relevant", "edited", "counted", "unscored",
        "references_before", "score_before", "score_after", "improved", "signature", "seconds", "submission",
        "created_at",
    ),
    "filters": ("name", "raters", "reason", "created_at", "withdrawn_at"),
    "campaigns": ("campaign", "kind", "told"),
    "score_sets": (
        "id", "evaluator", "name", "kind", "options", "aspect", "references", "signature", "short_signature", "data",
        "scored_at", "n_in_training", "systems", "judge",
    ),
    "scores": ("set", "item", "system", "step", "value", "note", "in_training", "empty", "truncated", "input"),
    "judge_answers": (
        "evaluator", "item", "system", "step", "system_b", "step_b", "sample", "request", "model", "text", "value",
        "verdict", "share", "reason", "finish", "refused", "characters", "prompt_tokens", "completion_tokens", "cost",
        "seconds", "tokens",
    ),
}  # fmt: skip

#: Columns that are read and not written: scores made by another program name their evaluator instead of a score set.
ALSO_READ: dict[str, tuple[str, ...]] = {
    "scores": ("evaluator", "score", "aspect", "reference_set", "signature", "higher_is_better"),
}  # fmt: skip

#: Other files of an export: derived from its tables, or not imported.
DERIVED = (
    "README.md", "DATASHEET.md", "aggregated_ratings", "aggregated_comparisons", "judgements", "raters", "audit",
)  # fmt: skip


def list_readable_columns(table: str) -> tuple[str, ...]:
    """The columns of a table that have a meaning when a file is read."""
    return (*COLUMNS.get(table, ()), *ALSO_READ.get(table, ()))


#: The members of `written` in a reference.
WRITTEN = (
    "campaign", "annotator", "arm", "state", "gain", "score", "signature", "candidate", "candidate_source", "edited",
    "unscored", "submission", "written_at", "withdrawn_at", "reason",
)  # fmt: skip
#: Times and durations in attempts and in the origin of references. An export has null there without the annotators'
#: consent.
ATTEMPT_TIMES, WRITTEN_TIMES = ("seconds", "created_at"), ("written_at", "withdrawn_at")


def encode_plain(value: Any) -> str:
    """Compact JSON that keeps values unchanged (integers of any size as well)."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def canonical(value: Any) -> Any:
    """`value` with sorted keys and without unnecessary `.0`, at any depth."""
    if isinstance(value, float):
        # Beyond 2**53, its decimal representation, as in a database without doubles.
        return int(value if abs(value) < EXACT else Decimal(repr(value))) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: canonical(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [canonical(part) for part in value]
    return value


_encode = json.JSONEncoder(ensure_ascii=False).encode


def encode_row(row: dict[str, Any]) -> str:
    """A line of JSONL without line end. The caller passes the keys in order; `meta` becomes canonical."""
    return _encode(row)


def encode_ordered(value: dict[str, Any], order: tuple[str, ...]) -> str:
    """An object as canonical text: the members in `order` first, in that order, then the others by name."""
    names = [name for name in order if name in value]
    return _encode({name: canonical(value[name]) for name in (*names, *sorted(value.keys() - set(order)))})


def encode_document(document: dict[str, Any]) -> str:
    """A file with a single JSON object."""
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def encode_cell(value: Any) -> str:
    """A value as a CSV cell: lists and objects as JSON, null as an empty cell."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


GUARD = "'"


def guard_cell(value: Any) -> str:
    """A value as a cell that spreadsheets do not run: a text that could be a formula gets an apostrophe in front. So
    does one that starts with an apostrophe, so that removing one always gives the text."""
    cell = encode_cell(value)
    if isinstance(value, int | float) or not cell.startswith((*FORMULA_STARTS, GUARD)):
        return cell
    return GUARD + cell
