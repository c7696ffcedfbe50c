"""Combine evaluators, recompute a combination, and repeat a judge."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.pages import page, project_page
from evalapp.names import natural_key
from scoring.boards.choices import RATINGS
from scoring.forms.boards import list_aspects
from scoring.forms.fields import SeedField, list_reference_sets, number_field, set_choices

from ..models import Evaluator
from ..selectors.score_sets import current_sets
from ..services.combining import METHODS, CombineOptions, combine_again, start_combination
from ..services.judges import judge_again
from .starting import open_run, start_run


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
    share = number_field(
        CombineOptions, "share", gettext_lazy("Share of groups"),
        gettext_lazy("Stacking: the share of groups of items for training, 0.1 to 0.9."), required=False,
    )  # fmt: skip
    seed = SeedField(required=False, help_text=gettext_lazy("Selects the training groups."))

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        parts = dict.fromkeys(s.evaluator.slug for s in combinable(project))
        references = list_reference_sets(project)
        set_choices(self, parts=parts, references=references, aspect=list_aspects(project, rated=True))
        if len(references) < 2:
            del self.fields["references"]

    def as_options(self) -> CombineOptions:
        given = {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
        return CombineOptions(**{**given, "parts": tuple(given["parts"])})


def combinable(project: Project) -> list[Any]:
    """Return the current score sets that are no combinations, with all reference sets."""
    sets = [s for name in {ORIGINAL, *list_reference_sets(project)} for s in current_sets(project, name)]
    single = [s for s in sets if s.evaluator.kind != Evaluator.Kind.COMBINED]
    return sorted(single, key=lambda s: natural_key(s.evaluator.slug))


@project_page(GET="write", POST="write")
def combine(request: HttpRequest, project: Project) -> HttpResponse:
    form = CombineForm(request.POST or None, project=project, initial={"parts": request.GET.getlist("part")})
    if response := start_run(request, project, form, start_combination):
        return response
    context = {"project": project, "form": form, "n_parts": len(form.fields["parts"].choices)}  # type: ignore[attr-defined]
    return page(request, "scoring/evaluators/combine.html", context, status=422 if form.errors else 200)


@project_page(POST="write")
def again(request: HttpRequest, project: Project, evaluator: str) -> HttpResponse:
    """Recompute a combination from the current scores of its parts, or ask a judge about new and changed outputs."""
    kinds = [Evaluator.Kind.COMBINED, Evaluator.Kind.JUDGE]
    row = Evaluator.objects.filter(project=project, slug=evaluator, kind__in=kinds).first()
    if row is None:
        if Evaluator.objects.filter(project=project, slug=evaluator).exists():
            raise BadInput(_("%(name)s is not a combination. Apply it again under Evaluators.") % {"name": evaluator})
        raise NotThere(_("There is no evaluator “%(name)s”.") % {"name": evaluator})
    repeat = judge_again if row.is_judge else combine_again
    return open_run(request, repeat(project=project, user=request.user, evaluator=row))
