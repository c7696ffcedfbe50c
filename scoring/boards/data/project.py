"""The data of a project from the database: `ProjectData` implements `Data`, `ProjectSize` implements `Size`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from annotation.models import Aspect, Campaign, Comparison, Rating, System
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere
from scoring.boards.base import AspectInfo, Progress, Query, Size, Table, Way
from scoring.models import Evaluator, Score, ScoreSet
from scoring.selectors.aspects import choose_aspect, find_campaign, list_judged
from scoring.selectors.compared import compared_sets
from scoring.selectors.item_keys import item_keys, load_parts
from scoring.selectors.score_sets import get_current_set

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalapp.stats.agreement.judged import RaterJudgements
    from evalapp.stats.core.coding import BoolArray, IntArray
    from scoring.boards.data.columns import Comparisons, Ratings, Scores
    from scoring.boards.metrics.people import Scored

CHUNK = 20_000
#: Scores that are asked for by the numbers of their outputs.
FEW = 10_000


def get_evaluator(project: Project, slug: str) -> Evaluator:
    """The evaluator of this slug. Raises `NotThere` where it was not applied."""
    found = Evaluator.objects.filter(project=project, slug=slug).first()
    if found is None:
        raise NotThere(
            f"No evaluator “{slug}” has been applied in {project.slug}. "
            f"Apply it first: manage.py score {slug} --project {project.slug}"
        )
    return found


def rated_aspects(project: Project) -> list[str]:
    """Aspects of which outputs were rated, in the project's order."""
    rated = list_judged(project, {"ratings": Rating.objects.filter(output__isnull=False)})
    return [aspect.name for aspect, ways in rated if ways]


