"""The form of a link for hired participants. The rules are those of `annotation.allocation.recruitment`; the form shows
their messages at the fields that caused them."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.forms import BaseFormSet, formset_factory
from django.utils.translation import gettext_lazy as _

from annotation.allocation.recruitment import MAX_PLACES, MAX_QUESTIONS, OUTCOMES, PLATFORMS, QUESTION_LENGTH, RULES
from evalapp.common.errors import EvalappError

from .plan_forms import option_field

SHARES = ("pass_mark", "min_controls", "min_agreement", "bonus_controls")
_FLAGS = ("only_new", "any_browser", "ask_export", "replace_failed", "personal_codes")
_PLAIN = ("label", "places", "consent", "contact", "currency", "lease_minutes", *_FLAGS, "min_seconds", "pay",
          "pay_failed", "pay_screened", "bonus")  # fmt: skip
OUTCOME_LABELS = {
    "passed": _("Passed"),
    "failed": _("Failed a rule"),
    "screened": _("Screened out by practice items"),
    "full": _("No place left"),
    "refused": _("Did not agree"),
}
OUTCOME_FIELDS = tuple(f"{name}_{part}" for name in OUTCOMES for part in ("code", "address", "text"))
#: Parts of the form that are folded until they differ from a new form or have errors.
FOLDS: dict[str, tuple[str, ...]] = {
    "consent": ("consent", "contact", "ask_export"),
    "passing": ("pass_mark", "min_controls", "min_seconds", "min_agreement", "replace_failed"),
    "outcomes": ("personal_codes", *OUTCOME_FIELDS),
    "pay": ("pay", "pay_failed", "pay_screened", "bonus", "bonus_controls", "currency"),
}
KINDS = (("choice", _("choice")), ("number", _("number")), ("text", _("text")))


def _percent(label: Any, help_text: Any) -> forms.Field:
    return forms.FloatField(required=False, min_value=0, max_value=100, label=label, help_text=help_text)


def _amount(name: str, label: Any, help_text: Any = "") -> forms.Field:
    return forms.FloatField(min_value=0, max_value=RULES[name].high, initial=0, label=label, help_text=help_text)


class RecruitmentForm(forms.Form):
    """Everything about a link except its questions."""

    label = forms.CharField(
        required=False, max_length=100, label=_("Label"), help_text=_("Only shown to you, for example “Prolific, May”.")
    )
    places = forms.IntegerField(
        min_value=1,
        max_value=MAX_PLACES,
        label=_("Places"),
        help_text=_("How many participants can complete the study."),
    )
    lease_minutes = option_field(
        RULES["lease_minutes"],
        _("Minutes without an answer until a place is released"),
        _("Another participant can then get the place. Those who return get one again, if one is free."),
    )
    platform = forms.ChoiceField(
        required=False,
        choices=[("", _("Other, or a list of your own")), *((name, name) for name in PLATFORMS)],
        label=_("Platform"),
        help_text=_("Fills in the names of the parameters if you leave them empty."),
    )
    id_parameter = forms.CharField(
        required=False,
        max_length=40,
        label=_("Parameter with the participant's id"),
        help_text=_("Its name in the address, for example PROLIFIC_PID, workerId or participant."),
    )
    meta_parameters = forms.CharField(
        required=False,
        label=_("Further parameters to store"),
        help_text=_("Names, separated by commas, for example STUDY_ID, SESSION_ID."),
    )
    only_new = forms.BooleanField(
        required=False,
        label=_("Only people who have not taken part in another study of this project"),
    )
    any_browser = forms.BooleanField(
        required=False,
        label=_("Participants can continue in another browser"),
        help_text=_("Then everybody who knows the link and a participant's id can continue as this participant."),
    )
    consent = forms.CharField(
        required=False,
        label=_("Consent text"),
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text=_(
            "Markdown. A change makes a new version; each participant is stored with the version they agreed to."
        ),
    )
    contact = forms.CharField(
        required=False, max_length=200, label=_("Contact"), help_text=_("An e-mail address or a name, for questions.")
    )
    ask_export = forms.BooleanField(
        required=False,
        initial=True,
        label=_("Ask whether answers to the questions may be published"),
        help_text=_("Without this consent they are never exported."),
    )
    pass_mark = _percent(
        _("Practice items as expected, in per cent"),
        _("Participants with fewer are screened out before the first text. Empty: no rule."),
    )
    min_controls = _percent(
        _("Control items as expected, in per cent"), _("Participants with fewer fail. Empty: no rule.")
    )
    min_seconds = forms.FloatField(
        required=False,
        min_value=0,
        max_value=3600,
        label=_("Median seconds per text"),
        help_text=_("Participants who are faster fail. Empty: no rule."),
    )
    min_agreement = _percent(
        _("Answers that agree with others, in per cent"),
        _(
            "Ratings agree if they are at most a quarter of the scale from the median of the others, other answers if "
            "they are the most frequent. Applies from 5 shared texts on. Participants with fewer fail. Empty: no rule."
        ),
    )
    replace_failed = forms.BooleanField(
        required=False,
        label=_("When participants fail, give their place and texts to others"),
        help_text=_("Their answers are set aside and do not count. Otherwise they count, and you can filter them."),
    )
    personal_codes = forms.BooleanField(
        required=False, label=_("Each participant gets a code of their own, instead of the codes below")
    )
    pay = _amount("pay", _("Pay"), _("Suggested in the file of participants; nothing is paid from here."))
    pay_failed = _amount("pay_failed", _("Pay if failed"))
    pay_screened = _amount("pay_screened", _("Pay if screened out"))
    bonus = _amount("bonus", _("Bonus if passed"))
    bonus_controls = _percent(
        _("Control items as expected for the bonus, in per cent"), _("Empty: everybody who passed gets it.")
    )
    currency = forms.CharField(required=False, max_length=10, label=_("Currency"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        parts = {"code": (_("Code"), 100), "address": (_("Return address"), 500), "text": (_("Text"), 2_000)}
        for name in OUTCOMES:
            for part, (label, limit) in parts.items():
                self.fields[f"{name}_{part}"] = forms.CharField(required=False, max_length=limit, label=label)

    def list_outcomes(self) -> list[tuple[Any, list[Any]]]:
        """The label and the fields of each outcome."""
        parts = ("code", "address", "text")
        return [(label, [self[f"{name}_{part}"] for part in parts]) for name, label in OUTCOME_LABELS.items()]

    def is_open(self, fold: str) -> bool:
        """Whether a part has errors, or values that differ from those of a new form."""
        return any(
            name in self.errors or self.fields[name].has_changed(self.fields[name].initial, self[name].value())
            for name in FOLDS[fold]
        )

    def as_settings(self) -> dict[str, Any]:
        data = self.cleaned_data
        settings = {name: data[name] for name in _PLAIN}
        settings |= {name: None if data[name] is None else round(data[name] / 100, 8) for name in SHARES}
        settings["platform"] = data["platform"] or None
        settings["id_parameter"] = data["id_parameter"] or None
        names = [name.strip() for name in data["meta_parameters"].split(",") if name.strip()]
        settings["meta_parameters"] = names or None
        outcomes = {name: {part: data[f"{name}_{part}"] for part in ("code", "address", "text")} for name in OUTCOMES}
        settings["outcomes"] = {name: row for name, row in outcomes.items() if any(row.values())}
        return settings

    @classmethod
    def read_initial(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        initial = {name: settings[name] for name in (*_PLAIN, "id_parameter")}
        initial |= {name: None if settings[name] is None else f"{100 * settings[name]:.10g}" for name in SHARES}
        initial |= {name: f"{settings[name]:.10g}" for name in ("pay", "pay_failed", "pay_screened", "bonus")}
        initial["meta_parameters"] = ", ".join(settings["meta_parameters"])
        for name, row in settings["outcomes"].items():
            initial |= {f"{name}_{part}": value for part, value in row.items()}
        return initial


class QuestionRow(forms.Form):
    """A question before the first text; rows without name and question are ignored."""

    name = forms.CharField(required=False, max_length=40, label=_("Name"))
    question = forms.CharField(required=False, max_length=QUESTION_LENGTH, label=_("Question"))
    kind = forms.ChoiceField(choices=KINDS, initial="choice", label=_("Answer"))
    details = forms.CharField(
        required=False,
        max_length=4_000,
        label=_("Choices or limits"),
    )
    optional = forms.BooleanField(required=False, label=_("Optional"))

    def as_question(self) -> dict[str, Any] | None:
        data = self.cleaned_data
        if not data.get("name") and not data.get("question"):
            return None
        row = {name: data[name] for name in ("name", "question", "kind")} | {"required": not data["optional"]}
        if data["kind"] == "choice":
            return row | {"choices": [choice.strip() for choice in data["details"].split("|") if choice.strip()]}
        if data["kind"] == "number" and data["details"]:
            low, _dots, high = data["details"].partition("..")
            return row | {"low": _number(low), "high": _number(high)}
        return row


def _number(text: str) -> Any:
    """A limit as a number; texts stay, so that the error is shown."""
    try:
        return float(text) if text.strip() else None
    except ValueError:
        return text


def _describe_question(row: Mapping[str, Any]) -> dict[str, Any]:
    details = " | ".join(row["choices"])
    if row["kind"] == "number" and (row["low"], row["high"]) != (None, None):
        details = "..".join("" if one is None else f"{one:g}" for one in (row["low"], row["high"]))
    return {
        **{name: row[name] for name in ("name", "question", "kind")},
        "details": details,
        "optional": not row["required"],
    }


class RecruitmentEditor:
    """The form of a link with its rows of questions."""

    def __init__(self, *, data: Any = None, settings: Mapping[str, Any] | None = None) -> None:
        questions = [_describe_question(row) for row in settings["questions"]] if settings else []
        rows: type[BaseFormSet] = formset_factory(
            QuestionRow, extra=3, max_num=MAX_QUESTIONS, absolute_max=2 * MAX_QUESTIONS
        )
        self.form = RecruitmentForm(data, initial=RecruitmentForm.read_initial(settings) if settings else None)
        self.rows = rows(data, initial=questions, prefix="questions")

    def list_open(self) -> set[str]:
        """The folded parts that are shown open."""
        opened = {fold for fold in FOLDS if self.form.is_open(fold)}
        if any(row.errors or row["name"].value() or row["question"].value() for row in self.rows):
            opened.add("consent")
        return opened

    def is_valid(self) -> bool:
        return self.form.is_valid() & self.rows.is_valid()

    def as_settings(self) -> dict[str, Any]:
        read = [row.as_question() for row in self.rows.forms]
        self.written = [index for index, row in enumerate(read) if row]
        return self.form.as_settings() | {"questions": [row for row in read if row]}

    def add_faults(self, error: EvalappError) -> None:
        """Show the errors of the settings at the fields that caused them."""
        for fault in error.faults:
            if row := re.match(r"questions\[(\d+)\](?:\.(\w+))?", fault.field):
                form = self.rows.forms[self.written[int(row[1])]]
                name = "details" if row[2] in ("choices", "low", "high") else row[2]
                form.add_error(name if name in form.fields else None, fault.message)
                continue
            name = re.sub(r"outcomes\.(\w+)\.(\w+)", r"\1_\2", fault.field)
            self.form.add_error(name if name in self.form.fields else None, fault.message)
        if not error.faults:
            self.form.add_error(None, error.detail)
