"""Forms of this room: an evaluator's options as its catalogue entry describes them, and what a leaderboard is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings

from annotation.models import Aspect, ReferenceSet
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project

from .selectors.leaderboards import CHOICES, names_of
from .services.scores import defaults_of

if TYPE_CHECKING:
    from scoring.ml import Entry

AUTOSUBMIT = {"data-autosubmit": ""}
LABELS = {"systems": "Systems", "ratings": "Ratings", "level": "Level", "grouping": "Grouping", "method": "Method"}
LABELS |= {"filter": "Raters", "coefficient": "Ordered by", "test": "Test", "key": "Parts by", "weights": "Weights"}
LABELS |= {"people": "People’s scores by", "covariates": "Adjusted for", "per": "Counted"}
LABELS |= {"undefined": "Groups of equal scores count"}


class ApplyForm(forms.Form):
    """One field per option; an empty field takes the default."""

    def __init__(self, *args: Any, project: Project, entry: Entry, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entry = entry
        if "references" in entry.needs:
            names = [(name, name) for name in reference_sets(project)]
            self.fields["references"] = forms.ChoiceField(
                choices=names, initial=ORIGINAL, label="References", help_text="The set the texts are measured against."
            )
        defaults = defaults_of(entry, project)
        for option in entry.options:
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
    common: dict[str, Any] = {"label": option.name, "help_text": option.help, "required": False}
    if option.name == "encoder":
        choices = [("", "the default"), *((name, name) for name in settings.ENCODERS)]
        return forms.ChoiceField(choices=choices, **common)
    if option.type == "bool":
        return forms.BooleanField(initial=default, **common)
    if option.choices:
        choices = [(choice, choice) for choice in option.choices]
        return forms.ChoiceField(choices=choices, initial=default, **common)
    if option.type == "int":
        return forms.IntegerField(initial=default, min_value=_whole(option.minimum), **common)
    if option.type == "float":
        return forms.FloatField(initial=default, min_value=option.minimum, **common)
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
            from .selectors.evaluator_boards import item_keys

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
