"""The form of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from evalapp.accounts.models import Project
from scoring.forms.fields import SeedField, list_reference_sets, number_field, set_choices
from scoring.selectors.catalogue import entries
from scoring.selectors.datasets import DataChoice, judged_aspects
from scoring.services.studies import StudyOptions


class StudyForm(forms.Form):
    """An empty choice of evaluators means those of the kind."""

    study = forms.ChoiceField(label=gettext_lazy("Study"), widget=forms.RadioSelect, initial="seeds")
    evaluators = forms.MultipleChoiceField(
        required=False, label=gettext_lazy("Evaluators"), widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("None selected: those that the paper compares. An ablation has one."),
    )  # fmt: skip
    aspect = forms.ChoiceField(required=False, label=gettext_lazy("Aspect"))
    seeds = number_field(
        StudyOptions, "seeds", gettext_lazy("Seeds"), gettext_lazy("Trainings of each evaluator; the time grows alike.")
    )
    held_out = number_field(
        StudyOptions, "held_out", gettext_lazy("Held-out groups (%)"),
        gettext_lazy("Groups of items that no training reads, and on which the figures are measured."),
    )  # fmt: skip
    profile = forms.ChoiceField(
        required=False, label=pgettext_lazy("training", "Profile"),
        choices=[("", gettext_lazy("recommended")), ("paper", gettext_lazy("paper"))],
    )  # fmt: skip
    seed = SeedField(help_text=gettext_lazy("Of the split, and of the first training."))

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        from scoring.ml.studies.kinds import KINDS

        super().__init__(*args, **kwargs)
        judged = judged_aspects(project, ("ratings", "comparisons"), DataChoice())
        some = [entry for entry in entries() if any(kind.accepts(entry) for kind in KINDS.values())]
        set_choices(
            self,
            study=[(kind.name, f"{_(kind.title)}: {_(kind.summary)}") for kind in KINDS.values()],
            evaluators=[entry.name for entry in sorted(some, key=lambda entry: not entry.learns)],
            aspect=[("", _("all judged aspects")), *((name, name) for name in judged)],
        )
        if judged:
            self.fields["aspect"].initial = judged[0]
        if settings.ENCODERS:
            self.fields["encoder"] = forms.ChoiceField(
                required=False, label=_("Encoder"),
                choices=[("", _("default")), *((name, name) for name in settings.ENCODERS)],
            )  # fmt: skip
        if len(sets := list_reference_sets(project)) > 1:
            self.fields["references"] = forms.ChoiceField(label=_("References"))
            set_choices(self, references=sets)

    def as_options(self) -> StudyOptions:
        return StudyOptions(**{name: value for name, value in self.cleaned_data.items() if value not in ("", None)})


def initial_from(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the initial values of the form from the parameters of a run."""
    return {name: params.get(name) for name in StudyOptions.__dataclass_fields__ if name != "options"}
