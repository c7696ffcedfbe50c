"""The form of a writing plan. The rules are those of `annotation.allocation.writing_plan`; the form shows their
messages at the fields that caused them."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from annotation.allocation.writing_plan import OPTION_RULES, OPTIONS
from annotation.models import Item, ReferenceSet, WritingCampaign
from annotation.services import hooks
from annotation.services.campaigns import create_writing, sketch_writing
from annotation.services.writing_plans import estimate_writing, list_opening_problems
from evalapp.accounts.models import Project

from .plan_forms import CHANGEABLE, PlanEditor, PlanForm, find_free_slug, list_slugs, option_field, pick_fields

KINDS = (
    ("ream", _("References with REAM: more references per item, guided by the predicted reliability of the set")),
    ("constraint", _("Texts under a constraint: several kinds of responses for testing the robustness of metrics")),
)
ARMS = (
    ("scores", _("With scores: annotators see the reliability of the set, and a text is added if it raises it")),
    ("control", _("Without scores: the same page without scores; every text is accepted")),
    ("candidates", _("Candidates only: annotators accept or discard texts from the corpus, without editing")),
)
ARM_NAMES = {"scores": _("with scores"), "control": _("without scores"), "candidates": _("candidates only")}
ASSIGN = (
    ("annotator", _("by annotator: each person stays in one arm")),
    ("item", _("by item: each item stays in one arm")),
)
MODES = (
    ("free", _("free: all annotators add to the same set of an item")),
    ("rounds", _("in rounds: a group sees the same candidate, and each annotator adds to their own set")),
)
CONSTRAINTS = (
    ("free", _("free: any suitable text")),
    ("avoid-original-words", _("other words: none of the content words of the original")),
    ("better-than-original", _("better than the original, confirmed by other annotators")),
    ("minimally-wrong", _("minimally wrong: the original, changed as little as needed to make it wrong")),
)
NO_EVALUATOR = _("none: write without scores")
NO_CORPUS = _("none: own texts only")
TRAINING_NEEDS = _(
    "It needs human ratings for outputs of different systems, and two or more references for some of the items. With "
    "the small encoder, a few hundred items take minutes on a laptop; larger encoders need a GPU. The training page "
    "checks whether there is enough data."
)
_REAM_ONLY = ("arms", "assign", "mode", "group_size", "max_attempts", "min_gain", "candidates", "candidate_turns")
_CONSTRAINT_ONLY = ("constraint", "confirmations", "shared_words", "changed_words")


class WritingForm(PlanForm):
    """Everything of a writing plan."""

    help_texts = {
        "name": _("Shown to annotators. The reference set is named after it."),
        "max_per_annotator": _("Maximum number of items per person. Leave empty for no limit."),
        "lease_minutes": _("The group stops waiting for an annotator who is inactive for this long. Typing renews it."),
        "guidelines": _("Markdown. What a good reference is, with an example."),
        "seed": _("Determines the arms, the order and the sample."),
    }

    kind = forms.ChoiceField(choices=KINDS, widget=forms.RadioSelect, initial="ream", label=_("Task"))

    evaluator = forms.ChoiceField(
        required=False, label=_("Evaluator"), help_text=_("Predicts the reliability that guides the arm with scores.")
    )
    arms = forms.MultipleChoiceField(
        required=False,
        choices=ARMS,
        widget=forms.CheckboxSelectMultiple,
        label=_("Arms"),
        help_text=_("Select two or more to compare them."),
    )
    assign = forms.ChoiceField(
        choices=ASSIGN,
        initial="annotator",
        label=_("Assignment of arms"),
        help_text=_("Balanced if there are several arms."),
    )
    mode = forms.ChoiceField(choices=MODES, widget=forms.RadioSelect, initial="free", label=_("Collaboration"))
    group_size = option_field(OPTION_RULES["group_size"], _("Group size"), _("In rounds."))
    max_attempts = option_field(
        OPTION_RULES["max_attempts"], _("Maximum edits"), _("Maximum edits per candidate; after that it is discarded.")
    )
    min_gain = option_field(
        OPTION_RULES["min_gain"],
        _("Minimum gain"),
        _("A text is added if the reliability increases by more than this. The paper uses 0."),
    )
    target = option_field(
        OPTION_RULES["target"], _("References per item"), _("Including those that the campaign starts from.")
    )

    corpus = forms.ChoiceField(
        required=False, label=_("Corpus"), help_text=_("The source of candidates, which may become references.")
    )
    candidates = option_field(
        OPTION_RULES["candidates"],
        _("Candidates per item"),
        _("The texts most similar to the context (Jaccard similarity of words)."),
    )
    candidate_turns = option_field(
        OPTION_RULES["candidate_turns"],
        _("Context turns for retrieval"),
        _("The number of last turns to search with. Leave empty for all turns."),
    )
    own_text = option_field(OPTION_RULES["own_text"], _("Annotators may also write their own texts"))

    constraint = forms.ChoiceField(
        required=False, choices=CONSTRAINTS, widget=forms.RadioSelect, initial="free", label=_("Constraint")
    )
    instruction = forms.CharField(
        required=False, max_length=4000, label=_("Instruction"), widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Shown above every item, for example “Write another response with other words.”"),
    )  # fmt: skip
    confirmations = option_field(
        OPTION_RULES["confirmations"],
        _("Confirmations"),
        _("How many other annotators must prefer a text to the original; at least one."),
    )
    shared_words = option_field(
        OPTION_RULES["shared_words"], _("Shared words"), _("Maximum number of content words from the original.")
    )
    changed_words = option_field(
        OPTION_RULES["changed_words"],
        _("Changed words"),
        _("Maximum number of words that differ from the original. Leave empty for no limit."),
    )
    start_set = forms.ChoiceField(
        required=False,
        label=_("Start from"),
        help_text=_("These references are copied and never changed; new texts go into a separate set."),
    )

    def __init__(
        self,
        *args: Any,
        evaluators: Sequence[tuple[str, str]] = (),
        corpora: Sequence[tuple[str, str]] = (),
        sets: Sequence[tuple[str, str]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._set_choices("evaluator", [("", NO_EVALUATOR), *evaluators])
        self._set_choices("corpus", [("", NO_CORPUS), *corpora])
        self._set_choices("start_set", list(sets))
        if not self.is_bound and "arms" not in self.initial:
            # Without an evaluator there are no scores to show.
            self.initial["arms"] = ["scores", "control"] if evaluators else ["control"]
            self.initial["evaluator"] = evaluators[0][0] if evaluators else ""
            self.initial["corpus"] = corpora[0][0] if corpora else ""

    def _set_choices(self, name: str, choices: list[tuple[str, Any]]) -> None:
        """A stored name that no longer exists remains visible as a choice."""
        given = str(self.initial.get(name) or "")
        if given and given not in dict(choices):
            choices.append((given, _("%(name)s (missing)") % {"name": given}))
        self.fields[name].choices = choices  # type: ignore[attr-defined]

    @property
    def has_evaluators(self) -> bool:
        return len(self.fields["evaluator"].choices) > 1  # type: ignore[attr-defined]

    @property
    def has_corpora(self) -> bool:
        return len(self.fields["corpus"].choices) > 1  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        if data.get("kind") == "ream" and not data.get("arms"):
            self.add_error("arms", _("Choose at least one arm."))
        if data.get("kind") == "ream" and "scores" in (data.get("arms") or []) and not data.get("evaluator"):
            message = _("The arm with scores needs a trained evaluator. Choose one, or another arm.")
            self.add_error("evaluator", message)
        return data

    def as_plan(self) -> dict[str, Any]:
        """The plan that this form contains (valid forms only)."""
        data = self.cleaned_data
        is_ream = data["kind"] == "ream"
        plan = self.read_shared() | {"start_set": data["start_set"]}
        plan |= {"evaluator": data["evaluator"] if is_ream else "", "corpus": data["corpus"] if is_ream else ""}
        names = (*_REAM_ONLY, "own_text") if is_ream else _CONSTRAINT_ONLY
        plan["options"] = {name: data[name] for name in (*names, "target", "instruction", "show_clock", "language")}
        return plan

    @classmethod
    def read_initial(cls, plan: dict[str, Any]) -> dict[str, Any]:
        options = {**OPTIONS, **plan["options"]}
        return super().read_initial(plan) | {name: options[name] for name in options if name in cls.base_fields}


class WritingEditor(PlanEditor):
    """The form of a writing plan."""

    form_class = WritingForm
    form: WritingForm
    create = staticmethod(create_writing)

    def __init__(self, project: Project, *, data: QueryDict | None = None, plan: dict[str, Any] | None = None) -> None:
        self.project = project
        sets = ReferenceSet.objects.filter(project=project).order_by("pk").values_list("name", flat=True)
        self.form = WritingForm(
            data,
            initial=WritingForm.read_initial(plan) if plan else None,
            evaluators=hooks.list_reliability_evaluators(project=project),
            corpora=hooks.list_corpora(project=project),
            sets=[(name, name) for name in sets] or [("original", "original")],
        )

    def as_plan(self) -> dict[str, Any]:
        return self.form.as_plan()

    def sketch(self, plan: dict[str, Any]) -> dict[str, Any]:
        draft = sketch_writing(project=self.project, plan=plan)
        return {
            "draft": draft,
            "options": draft.options,
            "estimate": estimate_writing(campaign=draft),
            "problems": list_opening_problems(campaign=draft),
            "arms": [ARM_NAMES[arm] for arm in draft.options["arms"]],
        }

    def make_slug(self, name: str) -> str:
        taken = set(ReferenceSet.objects.filter(project=self.project).values_list("name", flat=True))
        return find_free_slug(name[:36], taken | list_slugs(self.project, WritingCampaign))

    def get_context(self) -> dict[str, Any]:
        has_items = Item.objects.filter(project=self.project).exists()
        return {"form": self.form, "has_items": has_items, "training_needs": TRAINING_NEEDS}


class RunningWritingForm(pick_fields(WritingForm, CHANGEABLE)):  # type: ignore[misc]
    """The fields that can change while people write."""

    def __init__(self, *args: Any, campaign: WritingCampaign, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def as_changes(self) -> dict[str, Any]:
        return dict(self.cleaned_data)
