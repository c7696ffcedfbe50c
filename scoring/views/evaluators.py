"""Pages of evaluators: the catalogue, applying evaluators, and an evaluator with its training and scores. Training,
files and deletion are in `trained`."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.figures import send_figure
from evalapp.common.forms import read_number
from evalapp.common.markdown import render_markdown
from evalapp.common.models import Run
from evalapp.common.pages import page, project_page
from evalapp.markup import guard_formula
from evalapp.side_figures import side_figure
from scoring.boards.choices import ASSISTANT
from scoring.boards.render.page import Column, Given, arrange
from scoring.forms.fields import ApplyForm, add_faults, list_reference_sets
from scoring.plots import drawing
from scoring.plots.curves import draw, draw_folds
from scoring.plots.drawing import Picture

from ..models import Evaluator, Score, ScoreSet
from ..selectors.assistant import find_fit
from ..selectors.catalogue import entries, get_entry, get_method, list_shipped
from ..selectors.chosen_sets import get_set
from ..selectors.exports import SCORES_IN_ORDER
from ..selectors.external import list_origins, refuse_scoring
from ..selectors.inputs import count_outputs
from ..selectors.reading import warn_unreadable
from ..selectors.runs import list_active_runs
from ..selectors.score_sets import SetState, get_states, list_states
from ..selectors.training import (
    count_readings,
    find_training_data,
    list_files,
    list_trained,
    missing_for,
    read_card,
)
from ..services.assistant import start_refit
from ..services.scores import apply_evaluator
from ..services.several import CURRENT, REFUSED, UNDER_WAY, plan_scores, score_several
from .starting import open_run

if TYPE_CHECKING:
    from scoring.ml import Entry

#: Parts of the catalogue: name, heading, description.
PARTS = (
    (
        "sentinel",
        gettext_noop("Trivial baselines"),
        gettext_noop("They know nothing of quality; a metric that does not beat them adds no evidence."),
    ),
    ("words", gettext_noop("Overlap with references"), gettext_noop("Compare words or characters with references.")),
    ("vectors", gettext_noop("Encoders"), gettext_noop("Compare texts by a pretrained encoder; slower.")),
    ("alone", gettext_noop("Without references"), gettext_noop("Need only the outputs.")),
    ("trained", gettext_noop("To train"), gettext_noop("Trained on the texts and judgements of this project.")),
)
Lines: TypeAlias = dict[str, list[tuple[float, float]]]
_NO_SUMMARY: dict[str, Any] = {
    "n": 0, "n_undefined": 0, **dict.fromkeys(("mean", "p5", "p25", "p50", "p75", "p95")),
}  # fmt: skip
#: Plots shown at once; those of single aspects can be unfolded.
FEW_PICTURES = 4


@project_page(GET="read")
def evaluator_list(request: HttpRequest, project: Project) -> HttpResponse:
    n_outputs = count_outputs(project)
    states = list_states(project, n_outputs)
    applied: dict[str, list[SetState]] = {}
    for state in states:
        applied.setdefault(state.score_set.evaluator.name, []).append(state)
    facts = find_training_data(project)
    trained = list(list_trained(project))
    parts: dict[str, list[dict[str, Any]]] = {name: [] for name, _title, _about in PARTS}
    for entry in entries():
        row = {"entry": entry, "states": applied.get(entry.name, []), "missing": missing_for(entry, facts)}
        # Baselines for a start; further metrics are a choice of the user.
        row["is_advised"] = not states and entry.kind == "sentinel"
        row["lacks_references"] = not entry.learns and "references" in entry.needs and not facts["references"]
        parts[_find_part(entry)].append(row)
    context = {
        "project": project,
        "parts": [(name, _(title), _(about), parts[name]) for name, title, about in PARTS],
        "states": states,
        "trained": trained,
        "shipped": [one for one in list_shipped().values() if one.name not in {row.slug for row in trained}],
        "under_way": list(list_active_runs(project, "train")),
        "n_outputs": n_outputs,
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/evaluators/list.html", context)


def _find_part(entry: Entry) -> str:
    if entry.kind == "sentinel" or entry.learns:
        return "trained" if entry.learns else "sentinel"
    if "encoder" in entry.needs:
        return "vectors"
    return "words" if "references" in entry.needs else "alone"


@project_page(GET="write", POST="write")
def score_selected(request: HttpRequest, project: Project) -> HttpResponse:
    """Show what scoring with the selected evaluators would do, then queue it."""
    given = request.POST if request.method == "POST" else request.GET
    names, references = given.getlist("evaluators"), given.get("references", "") or ORIGINAL
    if not names:
        messages.warning(request, _("Select at least one evaluator."))
        return redirect("scoring:evaluator-list", project.slug)
    if request.method == "POST":
        runs, rest = score_several(project=project, user=request.user, evaluators=names, references=references)
        for plan in rest:
            if plan.outcome == REFUSED:
                messages.warning(request, f"{plan.evaluator}: {plan.why}")
        if not runs:
            if any(plan.outcome == UNDER_WAY for plan in rest):
                messages.info(request, _("Runs with the selected evaluators are under way."))
            elif any(plan.outcome == CURRENT for plan in rest):
                messages.success(request, _("All scores of the selected evaluators are current."))
            return redirect("scoring:evaluator-list", project.slug)
        text = ngettext("%(count)d run queued.", "%(count)d runs queued.", len(runs))
        messages.success(request, text % {"count": len(runs)})
        return redirect(f"{reverse('run-list', args=[project.slug])}?kind=score")
    plans = plan_scores(project=project, evaluators=names, references=references)
    needed = [plan for plan in plans if plan.is_needed]
    context = {
        "project": project,
        "plans": plans,
        "needed": needed,
        "seconds": sum(plan.seconds for plan in needed),
        "is_measured": all(plan.is_measured for plan in needed),
        "n_outputs": needed[0].n_outputs if needed else 0,
        "names": names,
        "references": references,
        "sets": list_reference_sets(project),
    }
    return page(request, "scoring/evaluators/score.html", context)


@project_page(GET="write", POST="write")
def apply(request: HttpRequest, project: Project, name: str) -> HttpResponse:
    row = Evaluator.objects.filter(project=project, slug=name).first()
    if row is not None:
        refuse_scoring(row)
    if name == ASSISTANT and request.method == "POST":
        return open_run(request, start_refit(project=project, user=request.user))
    trained = list_trained(project).filter(slug=name).first()
    entry = get_entry(trained.name) if trained else get_method(name)
    if entry.learns and trained is None and name not in list_shipped():
        return redirect("scoring:train", project.slug, name)
    form = ApplyForm(request.POST or None, project=project, entry=entry)
    # A form without fields, of an evaluator without options, counts as valid.
    if request.method == "POST" and (form.is_valid() or not form.fields):
        try:
            run = apply_evaluator(
                project=project,
                user=request.user,
                evaluator=name,
                options=form.options if form.fields else {},
                references=form.cleaned_data.get("references", "") if form.fields else "",
            )
        except (BadInput, Conflict) as error:
            add_faults(form, error)
        else:
            return open_run(request, run)
    n_outputs = count_outputs(project)
    context = {
        "project": project, "entry": entry, "form": form, "n_outputs": n_outputs, "trained": trained, "title": name,
        "reads": count_readings(trained, entry, n_outputs) if trained else {},
        "warning": warn_unreadable(project, entry, {}, trained),
    }  # fmt: skip
    return page(request, "scoring/evaluators/apply.html", context, status=422 if form.errors else 200)


@project_page(POST="write")
def score_sentinels(request: HttpRequest, project: Project) -> HttpResponse:
    """Queue every trivial baseline that has not been applied."""
    applied = set(ScoreSet.objects.filter(project=project).values_list("evaluator__name", flat=True))
    names = [entry.name for entry in entries() if entry.kind == "sentinel" and entry.name not in applied]
    for name in names:
        apply_evaluator(project=project, user=request.user, evaluator=name)
    text = _("Queued: %(names)s.") if names else _("All trivial baselines have been applied.")
    messages.success(request, text % {"names": ", ".join(names)})
    return redirect("scoring:evaluator-list", project.slug)


@project_page(GET="read")
def evaluator(request: HttpRequest, project: Project, evaluator: str) -> HttpResponse:
    """An evaluator with its training and its scores, if any."""
    row = list_trained(project).filter(slug=evaluator).first()
    number = request.GET.get("set", "")
    if row is not None and not number and not ScoreSet.objects.filter(evaluator=row).exists():
        score_set = None
    else:
        score_set = get_set(project, evaluator, number)
    context = {
        "project": project,
        "evaluator": score_set.evaluator if score_set else row,
        "may_write": can(user=request.user, project=project, need="write"),
        "fit": find_fit(project) if evaluator == ASSISTANT else None,
        **(_scores(project, score_set, dict(request.GET.lists())) if score_set else {}),
        **(_training(request, row) if row else {}),
    }
    drawn = [*(context.get("losses") or ()), *context.get("figures", ()), *context.get("more_figures", ())]
    if file := send_figure(request, [picture.figure for picture in drawn]):
        return file
    if score_set is None:
        asked = Run.objects.filter(project=project, kind="score", params__evaluator=evaluator, state__in=Run.ACTIVE)
        context["scoring_run"] = asked.first()
    name = context["evaluator"].name
    context["entry"] = next((entry for entry in entries() if entry.name == name), None)
    return page(request, "scoring/evaluators/show.html", context)


def _scores(project: Project, score_set: ScoreSet, given: Given) -> dict[str, Any]:
    others = ScoreSet.objects.filter(evaluator=score_set.evaluator).select_related("evaluator", "run").order_by("-pk")
    states = get_states(project, others, count_outputs(project))
    summary = _with_own_values(score_set)
    columns = [
        Column("system", _("System"), lambda row: row["label"], is_number=False),
        Column("n", "n", lambda row: row["n"]),
        Column("mean", _("Mean"), lambda row: row["mean"]),
        *([Column("own", _("System’s score"), lambda row: row["own"]["value"])] if score_set.systems else []),
        Column("p5", "5 %", lambda row: row["p5"], css="narrow-hide"),
        Column("p25", "25 %", lambda row: row["p25"]),
        Column("p50", _("Median"), lambda row: row["p50"]),
        Column("p75", "75 %", lambda row: row["p75"]),
        Column("p95", "95 %", lambda row: row["p95"], css="narrow-hide"),
        Column("undefined", _("Undefined"), lambda row: row["n_undefined"]),
    ]
    return {
        "score_set": score_set,
        "origins": list_origins(score_set) if score_set.evaluator.is_external else [],
        "state": next(state for state in states if state.score_set.pk == score_set.pk),
        "states": states,
        "summary": summary,
        "grid": arrange(columns, summary, given),
        "has_values": any(row["n"] for row in summary),
        "distribution": plan_distribution(score_set),
        "plot": f"set={score_set.pk}&v={score_set.data_hash}",
    }


def plan_distribution(score_set: ScoreSet) -> Picture:
    """Return the box plot of the scores of each system."""
    rows = [row for row in score_set.summary if row["n"]]
    name = score_set.evaluator.slug
    median = _("%(label)s: median %(value).3g")
    words = "; ".join(median % {"label": row["label"], "value": row["p50"]} for row in rows)
    title = _("Scores of %(evaluator)s by system") % {"evaluator": name}
    paint = partial(drawing.draw_distribution, rows, title=title, description=words, axis=name)
    return Picture(partial(drawing.size_distribution, len(rows)), paint, words)


def _training(request: HttpRequest, row: Evaluator) -> dict[str, Any]:
    """Return the context of a training: record, model card, curves, files."""
    record = row.record
    models = record.get("models", [])
    wished = read_number(request.GET.get("fold", "")) or 0
    fold = wished if wished < len(models) else 0
    losses, pictures = None, []
    with side_figure(_("The curves of the training")):
        lines, evaluations = _curves(models)
        held_out = _("held-out data")
        losses = draw_folds(lines, title=_("Loss of %(name)s") % {"name": row.slug}, axis=_("loss"))
        pictures = [
            draw(evaluations[name], title=f"{row.slug}, {held_out}, {name}", axis=name, named=False)
            for name in sorted(evaluations, key=len)
        ]
    # As pairs, because templates read a count named "items" as the method of dict.
    examples = list(models[fold]["examples"].items()) if models else []
    card = read_card(row, fold)
    return {
        "trained": row,
        "record": record,
        "model": models[fold] if models else None,
        "fold": fold,
        "folds": range(record.get("folds", 0)),
        "examples": examples,
        "card": card,
        # Headings of levels 1 and 2 belong to the page.
        "card_html": render_markdown(re.sub(r"^(#{1,2}) ", r"##\1 ", card, flags=re.MULTILINE)),
        "losses": losses,
        "figures": pictures[:FEW_PICTURES],
        "more_figures": pictures[FEW_PICTURES:],
        "files": list_files(row),
        "choice": {name: value for name, value in record.get("choice", {}).items() if value},
    }


def _curves(models: list[dict[str, Any]]) -> tuple[Lines, dict[str, Lines]]:
    """Return the curves of the training logs: losses, which share an axis, and evaluations on held-out data by name.

    A log in which steps restart has several phases, with a line for each.
    """
    losses: Lines = {}
    evaluations: dict[str, Lines] = {}
    for number, model in enumerate(models):
        fold = f"fold {number + 1}" if len(models) > 1 else ""
        phase, before = 1, -1.0
        for row in model["log"]:
            step = row.get("step")
            if not isinstance(step, int | float):
                continue
            phase, before = phase + (step <= before), step
            part = row.get("phase") or (f"phase {phase}" if phase > 1 else "")
            for column, value in row.items():
                if isinstance(value, bool) or not isinstance(value, int | float):
                    continue
                name = column.removeprefix("dev_").replace("_", " ")
                if column == "loss" or (column.startswith("dev_") and "loss" in column):
                    whole = ", ".join(filter(None, (fold, column.replace("_", " "), part)))
                    losses.setdefault(whole, []).append((step, value))
                elif column.startswith("dev_"):
                    line = ", ".join(filter(None, (fold, part))) or name
                    evaluations.setdefault(name, {}).setdefault(line, []).append((step, value))
    return losses, evaluations


def _with_own_values(score_set: ScoreSet) -> list[dict[str, Any]]:
    """Return the summary of each system with the evaluator's own value; scores of whole systems may be all there is."""
    from scoring.boards.data.columns import label_unit  # imports numpy, which would delay the start of the web process

    own = {(row["system"], row["step"]): row for row in score_set.systems}
    nothing: dict[str, Any] = {"value": None, "low": None}
    rows = score_set.summary or [
        {**_NO_SUMMARY, "system": system, "step": step, "label": label_unit(system, step)} for system, step in own
    ]
    return [{**row, "own": {**nothing, **own.get((row["system"], row["step"]), {})}} for row in rows]


class _Echo:
    """A file whose `write` returns the text, to stream CSV line by line."""

    def write(self, text: str) -> str:
        return text


@project_page(GET="read")
def scores_csv(request: HttpRequest, project: Project, evaluator: str) -> StreamingHttpResponse:
    score_set = get_set(project, evaluator, request.GET.get("set", ""))
    response = StreamingHttpResponse(_csv_lines(score_set), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{project.slug}-{evaluator}-scores.csv"'
    return response


def _csv_lines(score_set: ScoreSet) -> Iterator[str]:
    writer = csv.writer(_Echo(), lineterminator="\n")
    yield writer.writerow(["item", "system", "step", "value", "note", "in_training", "signature"])  # type: ignore[misc]
    fields = ("output__item__key", "output__system__name", "output__step", "value", "note", "in_training")
    rows = Score.objects.filter(score_set=score_set).order_by(*SCORES_IN_ORDER).values_list(*fields)
    signature = guard_formula(score_set.full_signature)
    for item, system, step, value, note, seen in rows.iterator(chunk_size=5000):
        row = [guard_formula(item), guard_formula(system), step, value, guard_formula(note), int(seen), signature]
        yield writer.writerow(row)  # type: ignore[misc]
