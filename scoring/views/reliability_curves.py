"""The page of reliability curves, which a run computes."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can, get_project
from evalapp.common.errors import EvalappError, NotThere
from evalapp.common.forms import read_number
from evalapp.common.models import Run
from evalapp.common.pages import page
from evalapp.common.params import GREATEST_SEED, LEAST_SEED
from scoring.forms.fields import list_reference_sets

from ..selectors.reliability_curves import PANELS, latest_curves
from ..selectors.training import list_trained, ream_under_way
from ..services.reports import CurveOptions, start_curves


class CurvesForm(forms.Form):
    """The evaluator of the curves, and another one for the transfer curve."""

    evaluator = forms.ChoiceField(label=gettext_lazy("Evaluator"), help_text=gettext_lazy("A trained ream."))
    other = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Transfer to"),
        help_text=gettext_lazy("A ream for another metric, which uses the references that the first one selects."),
    )
    references = forms.ChoiceField(
        label=gettext_lazy("References"), help_text=gettext_lazy("Smaller sets are sampled from this set.")
    )
    sample = forms.IntegerField(
        initial=300, min_value=1, max_value=5000, label=gettext_lazy("Maximum items"),
        help_text=gettext_lazy("Sampled with the seed."),
    )  # fmt: skip
    seed = forms.IntegerField(initial=13, min_value=LEAST_SEED, max_value=GREATEST_SEED, label=gettext_lazy("Seed"))

    def __init__(self, *args: object, project: Project, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        slugs = [(slug, slug) for slug in list_trained(project).filter(name="ream").values_list("slug", flat=True)]
        sets = [(name, name) for name in list_reference_sets(project)]
        for name, choices in (("evaluator", slugs), ("other", [("", _("none")), *slugs]), ("references", sets)):
            self.fields[name].choices = choices  # type: ignore[attr-defined]
        if len(slugs) < 2:
            del self.fields["other"]


@login_required
@require_http_methods(["GET", "POST"])
def reliability_curves(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="write" if request.method == "POST" else "read")
    form = CurvesForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        given = {name: value for name, value in form.cleaned_data.items() if value not in ("", None)}
        try:
            run = start_curves(project=project, user=request.user, options=CurveOptions(**given))
        except EvalappError as error:
            form.add_error(None, error.detail)
        else:
            messages.success(request, _("%(run)s: queued.") % {"run": run.title})
            return redirect("run", project.slug, run.pk)
    shown = _find_curves(project, request.GET.get("run", ""))
    context = {
        "project": project,
        "form": form,
        "runs": latest_curves(project),
        "shown": shown,
        "found": shown.result if shown else None,
        "panels": [(name, _(text)) for name, text in PANELS.items() if shown and shown.result["panels"].get(name)],
        "has_judge": list_trained(project).filter(name="ream").exists(),
        "training": ream_under_way(project),
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/references/curves.html", context, status=422 if form.errors else 200)


def _find_curves(project: Project, number: str) -> Run | None:
    """Return the run of that number, or the last one with curves."""
    rows = latest_curves(project)
    if (wanted := read_number(number)) is not None:
        result = Run.objects.filter(project=project, kind="reliability", pk=wanted).first()
        if result is None or not result.result:
            raise NotThere(_("This run has no curves."))
        return result
    return rows[0] if rows else None
