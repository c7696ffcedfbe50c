"""Pages that choose outputs by an evaluator's scores: the alignment of a judge, and samples by expected error."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Campaign
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import EvalappError
from evalapp.common.pages import page, project_page
from scoring.forms.boards import list_aspects
from scoring.forms.fields import SeedField, add_faults, number_field, set_choices

from ..selectors.telling_outputs import list_alignment_campaigns, make_history
from ..services.choosing import (
    GOALS,
    AlignmentOptions,
    SampleOptions,
    choose_scores,
    create_alignment_campaign,
    create_sample_campaign,
    list_proposed,
)


class AlignmentForm(forms.Form):
    aspect = forms.ChoiceField(required=False, label=gettext_lazy("Aspect"))
    n = number_field(AlignmentOptions, "n", gettext_lazy("Outputs"), required=False)
    overlap = number_field(AlignmentOptions, "overlap", gettext_lazy("Raters of each output"), required=False)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        set_choices(self, aspect=["", *list_aspects(project, rated=True)])

    def as_options(self) -> AlignmentOptions:
        return AlignmentOptions(**_read_given(self))


class SampleForm(forms.Form):
    after = forms.ChoiceField(
        required=False, label=gettext_lazy("Continue the sample"),
        help_text=gettext_lazy("Empty: a new sample. The next batch keeps aspect, batches and goal."),
    )  # fmt: skip
    aspect = forms.ChoiceField(required=False, label=gettext_lazy("Aspect"))
    goal = forms.ChoiceField(choices=list(GOALS.items()), required=False, label=gettext_lazy("Which systems"))
    n = number_field(SampleOptions, "n", gettext_lazy("Outputs of this batch"), required=False)
    batches = number_field(SampleOptions, "batches", gettext_lazy("Batches"), required=False)
    overlap = number_field(SampleOptions, "overlap", gettext_lazy("Raters of each output"), required=False)
    floor = number_field(
        SampleOptions, "floor", gettext_lazy("Share drawn uniformly"),
        gettext_lazy("The rest is drawn by the expected error of the evaluator."), required=False,
    )  # fmt: skip
    seed = SeedField(required=False, help_text=gettext_lazy("Divides the outputs and draws them."))

    def __init__(self, *args: Any, project: Project, evaluator: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = Campaign.objects.filter(
            project=project, plan__chosen__reason="sample", plan__chosen__evaluator=evaluator
        ).order_by("-pk")
        set_choices(self, aspect=["", *list_aspects(project, rated=True)], after=["", *(row.slug for row in rows)])

    def as_options(self) -> SampleOptions:
        return SampleOptions(**_read_given(self))


def _read_given(form: forms.Form) -> dict[str, Any]:
    return {name: value for name, value in form.cleaned_data.items() if value not in ("", None)}


@project_page(GET="read", POST="write")
def alignment(request: HttpRequest, project: Project, evaluator: str) -> HttpResponse:
    """Versions of a judge, and the most informative outputs; a POST makes a campaign."""
    form = AlignmentForm(request.POST or request.GET or None, project=project)
    options = form.as_options() if form.is_bound and form.is_valid() else AlignmentOptions()
    score_set, aspect = choose_scores(project, evaluator, options.aspect)
    # The first list is that of an aspect, which the form names.
    form.initial["aspect"] = aspect.name
    if request.method == "POST" and form.is_valid():
        campaign = create_alignment_campaign(project=project, user=request.user, evaluator=evaluator, options=options)
        messages.success(request, _("%(name)s was created. Look at it, then open it.") % {"name": campaign.name})
        return redirect("annotation:campaign", project.slug, campaign.pk)
    context = {
        "project": project, "evaluator": score_set.evaluator, "form": form, "options": options,
        "aspect": aspect.name, "history": make_history(project, score_set.evaluator, aspect),
        "outputs": list_proposed(project, evaluator, options),
        "campaigns": list_alignment_campaigns(project, score_set.evaluator),
        "may_write": can(user=request.user, project=project, need="write"),
    }  # fmt: skip
    return page(request, "scoring/judges/alignment.html", context, status=422 if form.errors else 200)


@project_page(GET="write", POST="write")
def sample(request: HttpRequest, project: Project, evaluator: str) -> HttpResponse:
    """Draw the outputs of a campaign by the expected error of an evaluator."""
    score_set, _aspect = choose_scores(project, evaluator, "")
    form = SampleForm(request.POST or None, project=project, evaluator=evaluator)
    if request.method == "POST" and form.is_valid():
        try:
            campaign = create_sample_campaign(
                project=project, user=request.user, evaluator=evaluator, options=form.as_options()
            )
        except EvalappError as error:
            add_faults(form, error)
        else:
            messages.success(request, _("%(name)s was created. Look at it, then open it.") % {"name": campaign.name})
            return redirect("annotation:campaign", project.slug, campaign.pk)
    context = {"project": project, "evaluator": score_set.evaluator, "form": form}
    return page(request, "scoring/judges/sample.html", context, status=422 if form.errors else 200)
