"""Pages of training: form and dry check, loss curve, files, upload, deleting. The page of an evaluator is in
`evaluators`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Sum
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Conflict, EvalappError, Fault, NotThere
from evalapp.common.figures import send_figure
from evalapp.common.forms import read_number
from evalapp.common.models import Run
from evalapp.common.pages import page, project_page
from evalapp.common.queue import explain_waiting, queue_has_worker
from evalapp.common.selectors import find_run
from evalapp.side_figures import side_figure
from evalapp.stored_texts import translate_stored
from scoring.forms.fields import NameField, add_faults
from scoring.forms.train import TrainForm, data_from, describe_params, initial_from
from scoring.plots.curves import draw_folds

from ..downloads import send_file, send_tar
from ..models import Evaluator, ScoreSet
from ..selectors.catalogue import get_entry, list_shipped
from ..selectors.further import list_further
from ..selectors.games import KIND as GAMES
from ..selectors.judge_answers import list_asked_answers
from ..selectors.reference_sets import sets_chosen_by
from ..selectors.runs import find_numbered_run
from ..selectors.score_sets import list_combinations
from ..selectors.training import find_trained, find_training_data, missing_for, read_curve
from ..services.artefacts import receive_artefact
from ..services.evaluators import delete_evaluator
from ..services.training import MOST_FOLDS, has_passed, matches_check, start_check, start_checked
from .starting import open_run

if TYPE_CHECKING:
    from scoring.ml import Entry

#: Further projects that the form of a training offers; commands and the API take any.
MOST_PROJECTS = 100


@project_page(GET="write", POST="write")
def train(request: HttpRequest, project: Project, name: str) -> HttpResponse:
    """Fill in the form, check it, then train: nothing is queued for the GPU before a check succeeded."""
    entry = get_entry(name)
    if not entry.learns:
        raise NotThere(_("%(name)s needs no training. Apply it under Evaluators.") % {"name": name})
    if request.method == "POST":
        form = _make_form(request, project, entry, request.POST)
        if form.is_valid():
            try:
                return _to_check(start_check(project=project, user=request.user, options=form.as_options()), name)
            except EvalappError as error:
                add_faults(form, error)
        return _train_page(request, project, entry, form)
    check = _find(project, "plan", name, request.GET.get("check", ""))
    earlier = check or _find(project, "train", name, request.GET.get("run", ""))
    initial = initial_from(entry, earlier.params) if earlier else None
    if check is not None and initial is not None and check.state == Run.State.FAILED and check.faults:
        # Errors of the check are shown at their fields.
        form = _make_form(request, project, entry, data_from(initial))
        form.is_valid()
        add_faults(form, BadInput(check.error, faults=[Fault(**fault) for fault in check.faults]))
    else:
        form = _make_form(request, project, entry, initial=initial)
    response = _train_page(request, project, entry, form, check)
    if request.htmx and form.errors:  # type: ignore[attr-defined]
        response.headers["HX-Refresh"] = "true"
    return response


def _make_form(request: HttpRequest, project: Project, entry: Entry, *data: Any, **more: Any) -> TrainForm:
    further = list(list_further(project, request.user)[:MOST_PROJECTS])
    return TrainForm(*data, project=project, entry=entry, further=further, **more)


def _train_page(
    request: HttpRequest, project: Project, entry: Entry, form: TrainForm, check: Run | None = None
) -> HttpResponse:
    plan = check.result if check and has_passed(check) else None
    context = {
        "project": project,
        "entry": entry,
        "form": form,
        "check": check,
        "checking": check is not None and check.is_active,
        "waiting": explain_waiting(check) if check else "",
        "plan": plan,
        "found": check.result if check else None,
        "verdict": (check.result or {}).get("verdict") if check else None,
        "checked": describe_params(entry, check.params) if check else [],
        # As pairs, because templates read a count named "items" as the method of dict.
        "examples": list((plan or {}).get("examples", {}).items()),
        "has_worker": check is None or not check.is_active or queue_has_worker(check.queue),
        "missing": missing_for(entry, find_training_data(project)),
        "shipped": [one for one in list_shipped().values() if one.method == entry.name],
    }
    refused = bool(form.errors) and request.method == "POST"
    return page(request, "scoring/evaluators/train.html", context, fragment="check", status=422 if refused else 200)


def _to_check(check: Run, name: str) -> HttpResponse:
    return redirect(f"{reverse('scoring:train', args=[check.project.slug, name])}?check={check.pk}#check")


def _find(project: Project, kind: str, name: str, number: str) -> Run | None:
    """Return the check or training run of this evaluator with that number."""
    run = find_numbered_run(project, kind, number)
    return run if run is not None and run.params.get("evaluator") == name else None


@project_page(POST="write")
def train_start(request: HttpRequest, project: Project, name: str) -> HttpResponse:
    """Train what was checked. The button sends the whole form; if it changed since the check, it is checked again."""
    check = _find(project, "plan", name, request.POST.get("check", ""))
    if check is None:
        raise NotThere(_("There is no such check. Check the training first."))
    if not has_passed(check):
        raise Conflict(_("Only a training that passed its check can start. Check again."))
    entry = get_entry(name)
    data = request.POST if "folds" in request.POST else data_from(initial_from(entry, check.params))
    form = _make_form(request, project, entry, data)
    if not form.is_valid():
        return _train_page(request, project, entry, form)
    try:
        if data is request.POST and not matches_check(project, check, form.as_options(), user=request.user):
            again = start_check(project=project, user=request.user, options=form.as_options())
            messages.warning(request, _("The options changed after the check, so they are checked first."))
            return _to_check(again, name)
        run = start_checked(project=project, user=request.user, check=check)
    except EvalappError as error:
        add_faults(form, error)
        return _train_page(request, project, entry, form)
    return open_run(request, run)


@require_GET
def training_curve(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The loss curve of a training; the page polls it while the training runs."""
    run = find_run(user=request.user, pk=pk, slug=slug)
    losses = None
    with side_figure(_("The curve of the loss")):
        losses = draw_folds(
            read_curve(run),
            title=_("Loss of %(run)s") % {"run": translate_stored(run.title)},
            axis=_("mean loss since the last point"),
        )
    context = {"project": run.project, "run": run, "losses": losses}
    return send_figure(request, [picture.figure for picture in losses or ()]) or page(
        request, "scoring/training/curve.html", context, fragment="curve"
    )


