"""The form of a training: options from the catalogue entry of the evaluator, and the training data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, pgettext

from annotation.models import Campaign, Dialogue, System
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from scoring.forms.fields import (
    NameField,
    SeedField,
    add_faults,
    list_reference_sets,
    make_label,
    make_option_field,
    set_choices,
)
from scoring.selectors.catalogue import make_refusal
from scoring.selectors.datasets import UPLOADED, judged_aspects, rater_names
from scoring.selectors.training import default_folds, judgements_for, list_starts
from scoring.services.training import LISTS, MOST_FOLDS, OWN_FIELDS, TrainingOptions

if TYPE_CHECKING:
    from scoring.ml import Entry, Option

#: Options with separate fields.
OWN = ("encoder", "aspects")
MOST_RATERS = 500
LIST_LABELS = {
    "campaigns": gettext_noop("Campaigns"),
    "systems": gettext_noop("Systems"),
    "raters": gettext_noop("Raters"),
}
_JUDGED = {"ratings", "comparisons", "judgements"}
#: Explanation of an option without choices.
NOT_INSTALLED = gettext_noop(
    "No model is installed for it: copy a model folder to this machine and add its name to the setting ENCODERS."
)


class TrainForm(forms.Form):
    """An empty option means the value of the profile, which the help text names."""

    def __init__(
        self, *args: Any, project: Project, entry: Entry, further: Sequence[Project] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.entry, self.project, self.further = entry, project, further
        self.defaults = {name: entry.train_defaults(name) for name in entry.profiles}
        #: Options without choices: (label, help, what is missing).
        self.lacking: list[tuple[str, str, str]] = []
        self._add_profile()
        self._add_choice(project)
        for option in entry.train_options:
            if option.name in OWN:
                continue
            if option.names_model and not settings.ENCODERS:
                self.lacking.append((make_label(option), _(option.help), _(NOT_INSTALLED)))
            else:
                self.fields[f"option_{option.name}"] = self._option_field(option)
        self._add_data(project)

    def _add_profile(self) -> None:
        if len(self.entry.profiles) > 1:
            self.fields["profile"] = forms.ChoiceField(
                choices=[(name, name) for name in self.entry.profiles],
                initial=self.entry.profiles[0],
                label=pgettext("training", "Profile"),
                help_text=_(
                    "Values of the options that you leave empty. Paper: exactly as published. Recommended: with "
                    "corrections of known problems. The signature of the scores contains the profile."
                ),
            )
        if any(option.name == "encoder" for option in self.entry.train_options) and settings.ENCODERS:
            choices = [("", _("default")), *((name, name) for name in settings.ENCODERS)]
            self.fields["encoder"] = forms.ChoiceField(
                choices=choices,
                required=False,
                label=_("Encoder"),
                help_text=_("The pre-trained language model: MiniLM, or one of the setting ENCODERS."),
            )

    def _add_choice(self, project: Project) -> None:
        aspects = [(name, name) for name in judged_aspects(project, judgements_for(self.entry))]
        if self.entry.aspect == "many" and len(aspects) > 1:
            self.fields["aspects"] = forms.MultipleChoiceField(
                choices=aspects, required=False, widget=forms.CheckboxSelectMultiple, label=_("Aspects"),
                help_text=_("The aspects to learn. None selected: all rated aspects."),
            )  # fmt: skip
        elif self.entry.aspect == "one":
            # Evaluators that learn without judgements need no aspect.
            needed = bool(aspects) or bool(_JUDGED & set(self.entry.train_needs))
            self.fields["aspect"] = forms.ChoiceField(
                choices=aspects or [("", _("no aspect has judgements yet"))], required=needed, label=_("Aspect"),
                help_text=_("The aspect to learn, with judgements in this project."),
            )  # fmt: skip
        if starts := list_starts(project, self.entry):
            self.fields["init"] = forms.ChoiceField(
                choices=[("", _("the pre-trained encoder")), *((row.slug, row.slug) for row in starts)],
                required=False, label=_("Begin with"),
                help_text=_(
                    "Weights to begin with. A trained evaluator brings what it has learned; everything it was trained "
                    "on then counts as training data of the new one, too."
                ),
            )  # fmt: skip
        self.fields["folds"] = forms.IntegerField(
            initial=default_folds(project), min_value=1, max_value=MOST_FOLDS, label=_("Folds"),
            help_text=_(
                "5: cross-fitting with five models, so that no group is scored by a model trained on it; best below "
                "500 items. 1: one model; 80 % of the groups for training, 10 % for validation, 10 % for testing."
            ),
        )  # fmt: skip
        self.fields["name"] = NameField(
            required=False, max_length=80, label=_("Name"),
            help_text=_("Lower-case letters, digits, hyphens. Default: %(name)s-N.") % {"name": self.entry.name},
        )  # fmt: skip
        self.fields["apply"] = forms.BooleanField(
            initial=True, required=False, label=_("Apply after training"),
            help_text=_("Score every output of the project when the training is finished."),
        )  # fmt: skip
        self.fields["seed"] = SeedField(help_text=_("The same seed gives the same weights."))

    def _add_data(self, project: Project) -> None:
        """Add fields for the data that this training uses."""
        judged = self.entry.aspect != "none" or bool(_JUDGED & set(self.entry.train_needs))
        dialogues = "dialogues" in self.entry.train_needs
        spoken = Dialogue.objects.filter(project=project) if dialogues else Dialogue.objects.none()
        sets = list_reference_sets(project)
        # Evaluators that learn from dialogues use contexts with references only without dialogues.
        if len(sets) > 1 and not (dialogues and spoken.exists()):
            self.fields["references"] = forms.ChoiceField(label=_("References"))
            set_choices(self, references=sets)
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
            lists["campaigns"].append((UPLOADED, _("uploaded judgements")))
        for name, choices in lists.items():
            if len(choices) > 1:
                self.fields[name] = forms.MultipleChoiceField(
                    choices=choices, required=False, widget=forms.CheckboxSelectMultiple, label=_(LIST_LABELS[name]),
                    help_text=_("None selected: all."),
                )  # fmt: skip
        if self.further:
            self.fields["projects"] = forms.MultipleChoiceField(
                choices=[(other.slug, other.name or other.slug) for other in self.further], required=False,
                widget=forms.CheckboxSelectMultiple, label=_("Further projects"),
                help_text=_(
                    "Learn from them as well, with a head for each scale. Nothing is learned from content that is held "
                    "out here. Members of this project can then see the names of their groups and some of their texts."
                ),
            )  # fmt: skip

    def _option_field(self, option: Option) -> forms.Field:
        values = {name: defaults[option.name] for name, defaults in self.defaults.items()}
        if len(set(values.values())) == 1:
            default = _("Empty: %(value)s.") % {"value": _word(next(iter(values.values())))}
        else:
            listed = ", ".join(f"{_word(value)} ({name})" for name, value in values.items())
            default = _("Empty: %(value)s.") % {"value": listed}
        help_text = f"{_(option.help)} {default}"
        if option.type in ("int", "float") and _may_be_none(option) and set(values.values()) != {None}:
            # A number field cannot express "none".
            help_text = f"{help_text} {_('Or write none.')}"
            return forms.CharField(max_length=40, label=make_label(option), help_text=help_text, required=False)
        return make_option_field(option, _("as the profile"), help_text=help_text)

    def clean(self) -> dict[str, Any]:
        """Check the options together with the other fields."""
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

    @property
    def groups(self) -> dict[str, list[Any]]:
        """The bound fields by part of the page."""
        hidden = {f"option_{option.name}" for option in self.entry.train_options if option.advanced} | {"seed"}
        groups: dict[str, list[Any]] = {"first": [], "basic": [], "advanced": [], "data": []}
        for name in self.fields:
            is_data, is_option = name in (*LISTS, "references", "projects"), name.startswith("option_")
            group = "advanced" if name in hidden else "data" if is_data else "basic" if is_option else "first"
            groups[group].append(self[name])
        return groups

    @property
    def faulty_groups(self) -> list[str]:
        """The collapsed groups that contain errors and must be open."""
        return [name for name, group in self.groups.items() if name != "first" and any(one.errors for one in group)]

    def as_options(self) -> TrainingOptions:
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
            init=given.get("init", ""),
            projects=tuple(given.get("projects", ())),
            options=options,
            **lists,
        )


def initial_from(entry: Entry, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the form that requested this check, with options that differ from the profile."""
    defaults = entry.train_defaults(params["profile"])
    options = {
        f"option_{name}": _word(value) if value is None else str(value).lower() if isinstance(value, bool) else value
        for name, value in params["options"].items()
        if value != defaults.get(name)
    }
    data = {name: params["data"][name] for name in (*LISTS, "references")}
    first = {name: params.get(name, "") for name in ("profile", "aspect", "folds", "seed", "name", "apply", "init")}
    data["projects"] = params.get("projects", [])
    # Without a name, the slug was generated.
    slug = params.get("slug", "")
    first["name"] = first["name"] or ("" if re.fullmatch(rf"{re.escape(entry.name)}-\d+", slug) else slug)
    asked = params["options"].get("aspects") or params.get("aspect") or ""
    first["aspects"] = [name.strip() for name in asked.split(",") if name.strip()]
    return {**options, **data, **first, "encoder": params["options"].get("encoder") or ""}


