"""Combine evaluators, and recompute a combination."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, EvalappError, Fault, NotThere
from evalapp.common.pages import page
from evalapp.common.params import GREATEST_SEED, LEAST_SEED
from scoring.boards.choices import RATINGS
from scoring.forms.boards import list_aspects
from scoring.forms.fields import list_reference_sets

from ..models import Evaluator
from ..selectors.score_sets import current_sets
from ..services.combining import METHODS, CombineOptions, combine_again, start_combination


class CombineForm(forms.Form):
    parts = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, label=gettext_lazy("Evaluators"),
        help_text=gettext_lazy("Two or more. Outputs without a score by each selected evaluator are not scored."),
    )  # fmt: skip
    method = forms.ChoiceField(
        choices=list(METHODS.items()), initial="mean-z", label=gettext_lazy("Method"),
        help_text=gettext_lazy(
            "The mean of z-scores weights all evaluators equally. Stacking learns weights from ratings; it is compared "
            "with others only on outputs outside its training data."
        ),
    )  # fmt: skip
    name = forms.SlugField(
        max_length=80, required=False, label=gettext_lazy("Name"),
        help_text=gettext_lazy("Lower-case letters, digits, hyphens. Empty: combined-1, combined-2 and so on."),
    )  # fmt: skip
    references = forms.ChoiceField(
        required=False, label=gettext_lazy("References"), help_text=gettext_lazy("Scores with this reference set.")
    )
    aspect = forms.ChoiceField(
        required=False, label=gettext_lazy("Aspect"), help_text=gettext_lazy("Stacking: the ratings to learn from.")
    )
    ratings = forms.ChoiceField(
        choices=list(RATINGS.items()), required=False, initial="raw", label=gettext_lazy("Ratings")
    )
    share = forms.FloatField(
        min_value=0.1, max_value=0.9, required=False, initial=0.5, label=gettext_lazy("Share of groups"),
        help_text=gettext_lazy("Stacking: the share of groups of items for training, 0.1 to 0.9."),
    )  # fmt: skip
    seed = forms.IntegerField(
        min_value=LEAST_SEED, max_value=GREATEST_SEED, required=False, initial=13, label=gettext_lazy("Seed"),
        help_text=gettext_lazy("Selects the training groups."),
    )  # fmt: skip

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        slugs = list(dict.fromkeys(s.evaluator.slug for s in combinable(project)))
        aspects = list_aspects(project, rated=True)
        choices = {
            "parts": [(slug, slug) for slug in slugs],
            "references": [(name, name) for name in list_reference_sets(project)],
            "aspect": [(name, name) for name in aspects],
        }
        for name, options in choices.items():
            self.fields[name].choices = options  # type: ignore[attr-defined]
        if len(choices["references"]) < 2:
            del self.fields["references"]

    def as_options(self) -> CombineOptions:
        given = {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
        return CombineOptions(**{**given, "parts": tuple(given["parts"])})


def combinable(project: Project) -> list[Any]:
    """Return the current score sets that are no combinations, with all reference sets."""
    sets = [s for name in {ORIGINAL, *list_reference_sets(project)} for s in current_sets(project, name)]
    single = [s for s in sets if s.evaluator.kind != Evaluator.Kind.COMBINED]
    return sorted(single, key=lambda s: s.evaluator.slug)


@login_required
@require_http_methods(["GET", "POST"])
def combine(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="write")
    form = CombineForm(request.POST or None, project=project, initial={"parts": request.GET.getlist("part")})
    if request.method == "POST" and form.is_valid():
        try:
            run = start_combination(project=project, user=request.user, options=form.as_options())
        except EvalappError as error:
            for fault in error.faults or [Fault(error.detail)]:
                form.add_error(fault.field if fault.field in form.fields else None, fault.message)
        else:
            messages.success(request, _("%(run)s: queued.") % {"run": run.title})
            return redirect("run", project.slug, run.pk)
    context = {"project": project, "form": form, "n_parts": len(form.fields["parts"].choices)}  # type: ignore[attr-defined]
    return page(request, "scoring/evaluators/combine.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def again(request: HttpRequest, slug: str, evaluator: str) -> HttpResponse:
    """Recompute a combination from the current scores of its parts."""
    project = get_project(user=request.user, slug=slug, need="write")
    row = Evaluator.objects.filter(project=project, slug=evaluator, kind=Evaluator.Kind.COMBINED).first()
    if row is None:
        if Evaluator.objects.filter(project=project, slug=evaluator).exists():
            raise BadInput(_("%(name)s is not a combination. Apply it again under Evaluators.") % {"name": evaluator})
        raise NotThere(_("There is no evaluator “%(name)s”.") % {"name": evaluator})
    run = combine_again(project=project, user=request.user, evaluator=row)
    messages.success(request, _("%(run)s: queued.") % {"run": run.title})
    return redirect("run", project.slug, run.pk)
