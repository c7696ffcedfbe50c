"""Forms of reference sets: automatic selection, reliability curves, merging."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models.data import ORIGINAL
from annotation.selectors.data import list_system_names
from evalapp.accounts.models import Project
from scoring.forms.fields import SeedField, list_reference_sets, number_field, set_choices
from scoring.selectors.candidates import OUTPUTS, WITHHELD, list_corpora
from scoring.selectors.training import list_reference_judges
from scoring.services.reference_selection import STARTS, ReferenceSelection
from scoring.services.reports import CurveOptions

MOST_SYSTEMS = 200


class ReferenceSelectionForm(forms.Form):
    evaluator = forms.ChoiceField(
        label=gettext_lazy("Evaluator"),
        help_text=gettext_lazy("A trained ream, which predicts how reliable a set of references is for a metric."),
    )
    mix = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Second evaluator"),
        help_text=gettext_lazy("The union of both selections for each item."),
    )
    candidates = forms.ChoiceField(
        label=gettext_lazy("Candidates"), help_text=gettext_lazy("Source of additional references.")
    )
    references = forms.ChoiceField(
        label=gettext_lazy("Start from"), help_text=gettext_lazy("The reference set to extend.")
    )
    start = forms.ChoiceField(
        choices=[(name, text) for name, text in STARTS.items()], label=gettext_lazy("References kept"),
        help_text=gettext_lazy("One: as in the paper. All: every reference of the set is kept."),
    )  # fmt: skip
    max = number_field(ReferenceSelection, "max", gettext_lazy("Maximum references per item"))
    into = forms.SlugField(
        max_length=63, required=False, label=gettext_lazy("Name of the new set"),
        help_text=gettext_lazy("Lower-case letters, digits, hyphens. Not needed for a preview."),
    )  # fmt: skip
    controls = forms.BooleanField(
        required=False, initial=True, label=gettext_lazy("Create control sets"),
        help_text=gettext_lazy("NAME-raw: references at the start. NAME-random: the same number at random."),
    )  # fmt: skip
    min_gain = number_field(
        ReferenceSelection, "min_gain", gettext_lazy("Minimum gain"),
        gettext_lazy("Increase in reliability that a candidate needs; 0 in the paper."),
    )  # fmt: skip
    greedy = forms.BooleanField(
        required=False, label=gettext_lazy("Best first"),
        help_text=gettext_lazy("Compare all candidates in each step and add the best, not the first that helps."),
    )  # fmt: skip
    per_item = number_field(ReferenceSelection, "per_item", gettext_lazy("Maximum candidates per item"))
    turns = number_field(
        ReferenceSelection, "turns", gettext_lazy("Turns of the context"),
        gettext_lazy("Number of last turns used to search a corpus. Empty: all."), required=False,
    )  # fmt: skip
    systems = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, label=gettext_lazy("Systems"),
        help_text=gettext_lazy("Candidates from outputs: only outputs by the selected systems. None selected: all."),
    )  # fmt: skip
    items = forms.CharField(
        required=False, label=gettext_lazy("Items"), help_text=gettext_lazy("Keys, one per line. Empty: all."),
        widget=forms.Textarea(attrs={"rows": 3}),
    )  # fmt: skip
    sample = number_field(
        ReferenceSelection, "sample", gettext_lazy("Maximum items"),
        gettext_lazy("Sampled with the seed. Empty: all."), required=False,
    )  # fmt: skip
    seed = SeedField()

    FIRST = ("evaluator", "mix", "candidates", "references", "start", "max", "into", "controls")

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        slugs = list(list_reference_judges(project).values_list("slug", flat=True))
        corpora = [(f"corpus:{name}", _("corpus: %(name)s") % {"name": label}) for name, label in list_corpora(project)]
        further = (WITHHELD, _("further references of the item"))
        outputs = (OUTPUTS, _("outputs of systems (references then include judged outputs)"))
        set_choices(
            self, evaluator=slugs, mix=[("", _("none")), *slugs], candidates=[*corpora, further, outputs],
            references=list_reference_sets(project), systems=list_system_names(project)[:MOST_SYSTEMS],
        )  # fmt: skip
        self.fields["references"].initial = ORIGINAL
        if len(slugs) < 2:
            del self.fields["mix"]
        if not corpora:
            del self.fields["turns"]
            text = _("Source of additional references. A corpus would offer other texts.")
            self.fields["candidates"].help_text = text

    @property
    def first(self) -> list[Any]:
        return [self[name] for name in self.FIRST if name in self.fields]

    @property
    def rest(self) -> list[Any]:
        return [self[name] for name in self.fields if name not in self.FIRST]

    @property
    def rest_is_faulty(self) -> bool:
        return any(field.errors for field in self.rest)

    def as_options(self) -> ReferenceSelection:
        given = {name: value for name, value in self.cleaned_data.items() if value is not None}
        given["items"] = tuple(line.strip() for line in given.get("items", "").splitlines() if line.strip())
        given["systems"] = tuple(given.get("systems", ()))
        return ReferenceSelection(**given)


def initial_from(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the form that requested this preview."""
    return {**params, "items": "\n".join(params["items"])}


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
    sample = number_field(CurveOptions, "sample", gettext_lazy("Maximum items"), gettext_lazy("Sampled with the seed."))
    seed = SeedField()

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        slugs = list(list_reference_judges(project).values_list("slug", flat=True))
        others = [("", _("none")), *slugs]
        set_choices(self, evaluator=slugs, other=others, references=list_reference_sets(project))
        if len(slugs) < 2:
            del self.fields["other"]

    def as_options(self) -> CurveOptions:
        return CurveOptions(**{name: value for name, value in self.cleaned_data.items() if value not in ("", None)})


class MergeForm(forms.Form):
    names = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, label=gettext_lazy("Sets"),
        help_text=gettext_lazy("Merged in this order, without duplicates."),
    )  # fmt: skip
    into = forms.SlugField(
        max_length=63,
        label=gettext_lazy("Name of the new set"),
        help_text=gettext_lazy("Lower-case letters, digits, hyphens. The merged sets are kept."),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        set_choices(self, names=list_reference_sets(project))
