"""Human and metric scores of checkpoints as curves over training steps, from tables of systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalapp.accounts.models import Project
from evalapp.names import natural_key

from ..models import Evaluator
from .score_sets import current_sets

PEOPLE = "people"
#: Evaluators shown by default, and at most.
DEFAULT, MOST = 3, 8


@dataclass(frozen=True)
class Best:
    """The best step of a system in a panel, with the human score of that step."""

    panel: str
    system: str
    step: int
    value: float
    low: float
    high: float
    n: int
    #: {"value", "low", "high", "n"}, if outputs of this step were rated.
    people: Mapping[str, Any] | None


def has_steps(project: Project) -> bool:
    """Return whether any output belongs to a checkpoint."""
    from annotation.models import Output

    return bool(Output.objects.filter(project=project, step__isnull=False).values_list("pk", flat=True)[:1])


def choose_evaluators(project: Project, requested: Sequence[str], references: str) -> tuple[list[str], list[str]]:
    """Return the evaluators to show and all available ones. The default are the first that are no trivial baselines."""
    result = {s.evaluator.slug: s.evaluator for s in current_sets(project, references)}
    known = sorted(result, key=natural_key)
    chosen = [slug for slug in dict.fromkeys(requested) if slug in result][:MOST]
    if not chosen:
        real = [slug for slug in known if result[slug].kind != Evaluator.Kind.SENTINEL]
        chosen = (real or known)[:DEFAULT]
    return chosen, known


def make_lines(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a line for each system with checkpoints: {"name", "points": [{"x", "value", "low", "high", "n"}]}."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in table["rows"]:
        if row["step"] is not None and row["value"] is not None:
            # A value without an interval has a band of height 0.
            ends = {end: row["value"] if row[end] is None else row[end] for end in ("low", "high")}
            point = {"x": row["step"], "value": row["value"], **ends, "n": row["n"]}
            lines.setdefault(row["system"], []).append(point)
    return [
        {"name": name, "points": sorted(lines[name], key=lambda point: point["x"])}
        for name in sorted(lines, key=natural_key)
    ]


def best_steps(panels: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Best]:
    """Return the best step of every system and panel; ties go to the earliest, as in early stopping."""
    people = {(line["name"], point["x"]): point for line in panels.get(PEOPLE, ()) for point in line["points"]}
    result = []
    for panel, lines in panels.items():
        for line in lines:
            point = max(line["points"], key=lambda point: (point["value"], -point["x"]))
            at = people.get((line["name"], point["x"]))
            result.append(
                Best(panel, line["name"], point["x"], point["value"], point["low"], point["high"], point["n"], at)
            )
    return sorted(result, key=lambda best: (natural_key(best.system), best.panel != PEOPLE, best.panel))
