"""The form of a report for people who do not sign in."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import Project
from scoring.selectors.aspects import list_judged_ways
from scoring.services.shared_reports import DAYS, MAX_DAYS


class ReportForm(forms.Form):
    aspect = forms.ChoiceField(
        required=False, label=_("Aspect"), help_text=_("Systems and metrics are compared on this aspect.")
    )
    days = forms.IntegerField(
        label=_("Valid for (days)"), initial=DAYS, min_value=1, max_value=MAX_DAYS,
        help_text=_("After that the link no longer works. You can revoke it before."),
    )  # fmt: skip
    raters = forms.BooleanField(
        required=False, label=_("Add the raters, under pseudonyms"),
        help_text=_("Judgements, bias, spread, agreement and failed controls of each rater."),
    )  # fmt: skip
    texts = forms.BooleanField(
        required=False, label=_("Add example texts"),
        help_text=_("The first judged items with outputs of the systems. Check that the licence allows it."),
    )  # fmt: skip
    label = forms.CharField(
        required=False, max_length=100, label=_("Label"), help_text=_("A note for you: who gets this link.")
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = dict.fromkeys(way.aspect.name for way in list_judged_ways(project) if way.judged != "dialogues")
        self.fields["aspect"].choices = [("", _("First judged aspect")), *((name, name) for name in names)]
