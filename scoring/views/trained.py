"""Pages of training and of what was trained: the form with its dry check, the curve of a run, files, taking one in,
deleting one. The page of one evaluator is in `evaluators`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, Conflict, EvalappError, Fault, NotThere
from evalapp.common.forms import number_in
from evalapp.common.models import Run
from evalapp.common.pages import page
from evalapp.common.queue import queue_has_worker, words_of_waiting
from evalapp.common.selectors import find_run
from evalapp.side_figures import side_figure
from scoring.forms.fields import NameField, add_faults
from scoring.forms.train import TrainForm, data_from, describe_params, initial_from
from scoring.plots.curves import draw

from ..downloads import send_file, send_tar
from ..models import Evaluator, ScoreSet
from ..selectors.catalogue import get_entry
from ..selectors.games import KIND as GAMES
from ..selectors.reference_sets import sets_chosen_by
from ..selectors.score_sets import list_combinations
from ..selectors.training import find_trained, find_training_data, missing_for, read_curve
from ..services.artefacts import receive_artefact
from ..services.training import MOST_FOLDS, delete_evaluator, matches_check, start_check, start_checked

if TYPE_CHECKING:
    from scoring.ml import Entry


@login_required
@require_http_methods(["GET", "POST"])
def train(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Fill in, check, then train what was checked: nothing is queued for the GPU before a check found it fit."""
    project = get_project(user=request.user, slug=slug, need="write")
    entry = get_entry(name)
    if not entry.learns:
        raise NotThere(f"{name} needs no training. Apply it under Evaluators.")
    if request.method == "POST":
        form = TrainForm(request.POST, project=project, entry=entry)
        if form.is_valid():
            try:
                return _to_check(start_check(project=project, user=request.user, wishes=form.wishes()), name)
            except EvalappError as error:
                add_faults(form, error)
        return _train_page(request, project, entry, form)
    check = _find(project, "plan", name, request.GET.get("check", ""))
    earlier = check or _find(project, "train", name, request.GET.get("run", ""))
    initial = initial_from(entry, earlier.params) if earlier else None
    if check is not None and initial is not None and check.state == Run.State.FAILED and check.faults:
        # What the check refused stands at its fields, as if it had been refused at once.
        form = TrainForm(data_from(initial), project=project, entry=entry)
        form.is_valid()
        add_faults(form, BadInput(check.error, faults=[Fault(**fault) for fault in check.faults]))
    else:
        form = TrainForm(project=project, entry=entry, initial=initial)
    response = _train_page(request, project, entry, form, check)
    if request.htmx and form.errors:  # type: ignore[attr-defined]
        response.headers["HX-Refresh"] = "true"
    return response


def _train_page(
    request: HttpRequest, project: Project, entry: Entry, form: TrainForm, check: Run | None = None
) -> HttpResponse:
    plan = check.result if check else None
    context = {
        "project": project,
        "entry": entry,
        "form": form,
        "check": check,
        "checking": check is not None and check.is_active,
        "waiting": words_of_waiting(check) if check else "",
        "plan": plan,
        "checked": describe_params(entry, check.params) if check else [],
        # As pairs: a template would take a count of "items" for the method of that name.
        "examples": list((plan or {}).get("examples", {}).items()),
        "has_worker": check is None or not check.is_active or queue_has_worker(check.queue),
        "missing": missing_for(entry, find_training_data(project)),
    }
    refused = bool(form.errors) and request.method == "POST"
    return page(request, "scoring/evaluators/train.html", context, fragment="check", status=422 if refused else 200)


def _to_check(check: Run, name: str) -> HttpResponse:
    return redirect(f"{reverse('scoring:train', args=[check.project.slug, name])}?check={check.pk}#check")


def _find(project: Project, kind: str, name: str, number: str) -> Run | None:
    """The check or the training of this evaluator that has the number."""
    wanted = number_in(number)
    if wanted is None:
        return None
    found = Run.objects.filter(project=project, kind=kind, pk=wanted).select_related("project").first()
    return found if found is not None and found.params.get("evaluator") == name else None


