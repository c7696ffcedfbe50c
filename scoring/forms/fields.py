"""Form fields for the options of evaluators, as their catalogue entries describe them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import ReferenceSet
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import EvalappError
from evalapp.common.params import GREATEST_SEED, LEAST_SEED, bounds
from evalapp.names import natural_key
from scoring.services.scores import get_default_options

if TYPE_CHECKING:
    from scoring.ml import Entry, Option


class NameField(forms.RegexField):
    """A name that can be part of an address."""

    def __init__(self, **kwargs: Any) -> None:
        invalid = gettext_lazy("Use lower-case letters, digits and hyphens, and begin with a letter or digit.")
        super().__init__(r"^[a-z0-9][a-z0-9-]*\Z", error_messages={"invalid": invalid}, **kwargs)


class SeedField(forms.IntegerField):
    """The seed of a random choice."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            initial=13, min_value=LEAST_SEED, max_value=GREATEST_SEED, label=gettext_lazy("Seed"), **kwargs
        )


def number_field(options: type, name: str, label: Any, help_text: Any = "", **more: Any) -> forms.Field:
    """Return the field of a number among the options of a run, with the default and the bounds that they declare."""
    default = next(field.default for field in fields(options) if field.name == name)
    low, high = bounds(options, name)
    kind = forms.FloatField if isinstance(default, float) else forms.IntegerField
    return kind(initial=default, min_value=low, max_value=high, label=label, help_text=help_text, **more)


def set_choices(form: forms.Form, **choices: Iterable[str | tuple[str, str]]) -> None:
    """Set the choices of fields by name; a value without a label is its own label."""
    for name, values in choices.items():
        pairs = [(value, value) if isinstance(value, str) else value for value in values]
        form.fields[name].choices = pairs  # type: ignore[attr-defined]


def add_faults(form: forms.Form, error: EvalappError) -> None:
    """Add the errors of a service to the fields they belong to; errors without a field are shown above the form."""
    synonyms = {"aspect": "aspects"}
    unplaced = []
    for fault in error.faults:
        name = fault.field.removeprefix("options.")
        names = (f"option_{name}", name, synonyms.get(name, name))
        field = next((name for name in names if name in form.fields), None)
        if field is None or form.fields[field].widget.is_hidden:
            unplaced.append(fault.message)
        else:
            # The field has a label, so the message need not begin with the name.
            message = fault.message.removeprefix(f"{name} ")
            form.add_error(field, message if message == fault.message else message[:1].upper() + message[1:])
    for text in unplaced if error.faults else [error.detail]:
        form.add_error(None, text)


def make_label(option: Option) -> str:
    """Return the label of an option on pages."""
    return option.name.replace("_", " ")


class ApplyForm(forms.Form):
    """One field per option; an empty field means the default. `lacking` are required options without choices here."""

    def __init__(self, *args: Any, project: Project, entry: Entry, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entry = entry
        if "references" in entry.needs:
            self.fields["references"] = forms.ChoiceField(
                initial=ORIGINAL, label=_("References"), help_text=_("The reference set of the scores.")
            )
            set_choices(self, references=list_reference_sets(project))
        defaults = get_default_options(entry, project)
        self.lacking = [option for option in entry.options if option.needed and not settings.ENCODERS]
        for option in entry.options:
            if option in self.lacking or (option.names_model and not settings.ENCODERS):
                continue
            self.fields[f"option_{option.name}"] = self._make_option_field(option, defaults[option.name])

    def _make_option_field(self, option: Option, default: Any) -> forms.Field:
        common: dict[str, Any] = {"help_text": _(option.help), "required": bool(option.needed)}
        if option.names_model:
            return make_option_field(option, "" if option.needed else _("default"), **common)
        # Without a default, an untouched field must not set the option.
        return make_option_field(option, _("as trained") if default is None else "", initial=default, **common)

    @property
    def options(self) -> dict[str, Any]:
        given = {
            name.removeprefix("option_"): value
            for name, value in self.cleaned_data.items()
            if name.startswith("option_")
        }
        return {name: value for name, value in given.items() if value not in ("", None)}


def make_option_field(option: Option, unset: str, **common: Any) -> forms.Field:
    """Return the field of an option. `unset` is the label of the choice that leaves it open, "" if there is none."""
    common = {"label": make_label(option), "required": False, **common}
    names: Sequence[str] = settings.ENCODERS if option.names_model else option.choices
    choices = [("", unset)] if unset else []
    if option.type == "bool" and not unset:
        return forms.BooleanField(**common)
    if option.type == "bool":
        return forms.ChoiceField(choices=[*choices, ("true", _("yes")), ("false", _("no"))], **common)
    if names:
        return forms.ChoiceField(choices=[*choices, *((name, name) for name in names)], **common)
    if option.type == "int":
        low = None if option.minimum is None else int(option.minimum)
        return forms.IntegerField(min_value=low, **common)
    if option.type == "float":
        return forms.FloatField(min_value=option.minimum, max_value=option.maximum, **common)
    return forms.CharField(max_length=200, **common)


def list_reference_sets(project: Project) -> list[str]:
    """Return the names of the reference sets, `original` first."""
    names = ReferenceSet.objects.filter(project=project).exclude(name=ORIGINAL).values_list("name", flat=True)
    return [ORIGINAL, *sorted(names, key=natural_key)]
