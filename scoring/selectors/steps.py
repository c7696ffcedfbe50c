"""Training steps of systems as curves: what people and evaluators say of checkpoints, from the tables of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalapp.accounts.models import Project
from evalapp.names import natural_key

from ..models import Evaluator
from .score_sets import current_sets

PEOPLE = "people"
#: Evaluators that are shown when nobody chose any, and at most.
USUAL, MOST = 3, 8


@dataclass(frozen=True)
class Best:
    """The step at which a system stands highest in one panel, and what people say of it there."""

    panel: str
    system: str
    step: int
    value: float
    low: float
    high: float
    n: int
    #: {"value", "low", "high", "n"}, where people rated outputs of this step.
    people: Mapping[str, Any] | None


def has_steps(project: Project) -> bool:
    """Whether any output belongs to a checkpoint."""
    from annotation.models import Output

    return bool(Output.objects.filter(project=project, step__isnull=False).values_list("pk", flat=True)[:1])


def choose_evaluators(project: Project, wished: Sequence[str], references: str) -> tuple[list[str], list[str]]:
    """The evaluators to be shown and all that could be: those wished for, else the first that are no sentinels."""
    found = {s.evaluator.slug: s.evaluator for s in current_sets(project, references)}
    known = sorted(found)
    chosen = [slug for slug in dict.fromkeys(wished) if slug in found][:MOST]
    if not chosen:
        real = [slug for slug in known if found[slug].kind != Evaluator.Kind.SENTINEL]
        chosen = (real or known)[:USUAL]
    return chosen, known


def make_lines(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line for every system with checkpoints: {"name", "points": [{"x", "value", "low", "high", "n"}]} by step."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in table["rows"]:
        if row["step"] is not None and row["value"] is not None:
            # A value without an interval is drawn with a band of no height.
            ends = {end: row["value"] if row[end] is None else row[end] for end in ("low", "high")}
            point = {"x": row["step"], "value": row["value"], **ends, "n": row["n"]}
            lines.setdefault(row["system"], []).append(point)
    return [
        {"name": name, "points": sorted(lines[name], key=lambda point: point["x"])}
        for name in sorted(lines, key=natural_key)
    ]


def best_steps(panels: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Best]:
    """By system: the best step of every panel; of equal ones the earliest, as early stopping would take it."""
    people = {(line["name"], point["x"]): point for line in panels.get(PEOPLE, ()) for point in line["points"]}
    found = []
    for panel, lines in panels.items():
        for line in lines:
            point = max(line["points"], key=lambda point: (point["value"], -point["x"]))
            at = people.get((line["name"], point["x"]))
            found.append(
                Best(panel, line["name"], point["x"], point["value"], point["low"], point["high"], point["n"], at)
            )
    return sorted(found, key=lambda best: (natural_key(best.system), best.panel != PEOPLE, best.panel))
