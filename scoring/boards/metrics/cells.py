"""Members that boards with a figure for every evaluator and column share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scoring.boards.metrics.people import (
    Scored,
    chosen_part,
)

Settings = Mapping[str, Any]
Table = dict[str, Any]


def describe_scored(one: Scored) -> Table:
    return {
        "evaluator": one.evaluator,
        "name": one.name,
        "kind": one.kind,
        "is_sentinel": one.is_sentinel,
        "score_set": one.score_set,
        "signature": one.signature,
        "short_signature": one.short_signature,
    }


def no_estimate(reason: str) -> Table:
    return {"value": None, "low": None, "high": None, "n": 0, "note": reason}


def sign_table(settings: Settings, aspect: str, what: str, boot: str = "boot:inputs") -> str:
    parts = [what, f"coef:{settings['coefficient']}", boot]
    parts += [f"{name}:{settings[name]}" for name in ("ratings", "systems", "references") if settings.get(name)]
    return "|".join([*parts, f"aspect:{aspect}"] if aspect else parts) + chosen_part(settings)