@dataclass(frozen=True)
class ProjectData:
    """Outputs are primary keys, sets of scores are `ScoreSet`s. `get_table` gives the stored or computed table of a
    query, for boards that are made from other boards."""

    project: Project
    get_table: Callable[[Query], Table] | None = None
    #: Where the outputs asked for last stand in the columns of a set.
    _places: dict[int, Any] = field(default_factory=dict, repr=False)

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
            return _described(choose_aspect(self.project, name, judged_by=judged_by, otherwise=otherwise))
        if way == "dialogues":
            rows = Aspect.objects.filter(project=self.project, ratings__dialogue__isnull=False)
            if (found := rows.order_by("position", "pk").first()) is None:
                raise BadInput(
                    f"Nobody has rated whole dialogues in {self.project.slug} yet. Upload dialogues.jsonl, and ratings "
                    "with `dialogue` in place of item and system."
                )
            return _described(found)
        compared = {"compared": Comparison.objects.filter(output_b__isnull=way == "turing")}
        first = next((aspect for aspect, ways in list_judged(self.project, compared) if ways), None)
        return _described(first or choose_aspect(self.project, "", judged_by="comparisons"))

    def load_ratings(self, aspect: AspectInfo, query: Query) -> Ratings:
        from scoring.selectors.people import load_ratings

        campaign = find_campaign(self.project, query.campaign_slug)
        return load_ratings(self.project, aspect.row, filter=query.rater_filter, campaign=campaign)

    def load_dialogues(self, aspect: AspectInfo, query: Query) -> Ratings:
        from scoring.selectors.dialogues import load_dialogues

        return load_dialogues(self.project, aspect.row, query.rater_filter)

    def load_turns(self, dialogues: IntArray) -> tuple[IntArray, IntArray]:
        from scoring.selectors.dialogues import load_turns

        return load_turns(self.project, dialogues)

    def load_comparisons(self, aspect: AspectInfo, query: Query, *, turing: bool) -> Comparisons:
        from scoring.selectors.people import load_comparisons

        return load_comparisons(
            self.project, aspect.row, turing=turing, filter=query.rater_filter,
            propensity=getattr(query, "weights", "") == "propensity",
            campaign=find_campaign(self.project, query.campaign_slug),
        )  # fmt: skip

    def list_ways(self, query: Any) -> Sequence[tuple[AspectInfo, str]]:
        from scoring.selectors.agreement import choose_asked, list_asked

        asked = [choose_asked(self.project, query)] if query.aspect else list_asked(self.project)
        return [(_described(row.aspect), row.judged) for row in asked if query.judged in ("", row.judged)]

    def describe_judged(self, aspect: AspectInfo | None = None, way: str = "") -> Table:
        rows = Campaign.objects.filter(project=self.project).exclude(opened_at=None)
        campaigns = {"campaigns": dict(rows.values_list("slug", "name"))}
        if aspect is None:
            return campaigns
        ends = [aspect.low, aspect.high] if way in ("ratings", "dialogues") else [None, None]
        return {"scale_ends": ends, **campaigns}

    def load_judged(self, aspect: AspectInfo, way: str, query: Query) -> RaterJudgements:
        from scoring.selectors.agreement import load_judged

        return load_judged(self.project, aspect.row, way, query)

    def load_controls(self, query: Query) -> Mapping[str, tuple[int, int]]:
        from scoring.selectors.agreement import load_controls

        return load_controls(self.project, find_campaign(self.project, query.campaign_slug))

    # ---- outputs and items --------------------------------------------------------------------------------

    def load_outputs(self, subset: str) -> tuple[IntArray, IntArray, IntArray]:
        import numpy as np

        from scoring.selectors.columns import load_outputs

        found = load_outputs(self.project)
        order = np.lexsort((found.system, found.item))
        order = order[found.units.wanted(subset)[found.system[order]]] if len(order) else order
        return found.output[order], found.cluster[order], found.system[order]

    def choose_key(self, key: str) -> str:
        key = key or next(iter(item_keys(self.project)), "")
        if not key:
            raise BadInput(
                f"The items of {self.project.slug} have no key that parts them. Give them one in `meta` (items.jsonl), "
                'such as {"domain": "news"}.'
            )
        return key

    def load_parts(self, outputs: IntArray, key: str) -> NDArray[Any]:
        return load_parts(self.project, outputs, key)

    # ---- scores -------------------------------------------------------------------------------------------

    def score_sets(self, query: Query, aspect: str | None, *, one_each: bool = False) -> list[ScoreSet]:
        if slug := getattr(query, "by", ""):
            found = get_current_set(
                self.project, get_evaluator(self.project, slug), query.reference_set, getattr(query, "aspect", "")
            )
            return [found] if found else []
        sets = compared_sets(self.project, query, aspect)
        if not one_each:
            return sets
        wanted = getattr(query, "aspect", "")
        by_evaluator: dict[int, ScoreSet] = {}
        for one in sets:
            if one.evaluator_id not in by_evaluator or (one.aspect and one.aspect == wanted):
                by_evaluator[one.evaluator_id] = one
        return list(by_evaluator.values())

    def score_sets_by_references(self, query: Any, aspect: str) -> tuple[list[str], list[dict[str, Any]]]:
        from scoring.selectors.enhanced import chosen_sets, newest_sets

        names = chosen_sets(self.project, query)
        rows = newest_sets(self.project, names, aspect, evaluators=query.chosen)
        return names, [of_sets for _, of_sets in sorted(rows.items())]

    def describe_references(self, names: Sequence[str]) -> Table:
        from scoring.selectors.enhanced import describe_sets

        return {"sets": describe_sets(self.project, names)}

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
        """The scores of these outputs, nan where there is none."""
        import numpy as np

        from scoring.selectors.columns import find_columns, read_columns

        found = find_columns(score_set)
        if found is None and 2 * len(outputs) < score_set.n_scores and len(outputs) <= FEW:
            rows = Score.objects.filter(score_set=score_set, value__isnull=False, output__in=outputs.tolist())
            values = dict(rows.values_list("output_id", "value"))
            return np.array([values.get(output, np.nan) for output in outputs.tolist()], dtype=np.float64)
        found = found or read_columns(score_set)
        # Sets of one project mostly score the same outputs.
        last = self._places.get(id(outputs))
        if last is None or not np.array_equal(last[0], found.output):
            self._places.clear()
            last = self._places[id(outputs)] = found.output, found.places(outputs)
        return found.at(last[1])

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

        score_set = next(iter(self.score_sets(query, None)), None)
        if score_set is None:
            raise BadInput(
                f"{query.by} has no complete scores against “{query.references}” yet. See its run, or score again."
            )
        if query.aspect and score_set.aspect not in ("", query.aspect):
            raise BadInput(
                f"{query.by} has no scores of “{query.aspect}” against “{query.references}”: it learned others, such "
                f"as “{score_set.aspect}”."
            )
        described = {
            "slug": score_set.evaluator.slug,
            "signature": score_set.full_signature,
            "aspect": score_set.aspect,
            "n_in_training": score_set.n_in_training,
            "scored_at": score_set.scored_at.isoformat() if score_set.scored_at else None,
        }
        found, outputs = load_columns(score_set), load_outputs(self.project)
        scored = np.isin(outputs.output, found.output)
        value = found.of(outputs.output[scored])
        item, cluster, system = outputs.item[scored], outputs.cluster[scored], outputs.system[scored]
        order = np.lexsort((system, item))
        scores = Scores(item[order], cluster[order], system[order], value[order], outputs.units)
        return described, scores, score_set.systems

    def list_unapplied(self, query: Query) -> dict[str, str]:
        from scoring.selectors.catalogue import entries

        baselines = [entry.name for entry in entries() if entry.kind == "sentinel"]
        chosen = query.chosen or baselines
        how = f"not applied yet: manage.py score {{}} --project {self.project.slug}"
        return {name: how.format(name) for name in baselines if name in chosen}

    def compute_by_aspect(self, query: Any, progress: Progress | None) -> list[Table]:
        """The stored tables where they are current; those computed here are stored for their own pages."""
        assert self.get_table is not None
        queries, tables = [query.of_aspect(name) for name in rated_aspects(self.project)], []
        for number, one in enumerate(queries, 1):
            tables.append(self.get_table(one))
            if progress is not None:
                progress(number, len(queries))
        return tables


def _described(row: Aspect) -> AspectInfo:
    return AspectInfo(row.name, row.low, row.high, row)


@dataclass(frozen=True)
class ProjectSize:
    """How much a query reads, asked with one row beyond the limit. The limits are those of one request; `is_stored`
    tells whether the table of a query is there."""

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
        found = choose_aspect(self.project, aspect, judged_by=judged_by, otherwise=otherwise)
        rows: Any = Rating if way == "ratings" else Comparison
        return _has_more(rows.objects.filter(aspect=found), limit)

    def count_sets(self, query: Query) -> int:
        return len(compared_sets(self.project, query)) or 1

    def count_cells(self, query: Any) -> tuple[int, int]:
        from scoring.selectors.enhanced import chosen_sets

        names = chosen_sets(self.project, query)
        cells = ScoreSet.objects.filter(project=self.project, references__in=names, scored_at__isnull=False)
        return len(names), (cells.filter(evaluator__slug__in=query.chosen) if query.chosen else cells).count() or 1

    def share(self, n: int) -> Size:
        return replace(self, correlated=self.correlated // n)

    def missing_by_aspect(self, query: Any) -> Sequence[Query]:
        queries = [query.of_aspect(name) for name in rated_aspects(self.project)]
        return [one for one in queries if not self.is_stored(one)]


def _has_more(rows: Any, limit: float) -> bool:
    limit = int(limit)
    return bool(rows.order_by().values_list("pk", flat=True)[limit : limit + 1])
