"""The form of a campaign: from what a person types to a plan and back. The rules are those of
`annotation.allocation.plan`; here their messages find the field that caused them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.forms import BaseFormSet, formset_factory

from annotation.allocation.plan import OPTIONS
from annotation.allocation.plan_reading import slugify
from annotation.models import Aspect, Campaign, System
from evalapp.common.errors import Fault
from evalapp.common.forms import number_in

KINDS = (
    ("likert", "Rating: one text at a time, one or more scales"),
    ("pairwise", "Comparison: two texts of one item side by side, which is better?"),
    ("turing", "Generation against reference: which of the two did a person write?"),
)
ITEMS = (
    ("all", "All items"),
    ("search", "Items that contain these words"),
    ("groups", "These groups"),
    ("keys", "These items"),
)
GOALS = (("ranking", "the whole ranking"), ("best", "which system is best"))
ROWS_AT_FIRST = 2
#: So many of the project's aspects are offered for a new campaign.
OFFERED = 3
#: Fields of the plan -> fields of this form, where the names differ.
_PLACES = {
    "slug": "name",
    "items": "items_text",
    "items.sample": "sample",
    "items.keys": "items_text",
    "items.groups": "items_text",
    "items.search": "items_text",
}
_PERCENT = ("control_rate", "repeat_share")
_FLAGS = ("answer_on_key", "allow_note", "allow_skip", "allow_revise")


class CampaignForm(forms.Form):
    """Everything of a plan but aspects, practice and controls."""

    name = forms.CharField(max_length=200, help_text="Annotators see it.")
    kind = forms.ChoiceField(choices=KINDS, widget=forms.RadioSelect, initial="likert", label="What people do")
    items_choice = forms.ChoiceField(choices=ITEMS, widget=forms.RadioSelect, initial="all", label="Which items")
    items_text = forms.CharField(
        required=False,
        label="Words, groups or items",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="For “all items” leave it empty. Groups and items: one a line.",
    )
    sample = forms.IntegerField(
        required=False, min_value=1, label="At most so many items", help_text="Drawn at random; empty: all of them."
    )
    systems = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Whose outputs are judged; none ticked: all. Annotators never see these names.",
    )
    steps = forms.ChoiceField(
        choices=(("all", "every step"), ("last", "the last step only")),
        label="Systems with training steps",
        help_text="A system uploaded at several steps of its training is judged at",
    )
    pairs = forms.IntegerField(
        required=False,
        min_value=1,
        label="Pairs wanted",
        help_text="Balanced over pairs of systems; empty: every pair of every item.",
    )
    adaptive = forms.BooleanField(
        required=False,
        label="Choose pairs adaptively",
        help_text="The next pair of systems is taken where it tells most about the ranking. “Pairs wanted” is then how "
        "many are judged. Every judgement keeps the chance with which its pair was taken, for rankings to weigh by.",
    )
    adaptive_goal = forms.ChoiceField(
        choices=GOALS, initial=OPTIONS["adaptive_goal"], required=False, label="What shall become certain"
    )
    adaptive_floor = forms.IntegerField(
        min_value=5,
        max_value=100,
        initial=20,
        required=False,
        label="Pairs drawn at random, per cent",
        help_text="At least so many are drawn at random, so that no pair is left out and figures stay unbiased.",
    )
    overlap = forms.IntegerField(
        min_value=1,
        max_value=100,
        initial=2,
        help_text="How many people judge each text. Agreement needs at least two.",
    )
    max_per_annotator = forms.IntegerField(
        required=False,
        min_value=1,
        label="At most per annotator",
        help_text="Judgements of one person; empty: no limit.",
    )
    lease_minutes = forms.IntegerField(
        min_value=1,
        max_value=1440,
        initial=30,
        label="Minutes to answer",
        help_text="A text that nobody answers in this time goes to somebody else. Typing renews it.",
    )
    guidelines = forms.CharField(
        required=False,
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text="Markdown. What to look at, what each end of a scale means, an example.",
    )
    answer_on_key = forms.BooleanField(
        required=False, label="Submit at once when a key answers the only question", initial=OPTIONS["answer_on_key"]
    )
    allow_note = forms.BooleanField(required=False, label="A note may be written", initial=True)
    allow_skip = forms.BooleanField(required=False, label="Texts may be skipped", initial=True)
    allow_revise = forms.BooleanField(
        required=False, label="Answers may be corrected until the campaign closes", initial=True
    )
    control_rate = forms.IntegerField(
        min_value=0, max_value=50, initial=10, label="Controls, per cent", help_text="Share of texts that are controls."
    )
    repeat_share = forms.IntegerField(
        min_value=0,
        max_value=50,
        initial=0,
        label="Repeats, per cent",
        help_text="Share of texts shown to the same person again, to see how steady they are.",
    )
    repeat_gap = forms.IntegerField(
        min_value=0, max_value=10_000, initial=10, label="Texts between repeats", help_text="At least so many."
    )
    seed = forms.IntegerField(
        min_value=0, max_value=2**31 - 1, initial=13, help_text="Decides sample, order, pairs and sides."
    )

    def __init__(self, *args: Any, systems: Sequence[System] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["systems"].choices = [  # type: ignore[attr-defined]
            (row.name, f"{row.name} ({getattr(row, 'output_count', 0):,} outputs)") for row in systems
        ]

    @property
    def has_systems(self) -> bool:
        return bool(self.fields["systems"].choices)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("items_choice") != "all" and not (data.get("items_text") or "").strip():
            self.add_error("items_text", "Say which: words, groups or items.")
        return data

    def as_plan(self) -> dict[str, Any]:
        """The part of a plan this form holds (valid forms only)."""
        data = self.cleaned_data
        items: dict[str, Any] = {}
        text = data["items_text"].strip()
        if data["items_choice"] == "search":
            items["search"] = text
        elif data["items_choice"] != "all":
            items[data["items_choice"]] = [line.strip() for line in text.splitlines() if line.strip()]
        if data["sample"]:
            items["sample"] = data["sample"]
        plan = {name: data[name] for name in ("name", "kind", "overlap", "max_per_annotator", "lease_minutes")}
        plan |= {name: data[name] for name in ("guidelines", "seed", "systems", "steps")}
        plan["items"] = items or "all"
        if data["kind"] == "pairwise":
            plan["pairs"] = data["pairs"]
        plan["options"] = {name: data[name] for name in (*_FLAGS, "repeat_gap")}
        plan["options"] |= {name: data[name] / 100 for name in _PERCENT}
        if data["kind"] == "pairwise":
            plan["options"] |= _adaptive(data)
        return plan


def _adaptive(data: dict[str, Any]) -> dict[str, Any]:
    """The options of adaptive choice; a field that was left empty keeps its usual value."""
    floor = data["adaptive_floor"]
    return {
        "adaptive": data["adaptive"],
        "adaptive_goal": data["adaptive_goal"] or OPTIONS["adaptive_goal"],
        "adaptive_floor": OPTIONS["adaptive_floor"] if floor is None else floor / 100,
    }


class AspectRow(forms.Form):
    """One question. An empty name leaves the row out."""

    name = forms.CharField(required=False, max_length=100, help_text="Short: it names the column of the results.")
    question = forms.CharField(
        required=False, max_length=300, widget=forms.TextInput(attrs={"placeholder": "How natural is it?"})
    )
    low = forms.FloatField(required=False, initial=1, label="Lowest")
    high = forms.FloatField(required=False, initial=5, label="Highest")
    step = forms.FloatField(required=False, initial=1, label="Step")
    labels = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "1 = awkward\n5 = native"}),
        help_text="One a line, such as “1 = awkward”.",
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
                raise forms.ValidationError(f"“{line.strip()}” is not a label. Write the value, “=” and the word.")
        return labels

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("question") and not data.get("name"):
            self.add_error("name", "Give the question a short name.")
        return data


AspectRows = formset_factory(AspectRow, extra=0)


def aspect_rows(data: Any = None, *, initial: Iterable[dict[str, Any]] = (), add: int = 0) -> BaseFormSet:
    """The rows as typed (with `add` more), or of a plan, or empty ones."""
    if data is not None:
        if add:
            data = data.copy()
            raw = data.get("aspects-TOTAL_FORMS", "0")
            data["aspects-TOTAL_FORMS"] = str(min(50, (number_in(raw) or 0) + add))
        return AspectRows(data, prefix="aspects")
    rows = list(initial)
    blank: dict[str, Any] = {"low": 1, "high": 5, "step": 1}
    rows += [blank] * max(0, ROWS_AT_FIRST - len(rows))
    return AspectRows(initial=rows, prefix="aspects")


def named(rows: BaseFormSet) -> list[AspectRow]:
    return [row for row in rows.forms if row.cleaned_data.get("name")]


def aspects_plan(rows: BaseFormSet, kind: str) -> list[dict[str, Any]]:
    """The aspects of a plan (valid rows only)."""
    found = []
    for row in named(rows):
        data = row.cleaned_data
        aspect = {"name": data["name"], "question": data["question"]}
        if kind == "likert":
            aspect |= {
                "low": _whole(1.0 if data["low"] is None else data["low"]),
                "high": _whole(5.0 if data["high"] is None else data["high"]),
                "step": None if data["step"] is None else _whole(data["step"]),
                "labels": data["labels"],
            }
        found.append(aspect)
    return found


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value


def add_plan_faults(form: CampaignForm, rows: BaseFormSet, faults: Sequence[Fault], detail: str) -> None:
    """Put what the plan's rules refuse where it was typed."""
    places = named(rows)
    for fault in faults or [Fault(detail)]:
        found = re.match(r"aspects\[(\d+)\]\.?(\w*)", fault.field)
        if found and int(found[1]) < len(places):
            row = places[int(found[1])]
            row.add_error(found[2] if found[2] in row.fields else None, fault.message)
            continue
        if fault.field.startswith("aspects"):
            form.add_error(None, fault.message)
            continue
        name = _PLACES.get(fault.field, fault.field.removeprefix("options."))
        form.add_error(name if name in form.fields else None, fault.message)


