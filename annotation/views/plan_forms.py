"""The parts that forms of judging and writing plans share: common fields, selection of items, errors by field."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from annotation.allocation.plan_reading import Option, slugify
from annotation.models import Campaign, WritingCampaign
from evalapp.accounts.models import Project, User
from evalapp.common.errors import EvalappError, Fault
from evalapp.languages import LANGUAGES

ITEMS = (
    ("all", _("All items")),
    ("search", _("Items that contain these words")),
    ("groups", _("These groups")),
    ("keys", _("These items")),
)
#: Fields of the plan that have another name in the form.
_FORM_FIELDS = {
    "slug": "name",
    "items": "items_text",
    "items.sample": "sample",
    "items.keys": "items_text",
    "items.groups": "items_text",
    "items.search": "items_text",
}
#: Fields that can change after a campaign was opened, for both kinds of work.
CHANGEABLE = ("name", "guidelines", "max_per_annotator", "lease_minutes")
_PLAN_FIELDS = (*CHANGEABLE, "kind", "seed")


def option_field(rule: Option, label: Any, help_text: Any = "", *, percent: bool = False) -> forms.Field:
    """The form field of an option of a plan, with its default and limits; shares can be entered in per cent."""
    texts = {"label": label, "help_text": help_text}
    if rule.type is bool:
        return forms.BooleanField(required=False, initial=rule.default, **texts)
    factor = 100 if percent else 1
    field = forms.IntegerField if percent or rule.type is int else forms.FloatField
    return field(
        required=not rule.optional,
        min_value=round(factor * rule.low) if percent else rule.low,
        max_value=round(factor * rule.high) if percent else rule.high,
        initial=round(factor * rule.default) if percent else rule.default,
        **texts,
    )


class HelpedForm(forms.Form):
    """A form whose `help_texts` replace those of its fields."""

    help_texts: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, text in self.help_texts.items():
            if name in self.fields:
                self.fields[name].help_text = text

    def add_faults(self, faults: Sequence[Fault], detail: str) -> None:
        """Show the errors of a plan at the fields that caused them."""
        for fault in faults or [Fault(detail)]:
            name = _FORM_FIELDS.get(fault.field, fault.field.removeprefix("options."))
            self.add_error(name if name in self.fields else None, fault.message)


class PlanForm(HelpedForm):
    """Fields that both kinds of plan have; `kind` is added by the subclasses."""

    name = forms.CharField(max_length=200, label=_("Name"))
    items_choice = forms.ChoiceField(choices=ITEMS, widget=forms.RadioSelect, initial="all", label=_("Items"))
    items_text = forms.CharField(
        required=False,
        label=_("Words, groups or items"),
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Leave empty for all items. Enter one group or item per line."),
    )
    sample = forms.IntegerField(
        required=False,
        min_value=1,
        label=_("Maximum number of items"),
        help_text=_("A random sample. Leave empty for all."),
    )
    max_per_annotator = forms.IntegerField(required=False, min_value=1, label=_("Maximum per annotator"))
    lease_minutes = forms.IntegerField(min_value=1, max_value=1440, initial=30, label=_("Time limit in minutes"))
    guidelines = forms.CharField(
        required=False, max_length=100_000, label=_("Guidelines"), widget=forms.Textarea(attrs={"rows": 8})
    )
    show_clock = option_field(
        Option(True),
        _("Annotators see the time they take"),
        _("The time is measured in any case. Without a clock some people work more calmly."),
    )
    language = forms.ChoiceField(
        required=False,
        choices=[("", _("As the browser")), *LANGUAGES.items()],
        label=_("Language of the pages"),
        help_text=_("For annotators who have not chosen a language. Guidelines, questions and texts stay as they are."),
    )
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, initial=13, label=_("Seed"))

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("items_choice") != "all" and not (data.get("items_text") or "").strip():
            self.add_error("items_text", _("Enter the words, groups or items."))
        return data

    def read_shared(self) -> dict[str, Any]:
        """The part of the plan that both kinds of work share (valid forms only)."""
        data = self.cleaned_data
        items: dict[str, Any] = {}
        text = data["items_text"].strip()
        if data["items_choice"] == "search":
            items["search"] = text
        elif data["items_choice"] != "all":
            items[data["items_choice"]] = [line.strip() for line in text.splitlines() if line.strip()]
        if data["sample"]:
            items["sample"] = data["sample"]
        return {name: data[name] for name in _PLAN_FIELDS} | {"items": items or "all"}

    @classmethod
    def read_initial(cls, plan: dict[str, Any]) -> dict[str, Any]:
        """The initial values for a stored plan."""
        items = plan["items"] if isinstance(plan.get("items"), dict) else {}
        choice = next((name for name in ("search", "groups", "keys") if items.get(name)), "all")
        value = items.get(choice, "")
        return {name: plan[name] for name in plan if name in cls.base_fields} | {
            "items_choice": choice,
            "items_text": "\n".join(value) if isinstance(value, list) else value,
            "sample": items.get("sample"),
        }


def pick_fields(form: type[PlanForm], names: Iterable[str]) -> type[HelpedForm]:
    """A form class with some of the fields of `form`."""
    fields = {name: form.base_fields[name] for name in names}
    return type(HelpedForm)("PickedForm", (HelpedForm,), {"help_texts": form.help_texts, **fields})


class PlanEditor:
    """A plan on its page: as it was submitted (`data`), as it is stored or copied (`plan`), or empty."""

    form_class: type[PlanForm]
    form: PlanForm
    project: Project

    def __init__(self, project: Project, *, data: QueryDict | None = None, plan: dict[str, Any] | None = None) -> None:
        raise NotImplementedError

    def is_valid(self) -> bool:
        return self.form.is_valid()

    def as_plan(self) -> dict[str, Any]:
        """The submitted plan (valid editors only)."""
        raise NotImplementedError

    def as_changes(self, campaign: Any) -> dict[str, Any]:
        """The submitted changes to a stored draft."""
        return self.as_plan()

    def make_slug(self, name: str) -> str:
        """A slug for a new campaign that is still free in the project."""
        raise NotImplementedError

    def create(self, *, project: Project, user: User, plan: dict[str, Any]) -> Campaign | WritingCampaign:
        """Create a draft from the plan."""
        raise NotImplementedError

    def add_faults(self, faults: Sequence[Fault], detail: str) -> None:
        self.form.add_faults(faults, detail)

    def sketch(self, plan: dict[str, Any]) -> dict[str, Any]:
        """The context of the estimate of a plan."""
        raise NotImplementedError

    def estimate(self) -> dict[str, Any]:
        """The context of the estimate of what was submitted so far, or `unclear`: what it lacks."""
        data = self.form.data.copy()
        if not data.get("name", "").strip():
            data["name"] = "?"
        complete = type(self)(self.project, data=data)
        if not complete.is_valid():
            return {
                "unclear": [str(complete.form.fields[name].label) for name in complete.form.errors if name != "__all__"]
            }
        try:
            return self.sketch({**complete.as_plan(), "slug": "estimate"})
        except EvalappError as error:
            return {"unclear": [error.detail]}

    def get_context(self) -> dict[str, Any]:
        """The variables of the template besides project and campaign."""
        return {"form": self.form}


class LinkForm(forms.Form):
    """An invitation link for annotators."""

    label = forms.CharField(
        required=False,
        max_length=100,
        label=_("Label"),
        help_text=_("Only shown in your list, for example “first-year students”."),
    )
    max_uses = forms.IntegerField(
        min_value=1,
        max_value=10_000,
        initial=10,
        label=_("People"),
        help_text=_("How many people can join with this link."),
    )
    days = forms.IntegerField(
        min_value=1, max_value=365, initial=14, label=_("Days"), help_text=_("How long the link works.")
    )


def find_free_slug(name: str, taken: set[str]) -> str:
    """A slug made from `name` that is not in `taken`."""
    base = slugify(name) or "campaign"
    if base not in taken:
        return base
    number = 2
    while f"{base[:58]}-{number}" in taken:
        number += 1
    return f"{base[:58]}-{number}"


def list_slugs(project: Project, model: type[Campaign] | type[WritingCampaign]) -> set[str]:
    return set(model.objects.filter(project=project).values_list("slug", flat=True))
