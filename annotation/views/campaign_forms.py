"""The form of a judging plan. The rules are those of `annotation.allocation.plan`; the form shows their messages at the
fields that caused them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django import forms
from django.forms import BaseFormSet, formset_factory
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from annotation.allocation.plan import OPTION_RULES, OPTIONS
from annotation.models import Aspect, Campaign, System
from annotation.selectors.campaigns import list_plan_choices
from annotation.services.campaigns import create_campaign, sketch_campaign
from annotation.services.campaigns_units import count_planned
from evalapp.accounts.models import Project
from evalapp.common.errors import Fault
from evalapp.common.forms import read_number

from .plan_forms import CHANGEABLE, PlanEditor, PlanForm, find_free_slug, list_slugs, option_field, pick_fields

#: The assumed time per judgement in estimates, in seconds.
USUAL_SECONDS = 15
KINDS = (
    ("likert", _("Rating: one text at a time, on one or more scales")),
    ("pairwise", _("Pairwise comparison: two texts for the same item, side by side")),
    ("turing", _("Turing test: an output and a reference; which one was written by a person?")),
)
GOALS = (("ranking", _("the whole ranking")), ("best", _("the best system")))
ROWS_AT_FIRST = 2
#: The number of the project's aspects that are suggested for a new campaign.
SUGGESTED = 3
_PERCENT = ("control_rate", "repeat_share")
_FLAGS = ("answer_on_key", "allow_note", "allow_skip", "allow_revise", "show_clock", "language")


class CampaignForm(PlanForm):
    """Everything of a plan except aspects, practice and control units."""

    help_texts = {
        "name": _("Shown to annotators."),
        "max_per_annotator": _("Maximum number of judgements per person. Leave empty for no limit."),
        "lease_minutes": _("If a text is not answered in this time, it goes to another annotator. Typing renews it."),
        "guidelines": _("Markdown. What to look at, what the ends of each scale mean, an example."),
        "seed": _("Determines the sample, the order, the pairs and the sides."),
    }

    kind = forms.ChoiceField(choices=KINDS, widget=forms.RadioSelect, initial="likert", label=_("Task"))
    systems = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=_("Systems"),
        help_text=_("Leave all unchecked to judge every system. Annotators never see these names."),
    )
    steps = forms.ChoiceField(
        choices=(("all", _("all steps")), ("last", _("the last step only"))),
        label=_("Training steps"),
        help_text=_("For systems with outputs from several steps of their training."),
    )
    pairs = forms.IntegerField(
        required=False,
        min_value=1,
        label=_("Number of pairs"),
        help_text=_("Balanced over pairs of systems. Leave empty for all pairs of all items."),
    )
    adaptive = option_field(
        OPTION_RULES["adaptive"],
        _("Adaptive pair selection"),
        _(
            "Selects the pair of systems that is most informative for the ranking; “Number of pairs” such pairs are "
            "judged. The probability of each selection is stored, so that rankings can weight by it."
        ),
    )
    adaptive_goal = forms.ChoiceField(
        choices=GOALS, initial=OPTIONS["adaptive_goal"], required=False, label=_("Goal of the selection")
    )
    adaptive_floor = option_field(
        replace(OPTION_RULES["adaptive_floor"], optional=True),
        _("Random pairs in per cent"),
        _("Minimum share of pairs that are drawn at random, which keeps estimates unbiased."),
        percent=True,
    )
    overlap = forms.IntegerField(
        min_value=1,
        max_value=100,
        initial=2,
        label=_("Overlap"),
        help_text=_("How many annotators judge each text. Agreement needs at least two."),
    )
    answer_on_key = option_field(
        OPTION_RULES["answer_on_key"], _("With a single question, submit as soon as a key selects an answer")
    )
    allow_note = option_field(OPTION_RULES["allow_note"], _("Annotators can add a note"))
    allow_skip = option_field(OPTION_RULES["allow_skip"], _("Annotators can skip texts"))
    allow_revise = option_field(
        OPTION_RULES["allow_revise"], _("Annotators can correct answers until the campaign is closed")
    )
    control_rate = option_field(
        OPTION_RULES["control_rate"],
        _("Control items in per cent"),
        _("Share of texts with a known answer."),
        percent=True,
    )
    repeat_share = option_field(
        OPTION_RULES["repeat_share"],
        _("Repeats in per cent"),
        _("Share of texts shown to the same annotator again, to measure consistency."),
        percent=True,
    )
    repeat_gap = option_field(
        OPTION_RULES["repeat_gap"],
        _("Texts between repeats"),
        _("Minimum number of other texts before one is repeated."),
    )

    def __init__(self, *args: Any, systems: Sequence[System] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        label = _("%(name)s (%(count)s outputs)")
        self.fields["systems"].choices = [  # type: ignore[attr-defined]
            (row.name, label % {"name": row.name, "count": f"{getattr(row, 'output_count', 0):,}"}) for row in systems
        ]

    @property
    def has_systems(self) -> bool:
        return bool(self.fields["systems"].choices)  # type: ignore[attr-defined]

    def as_plan(self) -> dict[str, Any]:
        """The part of a plan that this form contains (valid forms only)."""
        data = self.cleaned_data
        plan = self.read_shared() | {name: data[name] for name in ("overlap", "systems", "steps")}
        plan["options"] = _read_options(data, (*_FLAGS, "repeat_gap"), _PERCENT)
        if data["kind"] == "pairwise":
            plan["pairs"] = data["pairs"]
            plan["options"] |= _read_adaptive(data)
        return plan

    @classmethod
    def read_initial(cls, plan: dict[str, Any]) -> dict[str, Any]:
        options = plan["options"]
        return (
            super().read_initial(plan)
            | {name: options[name] for name in (*_FLAGS, "repeat_gap", "adaptive", "adaptive_goal")}
            | {name: round(100 * options[name]) for name in (*_PERCENT, "adaptive_floor")}
        )


def _read_options(data: dict[str, Any], plain: Iterable[str], percent: Iterable[str]) -> dict[str, Any]:
    return {name: data[name] for name in plain} | {name: data[name] / 100 for name in percent}


def _read_adaptive(data: dict[str, Any]) -> dict[str, Any]:
    """The options of adaptive pair selection; empty fields get their default values."""
    floor = data["adaptive_floor"]
    return {
        "adaptive": data["adaptive"],
        "adaptive_goal": data["adaptive_goal"] or OPTIONS["adaptive_goal"],
        "adaptive_floor": OPTIONS["adaptive_floor"] if floor is None else floor / 100,
    }


def describe_work(campaign: Campaign, units: int, seconds: int = USUAL_SECONDS) -> dict[str, int]:
    """How much work a campaign of `units` texts is, at `seconds` a judgement."""
    judgements = units * campaign.overlap
    limit = min(units, campaign.max_per_annotator or units)
    return {
        "units": units,
        "judgements": judgements,
        "seconds": seconds,
        "time": judgements * seconds,
        "people": max(campaign.overlap, -(-judgements // limit)) if limit else 0,
        "each": limit * seconds,
    }


class AspectRow(forms.Form):
    """One question. Rows without a name are ignored."""

    name = forms.CharField(
        required=False, max_length=100, label=_("Name"), help_text=_("Short; used as the column name of the results.")
    )
    question = forms.CharField(
        required=False,
        max_length=300,
        label=_("Question"),
        widget=forms.TextInput(attrs={"placeholder": _("How natural is it?")}),
    )
    low = forms.FloatField(required=False, initial=1, label=_("Lowest"))
    high = forms.FloatField(required=False, initial=5, label=_("Highest"))
    step = forms.FloatField(required=False, initial=1, label=pgettext_lazy("scale", "Step"))
    labels = forms.CharField(
        required=False,
        label=_("Labels"),
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": _("1 = awkward\n5 = native")}),
        help_text=_("One per line, for example “1 = awkward”."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].widget.attrs["list"] = "aspects-of-project"
        for name in ("low", "high", "step"):
            self.fields[name].widget.attrs["step"] = "any"

    def clean_labels(self) -> dict[str, str]:
        labels = {}
        for line in self.cleaned_data["labels"].splitlines():
            if not line.strip():
                continue
            value, mark, words = line.partition("=")
            try:
                labels[f"{float(value):g}"] = words.strip()
            except ValueError:
                mark = ""
            if not mark:
                message = _("“%(line)s” is not a label. Enter the value, “=” and the label.")
                raise forms.ValidationError(message % {"line": line.strip()})
        return labels

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("question") and not data.get("name"):
            self.add_error("name", _("Give the question a short name."))
        return data


AspectRows = formset_factory(AspectRow, extra=0)


def make_aspect_rows(data: Any = None, *, initial: Iterable[dict[str, Any]] = (), add: int = 0) -> BaseFormSet:
    """The rows as submitted (with `add` more), or with initial values."""
    if data is not None:
        if add:
            data = data.copy()
            raw = data.get("aspects-TOTAL_FORMS", "0")
            data["aspects-TOTAL_FORMS"] = str(min(50, (read_number(raw) or 0) + add))
        return AspectRows(data, prefix="aspects")
    rows = list(initial)
    blank: dict[str, Any] = {"low": 1, "high": 5, "step": 1}
    rows += [blank] * max(0, ROWS_AT_FIRST - len(rows))
    return AspectRows(initial=rows, prefix="aspects")


def list_named(rows: BaseFormSet) -> list[AspectRow]:
    return [row for row in rows.forms if row.cleaned_data.get("name")]


def read_aspects(rows: BaseFormSet, kind: str) -> list[dict[str, Any]]:
    """The aspects of a plan (valid rows only)."""
    aspects = []
    for row in list_named(rows):
        data = row.cleaned_data
        aspect = {"name": data["name"], "question": data["question"]}
        if kind == "likert":
            aspect |= {
                "low": _whole(1.0 if data["low"] is None else data["low"]),
                "high": _whole(5.0 if data["high"] is None else data["high"]),
                "step": None if data["step"] is None else _whole(data["step"]),
                "labels": data["labels"],
            }
        aspects.append(aspect)
    return aspects


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value


def rows_from_plan(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {**aspect, "labels": "\n".join(f"{value} = {words}" for value, words in (aspect.get("labels") or {}).items())}
        for aspect in plan["aspects"]
    ]


def rows_from_project(aspects: Sequence[Aspect]) -> list[dict[str, Any]]:
    """The aspects of the project, as a suggestion for a new campaign."""
    rated = [row for row in aspects if row.low is not None and row.high is not None]
    return [
        {"name": row.name, "low": _whole(row.low), "high": _whole(row.high), "step": 1} for row in rated[:SUGGESTED]
    ]


class JudgingEditor(PlanEditor):
    """The form of a judging plan with one row per aspect; `do=add-aspect` adds a row."""

    form_class = CampaignForm
    form: CampaignForm
    create = staticmethod(create_campaign)

    def __init__(self, project: Project, *, data: QueryDict | None = None, plan: dict[str, Any] | None = None) -> None:
        self.project, self.choices = project, list_plan_choices(project=project)
        initial = CampaignForm.read_initial(plan) if plan else None
        self.form = CampaignForm(data, initial=initial, systems=self.choices["systems"])
        if data is not None:
            self.rows = make_aspect_rows(data, add=int(data.get("do") == "add-aspect"))
        else:
            self.rows = make_aspect_rows(
                initial=rows_from_plan(plan) if plan else rows_from_project(self.choices["aspects"])
            )

    def is_valid(self) -> bool:
        return self.form.is_valid() & self.rows.is_valid()

    def as_plan(self) -> dict[str, Any]:
        plan = self.form.as_plan()
        return plan | {"aspects": read_aspects(self.rows, plan["kind"])}

    def as_changes(self, campaign: Campaign) -> dict[str, Any]:
        plan = self.as_plan()
        if plan["kind"] != campaign.kind:
            # The expected answers of ratings do not fit comparisons.
            plan |= {"practice": [], "controls": []}
            if campaign.kind == Campaign.Kind.PAIRWISE:
                plan["pairs"] = None
        return plan

    def sketch(self, plan: dict[str, Any]) -> dict[str, Any]:
        named = [aspect["name"] for aspect in plan["aspects"]]
        plan["aspects"] = plan["aspects"] or [
            {"name": "?", **({"low": 1, "high": 5} if plan["kind"] == "likert" else {})}
        ]
        draft = sketch_campaign(project=self.project, plan=plan)
        return {"draft": draft, "questions": named, "estimate": describe_work(draft, count_planned(draft))}

    def make_slug(self, name: str) -> str:
        return find_free_slug(name, list_slugs(self.project, Campaign))

    def add_faults(self, faults: Sequence[Fault], detail: str) -> None:
        rows = list_named(self.rows)
        for fault in faults or [Fault(detail)]:
            match = re.match(r"aspects\[(\d+)\]\.?(\w*)", fault.field)
            if match and int(match[1]) < len(rows):
                row = rows[int(match[1])]
                row.add_error(match[2] if match[2] in row.fields else None, fault.message)
            else:
                self.form.add_faults([fault], detail)

    def get_context(self) -> dict[str, Any]:
        return {"form": self.form, "rows": self.rows, **self.choices}


_RUNNING_FIELDS = (*CHANGEABLE, *_FLAGS, "control_rate", "adaptive", "adaptive_goal", "adaptive_floor")


class RunningForm(pick_fields(CampaignForm, _RUNNING_FIELDS)):  # type: ignore[misc]
    """The fields that can change while people judge."""

    def __init__(self, *args: Any, campaign: Campaign, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.options = {**OPTIONS, **campaign.options}
        if not campaign.plan.get("players"):
            for name in ("adaptive", "adaptive_goal", "adaptive_floor"):
                del self.fields[name]

    def as_changes(self) -> dict[str, Any]:
        data = self.cleaned_data
        options = self.options | _read_options(data, _FLAGS, ("control_rate",))
        if "adaptive" in self.fields:
            options |= _read_adaptive(data)
        return {name: data[name] for name in CHANGEABLE} | {"options": options}
