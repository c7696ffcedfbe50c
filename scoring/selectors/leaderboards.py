"""What a leaderboard is asked for, and the state of the data it stands on. Computing is in `rankings` and
`meta_evaluation`, keeping in `services.leaderboards`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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

from ..models import Evaluator, Leaderboard, ScoreSet

#: Raised whenever the shape or the arithmetic of the tables changes, so that kept ones are computed anew.
TABLE_VERSION = 11

#: Reference sets that one table of evaluators by set compares.
MOST_SETS = 8

#: Of a user's preferences: the projects whose table of evaluators they have opened.
READ = "read_evaluation"

METHODS = {
    "mean": "Mean rating",
    "win-rate": "Win rate",
    "m1": "Turing M1",
    "glicko2": "Glicko-2",
    "bradley-terry": "Bradley-Terry",
    "davidson": "Davidson",
    "rao-kupper": "Rao-Kupper",
}
#: Methods of which every system has a rating instead of a share or a mean.
MODELS = ("glicko2", "bradley-terry", "davidson", "rao-kupper")
#: Those that are fitted by maximum likelihood and take covariates.
MODELED = ("bradley-terry", "davidson", "rao-kupper")
RATINGS = {
    "raw": "as given",
    "z": "z-scores per rater",
    "z-shrunk": "z-scores per rater, shrunk towards all raters",
    "rank": "ranks within item and rater",
}
COEFFICIENTS = ("pearson", "spearman", "kendall")
#: By what evaluators can be ordered and told apart, and what a row calls the figure.
COMPARED = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "acc-eq": "Accuracy of pairs",
    "pa": "Pairwise accuracy of systems",
    "spa": "Soft pairwise accuracy",
}
FIGURES = {"acc-eq": "accuracy"}
TESTS = {
    "permutation": "Permutation",
    "williams": "Williams",
    "bootstrap": "Paired bootstrap",
    "none": "no test",
}
#: The name of the permutation test before 0.2.0, in addresses and scripts of then.
EARLIER = "perm-both"
#: What belongs to one level only.
OF_LEVEL = {"acc-eq": "segment", "pa": "system", "spa": "system"}
LEVELS = {"segment": "Outputs", "dialogue": "Dialogues", "system": "Systems"}
GROUPINGS = {"none": "all together", "item": "within items", "system": "within systems"}
WEIGHTS = {"none": "every comparison the same", "propensity": "by the chance of the pair (adaptive campaigns)"}
#: What a model of comparisons adjusts for, besides the systems. Of `rater` the common advantage of a side is a part.
COVARIATES = {
    "none": "nothing",
    "side": "the side shown first",
    "length": "the longer text",
    "side+length": "side and length",
    "rater": "the side, for each rater",
    "length+rater": "length, and the side for each rater",
}
#: What one thing that counts is in Turing M1.
PER = {"judgement": "every judgement", "output": "the majority of each output’s judgements"}
#: What people's scores are that evaluators are compared with: ratings, or a value of every system from comparisons.
PEOPLE = {
    "ratings": "Ratings",
    "m1": "Turing M1",
    "win-rate": "Win rate",
    "bradley-terry": "Bradley-Terry",
    "davidson": "Davidson",
    "rao-kupper": "Rao-Kupper",
    "glicko2": "Glicko-2",
}
#: What a table of evaluators can do where nobody rated outputs but some were compared.
BY_COMPARISONS = (
    "Outputs were compared: choose Win rate, or Turing M1 where it was with a reference, under People’s scores by "
    "(meta --people win-rate, m1)."
)
#: What can be judged of an aspect, in the order in which a page offers it.
JUDGED = {
    "ratings": "Ratings",
    "comparisons": "Comparisons",
    "turing": "Comparisons with a reference",
    "dialogues": "Ratings of dialogues",
}
SCALES = {
    "auto": "the usual one",
    "nominal": "nominal",
    "ordinal": "ordinal",
    "interval": "interval",
    "ratio": "ratio",
}
#: What a group (an item, a system) counts in which an evaluator's scores are constant, so that it has no coefficient.
UNDEFINED = {"drop": "not at all", "zero": "as 0"}
SUBSETS = {"all": "All systems", "no-reference": "Without reference systems", "machine": "Machine systems only"}


@dataclass(frozen=True)
class SystemsQuery:
    """What `systems` and its page may ask for. `by` is the slug of an evaluator; empty means people. `filter`, here and
    below, is the name of an exclusion of raters. `weights` and `covariates` are for the models of comparisons.
    `campaign` is the slug of the campaign whose judgements count alone; `per` what counts in Turing M1."""

    aspect: str = ""
    method: str = "mean"
    ratings: str = "raw"
    systems: str = "all"
    by: str = ""
    references: str = ORIGINAL
    filter: str = ""
    weights: str = "none"
    covariates: str = "none"
    campaign: str = ""
    per: str = "judgement"

    kind = Leaderboard.Kind.SYSTEMS


@dataclass(frozen=True)
class EvaluatorsQuery:
    """What `meta` and its page may ask for. `coefficient` is what evaluators are ordered and told apart by; `people`
    what they are compared with: ratings, or a ranking of the systems that comparisons give (one value per system);
    `undefined` what counts for groups without a coefficient. `evaluators`, here and below, are slugs with commas
    between: only these make rows, are tested and leave out what they learned from, sentinels no less than others;
    empty means all."""

    aspect: str = ""
    level: str = "segment"
    grouping: str = "none"
    systems: str = "all"
    references: str = ORIGINAL
    ratings: str = "raw"
    coefficient: str = "pearson"
    test: str = "permutation"
    filter: str = ""
    people: str = "ratings"
    undefined: str = "drop"
    evaluators: str = ""

    kind = Leaderboard.Kind.EVALUATORS


@dataclass(frozen=True)
class EnhancedQuery:
    """What the table of evaluators by reference set may ask for; `references` are names with commas between, the first
    being the one that others are compared with. Empty: those that were scored."""

    aspect: str = ""
    level: str = "segment"
    grouping: str = "none"
    systems: str = "all"
    references: str = ""
    ratings: str = "raw"
    filter: str = ""
    evaluators: str = ""

    kind = Leaderboard.Kind.ENHANCED


@dataclass(frozen=True)
class SlicesQuery:
    """What the table of evaluators by part of the items may ask for. `key` is a key of the items' `meta`."""

    key: str = ""
    aspect: str = ""
    coefficient: str = "pearson"
    systems: str = "all"
    references: str = ORIGINAL
    ratings: str = "raw"
    filter: str = ""
    evaluators: str = ""

    kind = Leaderboard.Kind.SLICES


