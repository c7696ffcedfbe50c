"""Forms of the pages of agreement: named filters of raters, and statistical power."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.services.filters import REASON_LENGTH
from scoring.forms.boards import AUTOSUBMIT
from scoring.forms.fields import set_choices
from scoring.selectors.planning import ASSISTED, DEFAULT_EFFECTS, EFFECTS, SIDES, TESTS


class FilterForm(forms.Form):
    """Raters selected in a table, a name and a reason."""

    raters = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    name = forms.CharField(
        max_length=63,
        help_text=gettext_lazy("Short, of a-z, 0-9 and hyphens: part of the signature of every table with the filter."),
    )
    reason = forms.CharField(
        max_length=REASON_LENGTH,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("Shown with these tables and in exports."),
    )

    def __init__(self, *args: Any, raters: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        set_choices(self, raters=raters)


class PowerForm(forms.Form):
    """The effect to detect and the error rates."""

    test = forms.ChoiceField(label=gettext_lazy("Question"), widget=forms.Select(attrs=AUTOSUBMIT))
    effect = forms.CharField(max_length=60, required=False, label=gettext_lazy("Effect"))
    power = forms.FloatField(
        min_value=0.01, max_value=0.999, initial=0.8, required=False, label=gettext_lazy("Power"),
        help_text=gettext_lazy("Probability of detecting the effect."),
    )  # fmt: skip
    alpha = forms.FloatField(
        min_value=0.0001, max_value=0.5, initial=0.05, required=False, label=gettext_lazy("alpha"),
        help_text=gettext_lazy("Probability of a false positive."),
    )  # fmt: skip
    sides = forms.ChoiceField(
        required=False, label=gettext_lazy("Sides"),
        help_text=gettext_lazy("Default: one-sided for the comparison of two evaluators, else two-sided."),
    )  # fmt: skip
    ties = forms.FloatField(
        min_value=0, max_value=0.99, required=False, label=gettext_lazy("Share of ties"),
        help_text=gettext_lazy("Empty: the share so far."),
    )  # fmt: skip
    rho = forms.FloatField(
        min_value=0, max_value=0.99, required=False, label=gettext_lazy("Correlation of an assisting evaluator"),
        help_text=gettext_lazy("With the judgements, within systems. Empty: no evaluator."),
    )  # fmt: skip
    aspect = forms.ChoiceField(required=False, label=gettext_lazy("Aspect"))

    def __init__(self, *args: Any, aspects: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        test = self.data.get("test") if self.is_bound else ""
        test = test if test in TESTS else "preference"
        set_choices(
            self,
            test=[(name, _(question)) for name, question in TESTS.items()],
            sides=[("", _("default")), *((str(sides), _(words)) for sides, words in SIDES.items())],
            aspect=[("", _("the first one with judgements")), *aspects],
        )
        effect = _(EFFECTS[test])
        self.fields["effect"].help_text = f"{effect[:1].upper()}{effect[1:]}."
        for name in ("power", "alpha", "ties", "rho"):
            self.fields[name].widget.attrs["step"] = "any"
        for name, default in (("effect", DEFAULT_EFFECTS[test]), ("power", 0.8), ("alpha", 0.05)):
            self.fields[name].widget.attrs["placeholder"] = default
        if test != "preference":
            del self.fields["ties"]
        if test not in ASSISTED:
            del self.fields["rho"]
        if len(aspects) < 2:
            del self.fields["aspect"]
