"""Parameters and results of runs as labels and texts for pages, independent of the kind of run."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _

from evalapp.number_text import MINUS, show_count

#: Longest value of a result that is shown as a fact, and length at which parameters are truncated.
MAX_FACT, MAX_PARAM = 120, 500
#: Number of list items that are shown.
MAX_ITEMS = 20
#: Internal parameters.
INTERNAL = {"incoming", "stamp"}
#: Ids and seeds, shown without thousands separators.
IDS = {"attempt", "campaign", "corpus", "judge", "leaderboard", "part", "score_run", "score_set", "seed", "upload"}
LABELS = {
    "added": gettext_lazy("Added"),
    "board": gettext_lazy("Table"),
    "by": gettext_lazy("Judged by"),
    "duplicate": gettext_lazy("Duplicate texts"),
    "empty": gettext_lazy("Empty texts"),
    "in_training": gettext_lazy("Also in the training data"),
    "into": gettext_lazy("New set"),
    "kept": gettext_lazy("Unchanged"),
    "leaderboard": gettext_lazy("Table id"),
    "looked_at": gettext_lazy("Candidates compared"),
    "max": gettext_lazy("Maximum references per item"),
    "mean_after": gettext_lazy("Predicted reliability, after"),
    "mean_before": gettext_lazy("Predicted reliability, before"),
    "mix": gettext_lazy("Second evaluator"),
    "n_references": gettext_lazy("Number of references"),
    "references": gettext_lazy("Reference set"),
    "n_in_training": gettext_lazy("Also in the training data"),
    "score_run": gettext_lazy("Scored in run"),
    "score_set": gettext_lazy("Score set id"),
    "scored": gettext_lazy("Newly scored"),
    "slug": gettext_lazy("Name"),
    "truncated": gettext_lazy("Truncated"),
    "undefined": gettext_lazy("Without a score"),
    "unknown": gettext_lazy("With unknown words"),
    "without_candidates": gettext_lazy("Items without candidates"),
}


def label_param(name: str) -> str:
    """Return the label of a name: `learning_rate` -> `Learning rate`; `n_items` -> `Items`."""
    plain = name.removeprefix("n_").replace("_", " ")
    return str(LABELS.get(name) or f"{plain[:1].upper()}{plain[1:]}")


def format_value(name: str, value: Any) -> str:
    """Return a single value as text; numbers have meaningful digits."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, int):
        return str(value) if name in IDS else show_count(value, get_language())
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", MINUS) if math.isfinite(value) else "-"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def split_result(result: Mapping[str, Any]) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Return the short values of a result as (label, text), and the other values unchanged, without `url`."""
    facts, rest = [], {}
    for name, value in result.items():
        if isinstance(value, str | int | float) and len(str(value)) <= MAX_FACT and name != "url":
            facts.append((label_param(name), format_value(name, value)))
        elif name != "url":
            rest[name] = value
    return facts, rest


def describe_params(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the parameters that were given, including nested ones, as (label, text)."""
    for name, value in params.items():
        if name in INTERNAL or value is None or value in ("", [], {}):
            continue
        if isinstance(value, Mapping):
            yield from describe_params(value)
            continue
        if isinstance(value, list):
            text = ", ".join(format_value(name, item) for item in value[:MAX_ITEMS])
            if (more := len(value) - MAX_ITEMS) > 0:
                text += ngettext(" and %(count)s more", " and %(count)s more", more) % {"count": f"{more:,}"}
        else:
            text = format_value(name, value)
        yield label_param(name), text if len(text) <= MAX_PARAM else f"{text[:MAX_PARAM]}…"
