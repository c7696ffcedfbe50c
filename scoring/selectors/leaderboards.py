"""What a leaderboard is asked for, and the state of the data it stands on. Computing is in `rankings` and
`meta_evaluation`, keeping in `services.leaderboards`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.db.models import CharField, Count, Exists, F, Max, OuterRef, Subquery, Value
from django.db.models.functions import Cast

from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import Aspect, Comparison, Rating, ReferenceSet, System, Upload, WrittenReference
from annotation.models.campaigns import Campaign, Judgement
from annotation.models.data import ORIGINAL
from annotation.selectors.filters import list_filters
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from scoring.boards.base import Query
from scoring.boards.choices import CHOICES, EARLIER

from ..models import Evaluator, Leaderboard, ScoreSet

#: Raised whenever the shape or the arithmetic of the tables changes, so that kept ones are computed anew.
TABLE_VERSION = 11

#: Of a user's preferences: the projects whose table of evaluators they have opened.
READ = "read_evaluation"


def _names_in(given: Mapping[str, Any], field: str) -> str:
    """Names as an address (with commas, or a field for each) or a command gives them: with commas, each once, in
    order, so that one choice is one table."""
    found: Any = given.getlist(field) if hasattr(given, "getlist") else given.get(field) or ()
    texts = [found] if isinstance(found, str) else found
    return ",".join(sorted({name.strip() for text in texts for name in str(text).split(",")} - {""}))


def unknown_evaluators(project: Project, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those of the names that no evaluator of the project has, and all that could be named: what was applied, and
    sentinels, which stand in tables before anybody has applied them."""
    if not names:
        return [], []
    known = set(Evaluator.objects.filter(project=project).values_list("slug", flat=True))
    if set(names) <= known:
        return [], sorted(known)
    from .catalogue import entries  # of an ordinary request nobody needs the catalogue

    known |= {entry.name for entry in entries() if entry.kind == "sentinel"}
    return [name for name in names if name not in known], sorted(known)


def parse_query(shape: type[Query], given: Mapping[str, Any], project: Project | None = None) -> Any:
    """A query from the parameters of an address or a command; unknown values are faults that list the known ones.
    With the project, unknown evaluators are faults, too, and what was only ever compared is ranked by win rate unless
    something else is named."""
    values = {name: str(given[name]) for name in shape.names() if given.get(name) not in (None, "")}
    values |= {"test": "permutation"} if values.get("test") == EARLIER else {}
    if "evaluators" in values:
        values["evaluators"] = _names_in(given, "evaluators")
    faults = [
        Fault(f"{name} is one of {', '.join(CHOICES[name])}, not “{value}”.", field=name)
        for name, value in values.items()
        if name in CHOICES and value not in CHOICES[name]
    ]
    if not is_storable(values):
        raise BadInput(UNSTORABLE)
    if project is not None:
        values = shape.complete(values, partial(_choose_method, project))
    if values.get("people", "ratings") != "ratings":
        values.setdefault("level", "system")
    query: Any = shape(**values)
    faults += [Fault(text, field=field) for text, field in query.faults()]
    if project is not None:
        missing, known = unknown_evaluators(project, query.chosen)
        for name in missing:
            text = f"There is no evaluator “{name}” in {project.slug}. There are: {', '.join(known)}."
            faults.append(Fault(text, field="evaluators"))
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    return query


def _choose_method(project: Project, aspect: str, campaign: str) -> str:
    kinds = Campaign.objects.filter(project=project, slug=campaign).values_list("kind", flat=True) if campaign else ()
    for kind in kinds:
        return {Campaign.Kind.LIKERT.value: "mean", Campaign.Kind.TURING.value: "m1"}.get(kind, "win-rate")
    rated, compared = Rating.objects.filter(project=project), Comparison.objects.filter(project=project)
    if aspect:
        rated, compared = rated.filter(aspect__name=aspect), compared.filter(aspect__name=aspect)
    if rated.filter(output__isnull=False).exists() or not compared.exists():
        return "mean"
    return "m1" if not compared.filter(reference=None).exists() else "win-rate"


def make_key(query: Query) -> str:
    return _digest([TABLE_VERSION, query.kind, query.params])


def compute_stamp(project: Project, query: Query | None = None) -> str:
    """The state of everything that this leaderboard of the project, or any of them, reads; from a few indexed
    look-ups."""
    described = _described(project)
    if query is not None and not query.reads_scores:
        described = [row for row in described if row[0] != "scores"]
    parts: list[Any] = [_latest(project), *sorted(described, key=str)]
    return _digest(parts)