@dataclass(frozen=True)
class MatrixQuery:
    """What the matrix of evaluators against each other may ask for. `aspect` chooses the scores of an evaluator that
    learned several."""

    aspect: str = ""
    level: str = "segment"
    coefficient: str = "pearson"
    systems: str = "all"
    references: str = ORIGINAL
    evaluators: str = ""

    kind = Leaderboard.Kind.MATRIX


@dataclass(frozen=True)
class AspectsQuery:
    """What the table of evaluators by aspect may ask for."""

    level: str = "segment"
    grouping: str = "none"
    systems: str = "all"
    references: str = ORIGINAL
    ratings: str = "raw"
    coefficient: str = "pearson"
    filter: str = ""
    evaluators: str = ""

    kind = Leaderboard.Kind.ASPECTS


@dataclass(frozen=True)
class PairsQuery:
    """What the table of evaluators on the pairs of outputs that people compared may ask for."""

    aspect: str = ""
    systems: str = "all"
    references: str = ORIGINAL
    test: str = "permutation"
    filter: str = ""
    evaluators: str = ""

    kind = Leaderboard.Kind.PAIRS


@dataclass(frozen=True)
class AgreementQuery:
    """What `agreement` and its pages may ask for. Without an aspect: a line for every aspect. `campaign` is a slug,
    `judged` one way of judging; empty means all."""

    aspect: str = ""
    judged: str = ""
    campaign: str = ""
    scale: str = "auto"
    filter: str = ""
    ratings: str = "raw"

    kind = Leaderboard.Kind.AGREEMENT


