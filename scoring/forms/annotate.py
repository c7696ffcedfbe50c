"""The form of an automatic annotation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from annotation.models.data import ORIGINAL
from annotation.selectors.data import system_names
from evalapp.accounts.models import Project
from evalapp.common.params import GREATEST_SEED, LEAST_SEED
from scoring.forms.fields import list_reference_sets
from scoring.selectors.candidates import OUTPUTS, WITHHELD, list_corpora
from scoring.selectors.training import list_trained
from scoring.services.annotating import MOST_CANDIDATES, MOST_REFERENCES, STARTS, AnnotateWishes

MOST_SYSTEMS = 200


class AnnotateForm(forms.Form):
    """What `AnnotateWishes` asks, for people."""

    evaluator = forms.ChoiceField(
        label="Evaluator", help_text="A trained ream. It says how reliable a set of references is for a metric."
    )
    mix = forms.ChoiceField(
        required=False, label="And a second one", help_text="The mix: the union of what both choose, for each item."
    )
    candidates = forms.ChoiceField(label="Candidates", help_text="Where further references are looked for.")
    references = forms.ChoiceField(label="Begin with", help_text="The set whose references an item has at the start.")
    start = forms.ChoiceField(
        choices=[(name, text) for name, text in STARTS.items()], label="Of these",
        help_text="One: as in the paper. All: what is there is kept and added to.",
    )  # fmt: skip
    max = forms.IntegerField(initial=10, min_value=1, max_value=MOST_REFERENCES, label="References of an item, at most")
    into = forms.SlugField(
        max_length=63, required=False, label="Name of the new set",
        help_text="Small letters, digits, hyphens. No set is ever overwritten. A preview needs no name.",
    )  # fmt: skip
    controls = forms.BooleanField(
        required=False, initial=True, label="Also write the controls",
        help_text="NAME-raw has what each item began with, NAME-random as many as were chosen, drawn at random.",
    )  # fmt: skip
    min_gain = forms.FloatField(
        initial=0.0, min_value=0, max_value=2, label="Least gain",
        help_text="By how much the reliability must rise for a candidate to be taken; 0 in the paper.",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )  # fmt: skip
    greedy = forms.BooleanField(
        required=False, label="Best first",
        help_text="Look at all candidates each time and take the best, not the first that helps.",
    )  # fmt: skip
    per_item = forms.IntegerField(
        initial=100, min_value=1, max_value=MOST_CANDIDATES, label="Candidates looked at for an item, at most"
    )
    turns = forms.IntegerField(
        required=False, min_value=1, label="Turns of the context",
        help_text="Of a corpus: ask by so many last turns. Empty: by all.",
    )  # fmt: skip
    systems = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, label="Systems",
        help_text="Of outputs: only those of these systems. None ticked: all.",
    )  # fmt: skip
    items = forms.CharField(
        required=False, label="Only these items", help_text="Their keys, one a line. Empty: all.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )  # fmt: skip
    sample = forms.IntegerField(
        required=False, min_value=1, label="Only so many items", help_text="Drawn by the seed. Empty: all."
    )
    seed = forms.IntegerField(initial=13, min_value=LEAST_SEED, max_value=GREATEST_SEED, label="Seed")

    FIRST = ("evaluator", "mix", "candidates", "references", "start", "max", "into", "controls")

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        slugs = [(slug, slug) for slug in list_trained(project).filter(name="ream").values_list("slug", flat=True)]
        corpora = [(f"corpus:{name}", f"corpus: {label}") for name, label in list_corpora(project)]
        sets = [(name, name) for name in list_reference_sets(project)]
        systems = system_names(project)[:MOST_SYSTEMS]
        self._choose("evaluator", slugs)
        self._choose("mix", [("", "none"), *slugs])
        self._choose(
            "candidates",
            [
                *corpora,
                (WITHHELD, "the item’s own further references"),
                (OUTPUTS, "outputs of systems (the set then holds what is judged)"),
            ],
        )
        self._choose("references", sets)
        self._choose("systems", [(name, name) for name in systems])
        self.fields["references"].initial = ORIGINAL
        if len(slugs) < 2:
            del self.fields["mix"]
        if not corpora:
            del self.fields["turns"]
            self.fields["candidates"].help_text += " With a corpus there would be texts from elsewhere."

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined]

    @property
    def first(self) -> list[Any]:
        return [self[name] for name in self.FIRST if name in self.fields]

    @property
    def rest(self) -> list[Any]:
        return [self[name] for name in self.fields if name not in self.FIRST]

    @property
    def rest_is_faulty(self) -> bool:
        return any(field.errors for field in self.rest)

    def wishes(self) -> AnnotateWishes:
        given = {name: value for name, value in self.cleaned_data.items() if value is not None}
        given["items"] = tuple(line.strip() for line in given.get("items", "").splitlines() if line.strip())
        given["systems"] = tuple(given.get("systems", ()))
        return AnnotateWishes(**given)


def initial_from(params: Mapping[str, Any]) -> dict[str, Any]:
    """What the form was filled with when this preview was asked for."""
    return {**params, "items": "\n".join(params["items"])}
