"""What a training would need of a project, what has been trained, and how a training goes: read for pages, API and
commands. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Exists, QuerySet

from annotation.models import Comparison, Dialogue, Item, Output, Rating, Reference
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, Fault, NotThere
from evalapp.common.models import Run

from ..models import CurvePoint, Evaluator

if TYPE_CHECKING:
    from scoring.ml import Entry

#: Below so many items every group is scored by a model that did not see it, unless somebody asks otherwise.
FEW_ITEMS = 500
FOLDS = 5

#: Runs that give a name to an evaluator.
MAKING = ("train", "artefact", "combine")

#: What a training may need -> (what is missing, how to get it).
MISSING = {
    "ratings": ("no ratings of outputs", "upload ratings or open a campaign"),
    "comparisons": ("no comparisons of outputs", "upload comparisons or open a campaign that compares"),
    "judgements": ("neither ratings nor comparisons", "upload some or open a campaign"),
    "references": ("no references", "upload items with references"),
    "outputs": ("no outputs", "upload outputs"),
    "dialogues": ("neither dialogues nor items with a context", "upload dialogues.jsonl"),
    "steps": ("no outputs of checkpoints", "upload outputs with the training step they come from"),
}


def learners() -> list[Entry]:
    """The entries that can be trained."""
    from .catalogue import entries

    return [entry for entry in entries() if entry.learns]


def find_training_data(project: Project) -> dict[str, bool]:
    """Which kinds of training data a project has at all, in one question that looks for a row of each. The project is
    named in each part: referred to, PostgreSQL goes through other projects' rows for a kind that this one has not."""
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
    asked = {f"has_{name}": Exists(found) for name, found in rows.items()}
    answer = Project.objects.filter(pk=project.pk).annotate(**asked).values(*asked).get()
    facts = {name: bool(answer[f"has_{name}"]) for name in rows}
    facts["judgements"] = facts["ratings"] or facts["comparisons"]
    facts["dialogues"] = facts["dialogues"] or facts.pop("contexts")
    return facts


def missing_for(entry: Entry, facts: Mapping[str, bool]) -> list[str]:
    """What a project lacks for this training, a sentence each; empty when a dry check is worth while."""
    return [
        f"{MISSING[need][0][:1].upper()}{MISSING[need][0][1:]}: {MISSING[need][1]}."
        for need in entry.train_needs
        if not facts.get(need, True)
    ]


def judgements_for(entry: Entry) -> tuple[str, ...]:
    """The kinds of judgements that an evaluator learns an aspect from; none where it learns none."""
    if entry.aspect == "none":
        return ()
    if "judgements" not in entry.train_needs:
        named = tuple(kind for kind in ("ratings", "comparisons") if kind in entry.train_needs)
        if named:
            return named
    return ("ratings", "comparisons")


def default_folds(project: Project) -> int:
    """5 for few items, 1 (one model, a tenth of the groups left untouched) for many."""
    n = Item.objects.filter(project=project).values_list("pk", flat=True)[FEW_ITEMS - 1 : FEW_ITEMS]
    return 1 if list(n) else FOLDS


def list_trained(project: Project) -> QuerySet[Evaluator]:
    """Newest first."""
    rows = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.TRAINED)
    return rows.select_related("run").order_by("-pk")


def count_readings(trained: Evaluator, entry: Entry, n_outputs: int) -> dict[str, int]:
    """How much an evaluator that compares texts reads to score so many: at most `references` texts beside each, of
    recommended ones from either side. Empty for what reads a text once."""
    references = trained.options.get("references")
    if not entry.compares or not references or trained.options.get("comparison") is False:
        return {}
    ways = 1 if trained.record.get("profile") == "paper" else 2
    return {"references": references, "ways": ways, "readings": references * ways * n_outputs}


def names_in_making(project: Project) -> dict[str, Run]:
    """The names that runs under way will give to evaluators."""
    rows = Run.objects.filter(project=project, kind__in=MAKING, state__in=Run.ACTIVE).order_by("pk")
    return {str(run.params["slug"]): run for run in rows.only("params", "cancel_requested") if run.params.get("slug")}


