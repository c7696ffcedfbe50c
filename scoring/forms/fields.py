"""Forms of this room: an evaluator's options as its catalogue entry describes them, and what a leaderboard is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings

from annotation.models import Aspect, ReferenceSet
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import EvalappError
from scoring.boards.choices import CHOICES
from scoring.selectors.leaderboards import names_of
from scoring.services.scores import defaults_of

if TYPE_CHECKING:
    from scoring.ml import Entry, Option

AUTOSUBMIT = {"data-autosubmit": ""}
LABELS = {"systems": "Systems", "ratings": "Ratings", "level": "Level", "grouping": "Grouping", "method": "Method"}
LABELS |= {"filter": "Raters", "coefficient": "Ordered by", "test": "Test", "key": "Parts by", "weights": "Weights"}
LABELS |= {"people": "People’s scores by", "covariates": "Adjusted for", "per": "Counted"}
LABELS |= {"undefined": "Groups of equal scores count"}


class NameField(forms.RegexField):
    """A name that stands in addresses."""

    def __init__(self, **kwargs: Any) -> None:
        said = "Small letters, digits and hyphens only, beginning with a letter or a digit."
        super().__init__(r"^[a-z0-9][a-z0-9-]*\Z", error_messages={"invalid": said}, **kwargs)


def add_faults(form: forms.Form, error: EvalappError) -> None:
    """What a service refused, at the fields where the form has them, else above it: nothing is lost."""
    # Of several aspects one, too, is chosen in the field of all.
    alike = {"aspect": "aspects"}
    left = []
    for fault in error.faults:
        name = fault.field.removeprefix("options.")
        names = (f"option_{name}", name, alike.get(name, name))
        field = next((name for name in names if name in form.fields), None)
        if field is None:
            left.append(fault.message)
        else:
            # The field has a label: there the sentence needs no name before it.
            said = fault.message.removeprefix(f"{name} ")
            form.add_error(field, said if said == fault.message else said[:1].upper() + said[1:])
    for text in left if error.faults else [error.detail]:
        form.add_error(None, text)


def label_of(option: Option) -> str:
    """What an option is called on pages, where it is trained and where it is applied."""
    return option.name.replace("_", " ")


class ApplyForm(forms.Form):
    """One field per option; an empty field takes the default. `lacking`: what must be named, and cannot be here."""

    def __init__(self, *args: Any, project: Project, entry: Entry, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entry = entry
        if "references" in entry.needs:
            names = [(name, name) for name in reference_sets(project)]
            self.fields["references"] = forms.ChoiceField(
                choices=names, initial=ORIGINAL, label="References", help_text="The set the texts are measured against."
            )
        defaults = defaults_of(entry, project)
        self.lacking = [option for option in entry.options if option.needed and not settings.ENCODERS]
        for option in entry.options:
            if option in self.lacking or (option.names_model and not settings.ENCODERS):
                continue
            self.fields[f"option_{option.name}"] = _option_field(option, defaults[option.name])

    @property
    def options(self) -> dict[str, Any]:
        given = {
            name.removeprefix("option_"): value
            for name, value in self.cleaned_data.items()
            if name.startswith("option_")
        }
        return {name: value for name, value in given.items() if value not in ("", None)}


def _option_field(option: Any, default: Any) -> forms.Field:
    common: dict[str, Any] = {"label": label_of(option), "help_text": option.help, "required": bool(option.needed)}
    if option.names_model:
        default_choice = [] if option.needed else [("", "the default")]
        choices = [*default_choice, *((name, name) for name in settings.ENCODERS)]
        return forms.ChoiceField(choices=choices, **common)
    # What is left open must not be decided by a box that nobody ticked or a list that nobody opened.
    left_open = [("", "as it was trained")] if default is None else []
    if option.type == "bool" and left_open:
        return forms.ChoiceField(choices=[*left_open, ("true", "yes"), ("false", "no")], **common)
    if option.type == "bool":
        return forms.BooleanField(initial=default, **common)
    if option.choices:
        choices = [*left_open, *((choice, choice) for choice in option.choices)]
        return forms.ChoiceField(choices=choices, initial=default, **common)
    if option.type == "int":
        return forms.IntegerField(initial=default, min_value=_whole(option.minimum), **common)
    if option.type == "float":
        return forms.FloatField(initial=default, min_value=option.minimum, max_value=option.maximum, **common)
    return forms.CharField(initial=default, max_length=200, **common)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def reference_sets(project: Project) -> list[str]:
    names = list(ReferenceSet.objects.filter(project=project).order_by("name").values_list("name", flat=True))
    return [ORIGINAL, *(name for name in names if name != ORIGINAL)]


class QueryForm(forms.Form):
    """The line of select boxes above a leaderboard: a plain GET form."""

    def __init__(
        self,
        *args: Any,
        project: Project,
        names: list[str],
        aspects: list[str],
        known: Mapping[str, list[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.known = (
            names_of(project)
            if known is None and {"by", "filter", "references", "campaign"} & set(names)
            else known or {}
        )
        for name in names:
            self.fields[name] = self._field(name, project, aspects)

    def _field(self, name: str, project: Project, aspects: list[str]) -> forms.Field:
        if name == "aspect":
            choices = [(aspect, aspect) for aspect in aspects]
        elif name == "by":
            choices = [(slug, slug) for slug in self.known["by"]]
        elif name == "references":
            choices = [(found, found) for found in self.known["references"]]
        elif name == "level":
            # Dialogues are a level of the main table of evaluators only, which adds them.
            choices = [(level, label) for level, label in CHOICES[name].items() if level != "dialogue"]
        elif name == "key":
            from scoring.selectors.item_keys import item_keys

            choices = [(key, key) for key in item_keys(project)]
        elif name == "filter":
            choices = [("", "nobody left out"), *((found, found) for found in self.known["filter"])]
        elif name == "campaign":
            choices = [("", "all judgements"), *((found, found) for found in self.known["campaign"])]
        else:
            choices = list(CHOICES[name].items())
        label = LABELS.get(name, {"by": "Evaluator"}.get(name, name.capitalize()))
        return forms.ChoiceField(choices=choices, label=label, required=False, widget=forms.Select(attrs=AUTOSUBMIT))


def aspect_names(project: Project, *, rated: bool) -> list[str]:
    """Aspects that can be asked for; those of comparisons only have no scale."""
    rows = Aspect.objects.filter(project=project)
    return [row.name for row in rows if not rated or row.low is not None]
