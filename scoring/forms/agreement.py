"""Forms of the pages about people who judge: what is looked at, and naming raters that tables leave out."""

from __future__ import annotations

from typing import Any

from django import forms

from annotation.models import Campaign
from annotation.selectors.filters import list_filters
from annotation.services.filters import REASON_LENGTH
from evalapp.accounts.models import Project
from scoring.boards.choices import JUDGED, RATINGS, SCALES
from scoring.forms.fields import AUTOSUBMIT
from scoring.selectors.planning import EFFECTS, SIDES, TESTS, USUAL


class AgreementForm(forms.Form):
    """The line of select boxes above the tables: a plain GET form; fields with a single choice are left out."""

    def __init__(self, *args: Any, project: Project, asked: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        several = len({judged for _, judged in asked}) > 1
        aspects = [
            (f"{name}|{judged}", f"{name} ({JUDGED[judged].lower()})" if several else name) for name, judged in asked
        ]
        if len(aspects) > 1:
            self._add("of", "Aspect", aspects)
        campaigns = Campaign.objects.filter(project=project).exclude(opened_at=None).order_by("-pk")
        found = [(row.slug, row.name) for row in campaigns]
        if found:
            self._add("campaign", "Campaign", [("", "everything"), *found])
        if any(judged in ("ratings", "dialogues") for _, judged in asked):
            self._add("scale", "Scale", list(SCALES.items()))
            self._add("ratings", "Ratings", list(RATINGS.items()))
        names = [(row.name, f"without {row.name}") for row in list_filters(project, active_only=True)]
        if names:
            self._add("filter", "Raters", [("", "all"), *names])

    def _add(self, name: str, label: str, choices: list[tuple[str, str]]) -> None:
        self.fields[name] = forms.ChoiceField(
            choices=choices, label=label, required=False, widget=forms.Select(attrs=AUTOSUBMIT)
        )


class FilterForm(forms.Form):
    """Raters ticked in a table, a name and the reason."""

    raters = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    name = forms.CharField(
        max_length=63,
        help_text="Short, in a-z, 0-9 and hyphens: it stands in the signature of every table made with it.",
    )
    reason = forms.CharField(
        max_length=REASON_LENGTH,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Stands beside those tables and in exports.",
    )

    def __init__(self, *args: Any, raters: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["raters"].choices = [(rater, rater) for rater in raters]  # type: ignore[attr-defined]


class PowerForm(forms.Form):
    """What one wants to find, and how surely: a plain GET form."""

    test = forms.ChoiceField(choices=list(TESTS.items()), label="Question", widget=forms.Select(attrs=AUTOSUBMIT))
    effect = forms.CharField(max_length=60, required=False, label="Effect")
    power = forms.FloatField(
        min_value=0.01, max_value=0.999, initial=0.8, required=False, label="Power", help_text="The chance to find it."
    )
    alpha = forms.FloatField(
        min_value=0.0001,
        max_value=0.5,
        initial=0.05,
        required=False,
        label="alpha",
        help_text="The chance of a false find.",
    )
    sides = forms.ChoiceField(
        choices=[("", "as is usual"), *((str(sides), words) for sides, words in SIDES.items())],
        required=False,
        label="Sides",
        help_text="Usual: one-sided for the comparison of two evaluators, else two-sided.",
    )
    ties = forms.FloatField(
        min_value=0, max_value=0.99, required=False, label="Share of ties", help_text="Empty: as so far."
    )
    aspect = forms.ChoiceField(required=False)

    def __init__(self, *args: Any, aspects: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        test = self.data.get("test") or "preference" if self.is_bound else "preference"
        test = test if test in TESTS else "preference"
        self.fields["effect"].help_text = EFFECTS[test][0].upper() + EFFECTS[test][1:] + "."
        self.fields["effect"].widget.attrs["placeholder"] = USUAL[test]
        for name in ("power", "alpha", "ties"):
            self.fields[name].widget.attrs["step"] = "any"
        for name, usual in (("power", 0.8), ("alpha", 0.05)):
            self.fields[name].widget.attrs["placeholder"] = usual
        if test != "preference":
            del self.fields["ties"]
        if len(aspects) > 1:
            self.fields["aspect"].choices = [("", "the first that was judged"), *((name, name) for name in aspects)]  # type: ignore[attr-defined]
        else:
            del self.fields["aspect"]
