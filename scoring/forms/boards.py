"""Forms above the leaderboards: a select box for each parameter of a query that the project offers."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Aspect, Campaign
from annotation.selectors.campaigns import has_adaptive
from annotation.selectors.filters import list_filters
from evalapp.accounts.models import Project
from scoring.boards.base import Query
from scoring.boards.choices import ASSISTANT, ASSISTED, CHOICES, JUDGED, RATINGS, SCALES
from scoring.selectors.aspects import JudgedWay, compared_aspects
from scoring.selectors.catalogue import entries
from scoring.selectors.games import list_judges
from scoring.selectors.item_keys import item_keys
from scoring.selectors.leaderboards import list_known

AUTOSUBMIT = {"data-autosubmit": ""}
LABELS = {
    "aspect": gettext_noop("Aspect"),
    "assist": gettext_noop("Assisted by"),
    "by": gettext_noop("Evaluator"),
    "campaign": gettext_noop("Campaign"),
    "coefficient": gettext_noop("Coefficient"),
    "covariates": gettext_noop("Adjust for"),
    "filter": gettext_noop("Raters"),
    "grouping": gettext_noop("Grouping"),
    "key": gettext_noop("Subsets by"),
    "level": gettext_noop("Level"),
    "method": gettext_noop("Method"),
    "people": gettext_noop("Human scores"),
    "per": gettext_noop("Count"),
    "ratings": gettext_noop("Ratings"),
    "references": gettext_noop("References"),
    "scale": gettext_noop("Scale"),
    "systems": gettext_noop("Systems"),
    "target": gettext_noop("Intervals for"),
    "test": gettext_noop("Test"),
    "undefined": gettext_noop("Groups with equal scores"),
    "weights": gettext_noop("Weights"),
}
#: How an evaluator that compares texts ranks systems.
JUDGE_METHODS = {"mean": gettext_noop("Mean score"), "glicko2": gettext_noop("Glicko-2 (games)")}
#: Fields that are shown with a single choice.
ALWAYS_SHOWN = ("assist", "by", "key", "method")


def make_select(choices: Iterable[tuple[str, str]], label: str) -> forms.ChoiceField:
    select = forms.Select(attrs=AUTOSUBMIT)
    return forms.ChoiceField(choices=list(choices), label=label, required=False, widget=select)


class BoardForm(forms.Form):
    """The select boxes of a query; `table` gives the values that the query left open."""

    def __init__(self, query: Query, project: Project, table: Mapping[str, Any] | None) -> None:
        self.query, self.project = query, project
        self.known = self._list_known()
        fields = list(query.list_fields(self.known))
        if getattr(query, "by", "") and not (table and table.get("aspect")) and "aspect" in fields:
            fields.remove("aspect")  # the evaluator has one score for all aspects
        initial = {name: getattr(query, name) for name in fields}
        initial |= {name: table[name] for name in ("aspect", "key") if name in fields and table and table.get(name)}
        super().__init__(initial=initial)
        limits = query.list_choices(self.known)
        for name in fields:
            choices = self._list_choices(name)
            if name in limits:
                labels = {**dict(choices), **({} if name != "method" else self._method_labels())}
                choices = [(value, _(labels[value])) for value in limits[name]]
            if len(choices) > 1 or name in ALWAYS_SHOWN:
                self.fields[name] = make_select(choices, _(LABELS[name]))

    def _list_known(self) -> dict[str, list[str]]:
        known = list_known(self.project)
        judges = list_judges(self.project) if getattr(self.query, "by", "") else []
        # Scores stay when the plug-in that made them is uninstalled.
        needing = {entry.name for entry in entries() if "references" in entry.needs} if judges else set()
        with_references = [row.slug for row in judges if row.name in needing]
        adaptive = self.query.kind == "systems" and has_adaptive(self.project)
        return {
            **known, "judges": [row.slug for row in judges], "judges_with_references": with_references,
            "adaptive": ["adaptive"] if adaptive else [],
        }  # fmt: skip

    def _method_labels(self) -> dict[str, str]:
        return JUDGE_METHODS if getattr(self.query, "by", "") else {}

    def _list_choices(self, name: str) -> list[tuple[str, str]]:
        if name == "aspect":
            return _pair(self._list_aspects())
        if name == "key":
            return _pair(item_keys(self.project))
        if name == "filter":
            return [("", _("all")), *_pair(self.known["filter"])]
        if name == "assist":
            return _pair(list_assistants(self.query, self.known))
        if name == "campaign":
            return [("", _("all judgements")), *_pair(self.known["campaign"])]
        if name in CHOICES:
            return [(value, _(label)) for value, label in CHOICES[name].items()]
        return _pair(self.known[name])

    def _list_aspects(self) -> list[str]:
        if self.query.judged_by == "comparisons":
            return compared_aspects(self.project)
        used = (getattr(self.query, "method", "mean"), getattr(self.query, "people", "ratings"))
        return list_aspects(self.project, rated=used == ("mean", "ratings"))


def list_assistants(query: Any, known: Mapping[str, list[str]]) -> list[str]:
    """Return the evaluators that can assist, the default first, also before its first fit."""
    others = [name for name in (*known["scored"], *known["baselines"]) if name != ASSISTANT]
    return [ASSISTANT, *others] if query.method in ASSISTED or ASSISTANT in known["scored"] else others


def _pair(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]


def list_aspects(project: Project, *, rated: bool) -> list[str]:
    """Return the names of aspects; those that are only compared have no scale."""
    rows = Aspect.objects.filter(project=project)
    return [row.name for row in rows if not rated or row.low is not None]


class AgreementForm(forms.Form):
    """The select boxes above the tables of agreement. `of` is an aspect with the way in which it was judged."""

    def __init__(self, query: Query, project: Project, ways: list[JudgedWay]) -> None:
        super().__init__(initial={**query.params, "of": f"{query.params['aspect']}|{query.params['judged']}"})
        several = len({way.judged for way in ways}) > 1
        aspects = [
            (f"{way.aspect.name}|{way.judged}", f"{way.aspect.name} ({_(JUDGED[way.judged]).lower()})")
            if several
            else (f"{way.aspect.name}|{way.judged}", way.aspect.name)
            for way in ways
        ]
        rated = any(way.judged in ("ratings", "dialogues") for way in ways)
        campaigns = Campaign.objects.filter(project=project).exclude(opened_at=None).order_by("-pk")
        filters = list_filters(project, active_only=True)
        without = _("without %(name)s")
        choices = {
            "of": aspects,
            "campaign": [("", _("all judgements")), *((row.slug, row.name) for row in campaigns)],
            "scale": [(name, _(label)) for name, label in SCALES.items()] if rated else [],
            "ratings": [(name, _(label)) for name, label in RATINGS.items()] if rated else [],
            "filter": [("", _("all")), *((row.name, without % {"name": row.name}) for row in filters)],
        }
        for name, values in choices.items():
            if len(values) > 1:
                self.fields[name] = make_select(values, _(LABELS.get(name, "Aspect")))