@project_page(GET="read")
def evaluator_file(request: HttpRequest, project: Project, evaluator: str, name: str) -> FileResponse:
    return send_file(find_trained(project, evaluator), name)


@project_page(GET="read")
def evaluator_tar(request: HttpRequest, project: Project, evaluator: str) -> StreamingHttpResponse:
    return send_tar(find_trained(project, evaluator))


class _FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """Several files; the worker checks their content."""

    widget = _FilesInput(attrs={"multiple": True})

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        files = data if isinstance(data, list) else [data] if data else []
        if self.required and not files:
            raise forms.ValidationError(self.error_messages["required"], code="required")
        return files


class UploadForm(forms.Form):
    """The files of a model; of a cross-fitted evaluator its evaluator.json and the files of each fold."""

    name = NameField(
        required=False,
        max_length=80,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("Empty: uploaded-1, and so on."),
    )

    def __init__(self, *args: Any, folds: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["files"] = _FilesField(
            label=_("Files"),
            help_text=_("The evaluator.json next to the folders of the folds.")
            if folds
            else _(
                "All files of the folder: evaluator.json, config.json, model.safetensors, card.md, train_log.jsonl, "
                "split.json, fixtures.jsonl, and the tokenizer files."
            ),
        )
        for number in range(folds):
            self.fields[f"fold-{number}"] = _FilesField(label=_("Files of fold-%(n)d") % {"n": number})

    def given(self) -> dict[str, list[Any]]:
        return {name: files for name, files in self.cleaned_data.items() if name != "name" and files}


@project_page(GET="write", POST="write")
def upload(request: HttpRequest, project: Project) -> HttpResponse:
    requested = read_number(request.GET.get("folds", "")) or 0
    folds = min(requested, MOST_FOLDS) if requested > 1 else 0
    form = UploadForm(request.POST or None, request.FILES or None, folds=folds)
    if request.method == "POST" and form.is_valid():
        try:
            run = receive_artefact(
                project=project, user=request.user, name=form.cleaned_data["name"], files=form.given()
            )
        except EvalappError as error:
            add_faults(form, error)
        else:
            messages.success(request, _("%(run)s: being checked.") % {"run": translate_stored(run.title)})
            return redirect("run", project.slug, run.pk)
    context = {"project": project, "form": form, "folds": folds, "choices": range(2, 11)}
    return page(request, "scoring/evaluators/upload.html", context, status=422 if form.errors else 200)


@project_page(GET="write", POST="write")
def delete(request: HttpRequest, project: Project, evaluator: str) -> HttpResponse:
    kinds = [Evaluator.Kind.COMBINED, Evaluator.Kind.JUDGE]
    other = Evaluator.objects.filter(project=project, slug=evaluator, kind__in=kinds).first()
    row = other or find_trained(project, evaluator)
    if request.method == "POST":
        try:
            delete_evaluator(evaluator=row, user=request.user, with_answers="answers" in request.POST)
        except (BadInput, Conflict) as error:
            messages.error(request, error.detail)
        else:
            messages.success(request, _("%(name)s and its scores deleted.") % {"name": evaluator})
            return redirect("scoring:evaluator-list", project.slug)
    games = Run.objects.filter(project=project, kind=GAMES, state=Run.State.SUCCEEDED, result__judge=row.pk)
    n_scores = sum(ScoreSet.objects.filter(evaluator=row).values_list("n_scores", flat=True))
    chosen = sets_chosen_by(project, row.slug)
    context = {
        "project": project, "evaluator": row, "n_scores": n_scores, "chosen": chosen,
        "combined": list_combinations(project, row.slug), "has_games": row.is_trained and games.exists(),
        "answers": list_asked_answers(row).aggregate(n=Count("pk"), cost=Sum("cost")) if row.is_judge else None,
    }  # fmt: skip
    return page(request, "scoring/evaluators/delete.html", context)