def initial_from_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """What the form shows of a stored plan."""
    found = {name: plan[name] for name in plan if name in CampaignForm.base_fields}
    items = plan["items"] if isinstance(plan["items"], dict) else {}
    choice = next((name for name in ("search", "groups", "keys") if items.get(name)), "all")
    found["items_choice"] = choice
    value = items.get(choice, "")
    found["items_text"] = "\n".join(value) if isinstance(value, list) else value
    found["sample"] = items.get("sample")
    found |= {name: plan["options"][name] for name in (*_FLAGS, "repeat_gap", "adaptive", "adaptive_goal")}
    found |= {name: round(100 * plan["options"][name]) for name in (*_PERCENT, "adaptive_floor")}
    return found


def rows_from_plan(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {**aspect, "labels": "\n".join(f"{value} = {words}" for value, words in (aspect.get("labels") or {}).items())}
        for aspect in plan["aspects"]
    ]


def rows_from_project(aspects: Sequence[Aspect]) -> list[dict[str, Any]]:
    """Aspects the project knows already, offered for a new campaign."""
    rated = [row for row in aspects if row.low is not None and row.high is not None]
    return [{"name": row.name, "low": _whole(row.low), "high": _whole(row.high), "step": 1} for row in rated[:OFFERED]]


class RunningForm(forms.Form):
    """What may change while people judge."""

    name = CampaignForm.base_fields["name"]
    guidelines = CampaignForm.base_fields["guidelines"]
    max_per_annotator = CampaignForm.base_fields["max_per_annotator"]
    lease_minutes = CampaignForm.base_fields["lease_minutes"]
    answer_on_key = CampaignForm.base_fields["answer_on_key"]
    allow_note = CampaignForm.base_fields["allow_note"]
    allow_skip = CampaignForm.base_fields["allow_skip"]
    allow_revise = CampaignForm.base_fields["allow_revise"]
    control_rate = CampaignForm.base_fields["control_rate"]
    adaptive = CampaignForm.base_fields["adaptive"]
    adaptive_goal = CampaignForm.base_fields["adaptive_goal"]
    adaptive_floor = CampaignForm.base_fields["adaptive_floor"]

    def __init__(self, *args: Any, campaign: Campaign, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not campaign.plan.get("players"):
            for name in ("adaptive", "adaptive_goal", "adaptive_floor"):
                del self.fields[name]

    def as_changes(self, campaign: Campaign) -> dict[str, Any]:
        data = self.cleaned_data
        options = {**OPTIONS, **campaign.options, **{name: data[name] for name in _FLAGS}}
        options["control_rate"] = data["control_rate"] / 100
        if "adaptive" in self.fields:
            options |= _adaptive(data)
        return {name: data[name] for name in ("name", "guidelines", "max_per_annotator", "lease_minutes")} | {
            "options": options
        }


class LinkForm(forms.Form):
    """An invitation of annotators."""

    label = forms.CharField(
        required=False, max_length=100, label="For whom", help_text="Only for your list, such as “first-year students”."
    )
    max_uses = forms.IntegerField(
        min_value=1, max_value=10_000, initial=10, label="People", help_text="How many may join by this link."
    )
    days = forms.IntegerField(min_value=1, max_value=365, initial=14, label="Days", help_text="How long it works.")


def free_slug(name: str, taken: set[str]) -> str:
    """A short name for the address of a new campaign that none of the project has."""
    base = slugify(name) or "campaign"
    if base not in taken:
        return base
    number = 2
    while f"{base[:58]}-{number}" in taken:
        number += 1
    return f"{base[:58]}-{number}"
