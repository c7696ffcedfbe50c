"""The data of a project from the database: `ProjectData` implements `Data`, `ProjectSize` implements `Size`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from annotation.models import Aspect, Campaign, Comparison, Item, Rating, ReferenceSet, System
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault, NotThere
from scoring.boards.base import AspectInfo, Progress, Query, Size, Table, Way
from scoring.boards.choices import ASSISTANT, MOST_SETS
from scoring.models import Evaluator, Score, ScoreSet
from scoring.selectors.aspects import choose_aspect, choose_judged_way, find_campaign, list_judged, list_judged_ways
from scoring.selectors.assistant import explain_unfitted, find_assistant
from scoring.selectors.item_keys import item_keys, load_parts
from scoring.selectors.reference_sets import SetRow, list_sets
from scoring.selectors.score_sets import current_sets, get_current_set

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalapp.stats.agreement.judged import RaterJudgements
    from evalapp.stats.core.coding import BoolArray, IntArray
    from scoring.boards.data.columns import Comparisons, Ratings, Scores
    from scoring.boards.metrics.people import Scored

CHUNK = 20_000
#: Scores of so few outputs are selected by primary key.
FEW = 10_000


def _judgements() -> Any:
    """Return the module that imports numpy, which the web process loads with the first table."""
    from scoring.boards.data import project_judgements

    return project_judgements


def get_evaluator(project: Project, slug: str) -> Evaluator:
    """Return the evaluator of this slug. Raises `NotThere` if it was not applied."""
    evaluator = Evaluator.objects.filter(project=project, slug=slug).first()
    if evaluator is None:
        text = _(
            "No evaluator “%(slug)s” has been applied in %(project)s. "
            "Apply it first: evalapp score %(slug)s --project %(project)s"
        )
        raise NotThere(text % {"slug": slug, "project": project.slug})
    return evaluator


def rated_aspects(project: Project) -> list[str]:
    """Return the aspects with ratings of outputs, in the project's order."""
    rated = list_judged(project, {"ratings": Rating.objects.filter(output__isnull=False)})
    return [aspect.name for aspect, ways in rated if ways]


def select_compared_sets(project: Project, query: Query, aspect: str | None = None) -> list[ScoreSet]:
    """Return the current score sets of the evaluators that the query chooses, or of all (see `current_sets`)."""
    sets, chosen = current_sets(project, query.reference_set, aspect), query.chosen
    return [score_set for score_set in sets if score_set.evaluator.slug in chosen] if chosen else sets


def choose_reference_sets(project: Project, query: Query) -> list[str]:
    """Return the reference sets that the query names, or the first with scores: `original`, then by age."""
    named = list(dict.fromkeys(name for name in getattr(query, "references", "").split(",") if name))
    if not named:
        scored = ScoreSet.objects.filter(project=project, scored_at__isnull=False).exclude(references="")
        names = set(scored.values_list("references", flat=True))
        rows = ReferenceSet.objects.filter(project=project, name__in=names - {ORIGINAL}).order_by("pk")
        return [*({ORIGINAL} & names), *rows.values_list("name", flat=True)][:MOST_SETS]
    known = {ORIGINAL, *ReferenceSet.objects.filter(project=project).values_list("name", flat=True)}
    text = ""
    if unknown := [name for name in named if name not in known]:
        text = _("There is no reference set “%(name)s” in %(project)s. There are: %(known)s.")
        text %= {"name": unknown[0], "project": project.slug, "known": ", ".join(sorted(known))}
    elif not 2 <= len(named) <= MOST_SETS:
        text = _("Name 2 to %(most)d reference sets to compare.") % {"most": MOST_SETS}
    if text:
        raise BadInput(text, faults=[Fault(text, field="references")])
    return named


def _describe_reference_set(row: SetRow) -> Table:
    return {
        "name": row.name, "kind": row.kind, "origin": row.origin, "metrics": row.meta.get("metrics", []),
        "n_references": row.n_references, "n_items": row.n_items, "per_item": row.per_item,
        "holds_judged_outputs": bool(row.meta.get("holds_judged_outputs")),
    }  # fmt: skip


