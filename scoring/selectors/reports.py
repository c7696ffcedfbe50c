"""Reports that runs compute: on model selection (the checkpoint or variant that each evaluator selects), on robustness,
and the curves of reliability."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Output, System
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.models import Run
from evalapp.names import natural_key

from ..models import Evaluator
from .aspects import choose_aspect
from .catalogue import entries, get_entry
from .external import refuse_scoring
from .runs import list_finished_runs
from .score_sets import current_sets
from .training import list_trained, refuse_away

#: Kinds of runs.
SELECTION, ROBUSTNESS, CURVES = "selection", "robustness", "reliability"
#: Key in the meta of systems that are variants of an architecture, as in `scoring.ml.selection`.
VARIANT_OF = "variant_of"
#: Panels of the curves, in the order of the page.
PANELS = {
    "size": gettext_noop("Reliability by number of references"),
    "noise": gettext_noop("Reliability as references are added, and with wrong ones as noise"),
    "growth": gettext_noop("Gold reliability as references are added"),
    "predicted": gettext_noop("Predicted reliability as references are added"),
    "transfer": gettext_noop("References selected for one metric, used with another"),
    "transfer-other": gettext_noop("The same with the metrics exchanged"),
}
#: Number of runs searched for the last report of each evaluator, and of runs with curves on their page.
LATEST_REPORTS, LATEST_CURVES = 100, 10


def has_choices(project: Project) -> bool:
    """Return whether a system has outputs of two steps, or two systems are variants of one."""
    steps = Output.objects.filter(project=project, step__isnull=False).order_by().values("system")
    if steps.annotate(n=Count("step", distinct=True)).filter(n__gt=1).exists():
        return True
    systems = System.objects.filter(project=project, meta__has_key=VARIANT_OF)
    named = [meta[VARIANT_OF] for meta in systems.values_list("meta", flat=True) if isinstance(meta[VARIANT_OF], str)]
    return len(named) > len(set(named))


def group_by_kind(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the report by kind of choice, best rows first; keys: kind, rows, runs, best, chance, chance_wins."""
    tables = []
    for kind in dict.fromkeys(row["kind"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["kind"] == kind]
        rows.sort(key=lambda row: (-row["wins"], natural_key(row["evaluator"])))
        figures = {name: result[name][kind] for name in ("best", "chance", "chance_wins")}
        tables.append({"kind": kind, "rows": rows, "runs": rows[0]["runs"], **figures})
    return tables


def usual_choosers(project: Project, references: str = ORIGINAL) -> list[str]:
    """Return the applied evaluators that can be loaded, by name."""
    known = {entry.name for entry in entries()}
    rows = [row.evaluator for row in current_sets(project, references)]
    fit = {row.slug for row in rows if row.name in known and not row.is_combined and (row.folder or not row.is_trained)}
    return sorted(fit, key=natural_key)


def check_chooser(project: Project, name: str) -> None:
    """Raise `NotThere` for an unknown name, `BadInput` for an evaluator that cannot score checkpoints."""
    row = Evaluator.objects.filter(project=project, slug=name).first()
    if row is not None and row.is_combined:
        raise BadInput(_("%(name)s combines stored scores; name its parts instead.") % {"name": name})
    if row is not None:
        refuse_scoring(row)
    if row is not None and row.is_trained:
        refuse_away(row)
        return
    entry = get_entry(row.name if row is not None else name)
    if entry.learns:
        raise BadInput(_("%(name)s must be trained first; name the trained evaluator.") % {"name": entry.name})


def judged_aspect(project: Project, name: str) -> str:
    """Return the named aspect, or the first rated one, or the first compared one."""
    try:
        return choose_aspect(project, name, judged_by="ratings").name
    except NotThere:
        raise
    except BadInput:
        return choose_aspect(project, name, judged_by="comparisons").name


def latest_reports(project: Project) -> list[Run]:
    """Return the last report of every evaluator (by signature), newest first."""
    result: dict[Any, Run] = {}
    for run in list_finished_runs(project, ROBUSTNESS)[:LATEST_REPORTS]:
        result.setdefault(run.result["signature"], run)
    return list(result.values())


def reportable(project: Project) -> list[str]:
    """Return the names of evaluators to report on: trained ones, then applied ones, then others of the catalogue."""
    trained = sorted(list_trained(project).values_list("slug", flat=True), key=natural_key)
    free = [entry.name for entry in entries() if not entry.learns]
    applied = [row.evaluator.name for row in current_sets(project) if row.evaluator.name in free]
    return list(dict.fromkeys([*trained, *applied, *free]))


def latest_curves(project: Project) -> list[Run]:
    """Return the last runs with curves, newest first."""
    return list(list_finished_runs(project, CURVES)[:LATEST_CURVES])