Query = (
    SystemsQuery
    | EvaluatorsQuery
    | EnhancedQuery
    | AgreementQuery
    | SlicesQuery
    | MatrixQuery
    | AspectsQuery
    | PairsQuery
)
Shape = type[Query]
SHAPES: dict[str, Shape] = {
    "systems": SystemsQuery,
    "evaluators": EvaluatorsQuery,
    "enhanced": EnhancedQuery,
    "agreement": AgreementQuery,
    "slices": SlicesQuery,
    "matrix": MatrixQuery,
    "aspects": AspectsQuery,
    "pairs": PairsQuery,
}


def given_of(query: Query) -> dict[str, str]:
    """What stands in the address of a table: all that is not at its default."""
    fields = type(query).__dataclass_fields__
    return {name: getattr(query, name) for name in fields if getattr(query, name) != fields[name].default}


def chosen_evaluators(query: Query) -> list[str]:
    """The evaluators that a table is about; empty means all."""
    return [name for name in getattr(query, "evaluators", "").split(",") if name]


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


CHOICES: dict[str, dict[str, str]] = {
    "method": METHODS,
    "ratings": RATINGS,
    "systems": SUBSETS,
    "level": LEVELS,
    "grouping": GROUPINGS,
    "coefficient": COMPARED,
    "test": TESTS,
    "judged": JUDGED,
    "scale": SCALES,
    "weights": WEIGHTS,
    "covariates": COVARIATES,
    "per": PER,
    "undefined": UNDEFINED,
    "people": PEOPLE,
}


def parse_query(
    shape: Shape,
    given: Mapping[str, Any],
    project: Project | None = None,
) -> Any:
    """A query from the parameters of an address or a command; unknown values are faults that list the known ones.
    With the project, unknown evaluators are faults, too, and what was only ever compared is ranked by win rate unless
    something else is named."""
    names = shape.__dataclass_fields__
    values = {name: str(given[name]) for name in names if given.get(name) not in (None, "")}
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
    if project is not None and shape is SystemsQuery and not {"method", "by"} & set(values):
        values["method"] = _usual_method(project, values.get("aspect", ""), values.get("campaign", ""))
    if project is not None and shape is EvaluatorsQuery and "people" not in values and _fits_comparisons(values):
        method = _usual_method(project, values.get("aspect", ""), "")
        values["people"] = {"mean": "ratings"}.get(method, method)
    if values.get("people", "ratings") != "ratings":
        values.setdefault("level", "system")
    query: Any = shape(**values)
    faults += _faults_of_comparisons(query)
    if project is not None:
        missing, known = unknown_evaluators(project, chosen_evaluators(query))
        for name in missing:
            text = f"There is no evaluator “{name}” in {project.slug}. There are: {', '.join(known)}."
            faults.append(Fault(text, field="evaluators"))
    if isinstance(query, SystemsQuery) and query.by and query.campaign:
        text = "An evaluator’s scores belong to no campaign: leave out one of the two."
        faults.append(Fault(text, field="campaign"))
    levelled = isinstance(query, EvaluatorsQuery | EnhancedQuery | AspectsQuery)
    if levelled and query.level == "system" and query.grouping != "none":
        faults.append(Fault("The system level has one value per system: use the grouping none.", field="grouping"))
    if levelled and query.level == "dialogue" and query.grouping != "none":
        faults.append(Fault("A dialogue stands for itself: use the grouping none.", field="grouping"))
    if getattr(query, "level", "") == "dialogue" and not isinstance(query, EvaluatorsQuery):
        faults.append(Fault("Dialogues are a level of the main table of evaluators only.", field="level"))
    of_all = {"slices": tuple(COEFFICIENTS), "matrix": ("pearson", "spearman")}.get(str(query.kind))
    if of_all and query.coefficient not in of_all:
        text = f"coefficient is one of {', '.join(of_all)} here, not “{query.coefficient}”."
        faults.append(Fault(text, field="coefficient"))
    if (
        isinstance(query, EvaluatorsQuery | AspectsQuery)
        and OF_LEVEL.get(query.coefficient, query.level) != query.level
    ):
        text = f"{COMPARED[query.coefficient]} belongs to the level {OF_LEVEL[query.coefficient]}."
        faults.append(Fault(text, field="coefficient"))
    if isinstance(query, AgreementQuery) and query.ratings != "raw" and query.scale in ("nominal", "ratio"):
        text = f"{RATINGS[query.ratings]} have an order and distances, no categories or zero: use ordinal or interval."
        faults.append(Fault(text[0].upper() + text[1:], field="scale"))
    if isinstance(query, PairsQuery) and query.test == "williams":
        faults.append(Fault("Williams’ test is for correlations: choose permutation or bootstrap.", field="test"))
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    return query


