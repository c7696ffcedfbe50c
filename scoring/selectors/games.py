"""Games by evaluators that compare texts: the evaluators, checks of requests, and results of runs."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from annotation.models import Output
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from evalapp.common.models import Run
from scoring.boards.systems.query import SystemsQuery

from ..models import Evaluator
from .catalogue import entries, get_entry
from .leaderboards import compute_stamp
from .training import list_trained, refuse_unfinished

KIND = "games"
METHOD = "glicko2"
#: Kinds of systems that a subset excludes, equal to those in `scoring.boards.data.columns` (by a test).
LEFT_OUT = {"all": (), "machine": ("human", "reference", "control"), "no-reference": ("reference",)}


def list_judges(project: Project) -> list[Evaluator]:
    """Return the trained evaluators that compare texts, newest first."""
    names = [entry.name for entry in entries() if entry.compares]
    return list(list_trained(project).filter(name__in=names))


def find_judge(project: Project, name: str = "") -> Evaluator:
    """Return the trained evaluator of this name, or the newest, that compares texts.

    Raises `NotThere` for an unknown name, `BadInput` for an evaluator that cannot compare.
    """
    judges = list_judges(project)
    result = next((row for row in judges if name in ("", row.slug)), None)
    if result is not None:
        if result.state == Evaluator.State.DAMAGED:
            raise BadInput(_("%(name)s cannot be used: %(damage)s") % {"name": result.slug, "damage": result.damage})
        return result
    there = ", ".join(row.slug for row in judges[:20])
    advice = _("Choose from: %(names)s.") % {"names": there}
    if not there:
        advice = _("Train one: evalapp train comparative --project %(project)s") % {"project": project.slug}
    if not name:
        text = _("%(project)s has no trained evaluator that compares texts.") % {"project": project.slug}
        raise BadInput(f"{text} {advice}")
    refuse_unfinished(project, name)
    row = Evaluator.objects.filter(project=project, slug=name).first()
    if row is None and get_entry(name).compares:
        text = _("%(name)s must be trained before it can compare.")
    else:
        text = _("%(name)s scores single texts and cannot compare.")
    raise BadInput(f"{text % {'name': name}} {advice}")


def refuse_draws(judge: Evaluator, options: Mapping[str, Any]) -> None:
    """Raise `BadInput` for a rule of draws if the evaluator counts expected outcomes, before a worker loads it."""
    if options.get("tie_rule") is None:
        return
    counts = options.get("outcome") or ("expected" if "|outcome:expected|" in f"{judge.signature}|" else "verdict")
    if counts == "expected":
        text = _("%(name)s: tie_rule needs outcome=verdict, because expected outcomes have no draws.")
        text %= {"name": judge.slug}
        raise BadInput(text, faults=[Fault(text, field="options.tie_rule")])


def wanted_outputs(project: Project, subset: str) -> QuerySet[Output]:
    """Return the outputs of the systems in a subset."""
    rows = Output.objects.filter(project=project).order_by()
    return rows.exclude(system__kind__in=LEFT_OUT[subset]) if LEFT_OUT[subset] else rows


def check_systems(project: Project, subset: str) -> None:
    """Raise `BadInput` unless two systems, or two steps, have outputs for the same item."""
    rows = wanted_outputs(project, subset)
    others = rows.filter(item=OuterRef("item")).exclude(pk=OuterRef("pk"))
    if rows.filter(Exists(others)).exists():
        return
    units = rows.values_list("system", "step").distinct()[:2]
    names = {"project": project.slug, "subset": subset, "n": len(units)}
    if len(units) < 2:
        text = _("Games need two systems with outputs; %(project)s has %(n)d (systems: %(subset)s).")
        raise BadInput(text % names)
    text = _("No two systems of %(project)s have outputs for the same item (systems: %(subset)s).")
    raise BadInput(text % names)


def latest_games(project: Project, judge: Evaluator, query: SystemsQuery) -> Run | None:
    """Return the newest result of this evaluator for these systems, not of a deleted evaluator of the same name."""
    rows = Run.objects.filter(
        project=project, kind=KIND, state=Run.State.SUCCEEDED, params__evaluator=judge.slug,
        params__systems=query.systems, params__references__in=["", query.references], result__judge=judge.pk,
    )  # fmt: skip
    return rows.order_by("-finished_at", "-pk").first()


def games_under_way(project: Project, judge: Evaluator, query: SystemsQuery) -> Run | None:
    """Return the run in progress, if any."""
    rows = Run.objects.filter(
        project=project, kind=KIND, state__in=Run.ACTIVE, params__evaluator=judge.slug, params__systems=query.systems
    )
    return rows.order_by("pk").first()


def how_to_play(project: Project, judge: Evaluator, query: SystemsQuery) -> str:
    """Return advice for the case without results."""
    command = f"evalapp games {project.slug} --by {judge.slug}"
    command += f" --systems {query.systems}" if query.systems != "all" else ""
    text = _("%(name)s has not compared these systems yet. Start with: %(command)s")
    return text % {"name": judge.slug, "command": command}


def data_stamp(project: Project) -> str:
    """Return the version of texts and judgements that a result is based on."""
    return compute_stamp(project, SystemsQuery())


def is_old(project: Project, table: Mapping[str, Any]) -> bool:
    """Return whether texts or judgements changed after these games."""
    return bool(table["stamp"] != data_stamp(project))
