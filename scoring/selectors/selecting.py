"""Selection reports: which checkpoint or variant each evaluator would pick; what can be asked, and what runs have
computed. Computing is in the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Count

from annotation.models import Output, System
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.models import Run

from ..models import Evaluator
from .aspects import choose_aspect
from .catalogue import entries, get_entry
from .score_sets import current_sets
from .training import refuse_away

KIND = "selection"
#: Systems of one architecture with different settings name it so in their meta, as `scoring.ml.selection` has it.
VARIANT_OF = "variant_of"


def latest_selection(project: Project) -> Run | None:
    """The last report of the project."""
    done = Run.objects.filter(project=project, kind=KIND, state=Run.State.SUCCEEDED, result__isnull=False)
    return done.order_by("-pk").first()


def selections_under_way(project: Project) -> list[Run]:
    return list(Run.objects.filter(project=project, kind=KIND, state__in=Run.ACTIVE).order_by("pk"))


def has_choices(project: Project) -> bool:
    """Whether a system has outputs of two steps, or two systems say that they are variants of one."""
    steps = Output.objects.filter(project=project, step__isnull=False).order_by().values("system")
    if steps.annotate(n=Count("step", distinct=True)).filter(n__gt=1).exists():
        return True
    systems = System.objects.filter(project=project, meta__has_key=VARIANT_OF)
    named = [meta[VARIANT_OF] for meta in systems.values_list("meta", flat=True) if isinstance(meta[VARIANT_OF], str)]
    return len(named) > len(set(named))


def group_by_kind(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The report by kind of choice, the rows with the most hits first: {"kind", "rows", "runs", "best", "chance",
    "chance_wins"}."""
    tables = []
    for kind in dict.fromkeys(row["kind"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["kind"] == kind]
        rows.sort(key=lambda row: (-row["wins"], row["evaluator"]))
        figures = {name: result[name][kind] for name in ("best", "chance", "chance_wins")}
        tables.append({"kind": kind, "rows": rows, "runs": rows[0]["runs"], **figures})
    return tables


def usual_choosers(project: Project, references: str = ORIGINAL) -> list[str]:
    """What was applied here and can be loaded, in the order of names."""
    known = {entry.name for entry in entries()}
    rows = [row.evaluator for row in current_sets(project, references)]
    fit = {row.slug for row in rows if row.name in known and not row.is_combined and (row.folder or not row.is_trained)}
    return sorted(fit)


def check_chooser(project: Project, name: str) -> None:
    """Raises `NotThere` for an unknown name, `BadInput` for what has nothing to choose with."""
    row = Evaluator.objects.filter(project=project, slug=name).first()
    if row is not None and row.is_combined:
        raise BadInput(f"{name} is a combination of scores that are stored; name its parts.")
    if row is not None and row.is_trained:
        refuse_away(row)
        return
    entry = get_entry(row.name if row is not None else name)
    if entry.learns:
        raise BadInput(f"{entry.name} must be trained first; name what was trained.")


def judged_aspect(project: Project, wished: str) -> str:
    """The aspect that is meant; without a name the first that people rated, else the first that they compared."""
    try:
        return choose_aspect(project, wished, judged_by="ratings").name
    except NotThere:
        raise
    except BadInput:
        return choose_aspect(project, wished, judged_by="comparisons").name