@login_required
@require_POST
def train_start(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Train what a check found fit. The button sends the whole form: where that is no longer what was checked, it is
    checked again, and what was changed is not left aside in silence."""
    project = get_project(user=request.user, slug=slug, need="write")
    check = _find(project, "plan", name, request.POST.get("check", ""))
    if check is None:
        raise NotThere("There is no such check. Check the training first.")
    if check.state != Run.State.SUCCEEDED:
        raise Conflict("Only what a check found fit can be trained. Check again.")
    entry = get_entry(name)
    data = request.POST if "folds" in request.POST else data_from(initial_from(entry, check.params))
    form = TrainForm(data, project=project, entry=entry)
    if not form.is_valid():
        return _train_page(request, project, entry, form)
    try:
        if data is request.POST and not matches_check(project, check, form.wishes()):
            again = start_check(project=project, user=request.user, wishes=form.wishes())
            messages.warning(request, "The choices were changed after the check: they are checked first.")
            return _to_check(again, name)
        run = start_checked(project=project, user=request.user, check=check)
    except EvalappError as error:
        add_faults(form, error)
        return _train_page(request, project, entry, form)
    messages.success(request, f"{run.title}: in the queue.")
    return redirect("run", project.slug, run.pk)


@login_required
@require_GET
def training_curve(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The loss of a training so far; asks for itself anew while the training goes on."""
    run = find_run(user=request.user, pk=pk, slug=slug)
    losses = None
    with side_figure("The curve of the loss"):
        losses = draw(read_curve(run), title=f"Loss of {run.title}", axis="mean loss of the steps before")
    context = {"project": run.project, "run": run, "losses": losses}
    return page(request, "scoring/training/curve.html", context, fragment="curve")


@login_required
@require_GET
def evaluator_file(request: HttpRequest, slug: str, evaluator: str, name: str) -> FileResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    return send_file(find_trained(project, evaluator), name)


@login_required
@require_GET
def evaluator_tar(request: HttpRequest, slug: str, evaluator: str) -> StreamingHttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    return send_tar(find_trained(project, evaluator))


class _FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """Several files; what is in them is the worker's to judge."""

    widget = _FilesInput(attrs={"multiple": True})

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        files = data if isinstance(data, list) else [data] if data else []
        if self.required and not files:
            raise forms.ValidationError(self.error_messages["required"], code="required")
        return files


class UploadForm(forms.Form):
    """One model: its files. Cross-fitted: the evaluator.json of the whole, and the files of each fold."""

    name = NameField(required=False, max_length=80, label="Name", help_text="Empty: uploaded-1, and so on.")

    def __init__(self, *args: Any, folds: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["files"] = _FilesField(
            label="Files",
            help_text="The evaluator.json beside the folders of the folds."
            if folds
            else "All files of the folder: evaluator.json, config.json, model.safetensors, card.md, train_log.jsonl, "
            "split.json, fixtures.jsonl, and those of the tokenizer.",
        )
        for number in range(folds):
            self.fields[f"fold-{number}"] = _FilesField(label=f"Files of fold-{number}")

    def given(self) -> dict[str, list[Any]]:
        return {name: files for name, files in self.cleaned_data.items() if name != "name" and files}


@login_required
@require_http_methods(["GET", "POST"])
def upload(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="write")
    wished = number_in(request.GET.get("folds", "")) or 0
    folds = min(wished, MOST_FOLDS) if wished > 1 else 0
    form = UploadForm(request.POST or None, request.FILES or None, folds=folds)
    if request.method == "POST" and form.is_valid():
        try:
            run = receive_artefact(
                project=project, user=request.user, name=form.cleaned_data["name"], files=form.given()
            )
        except EvalappError as error:
            add_faults(form, error)
        else:
            messages.success(request, f"{run.title}: a worker checks it.")
            return redirect("run", project.slug, run.pk)
    context = {"project": project, "form": form, "folds": folds, "choices": range(2, 11)}
    return page(request, "scoring/evaluators/upload.html", context, status=422 if form.errors else 200)


@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, slug: str, evaluator: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="write")
    combined = Evaluator.objects.filter(project=project, slug=evaluator, kind=Evaluator.Kind.COMBINED).first()
    row = combined or find_trained(project, evaluator)
    if request.method == "POST":
        try:
            delete_evaluator(evaluator=row, user=request.user)
        except (BadInput, Conflict) as error:
            messages.error(request, error.detail)
        else:
            messages.success(request, f"{evaluator} and its scores are gone.")
            return redirect("scoring:evaluator-list", project.slug)
    games = Run.objects.filter(project=project, kind=GAMES, state=Run.State.SUCCEEDED, result__judge=row.pk)
    n_scores = sum(ScoreSet.objects.filter(evaluator=row).values_list("n_scores", flat=True))
    chosen = sets_chosen_by(project, row.slug)
    context = {
        "project": project, "evaluator": row, "n_scores": n_scores, "chosen": chosen,
        "combined": list_combinations(project, row.slug), "has_games": row.is_trained and games.exists(),
    }  # fmt: skip
    return page(request, "scoring/evaluators/delete.html", context)