def data_from(initial: Mapping[str, Any]) -> MultiValueDict[str, str]:
    """Return form data as a browser would send them."""
    data: MultiValueDict[str, str] = MultiValueDict()
    for name, value in initial.items():
        if isinstance(value, list | tuple):
            data.setlist(name, [str(part) for part in value])
        elif value is not False:
            data[name] = "on" if value is True else str(value)
    return data


def describe_params(entry: Entry, params: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the chosen values with labels, and the options that differ from the profile."""
    defaults = entry.train_defaults(params["profile"])
    data = params["data"]
    result = [(pgettext("training", "Profile"), params["profile"])] if len(entry.profiles) > 1 else []
    if params["aspect"]:
        result.append((_("Aspect"), params["aspect"]))
    if params.get("init"):
        result.append((_("Begin with"), params["init"]))
    result += [(_("Folds"), str(params["folds"])), (_("Seed"), str(params["seed"]))]
    result.append((_("Name"), params.get("name") or f"{entry.name}-N"))
    result.append((_("Apply after training"), _word(bool(params["apply"]))))
    if data["references"] != ORIGINAL:
        result.append((_("References"), data["references"]))
    result += [(_(LIST_LABELS[name]), ", ".join(data[name])) for name in LISTS if data[name]]
    if params.get("projects"):
        result.append((_("Further projects"), ", ".join(params["projects"])))
    for option in entry.train_options:
        value = params["options"].get(option.name)
        if value != defaults.get(option.name):
            result.append((make_label(option), _word(value)))
    return result


def _may_be_none(option: Option) -> bool:
    return option.optional or option.default is None


def _word(value: Any) -> str:
    if value is None:
        return _("none")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return f"{value:g}" if isinstance(value, float) else str(value)