@dataclass(frozen=True)
class ProjectData:
    """Outputs are primary keys, score sets are `ScoreSet`s. `get_table` returns the stored or computed table of another
    query, for boards that are made from other boards."""

    project: Project
    get_table: Callable[[Query], Table] | None = None
    #: Positions of the outputs requested last in the columns of a score set.
    _positions: dict[int, Any] = field(default_factory=dict, repr=False)

    @property
    def draws(self) -> Mapping[str, Any]:
        return {}

    # ---- what people judged -------------------------------------------------------------------------------

    def choose_aspect(self, name: str, way: Way, *, campaign: str = "", otherwise: str = "") -> AspectInfo:
        row = find_campaign(self.project, campaign)
        if row is not None and not name:
            names = row.aspects.order_by("position").values_list("aspect__name", flat=True)
            name = next(iter(names), "")
        if way in ("ratings", "comparisons") or name:
            judged_by: Any = "ratings" if way in ("ratings", "dialogues") else "comparisons"
            return _describe_aspect(choose_aspect(self.project, name, judged_by=judged_by, otherwise=otherwise))
        if way == "dialogues":
            rows = Aspect.objects.filter(project=self.project, ratings__dialogue__isnull=False)
            if (aspect := rows.order_by("position", "pk").first()) is None:
                text = _(
                    "%(project)s has no ratings of dialogues yet. Upload dialogues.jsonl, and ratings with `dialogue` "
                    "instead of item and system."
                )
                raise BadInput(text % {"project": self.project.slug})
            return _describe_aspect(aspect)
        compared = {"compared": Comparison.objects.filter(output_b__isnull=way == "turing")}
        first = next((aspect for aspect, ways in list_judged(self.project, compared) if ways), None)
        return _describe_aspect(first or choose_aspect(self.project, "", judged_by="comparisons"))

    def load_ratings(self, aspect: AspectInfo, query: Query) -> Ratings:
        campaign = find_campaign(self.project, query.campaign_slug)
        return _judgements().load_ratings(
            self.project, aspect.row, filter=query.rater_filter, campaign=campaign,
            with_chance=bool(getattr(query, "assist", "")),
        )  # fmt: skip

    def load_dialogues(self, aspect: AspectInfo, query: Query) -> Ratings:
        return _judgements().load_dialogues(self.project, aspect.row, query.rater_filter)

    def load_turns(self, dialogues: IntArray) -> tuple[IntArray, IntArray]:
        return _judgements().load_turns(self.project, dialogues)

    def load_comparisons(self, aspect: AspectInfo, query: Query, *, turing: bool) -> Comparisons:
        return _judgements().load_comparisons(
            self.project, aspect.row, turing=turing, filter=query.rater_filter,
            propensity=getattr(query, "weights", "") == "propensity",
            campaign=find_campaign(self.project, query.campaign_slug),
        )  # fmt: skip

    def list_ways(self, query: Any) -> Sequence[tuple[AspectInfo, str]]:
        ways = [choose_judged_way(self.project, query)] if query.aspect else list_judged_ways(self.project)
        return [(_describe_aspect(row.aspect), row.judged) for row in ways if query.judged in ("", row.judged)]

    def describe_judged(self, aspect: AspectInfo | None = None, way: str = "") -> Table:
        rows = Campaign.objects.filter(project=self.project).exclude(opened_at=None)
        campaigns = {"campaigns": dict(rows.values_list("slug", "name"))}
        if aspect is None:
            return campaigns
        ends = [aspect.low, aspect.high] if way in ("ratings", "dialogues") else [None, None]
        return {"scale_ends": ends, **campaigns}

    def load_judged(self, aspect: AspectInfo, way: str, query: Query) -> RaterJudgements:
        return _judgements().load_judged(self.project, aspect.row, way, query)

    def load_controls(self, query: Query) -> Mapping[str, tuple[int, int]]:
        return _judgements().load_controls(self.project, find_campaign(self.project, query.campaign_slug))

    # ---- outputs and items --------------------------------------------------------------------------------

    def load_outputs(self, subset: str) -> tuple[IntArray, IntArray, IntArray]:
        import numpy as np

        from scoring.selectors.columns import load_outputs

        outputs = load_outputs(self.project)
        order = np.lexsort((outputs.system, outputs.item))
        order = order[outputs.units.wanted(subset)[outputs.system[order]]] if len(order) else order
        return outputs.output[order], outputs.cluster[order], outputs.system[order]

    def choose_key(self, key: str) -> str:
        if key and not Item.objects.filter(project=self.project, meta__has_key=key).exists():
            text = _("No item of %(project)s has the key “%(key)s” in `meta`. There are: %(known)s.")
            known = ", ".join(item_keys(self.project)) or _("none")
            raise BadInput.for_field("key", text % {"project": self.project.slug, "key": key, "known": known})
        key = key or next(iter(item_keys(self.project)), "")
        if not key:
            text = _(
                "The items of %(project)s have no key in `meta` that divides them. Add one in items.jsonl, such as "
                '{"domain": "news"}.'
            )
            raise BadInput(text % {"project": self.project.slug})
        return key

    def load_parts(self, outputs: IntArray, key: str) -> NDArray[Any]:
        return load_parts(self.project, outputs, key)

    # ---- scores -------------------------------------------------------------------------------------------

    def score_sets(self, query: Query, aspect: str | None, *, one_each: bool = False) -> list[ScoreSet]:
        if slug := query.scored_by:
            evaluator = get_evaluator(self.project, slug)
            current = get_current_set(self.project, evaluator, query.reference_set, getattr(query, "aspect", ""))
            return [current] if current else []
        sets = select_compared_sets(self.project, query, aspect)
        if not one_each:
            return sets
        wanted = getattr(query, "aspect", "")
        by_evaluator: dict[int, ScoreSet] = {}
        for one in sets:
            if one.evaluator_id not in by_evaluator or (one.aspect and one.aspect == wanted):
                by_evaluator[one.evaluator_id] = one
        return list(by_evaluator.values())

    def score_sets_by_references(self, query: Any, aspect: str) -> tuple[list[str], list[dict[str, Any]]]:
        names = choose_reference_sets(self.project, query)
        rows = ScoreSet.objects.filter(
            project=self.project, references__in=names, aspect__in=["", aspect], scored_at__isnull=False
        ).select_related("evaluator")
        if query.chosen:
            rows = rows.filter(evaluator__slug__in=query.chosen)
        newest: dict[tuple[str, str], dict[str, ScoreSet]] = {}
        for row in rows.order_by("evaluator__slug", "aspect", "-scored_at", "-pk"):
            newest.setdefault((row.evaluator.slug, row.aspect), {}).setdefault(row.references, row)
        return names, [sets for _key, sets in sorted(newest.items())]

    def describe_references(self, names: Sequence[str]) -> Table:
        rows = {row.name: row for row in list_sets(self.project)}
        return {"sets": [_describe_reference_set(rows[name]) for name in names if name in rows]}

    def load_scored(self, score_set: ScoreSet, outputs: IntArray) -> Scored:
        from scoring.boards.metrics.people import Scored

        evaluator = score_set.evaluator
        return Scored(
            evaluator=evaluator.slug,
            name=evaluator.name,
            kind=evaluator.kind,
            signature=score_set.full_signature,
            metric=self.load_values(score_set, outputs),
            aspect=score_set.aspect,
            references=score_set.references,
            short_signature=score_set.full_short_signature,
            scored_at=score_set.scored_at.isoformat() if score_set.scored_at else None,
            n_in_training=score_set.n_in_training,
            score_set=score_set.pk,
            own=score_set.systems,
        )

    def load_values(self, score_set: ScoreSet, outputs: IntArray) -> NDArray[np.float64]:
        """Return the scores of the outputs, nan if there is none."""
        import numpy as np

        from scoring.selectors.columns import find_columns, read_columns

        columns = find_columns(score_set)
        if columns is None and 2 * len(outputs) < score_set.n_scores and len(outputs) <= FEW:
            rows = Score.objects.filter(score_set=score_set, value__isnull=False, output__in=outputs.tolist())
            values = dict(rows.values_list("output_id", "value"))
            return np.array([values.get(output, np.nan) for output in outputs.tolist()], dtype=np.float64)
        columns = columns or read_columns(score_set)
        # The score sets of a project mostly have the same outputs.
        last = self._positions.get(id(outputs))
        if last is None or not np.array_equal(last[0], columns.output):
            self._positions.clear()
            last = self._positions[id(outputs)] = columns.output, columns.places(outputs)
        return columns.at(last[1])

    def find_learned(self, score_sets: Sequence[ScoreSet], outputs: IntArray) -> BoolArray:
        import numpy as np

        marked = [one.pk for one in score_sets if one.n_in_training]
        if not marked:
            return np.zeros(len(outputs), dtype=bool)
        rows = Score.objects.filter(score_set__in=marked, in_training=True).order_by()
        numbers = rows.values_list("output_id", flat=True).distinct()
        return np.isin(outputs, np.fromiter(numbers.iterator(chunk_size=CHUNK), dtype=np.int64))

    def load_system_scores(self, query: Any) -> tuple[Table, Scores, Any]:
        import numpy as np

        from scoring.boards.data.columns import Scores
        from scoring.selectors.columns import load_columns, load_outputs

        if query.assist == ASSISTANT and find_assistant(self.project) is None:
            raise BadInput.for_field("assist", explain_unfitted(self.project))
        score_set = next(iter(self.score_sets(query, None)), None)
        names = {"by": query.scored_by, "references": query.references, "aspect": query.aspect}
        if score_set is None:
            text = _(
                "%(by)s has no complete scores with the references “%(references)s” yet. See its run, or score again."
            )
            raise BadInput(text % names)
        if query.aspect and score_set.aspect not in ("", query.aspect):
            text = _(
                "%(by)s has no scores of “%(aspect)s” with the references “%(references)s”, only of other aspects such "
                "as “%(other)s”."
            )
            raise BadInput(text % {**names, "other": score_set.aspect})
        described = {
            "slug": score_set.evaluator.slug,
            "signature": score_set.full_signature,
            "aspect": score_set.aspect,
            "n_in_training": score_set.n_in_training,
            "scored_at": score_set.scored_at.isoformat() if score_set.scored_at else None,
        }
        columns, outputs = load_columns(score_set), load_outputs(self.project)
        # An evaluator of another program may have scores of whole systems only: then no output has a score.
        scored = np.isin(outputs.output, columns.output) | (not len(columns) and bool(score_set.systems))
        value = columns.of(outputs.output[scored])
        item, cluster, system = outputs.item[scored], outputs.cluster[scored], outputs.system[scored]
        if query.assist and not np.isfinite(value).any():
            text = _("%(by)s has no scores of outputs. Only those can assist judgements, not scores of whole systems.")
            raise BadInput.for_field("assist", text % {"by": query.assist})
        order = np.lexsort((system, item))
        output = outputs.output[scored][order]
        scores = Scores(item[order], cluster[order], system[order], value[order], outputs.units, output)
        if query.assist and (n := int(self.find_learned([score_set], output).sum())):
            text = _(
                "%(n)s of the outputs scored by %(by)s are in its training data, or of groups that gave its examples. "
                "Such scores cannot assist judgements: choose an evaluator that has not seen these items, train with "
                "--folds 5, so that every item is scored by such a model, or start a judge without examples."
            )
            raise BadInput.for_field("assist", text % {"n": n, "by": query.assist})
        return described, scores, score_set.systems

    def list_unapplied(self, query: Query) -> dict[str, str]:
        from scoring.selectors.catalogue import entries

        baselines = [entry.name for entry in entries() if entry.kind == "sentinel"]
        chosen = query.chosen or baselines
        how = f"not applied yet: evalapp score {{}} --project {self.project.slug}"
        return {name: how.format(name) for name in baselines if name in chosen}

    def compute_by_aspect(self, query: Any, progress: Progress | None) -> list[Table]:
        """Return the stored tables if they are current; others are computed and stored for their own pages."""
        assert self.get_table is not None
        queries, tables = [query.for_aspect(name) for name in rated_aspects(self.project)], []
        for number, one in enumerate(queries, 1):
            tables.append(self.get_table(one))
            if progress is not None:
                progress(number, len(queries))
        return tables