def _faults_of_comparisons(query: Any) -> list[Fault]:
    """What does not fit to judgements that are comparisons."""
    if isinstance(query, SystemsQuery) and query.covariates != "none" and (query.by or query.method not in MODELED):
        text = f"Only {', '.join(MODELED)} can adjust for covariates: choose one of them as the method."
        return [Fault(text, field="covariates")]
    if isinstance(query, SystemsQuery) and query.per != "judgement" and (query.by or query.method != "m1"):
        return [Fault("Only m1 takes the majority of each output: choose it as the method.", field="per")]
    if not isinstance(query, EvaluatorsQuery) or query.people == "ratings":
        return []
    faults = []
    if query.level != "system":
        text = "Comparisons give a value for every system, none for single outputs: use the level system."
        faults.append(Fault(text, field="level"))
    if query.coefficient == "spa":
        text = "Soft pairwise accuracy needs ratings of the outputs: choose pa or a correlation."
        faults.append(Fault(text, field="coefficient"))
    return faults


def _fits_comparisons(values: Mapping[str, str]) -> bool:
    """Whether what was asked for is there with comparisons, too, which give one value per system."""
    asked = EvaluatorsQuery(**{"level": "system", **values, "people": "win-rate"})
    return asked.grouping == "none" and asked.ratings == "raw" and not _faults_of_comparisons(asked)


def _usual_method(project: Project, aspect: str, campaign: str) -> str:
    kinds = Campaign.objects.filter(project=project, slug=campaign).values_list("kind", flat=True) if campaign else ()
    for kind in kinds:
        return {Campaign.Kind.LIKERT.value: "mean", Campaign.Kind.TURING.value: "m1"}.get(kind, "win-rate")
    rated, compared = Rating.objects.filter(project=project), Comparison.objects.filter(project=project)
    if aspect:
        rated, compared = rated.filter(aspect__name=aspect), compared.filter(aspect__name=aspect)
    if rated.filter(output__isnull=False).exists() or not compared.exists():
        return "mean"
    return "m1" if not compared.filter(reference=None).exists() else "win-rate"


def key_of(query: Query) -> str:
    return _digest([TABLE_VERSION, query.kind, asdict(query)])


def stamp_of(project: Project, query: Query | None = None) -> str:
    """The state of everything that this leaderboard of the project, or any of them, reads; from a few indexed
    look-ups."""
    described = _described(project)
    if query is not None and not reads_scores(query):
        described = [row for row in described if row[0] != "scores"]
    parts: list[Any] = [_latest(project), *sorted(described, key=str)]
    return _digest(parts)


def reads_scores(query: Query) -> bool:
    """Whether a table tells of evaluators. What people say of systems, and how far they agree, stays as it is when
    something is scored."""
    return not (isinstance(query, AgreementQuery) or (isinstance(query, SystemsQuery) and not query.by))


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


def names_of(project: Project) -> dict[str, list[str]]:
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
    named = [getattr(query, "filter", "") for query in queries]
    active = set(list_filters(project, active_only=True).values_list("name", flat=True)) if any(named) else set()
    return [not name or name in active for name in named]


def has_read(user: Any, project: Project) -> bool:
    """Whether this person has opened the table of evaluators of the project."""
    return project.pk in getattr(user, "preferences", {}).get(READ, ())


def find_leaderboard(project: Project, query: Query) -> Leaderboard | None:
    return Leaderboard.objects.filter(project=project, key=key_of(query)).first()


def people_of(known: Mapping[str, list[str]]) -> list[str]:
    """By what people's scores can be made, by what `names_of` found, `ratings` first: what `EvaluatorsQuery.people` may
    be."""
    ways = ["ratings", *(["m1"] if "m1" in known["people"] else [])]
    return ways + ([name for name in PEOPLE if name not in ways and name != "m1"] if "pairs" in known["people"] else [])
