"""The form of a writing campaign: from what a person types to a plan and back. The rules are those of
`annotation.allocation.writing_plan`; here their messages find the field that caused them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from annotation.allocation.writing_plan import OPTIONS
from evalapp.common.errors import Fault

from .campaign_forms import ITEMS

KINDS = (
    ("ream", "References with REAM: more references, guided by the predicted reliability of the set"),
    ("constraint", "Texts under a constraint: endings of several kinds, to try how robust a metric is"),
)
ARMS = (
    ("scores", "With scores: the reliability of the set is shown live, and a text is added when it raises it"),
    ("control", "Without scores: the same page, nothing is shown and nothing is refused"),
    ("candidates", "Candidates only: texts of the corpus are taken as they are, or not"),
)
ARM_NAMES = {"scores": "with scores", "control": "without scores", "candidates": "candidates only"}
ASSIGN = (("annotator", "by annotator: a person stays in one arm"), ("item", "by item: an item stays in one arm"))
MODES = (
    ("free", "free: everybody adds to one set of each item"),
    ("rounds", "in rounds: a group sees the same candidate, everybody grows a set of their own"),
)
CONSTRAINTS = (
    ("free", "free: any fitting text"),
    ("avoid-original-words", "other words: none of the content words of the original"),
    ("better-than-original", "better than the original, confirmed by others"),
    ("minimally-wrong", "minimally wrong: the original, edited as little as needed to be wrong"),
)
#: What annotators read of the constraint.
CONSTRAINT_WORDS = {
    "free": "",
    "avoid-original-words": "Use other words than the original.",
    "better-than-original": "Write a text that is better than the original. Others will say whether it is.",
    "minimally-wrong": "Change the original as little as needed to make it wrong.",
}
NO_EVALUATOR = "none: write without scores"
NO_CORPUS = "none: own texts only"
_WHOLE = ("group_size", "max_attempts", "target", "candidates", "confirmations", "shared_words")
_NONE = ("candidate_turns", "changed_words")
_REAM_ONLY = ("arms", "assign", "mode", "group_size", "max_attempts", "min_gain", "candidates", "candidate_turns")
_CONSTRAINT_ONLY = ("constraint", "confirmations", "shared_words", "changed_words")
_PLACES = {
    "slug": "name",
    "items": "items_text",
    "items.sample": "sample",
    "items.keys": "items_text",
    "items.groups": "items_text",
    "items.search": "items_text",
}


class WritingForm(forms.Form):
    """Everything of a plan."""

    name = forms.CharField(max_length=200, help_text="Annotators see it; the reference set gets its name from it.")
    kind = forms.ChoiceField(choices=KINDS, widget=forms.RadioSelect, initial="ream", label="What is written")

    evaluator = forms.ChoiceField(required=False, help_text="Whose predicted reliability guides the arm with scores.")
    arms = forms.MultipleChoiceField(
        required=False, choices=ARMS, widget=forms.CheckboxSelectMultiple, help_text="Two or more are compared."
    )
    assign = forms.ChoiceField(
        choices=ASSIGN,
        initial="annotator",
        label="Arms are given",
        help_text="Balanced, where there are two or more.",
    )
    mode = forms.ChoiceField(choices=MODES, widget=forms.RadioSelect, initial="free", label="Several people on an item")
    group_size = forms.IntegerField(
        min_value=2, max_value=100, initial=OPTIONS["group_size"], label="People in a group", help_text="In rounds."
    )
    max_attempts = forms.IntegerField(
        min_value=1, max_value=100, initial=OPTIONS["max_attempts"], label="Attempts",
        help_text="So many edits of a candidate; then it is dropped.",
    )  # fmt: skip
    min_gain = forms.FloatField(
        min_value=0, max_value=0.99, initial=0.0, label="Least gain",
        help_text="A text is added when the reliability grows by more than this. 0 is the rule of the paper.",
    )  # fmt: skip
    target = forms.IntegerField(
        min_value=1, max_value=1000, initial=OPTIONS["target"], label="References wanted",
        help_text="Of each item, those it starts from included.",
    )  # fmt: skip

    corpus = forms.ChoiceField(required=False, label="Candidates from", help_text="Texts that may become references.")
    candidates = forms.IntegerField(
        min_value=1, max_value=1000, initial=OPTIONS["candidates"], label="Candidates of an item",
        help_text="The nearest to its context, by Jaccard similarity of the words.",
    )  # fmt: skip
    candidate_turns = forms.IntegerField(
        required=False, min_value=1, max_value=1000, label="Turns they are looked up by",
        help_text="The last so many of the context, 1 for the last one; empty: all of them.",
    )  # fmt: skip
    own_text = forms.BooleanField(required=False, initial=True, label="Texts of one's own may be written, too")

    constraint = forms.ChoiceField(
        required=False, choices=CONSTRAINTS, widget=forms.RadioSelect, initial="free", label="The constraint"
    )
    instruction = forms.CharField(
        required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Stands above every item, such as “Write another ending with other words.”",
    )  # fmt: skip
    confirmations = forms.IntegerField(
        min_value=0, max_value=20, initial=0, label="Confirmations",
        help_text="So many other annotators must agree that a text is better than the original; at least one.",
    )  # fmt: skip
    shared_words = forms.IntegerField(
        min_value=0, max_value=1000, initial=0, label="Shared words",
        help_text="So many content words of the original may come again.",
    )  # fmt: skip
    changed_words = forms.IntegerField(
        required=False, min_value=1, max_value=1000, label="Changed words",
        help_text="At most so many words differ from the original; empty: no limit.",
    )  # fmt: skip

    items_choice = forms.ChoiceField(choices=ITEMS, widget=forms.RadioSelect, initial="all", label="Which items")
    items_text = forms.CharField(
        required=False, label="Words, groups or items", widget=forms.Textarea(attrs={"rows": 2}),
        help_text="For “all items” leave it empty. Groups and items: one a line.",
    )  # fmt: skip
    sample = forms.IntegerField(
        required=False, min_value=1, label="At most so many items", help_text="Drawn at random; empty: all of them."
    )
    start_set = forms.ChoiceField(
        required=False, label="Start from", help_text="Copied, never changed: what is written goes to a set of its own."
    )
    max_per_annotator = forms.IntegerField(
        required=False, min_value=1, label="At most per annotator", help_text="Items of one person; empty: no limit."
    )
    lease_minutes = forms.IntegerField(
        min_value=1, max_value=1440, initial=30, label="Minutes without a key",
        help_text="Who is away so long is waited for no more. Typing renews it.",
    )  # fmt: skip
    guidelines = forms.CharField(
        required=False, max_length=100_000, widget=forms.Textarea(attrs={"rows": 8}),
        help_text="Markdown. What a good reference is, with an example.",
    )  # fmt: skip
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, initial=13, help_text="Decides arms, order and sample.")

    def __init__(
        self,
        *args: Any,
        evaluators: Sequence[tuple[str, str]] = (),
        corpora: Sequence[tuple[str, str]] = (),
        sets: Sequence[tuple[str, str]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._choose("evaluator", [("", NO_EVALUATOR), *evaluators])
        self._choose("corpus", [("", NO_CORPUS), *corpora])
        self._choose("start_set", list(sets))
        if not self.is_bound and "arms" not in self.initial:
            # Without an evaluator nobody can be shown scores.
            self.initial["arms"] = ["scores", "control"] if evaluators else ["control"]
            self.initial["evaluator"] = evaluators[0][0] if evaluators else ""
            self.initial["corpus"] = corpora[0][0] if corpora else ""

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        """A name that was chosen and is gone since stays to be seen."""
        given = str(self.initial.get(name) or "")
        if given and given not in dict(choices):
            choices.append((given, f"{given} (not there)"))
        self.fields[name].choices = choices  # type: ignore[attr-defined]

    @property
    def has_evaluators(self) -> bool:
        return len(self.fields["evaluator"].choices) > 1  # type: ignore[attr-defined]

    @property
    def has_corpora(self) -> bool:
        return len(self.fields["corpus"].choices) > 1  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("items_choice") != "all" and not (data.get("items_text") or "").strip():
            self.add_error("items_text", "Say which: words, groups or items.")
        if data.get("kind") == "ream" and not data.get("arms"):
            self.add_error("arms", "Choose at least one arm.")
        if data.get("kind") == "ream" and "scores" in (data.get("arms") or []) and not data.get("evaluator"):
            self.add_error("evaluator", "The arm with scores needs a trained evaluator. Choose one, or another arm.")
        return data

    def as_plan(self) -> dict[str, Any]:
        """The plan this form holds (valid forms only)."""
        data = self.cleaned_data
        ream = data["kind"] == "ream"
        items: dict[str, Any] = {}
        text = data["items_text"].strip()
        if data["items_choice"] == "search":
            items["search"] = text
        elif data["items_choice"] != "all":
            items[data["items_choice"]] = [line.strip() for line in text.splitlines() if line.strip()]
        if data["sample"]:
            items["sample"] = data["sample"]
        plan = {name: data[name] for name in ("name", "kind", "guidelines", "start_set", "lease_minutes", "seed")}
        plan |= {"max_per_annotator": data["max_per_annotator"], "items": items or "all"}
        plan |= {"evaluator": data["evaluator"] if ream else "", "corpus": data["corpus"] if ream else ""}
        names = (*_REAM_ONLY, "own_text") if ream else _CONSTRAINT_ONLY
        plan["options"] = {name: data[name] for name in (*names, "target", "instruction")}
        return plan


def writing_initial(plan: dict[str, Any]) -> dict[str, Any]:
    """What the form shows of a stored plan."""
    found = {name: plan[name] for name in plan if name in WritingForm.base_fields}
    items = plan["items"] if isinstance(plan.get("items"), dict) else {}
    choice = next((name for name in ("search", "groups", "keys") if items.get(name)), "all")
    value = items.get(choice, "")
    found |= {
        "items_choice": choice,
        "items_text": "\n".join(value) if isinstance(value, list) else value,
        "sample": items.get("sample"),
    }
    options = {**OPTIONS, **plan["options"]}
    return found | {name: options[name] for name in options if name in WritingForm.base_fields}


def add_writing_faults(form: forms.Form, faults: Sequence[Fault], detail: str) -> None:
    """Put what the plan's rules refuse where it was typed."""
    for fault in faults or [Fault(detail)]:
        name = _PLACES.get(fault.field, fault.field.removeprefix("options."))
        form.add_error(name if name in form.fields else None, fault.message)


class RunningWritingForm(forms.Form):
    """What may change while people write."""

    name = WritingForm.base_fields["name"]
    guidelines = WritingForm.base_fields["guidelines"]
    max_per_annotator = WritingForm.base_fields["max_per_annotator"]
    lease_minutes = WritingForm.base_fields["lease_minutes"]

    def as_changes(self) -> dict[str, Any]:
        return dict(self.cleaned_data)