def _describe_aspect(row: Aspect) -> AspectInfo:
    return AspectInfo(row.name, row.low, row.high, row)


@dataclass(frozen=True)
class ProjectSize:
    """The limits of a request. Queries select one row beyond a limit instead of counting all; `is_stored` says whether
    the table of a query is stored."""

    project: Project
    rows: int
    judged: int
    correlated: int
    systems: int
    is_stored: Callable[[Query], bool] = lambda query: False

    def more_than(self, what: str, limit: float, aspect: str = "") -> bool:
        rows: Any = {
            "ratings": Rating.objects.filter(project=self.project),
            "comparisons": Comparison.objects.filter(project=self.project),
            "dialogues": Rating.objects.filter(project=self.project, dialogue__isnull=False),
            "scores": Score.objects.filter(score_set__project=self.project),
            "systems": System.objects.filter(project=self.project),
        }[what]
        return _has_more(rows.filter(aspect__name=aspect) if aspect else rows, limit)

    def more_judged(self, aspect: str, way: str, limit: float, otherwise: str = "") -> bool:
        judged_by: Any = way
        chosen = choose_aspect(self.project, aspect, judged_by=judged_by, otherwise=otherwise)
        rows: Any = Rating if way == "ratings" else Comparison
        return _has_more(rows.objects.filter(aspect=chosen), limit)

    def count_sets(self, query: Query) -> int:
        return len(select_compared_sets(self.project, query)) or 1

    def count_cells(self, query: Any) -> tuple[int, int]:
        names = choose_reference_sets(self.project, query)
        cells = ScoreSet.objects.filter(project=self.project, references__in=names, scored_at__isnull=False)
        return len(names), (cells.filter(evaluator__slug__in=query.chosen) if query.chosen else cells).count() or 1

    def share(self, n: int) -> Size:
        return replace(self, correlated=self.correlated // n)

    def missing_by_aspect(self, query: Any) -> Sequence[Query]:
        queries = [query.for_aspect(name) for name in rated_aspects(self.project)]
        return [one for one in queries if not self.is_stored(one)]


def _has_more(rows: Any, limit: float) -> bool:
    limit = int(limit)
    return bool(rows.order_by().values_list("pk", flat=True)[limit : limit + 1])
