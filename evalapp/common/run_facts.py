"""What was asked of a run and what came out of it, as names and values that people read. Knows no kind of job."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

#: Longer values of a result stand behind a disclosure; those of what was asked for are cut.
SHORT, CUT = 120, 500
#: Values of a list that are shown.
MOST = 20
#: Of what was asked for: names that the house gives itself, and say nothing to people.
OURS = {"incoming", "stamp"}
#: Numbers that name something: no thousands are parted in them.
NUMBERS = {"attempt", "campaign", "corpus", "judge", "leaderboard", "part", "score_run", "score_set", "seed", "upload"}
WORDS = {
    "added": "Added",
    "board": "Table",
    "by": "Judged by",
    "duplicate": "Texts that stand more than once",
    "empty": "Empty texts",
    "in_training": "Of what it learned from",
    "into": "New set",
    "kept": "Kept from before",
    "leaderboard": "Number of the table",
    "looked_at": "Candidates looked at",
    "max": "References of an item, at most",
    "mean_after": "Predicted reliability, after",
    "mean_before": "Predicted reliability, before",
    "mix": "And a second one",
    "n_references": "Number of references",
    "references": "Reference set",
    "n_in_training": "Of what it learned from",
    "score_run": "Scored in run",
    "score_set": "Number of the set of scores",
    "scored": "Scored anew",
    "slug": "Name",
    "truncated": "Cut to fit",
    "undefined": "Without a score",
    "unknown": "With unknown words",
    "without_candidates": "Items without candidates",
}


def label_of(name: str) -> str:
    """`learning_rate` -> `Learning rate`; `n_items` -> `Items`."""
    plain = name.removeprefix("n_").replace("_", " ")
    return WORDS.get(name) or f"{plain[:1].upper()}{plain[1:]}"


def words_of(name: str, value: Any) -> str:
    """A single value: yes or no, numbers with as many digits as say something."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value) if name in NUMBERS else f"{value:,}".replace("-", "−")
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−") if math.isfinite(value) else "-"
    return str(value)


def facts_of(result: Mapping[str, Any]) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """The short values of a result with their labels, and the rest as it is; an address is neither."""
    facts, rest = [], {}
    for name, value in result.items():
        if name == "url":
            continue
        if isinstance(value, (str, int, float, bool)) and len(str(value)) <= SHORT:
            facts.append((label_of(name), words_of(name, value)))
        else:
            rest[name] = value
    return facts, rest


def asked_of(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All that was asked for, options and choices of data among it, without what was left open."""
    return list(_asked(params))


def _asked(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in params.items():
        if name in OURS or value is None or value in ("", [], {}):
            continue
        if isinstance(value, Mapping):
            yield from _asked(value)
        else:
            text = _listed(name, value) if isinstance(value, list) else words_of(name, value)
            yield label_of(name), text if len(text) <= CUT else f"{text[:CUT]}…"


def _listed(name: str, values: list[Any]) -> str:
    words = [
        json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else words_of(name, value)
        for value in values[:MOST]
    ]
    more = len(values) - MOST
    return ", ".join(words) + (f" and {more:,} more" if more > 0 else "")
