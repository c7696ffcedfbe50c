"""The form of a training: the evaluator's options as its catalogue entry describes them, and which data count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.utils.datastructures import MultiValueDict

from annotation.models import Campaign, Dialogue, System
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.params import GREATEST_SEED, LEAST_SEED
from scoring.forms.fields import NameField, add_faults, list_reference_sets, make_label
from scoring.selectors.catalogue import make_refusal
from scoring.selectors.datasets import UPLOADED, judged_aspects, rater_names
from scoring.selectors.training import default_folds, judgements_for
from scoring.services.training import LISTS, MOST_FOLDS, OWN_FIELDS, TrainingOptions

if TYPE_CHECKING:
    from scoring.ml import Entry, Option

#: Asked in fields of their own, not among the options.
OWN = ("encoder", "aspects")
MOST_RATERS = 500
_JUDGED = {"ratings", "comparisons", "judgements"}
#: What is said where the only choice would be none.
NOT_INSTALLED = (
    "No model is installed for it here: put its folder on this machine, and its name into the setting ENCODERS."
)


class TrainForm(forms.Form):
    """An empty option takes the profile's value, which its help names."""

    def __init__(self, *args: Any, project: Project, entry: Entry, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entry, self.project = entry, project
        self.defaults = {name: entry.train_defaults(name) for name in entry.profiles}
        #: (label, what it is, what is missing): options that nothing here could be chosen for.
        self.lacking: list[tuple[str, str, str]] = []
        self._add_profile()
        self._add_choice(project)
        for option in entry.train_options:
            if option.name in OWN:
                continue
            if option.names_model and not settings.ENCODERS:
                self.lacking.append((make_label(option), option.help, NOT_INSTALLED))
            else:
                self.fields[f"option_{option.name}"] = self._option_field(option)
        self._add_data(project)

    def _add_profile(self) -> None:
        if len(self.entry.profiles) > 1:
            self.fields["profile"] = forms.ChoiceField(
                choices=[(name, name) for name in self.entry.profiles],
                initial=self.entry.profiles[0],
                label="Profile",
                help_text="The values of all options you leave empty. Paper: as printed, quirks included. Recommended: "
                "corrected where the paper’s way is known to harm. The signature of the scores says which.",
            )
        if any(option.name == "encoder" for option in self.entry.train_options) and settings.ENCODERS:
            choices = [("", "the installed one"), *((name, name) for name in settings.ENCODERS)]
            self.fields["encoder"] = forms.ChoiceField(
                choices=choices,
                required=False,
                label="Encoder",
                help_text="The language model it starts from: MiniLM, or one of the setting ENCODERS.",
            )

    def _add_choice(self, project: Project) -> None:
        aspects = [(name, name) for name in judged_aspects(project, judgements_for(self.entry))]
        if self.entry.aspect == "many" and len(aspects) > 1:
            self.fields["aspects"] = forms.MultipleChoiceField(
                choices=aspects, required=False, widget=forms.CheckboxSelectMultiple, label="Aspects",
                help_text="What it learns to judge, all together. None ticked: everything that was rated.",
            )  # fmt: skip
        elif self.entry.aspect == "one":
            # What can learn without judgements needs no aspect, and there may be none.
            needed = bool(aspects) or bool(_JUDGED & set(self.entry.train_needs))
            self.fields["aspect"] = forms.ChoiceField(
                choices=aspects or [("", "none was judged yet")], required=needed, label="Aspect",
                help_text="What it learns to judge: one that people judged here.",
            )  # fmt: skip
        self.fields["folds"] = forms.IntegerField(
            initial=default_folds(project), min_value=1, max_value=MOST_FOLDS, label="Folds",
            help_text="5: five models, and every group is scored by one that did not see it; best below 500 items. "
            "1: one model of 80 % of the groups, 10 % choose its weights, 10 % stay untouched.",
        )  # fmt: skip
        self.fields["name"] = NameField(
            required=False, max_length=80, label="Name",
            help_text=f"What it is called here: small letters, digits, hyphens. Empty: {self.entry.name}-1, and so on.",
        )  # fmt: skip
        self.fields["apply"] = forms.BooleanField(
            initial=True, required=False, label="Apply it when it is trained",
            help_text="Scores every output of the project as soon as it is there.",
        )  # fmt: skip
        self.fields["seed"] = forms.IntegerField(
            initial=13,
            min_value=LEAST_SEED,
            max_value=GREATEST_SEED,
            label="Seed",
            help_text="The same seed gives the same weights.",
        )

    def _add_data(self, project: Project) -> None:
        """What is offered is what the training reads: judgements only where it learns from them, references and systems
        where there are texts of them among what it learns from."""
        judged = self.entry.aspect != "none" or bool(_JUDGED & set(self.entry.train_needs))
        dialogues = "dialogues" in self.entry.train_needs
        spoken = Dialogue.objects.filter(project=project) if dialogues else Dialogue.objects.none()
        sets = list_reference_sets(project)
        # What learns from dialogues takes contexts with references only where there are no dialogues.
        if len(sets) > 1 and not (dialogues and spoken.exists()):
            self.fields["references"] = forms.ChoiceField(choices=[(name, name) for name in sets], label="References")
        campaigns = Campaign.objects.filter(project=project).order_by("pk").values_list("slug", "name")
        rows = System.objects.filter(project=project)
        if dialogues:
            rows = rows.filter(pk__in=spoken.filter(system__isnull=False).values("system"))
        systems = rows.order_by("order_key").values_list("name", flat=True)
        raters = rater_names(project) if judged else []
        lists: dict[str, list[tuple[str, str]]] = {
            "campaigns": [(slug, name) for slug, name in campaigns] if judged else [],
            "systems": [(name, name) for name in systems],
            "raters": [(name, name) for name in raters[:MOST_RATERS]],
        }
        if lists["campaigns"]:
            lists["campaigns"].append((UPLOADED, "judgements that were uploaded"))
        for name, choices in lists.items():
            if len(choices) > 1:
                self.fields[name] = forms.MultipleChoiceField(
                    choices=choices, required=False, widget=forms.CheckboxSelectMultiple, label=name.capitalize(),
                    help_text="None ticked: all count.",
                )  # fmt: skip

    def _option_field(self, option: Option) -> forms.Field:
        values = {name: defaults[option.name] for name, defaults in self.defaults.items()}
        if len(set(values.values())) == 1:
            said = f"Empty: {_word(next(iter(values.values())))}."
        else:
            said = "Empty: " + ", ".join(f"{_word(value)} ({name})" for name, value in values.items()) + "."
        common: dict[str, Any] = {"label": make_label(option), "help_text": f"{option.help} {said}", "required": False}
        if option.names_model:
            models = [("", "as the profile"), *((name, name) for name in settings.ENCODERS)]
            return forms.ChoiceField(choices=models, **common)
        if option.type == "bool":
            return forms.ChoiceField(choices=[("", "as the profile"), ("true", "yes"), ("false", "no")], **common)
        if option.choices:
            return forms.ChoiceField(choices=[("", "as the profile"), *((c, c) for c in option.choices)], **common)
        if option.type in ("int", "float") and _may_be_none(option) and set(values.values()) != {None}:
            # A field of numbers could not say that there is none.
            return forms.CharField(max_length=40, **{**common, "help_text": f"{common['help_text']} Or write none."})
        if option.type == "int":
            low = None if option.minimum is None else int(option.minimum)
            return forms.IntegerField(min_value=low, **common)
        if option.type == "float":
            return forms.FloatField(
                min_value=option.minimum,
                max_value=option.maximum,
                widget=forms.NumberInput(attrs={"step": "any"}),
                **common,
            )
        return forms.CharField(max_length=200, **common)

    def clean(self) -> dict[str, Any]:
        """What is wrong with options is told together with what is wrong with other fields."""
        from scoring.ml import InvalidOption

        given = self.cleaned_data
        try:
            self.entry.parse_train_options(given.get("profile") or self.entry.profiles[0], self._options_given())
        except InvalidOption as error:
            add_faults(self, make_refusal(error, OWN_FIELDS))
        return given

    def _options_given(self) -> dict[str, Any]:
        return {
            name.removeprefix("option_"): value
            for name, value in self.cleaned_data.items()
            if name.startswith("option_") and value not in ("", None)
        }

    def of_group(self, group: str) -> list[Any]:
        """The bound fields of a part of the page: first, basic, advanced, data."""
        hidden = {f"option_{option.name}" for option in self.entry.train_options if option.advanced} | {"seed"}
        names = {
            "basic": [n for n in self.fields if n.startswith("option_") and n not in hidden],
            "advanced": [n for n in self.fields if n in hidden],
            "data": [n for n in self.fields if n in (*LISTS, "references")],
        }
        used = {n for found in names.values() for n in found}
        names["first"] = [n for n in self.fields if n not in used]
        return [self[name] for name in names[group]]

    @property
    def first(self) -> list[Any]:
        return self.of_group("first")

    @property
    def basic(self) -> list[Any]:
        return self.of_group("basic")

    @property
    def advanced(self) -> list[Any]:
        return self.of_group("advanced")

    @property
    def data_fields(self) -> list[Any]:
        return self.of_group("data")

    @property
    def faulty_groups(self) -> list[str]:
        """The folded parts that must be open because something in them is wrong."""
        return [group for group in ("basic", "advanced", "data") if any(f.errors for f in self.of_group(group))]

    def wishes(self) -> TrainingOptions:
        """What the filled form asks for."""
        given = self.cleaned_data
        lists: dict[str, Any] = {name: tuple(given.get(name, ())) for name in LISTS}
        options = self._options_given()
        if given.get("aspects"):
            options["aspects"] = ",".join(given["aspects"])
        return TrainingOptions(
            evaluator=self.entry.name,
            profile=given.get("profile", ""),
            encoder=given.get("encoder", ""),
            aspect=given.get("aspect", ""),
            references=given.get("references", "") or ORIGINAL,
            folds=given["folds"],
            seed=given["seed"],
            name=given["name"],
            apply=given["apply"],
            options=options,
            **lists,
        )


def initial_from(entry: Entry, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the form was filled with when this check was asked for: options only where they depart from the profile."""
    defaults = entry.train_defaults(params["profile"])
    options = {
        f"option_{name}": _word(value) if value is None else str(value).lower() if isinstance(value, bool) else value
        for name, value in params["options"].items()
        if value != defaults.get(name)
    }
    data = {name: params["data"][name] for name in (*LISTS, "references")}
    first = {name: params.get(name, "") for name in ("profile", "aspect", "folds", "seed", "name", "apply")}
    # A training has the name that was chosen for it, where nobody chose one.
    slug = params.get("slug", "")
    first["name"] = first["name"] or ("" if re.fullmatch(rf"{re.escape(entry.name)}-\d+", slug) else slug)
    asked = params["options"].get("aspects") or params.get("aspect") or ""
    first["aspects"] = [name.strip() for name in asked.split(",") if name.strip()]
    return {**options, **data, **first, "encoder": params["options"].get("encoder") or ""}


def data_from(initial: Mapping[str, Any]) -> MultiValueDict[str, str]:
    """The same as a browser would send it."""
    found: MultiValueDict[str, str] = MultiValueDict()
    for name, value in initial.items():
        if isinstance(value, list | tuple):
            found.setlist(name, [str(part) for part in value])
        elif value is not False:
            found[name] = "on" if value is True else str(value)
    return found


def describe_params(entry: Entry, params: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was chosen, as names and words: options only where they depart from the profile."""
    defaults = entry.train_defaults(params["profile"])
    data = params["data"]
    found = [("Profile", params["profile"])] if len(entry.profiles) > 1 else []
    if params["aspect"]:
        found.append(("Aspect", params["aspect"]))
    found += [("Folds", str(params["folds"])), ("Seed", str(params["seed"]))]
    found.append(("Name", params.get("name") or f"{entry.name}-N, the next number"))
    found.append(("Applied when trained", _word(bool(params["apply"]))))
    if data["references"] != ORIGINAL:
        found.append(("References", data["references"]))
    found += [(name.capitalize(), ", ".join(data[name])) for name in LISTS if data[name]]
    for option in entry.train_options:
        value = params["options"].get(option.name)
        if value != defaults.get(option.name):
            found.append((make_label(option), _word(value)))
    return found


def _may_be_none(option: Option) -> bool:
    return option.optional or option.default is None


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
