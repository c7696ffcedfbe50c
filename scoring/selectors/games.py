"""Systems ranked by games from an evaluator's verdicts: who can judge, what can be asked, and what runs have computed.
Reading the texts is in `game_texts`, computing in the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

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
#: Systems of each kind that a subset leaves out, as `scoring.boards.data.columns` has it (a test holds them together).
LEFT_OUT = {"all": (), "machine": ("human", "reference", "control"), "no-reference": ("reference",)}


def list_judges(project: Project) -> list[Evaluator]:
    """What was trained here and compares texts, the newest first."""
    names = [entry.name for entry in entries() if entry.compares]
    return list(list_trained(project).filter(name__in=names))


def find_judge(project: Project, name: str = "") -> Evaluator:
    """The trained evaluator of this name, or the newest, that compares texts. Raises `NotThere` for an unknown name,
    `BadInput` for what compares nothing."""
    judges = list_judges(project)
    found = next((row for row in judges if name in ("", row.slug)), None)
    if found is not None:
        if found.state == Evaluator.State.DAMAGED:
            raise BadInput(f"{found.slug} cannot be used: {found.damage}")
        return found
    there = ", ".join(row.slug for row in judges[:20])
    way = (
        f"Name one that does: {there}." if there else f"Train one: manage.py train comparative --project {project.slug}"
    )
    if not name:
        raise BadInput(f"{project.slug} has no trained evaluator that compares texts. {way}")
    refuse_unfinished(project, name)
    row = Evaluator.objects.filter(project=project, slug=name).first()
    if row is None and get_entry(name).compares:
        raise BadInput(f"{name} must be trained before it can compare. {way}")
    raise BadInput(f"{name} gives scores and compares no texts. {way}")


def refuse_draws(judge: Evaluator, options: Mapping[str, Any]) -> None:
    """A rule of draws where the evaluator counts expected outcomes, by these options or as it was trained: said when it
    is asked for, not once a worker has loaded it."""
    if options.get("tie_rule") is None:
        return
    counts = options.get("outcome") or ("expected" if "|outcome:expected|" in f"{judge.signature}|" else "verdict")
    if counts == "expected":
        text = (
            f"{judge.slug}: tie_rule says what a draw counts, and of expected outcomes none is a draw: leave it out, "
            "or give outcome=verdict with it."
        )
        raise BadInput(text, faults=[Fault(text, field="options.tie_rule")])


def wanted_outputs(project: Project, subset: str) -> QuerySet[Output]:
    """The outputs of the systems that the subset keeps."""
    rows = Output.objects.filter(project=project).order_by()
    return rows.exclude(system__kind__in=LEFT_OUT[subset]) if LEFT_OUT[subset] else rows


def check_systems(project: Project, subset: str) -> None:
    """Raises `BadInput` unless two systems (or steps of one) have an output for the same item."""
    rows = wanted_outputs(project, subset)
    others = rows.filter(item=OuterRef("item")).exclude(pk=OuterRef("pk"))
    if rows.filter(Exists(others)).exists():
        return
    units = rows.values_list("system", "step").distinct()[:2]
    kept = "" if subset == "all" else f" in the subset {subset}"
    if len(units) < 2:
        n = ("no system has", "one system only has")[len(units)]
        raise BadInput(f"Games need two systems; in {project.slug} {n} outputs{kept}.")
    raise BadInput(f"No two systems of {project.slug} have an output for the same item{kept}.")


def latest_games(project: Project, judge: Evaluator, query: SystemsQuery) -> Run | None:
    """The newest result of this evaluator over these systems. What an evaluator that has been deleted since said, whose
    name another one took, is none."""
    rows = Run.objects.filter(
        project=project, kind=KIND, state=Run.State.SUCCEEDED, params__evaluator=judge.slug,
        params__systems=query.systems, params__references__in=["", query.references], result__judge=judge.pk,
    )  # fmt: skip
    return rows.order_by("-finished_at", "-pk").first()


def games_under_way(project: Project, judge: Evaluator, query: SystemsQuery) -> Run | None:
    """A run that is at it."""
    rows = Run.objects.filter(
        project=project, kind=KIND, state__in=Run.ACTIVE, params__evaluator=judge.slug, params__systems=query.systems
    )
    return rows.order_by("pk").first()


def how_to_play(project: Project, judge: Evaluator, query: SystemsQuery) -> str:
    """What to do where there is no result yet."""
    command = f"manage.py games {project.slug} --by {judge.slug}"
    command += f" --systems {query.systems}" if query.systems != "all" else ""
    return f"{judge.slug} has not compared these systems yet. Let it: {command}"


def data_stamp(project: Project) -> str:
    """The state of the texts and of what people said of them, which a result is about."""
    return compute_stamp(project, SystemsQuery())


def is_old(project: Project, table: Mapping[str, Any]) -> bool:
    """Whether texts or judgements came or went after these games."""
    return bool(table["stamp"] != data_stamp(project))