def refuse_unfinished(project: Project, slug: str) -> None:
    """Raises `NotThere` where a run is still making the evaluator of this name."""
    run = names_in_making(project).get(slug)
    if run is not None:
        raise NotThere(f"{slug} is not ready: run {run.pk} is still making it. Look again when it has ended.")


def find_trained(project: Project, slug: str) -> Evaluator:
    """The trained evaluator of this slug. Raises `NotThere` naming those there are, or the run that is making it."""
    found = list_trained(project).filter(slug=slug).first()
    if found is None:
        refuse_unfinished(project, slug)
        there = ", ".join(list_trained(project).values_list("slug", flat=True)[:20]) or "none yet"
        raise NotThere(f"No evaluator “{slug}” was trained in {project.slug}. There are: {there}.")
    return found


def trainings_under_way(project: Project) -> list[Run]:
    return list(Run.objects.filter(project=project, kind="train", state__in=Run.ACTIVE).order_by("pk"))


def ream_under_way(project: Project) -> Run | None:
    """The training that a page which needs a ream waits for."""
    return next((run for run in trainings_under_way(project) if run.params.get("evaluator") == "ream"), None)


def get_run_folder(run: Run) -> str:
    """The folder below ARTEFACTS_DIR that the evaluator of a run gets."""
    return f"{run.project_id}/run-{run.pk}"


def refuse_away(evaluator: Evaluator) -> None:
    """Raises `BadInput` for one that came with an export: its row and scores are here, its folder never was."""
    if evaluator.is_trained and not evaluator.folder:
        text = f"{evaluator.slug} cannot be applied here. {evaluator.damage}".strip()
        raise BadInput(text, faults=[Fault(text, field="evaluator")])


def artefact_folder(evaluator: Evaluator) -> Path:
    return Path(settings.ARTEFACTS_DIR) / evaluator.folder


@dataclass(frozen=True)
class File:
    """A file of an artefact: its name, with the fold's folder where there are folds."""

    name: str
    bytes: int
    sha256: str


def list_files(evaluator: Evaluator) -> list[File]:
    """The files as they were when the evaluator was stored."""
    return [File(**row) for row in evaluator.record.get("files", [])]


def find_file(evaluator: Evaluator, name: str) -> Path:
    """The path of a file. Only names that were stored with the evaluator exist, so no other path can be asked for."""
    path = artefact_folder(evaluator) / name
    if name not in {file.name for file in list_files(evaluator)} or not path.is_file():
        raise NotThere(f"{evaluator.slug} has no file “{name}”.")
    return path


def read_card(evaluator: Evaluator, fold: int = 0) -> str:
    """The card as Markdown, of one fold where there are several; empty where it is gone."""
    name = f"fold-{fold}/card.md" if evaluator.record.get("folds") else "card.md"
    try:
        return find_file(evaluator, name).read_text(encoding="utf-8")[:200_000]
    except (NotThere, OSError, UnicodeDecodeError):
        return ""


def read_curve(run: Run) -> dict[str, list[tuple[int, float]]]:
    """The loss by step for every phase of a training, in the order in which they began."""
    found: dict[str, list[tuple[int, float]]] = {}
    rows = CurvePoint.objects.filter(run=run).order_by("pk").values_list("series", "step", "loss")
    for series, step, loss in rows:
        found.setdefault(series, []).append((step, loss))
    return {series: sorted(points) for series, points in found.items()}


def find_scorable(*, user: Any, slug: str, project: str = "") -> Evaluator:
    """The trained evaluator of this slug among the projects that a person may read. Raises `NotThere`, and says
    which projects to choose from when several have one."""
    if project:
        return find_trained(get_project(user=user, slug=project, need="read"), slug)
    mine = Project.objects.visible_to(user, "read")
    found = list(
        Evaluator.objects.filter(kind=Evaluator.Kind.TRAINED, slug=slug, project__in=mine).select_related("project")[:9]
    )
    if not found:
        raise NotThere(
            f"There is no evaluator “{slug}”: neither in the catalogue nor among those trained in projects you can see."
        )
    if len(found) > 1:
        names = ", ".join(sorted(row.project.slug for row in found))
        raise NotThere(f"Several projects have an evaluator “{slug}”: {names}. Add ?project= to the address.")
    return found[0]
