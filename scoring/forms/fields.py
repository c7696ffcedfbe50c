"""Form fields for the options of evaluators, as their catalogue entries describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import ReferenceSet
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import EvalappError
from scoring.services.scores import get_default_options

if TYPE_CHECKING:
    from scoring.ml import Entry, Option


class NameField(forms.RegexField):
    """A name that can be part of an address."""

    def __init__(self, **kwargs: Any) -> None:
        invalid = gettext_lazy("Use lower-case letters, digits and hyphens, and begin with a letter or digit.")
        super().__init__(r"^[a-z0-9][a-z0-9-]*\Z", error_messages={"invalid": invalid}, **kwargs)


def add_faults(form: forms.Form, error: EvalappError) -> None:
    """Add the errors of a service to the fields they belong to; errors without a field are shown above the form."""
    synonyms = {"aspect": "aspects"}
    unplaced = []
    for fault in error.faults:
        name = fault.field.removeprefix("options.")
        names = (f"option_{name}", name, synonyms.get(name, name))
        field = next((name for name in names if name in form.fields), None)
        if field is None:
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
            names = [(name, name) for name in list_reference_sets(project)]
            self.fields["references"] = forms.ChoiceField(
                choices=names, initial=ORIGINAL, label=_("References"), help_text=_("The reference set of the scores.")
            )
        defaults = get_default_options(entry, project)
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
    common: dict[str, Any] = {"label": make_label(option), "help_text": _(option.help), "required": bool(option.needed)}
    if option.names_model:
        default_choice = [] if option.needed else [("", _("default"))]
        choices = [*default_choice, *((name, name) for name in settings.ENCODERS)]
        return forms.ChoiceField(choices=choices, **common)
    # Without a default, an untouched field must not set the option.
    unset = [("", _("as trained"))] if default is None else []
    if option.type == "bool" and unset:
        return forms.ChoiceField(choices=[*unset, ("true", _("yes")), ("false", _("no"))], **common)
    if option.type == "bool":
        return forms.BooleanField(initial=default, **common)
    if option.choices:
        choices = [*unset, *((choice, choice) for choice in option.choices)]
        return forms.ChoiceField(choices=choices, initial=default, **common)
    if option.type == "int":
        return forms.IntegerField(initial=default, min_value=_whole(option.minimum), **common)
    if option.type == "float":
        return forms.FloatField(initial=default, min_value=option.minimum, max_value=option.maximum, **common)
    return forms.CharField(initial=default, max_length=200, **common)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def list_reference_sets(project: Project) -> list[str]:
    """Return the names of the reference sets, `original` first."""
    names = list(ReferenceSet.objects.filter(project=project).order_by("name").values_list("name", flat=True))
    return [ORIGINAL, *(name for name in names if name != ORIGINAL)]
