"""Parse the query of a leaderboard, and compute the version of the data it depends on."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import CharField, Count, Exists, F, Max, OuterRef, Subquery, Value
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import Aspect, Comparison, Rating, ReferenceSet, System, Upload, WrittenReference
from annotation.models.campaigns import Campaign, Judgement
from annotation.models.data import ORIGINAL
from annotation.selectors.filters import list_filters
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from evalapp.names import natural_key
from scoring.boards.base import Query
from scoring.boards.choices import ASSISTANT, CHOICES, EARLIER

from ..models import Evaluator, Leaderboard, ScoreSet

#: A table with a failed figure is computed again after this time, or after this multiple of its computing time.
RETRY_SECONDS = 60.0
RETRY_TIMES = 10.0

#: Increased when the shape, figures or notes of tables change, so that stored tables are recomputed.
TABLE_VERSION = 13

#: Key of a user's preferences: projects whose metric leaderboard they have opened.
READ = "read_evaluation"


def _names_in(given: Mapping[str, Any], field: str) -> str:
    """Return the names of a parameter, unique and sorted, so that equal choices share a table. Addresses separate them
    by commas or repeat the parameter; commands give a list."""
    values: Any = given.getlist(field) if hasattr(given, "getlist") else given.get(field) or ()
    texts = [values] if isinstance(values, str) else values
    return ",".join(sorted({name.strip() for text in texts for name in str(text).split(",")} - {""}))


def unknown_evaluators(project: Project, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the unknown names, and all valid ones: applied evaluators and trivial baselines, which tables list before
    they are applied."""
    if not names:
        return [], []
    known = set(Evaluator.objects.filter(project=project).values_list("slug", flat=True))
    if set(names) <= known:
        return [], sorted(known)
    from .catalogue import entries  # slow to import, and rarely needed here

    known |= {entry.name for entry in entries() if entry.kind == "sentinel"}
    return [name for name in names if name not in known], sorted(known)


def parse_query(shape: type[Query], given: Mapping[str, Any], project: Project | None = None) -> Any:
    """Return the query for the parameters of an address or a command. Raises `BadInput` with the invalid parameters.

    With a project, unknown evaluators are errors, and the default method depends on its judgements.
    """
    values = {name: str(given[name]) for name in shape.names() if given.get(name) not in (None, "")}
    values |= {"test": "permutation"} if values.get("test") == EARLIER else {}
    if "evaluators" in values:
        values["evaluators"] = _names_in(given, "evaluators")
    faults = [
        Fault(
            _("%(name)s must be one of %(known)s, not “%(value)s”.")
            % {"name": name, "known": ", ".join(CHOICES[name]), "value": value},
            field=name,
        )
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
        # Where the default assistant has not been fitted, the table says how it is.
        scored_by = "" if getattr(query, "assist", "") == ASSISTANT else query.scored_by
        missing, known = unknown_evaluators(project, [*query.chosen, *filter(None, [scored_by])])
        for name in missing:
            text = _("There is no evaluator “%(name)s” in %(project)s. There are: %(known)s.")
            text %= {"name": name, "project": project.slug, "known": ", ".join(known)}
            faults.append(
                Fault(text, field="evaluators" if name != query.scored_by else "by" if query.by else "assist")
            )
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
    """Return a hash of the data that this leaderboard (default: any of the project) depends on, with few queries."""
    described = _described(project)
    if query is not None and not query.reads_scores:
        described = [row for row in described if row[0] != "scores"]
    parts: list[Any] = [_latest(project), *sorted(described, key=str)]
    return _digest(parts)


def _latest(project: Project) -> list[Any]:
    """Return the last rating and comparison in one query.

    PostgreSQL uses the indexes on (project, pk) only if the project is a constant in each subquery.
    """

    def last(rows: Any) -> Subquery:
        return Subquery(rows.order_by("-pk").values("pk")[:1])

    result = Project.objects.filter(pk=project.pk).values_list(
        last(Rating.objects.filter(project=project)),
        last(Comparison.objects.filter(project=project)),
    )
    return list(result)


def _described(project: Project) -> list[tuple[Any, ...]]:
    """Return (what, number, name, detail) of systems, aspects, uploads, score sets and the last judgement of each
    campaign in one query. Primary keys of ratings are not enough: revised judgements update ratings in place."""

    def of(what: str, rows: Any, number: str, name: Any, detail: Any) -> Any:
        text = CharField()
        shown = {"what": Value(what), "number": F(number), "text": Cast(name, text), "detail": Cast(detail, text)}
        return rows.order_by().annotate(**shown).values_list("what", "number", "text", "detail")

    uploads = Upload.objects.filter(project=project).order_by().values("state").annotate(n=Count("pk"), last=Max("pk"))
    judged = Subquery(Judgement.objects.filter(campaign=OuterRef("pk")).order_by("-pk").values("pk")[:1])
    # New written references make scores outdated without an upload.
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
        of("judgement", Campaign.objects.filter(project=project).annotate(last=judged), "pk", "removed_count", "last"),
    ]
    return list(parts[0].union(*parts[1:], all=True))


def _digest(parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def list_known(project: Project) -> dict[str, list[str]]:
    """Return the names that parameters can take, in one query.

    These are evaluators (`by`; with scores: `scored`, `baselines`), active filters, reference sets (`original` first),
    opened campaigns, the `level` dialogue if dialogues were rated, and the kinds of comparisons (`people`: `m1` with a
    reference, `pairs`).
    """
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
    complete = evaluators.filter(Exists(ScoreSet.objects.filter(evaluator=OuterRef("pk"), scored_at__isnull=False)))
    scored = complete.exclude(kind=Evaluator.Kind.SENTINEL).annotate(what=Value("scored"))
    baselines = complete.filter(kind=Evaluator.Kind.SENTINEL).annotate(what=Value("baselines"))
    rows = (evaluators, scored, baselines, filters, sets, opened, levels, *compared)
    parts = [part.order_by().values_list("what", "text") for part in rows]
    names = ("by", "scored", "baselines", "filter", "references", "campaign", "level", "people")
    known: dict[str, list[str]] = {name: [] for name in names}
    known["references"] = [ORIGINAL]
    for what, name in sorted(parts[0].union(*parts[1:], all=True), key=lambda row: natural_key(row[1])):
        if (what, name) != ("references", ORIGINAL):
            known[what].append(name)
    return known


def may_be_shown(project: Project, queries: Sequence[Query]) -> list[bool]:
    """Return for each query whether its filter of raters, if any, is active. At most one database query."""
    named = [query.rater_filter for query in queries]
    active = set(list_filters(project, active_only=True).values_list("name", flat=True)) if any(named) else set()
    return [not name or name in active for name in named]


def has_read(user: Any, project: Project) -> bool:
    """Return whether the user has opened the metric leaderboard of the project."""
    return project.pk in getattr(user, "preferences", {}).get(READ, ())


def find_leaderboard(project: Project, query: Query) -> Leaderboard | None:
    return Leaderboard.objects.filter(project=project, key=make_key(query)).first()


def is_current(leaderboard: Leaderboard, stamp: str) -> bool:
    """Return whether a table is valid for the data of `stamp`, and need not be tried again after a failed figure."""
    if leaderboard.stamp != stamp or not leaderboard.table.get("failed"):
        return leaderboard.stamp == stamp
    wait = max(RETRY_SECONDS, RETRY_TIMES * leaderboard.seconds)
    return timezone.now() < leaderboard.computed_at + timedelta(seconds=wait)