def _latest(project: Project) -> list[Any]:
    """The last rating and comparison, in one question. Indexes by project and number keep it short also for a project
    that has none while others have millions; PostgreSQL takes them where the project is named, not referred to."""

    def last(rows: Any) -> Subquery:
        return Subquery(rows.order_by("-pk").values("pk")[:1])

    found = Project.objects.filter(pk=project.pk).values_list(
        last(Rating.objects.filter(project=project)),
        last(Comparison.objects.filter(project=project)),
    )
    return list(found)


def _described(project: Project) -> list[tuple[Any, ...]]:
    """Systems, aspects, uploads by state, sets of scores and each campaign's last judgement, in one question: (what,
    number, name, detail). A revised judgement changes a rating in its place, so the ratings' numbers alone would not
    show it."""

    def of(what: str, rows: Any, number: str, name: Any, detail: Any) -> Any:
        text = CharField()
        shown = {"what": Value(what), "number": F(number), "text": Cast(name, text), "detail": Cast(detail, text)}
        return rows.order_by().annotate(**shown).values_list("what", "number", "text", "detail")

    uploads = Upload.objects.filter(project=project).order_by().values("state").annotate(n=Count("pk"), last=Max("pk"))
    judged = Subquery(Judgement.objects.filter(campaign=OuterRef("pk")).order_by("-pk").values("pk")[:1])
    # A score measured against what people have written since is out of date, and no upload tells of it.
    scored = ScoreSet.objects.filter(project=project).values("references")
    states = [WrittenReference.State.SHOWN, WrittenReference.State.WITHDRAWN]
    written = WrittenReference.objects.filter(campaign__project=project, state__in=states, set__name__in=scored)
    written = (
        written.order_by()
        .values("set__name")
        .annotate(n=Count("pk") + Count("confirmations"), gone=Max("withdrawn_at"))
    )
    parts = [
        of("system", System.objects.filter(project=project), "pk", "name", "kind"),
        of("aspect", Aspect.objects.filter(project=project), "pk", "name", "position"),
        of("scores", ScoreSet.objects.filter(project=project), "pk", "scored_at", Value("")),
        of("scores", written, "n", "set__name", "gone"),
        of("upload", uploads, "last", "state", "n"),
        of("judgement", Campaign.objects.filter(project=project).annotate(last=judged), "pk", Value(""), "last"),
    ]
    return list(parts[0].union(*parts[1:], all=True))


def _digest(parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def list_known(project: Project) -> dict[str, list[str]]:
    """What a table can be asked for by name, in one question: evaluators (`by`), active filters of raters, reference
    sets, `original` first, campaigns that were opened, the `level` dialogue where whole dialogues were rated, and how
    `people` compared: `m1` (with a reference), `pairs`."""
    text = CharField()
    evaluators = Evaluator.objects.filter(project=project).annotate(what=Value("by"), text=Cast("slug", text))
    filters = list_filters(project, active_only=True).annotate(what=Value("filter"), text=Cast("name", text))
    sets = ReferenceSet.objects.filter(project=project).annotate(what=Value("references"), text=Cast("name", text))
    campaigns = Campaign.objects.filter(project=project).exclude(opened_at=None)
    opened = campaigns.annotate(what=Value("campaign"), text=Cast("slug", text))
    rated = Exists(Rating.objects.filter(project=project, dialogue__isnull=False))
    levels = Project.objects.filter(rated, pk=project.pk).annotate(
        what=Value("level"), text=Value("dialogue", output_field=text)
    )
    compared = [
        Project.objects.filter(
            Exists(Comparison.objects.filter(project=project, output_b__isnull=turing)), pk=project.pk
        ).annotate(what=Value("people"), text=Value(name, output_field=text))
        for name, turing in (("m1", True), ("pairs", False))
    ]
    parts = [
        rows.order_by().values_list("what", "text") for rows in (evaluators, filters, sets, opened, levels, *compared)
    ]
    found: dict[str, list[str]] = {name: [] for name in ("by", "filter", "references", "campaign", "level", "people")}
    found["references"] = [ORIGINAL]
    for what, name in sorted(parts[0].union(*parts[1:], all=True)):
        if (what, name) != ("references", ORIGINAL):
            found[what].append(name)
    return found


def may_be_shown(project: Project, queries: Sequence[Query]) -> list[bool]:
    """Of each query whether the filter of raters that it names, if any, is active. In one question, or none."""
    named = [query.rater_filter for query in queries]
    active = set(list_filters(project, active_only=True).values_list("name", flat=True)) if any(named) else set()
    return [not name or name in active for name in named]


def has_read(user: Any, project: Project) -> bool:
    """Whether this person has opened the table of evaluators of the project."""
    return project.pk in getattr(user, "preferences", {}).get(READ, ())


def find_leaderboard(project: Project, query: Query) -> Leaderboard | None:
    return Leaderboard.objects.filter(project=project, key=make_key(query)).first()
