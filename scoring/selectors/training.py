"""Training data of a project, trained evaluators and progress of trainings. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Exists, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Comparison, Dialogue, Item, Output, Rating, Reference
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, Fault, NotThere
from evalapp.common.models import Run

from ..models import CurvePoint, Evaluator
from .runs import list_active_runs

if TYPE_CHECKING:
    from scoring.ml import Entry

#: Projects with fewer items use cross-fitting by default.
FEW_ITEMS = 500
FOLDS = 5

#: Kinds of runs that create an evaluator.
MAKING = ("train", "artefact", "combine", "judge")

#: Requirement of a training -> (what is missing, remedy).
MISSING = {
    "ratings": (gettext_noop("No ratings of outputs"), gettext_noop("upload ratings or open a campaign")),
    "comparisons": (
        gettext_noop("No comparisons of outputs"),
        gettext_noop("upload comparisons or open a campaign with comparisons"),
    ),
    "judgements": (gettext_noop("Neither ratings nor comparisons"), gettext_noop("upload some or open a campaign")),
    "references": (gettext_noop("No references"), gettext_noop("upload items with references")),
    "outputs": (gettext_noop("No outputs"), gettext_noop("upload outputs")),
    "dialogues": (gettext_noop("Neither dialogues nor items with a context"), gettext_noop("upload dialogues.jsonl")),
    "steps": (gettext_noop("No outputs of checkpoints"), gettext_noop("upload outputs with their training step")),
}


def learners() -> list[Entry]:
    """Return the catalogue entries that can be trained."""
    from .catalogue import entries

    return [entry for entry in entries() if entry.learns]


def find_training_data(project: Project) -> dict[str, bool]:
    """Return which kinds of training data a project has, in one query.

    The project is a constant in each subquery; otherwise PostgreSQL scans the rows of other projects.
    """
    outputs = Output.objects.filter(project=project)
    rows = {
        "ratings": Rating.objects.filter(project=project, output__isnull=False),
        "comparisons": Comparison.objects.filter(project=project),
        "references": Reference.objects.filter(item__project=project),
        "outputs": outputs,
        "dialogues": Dialogue.objects.filter(project=project),
        "contexts": Item.objects.filter(project=project).exclude(context=[]),
        "steps": outputs.filter(step__isnull=False),
    }
    asked = {f"has_{name}": Exists(some) for name, some in rows.items()}
    answer = Project.objects.filter(pk=project.pk).annotate(**asked).values(*asked).get()
    facts = {name: bool(answer[f"has_{name}"]) for name in rows}
    facts["judgements"] = facts["ratings"] or facts["comparisons"]
    facts["dialogues"] = facts["dialogues"] or facts.pop("contexts")
    return facts


def missing_for(entry: Entry, facts: Mapping[str, bool]) -> list[str]:
    """Return a sentence on each requirement of this training that the project does not meet."""
    return [f"{_(MISSING[need][0])}: {_(MISSING[need][1])}." for need in entry.train_needs if not facts.get(need, True)]


def judgements_for(entry: Entry) -> tuple[str, ...]:
    """Return the kinds of judgements from which an evaluator learns an aspect, if any."""
    if entry.aspect == "none":
        return ()
    if "judgements" not in entry.train_needs:
        named = tuple(kind for kind in ("ratings", "comparisons") if kind in entry.train_needs)
        if named:
            return named
    return ("ratings", "comparisons")


def default_folds(project: Project) -> int:
    """Return 5 for few items, else 1 (one model with held-out test data)."""
    n = Item.objects.filter(project=project).values_list("pk", flat=True)[FEW_ITEMS - 1 : FEW_ITEMS]
    return 1 if list(n) else FOLDS


def list_trained(project: Project) -> QuerySet[Evaluator]:
    """Return the trained evaluators, newest first."""
    rows = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.TRAINED)
    return rows.select_related("run").order_by("-pk")


def count_readings(trained: Evaluator, entry: Entry, n_outputs: int) -> dict[str, int]:
    """Return how many comparisons an evaluator that compares texts needs to score `n_outputs`: up to `references` per
    output, in both orders with the profile recommended. Empty for other evaluators."""
    references = trained.options.get("references")
    if not entry.compares or not references or trained.options.get("comparison") is False:
        return {}
    ways = 1 if trained.record.get("profile") == "paper" else 2
    return {"references": references, "ways": ways, "readings": references * ways * n_outputs}


def names_in_making(project: Project) -> dict[str, Run]:
    """Return the names of evaluators that runs in progress will create."""
    rows = Run.objects.filter(project=project, kind__in=MAKING, state__in=Run.ACTIVE).order_by("pk")
    return {str(run.params["slug"]): run for run in rows.only("params", "cancel_requested") if run.params.get("slug")}


def refuse_unfinished(project: Project, slug: str) -> None:
    """Raise `NotThere` if a run is still creating the evaluator of this name."""
    run = names_in_making(project).get(slug)
    if run is not None:
        text = _("%(name)s is not ready: run %(run)d is in progress. Try again when it has ended.")
        raise NotThere(text % {"name": slug, "run": run.pk})


def find_trained(project: Project, slug: str) -> Evaluator:
    """Return the trained evaluator of this slug. Raises `NotThere` with the known names, or the run in progress."""
    result = list_trained(project).filter(slug=slug).first()
    if result is None:
        refuse_unfinished(project, slug)
        there = ", ".join(list_trained(project).values_list("slug", flat=True)[:20]) or _("none yet")
        text = _("No evaluator “%(name)s” was trained in %(project)s. There are: %(known)s.")
        raise NotThere(text % {"name": slug, "project": project.slug, "known": there})
    return result


def list_starts(project: Project, entry: Entry) -> list[Evaluator]:
    """Return the trained evaluators that a training of `entry` may begin with: same method, one model, its encoder
    trained."""
    if not any(option.name == "stages" for option in entry.train_options):
        return []
    return [row for row in list_trained(project).filter(name=entry.name) if not row.record.get("folds")]


def list_reference_judges(project: Project) -> QuerySet[Evaluator]:
    """Return the trained evaluators that predict the reliability of references, newest first."""
    return list_trained(project).filter(name__in=name_reference_judges())


def reference_judge_under_way(project: Project) -> Run | None:
    """Return the training in progress of such an evaluator, if any."""
    names = name_reference_judges()
    return next((run for run in list_active_runs(project, "train") if run.params.get("evaluator") in names), None)


def name_reference_judges() -> list[str]:
    """Return the names of the catalogue entries that predict the reliability of references."""
    return [entry.name for entry in learners() if entry.judges_references]


def get_run_folder(run: Run) -> str:
    """Return the folder below ARTEFACTS_DIR for the evaluator of a run."""
    return f"{run.project_id}/run-{run.pk}"


def refuse_away(evaluator: Evaluator) -> None:
    """Raise `BadInput` for an evaluator from an export, whose artefact is not here."""
    if evaluator.is_trained and not evaluator.folder:
        text = _("%(name)s cannot be applied here.") % {"name": evaluator.slug}
        text = f"{text} {evaluator.damage}".strip()
        raise BadInput(text, faults=[Fault(text, field="evaluator")])


def artefact_folder(evaluator: Evaluator) -> Path:
    return Path(settings.ARTEFACTS_DIR) / evaluator.folder


@dataclass(frozen=True)
class File:
    """A file of an artefact; the name includes the folder of the fold, if any."""

    name: str
    bytes: int
    sha256: str


def list_files(evaluator: Evaluator) -> list[File]:
    """Return the files recorded when the evaluator was stored."""
    return [File(**row) for row in evaluator.record.get("files", [])]


def find_file(evaluator: Evaluator, name: str) -> Path:
    """Return the path of a recorded file; no other path can be requested."""
    path = artefact_folder(evaluator) / name
    if name not in {file.name for file in list_files(evaluator)} or not path.is_file():
        raise NotThere(_("%(evaluator)s has no file “%(name)s”.") % {"evaluator": evaluator.slug, "name": name})
    return path


def read_card(evaluator: Evaluator, fold: int = 0) -> str:
    """Return the model card of an evaluator, or of a fold, as Markdown; empty if it is missing."""
    name = f"fold-{fold}/card.md" if evaluator.record.get("folds") else "card.md"
    try:
        return find_file(evaluator, name).read_text(encoding="utf-8")[:200_000]
    except (NotThere, OSError, UnicodeDecodeError):
        return ""


def read_curve(run: Run) -> dict[str, list[tuple[int, float]]]:
    """Return the loss by step for every phase of a training, in order."""
    result: dict[str, list[tuple[int, float]]] = {}
    rows = CurvePoint.objects.filter(run=run).order_by("pk").values_list("series", "step", "loss")
    for series, step, loss in rows:
        result.setdefault(series, []).append((step, loss))
    return {series: sorted(points) for series, points in result.items()}


def find_scorable(*, user: Any, slug: str, project: str = "") -> Evaluator:
    """The trained evaluator of this slug among the projects that a person may read. Raises `NotThere`, and says
    which projects to choose from when several have one."""
    if project:
        return find_trained(get_project(user=user, slug=project, need="read"), slug)
    mine = Project.objects.visible_to(user, "read")
    result = list(
        Evaluator.objects.filter(kind=Evaluator.Kind.TRAINED, slug=slug, project__in=mine).select_related("project")[:9]
    )
    if not result:
        raise NotThere(
            _("There is no evaluator “%(name)s” in the catalogue or among trained ones of your projects.")
            % {"name": slug}
        )
    if len(result) > 1:
        names = ", ".join(sorted(row.project.slug for row in result))
        text = _("Several projects have an evaluator “%(name)s”: %(projects)s. Add ?project= to the address.")
        raise NotThere(text % {"name": slug, "projects": names})
    return result[0]
