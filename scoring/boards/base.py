"""What every board has: a query that checks itself, the data that it reads, and the table that answers it.

Each kind is a package with the modules `query`, `compute`, `columns` and `table`; `registry` finds it by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evalapp.stats.agreement.judged import RaterJudgements
    from evalapp.stats.core.coding import BoolArray, IntArray
    from scoring.boards.data.columns import Comparisons, Ratings, Scores
    from scoring.boards.metrics.people import Scored

Table: TypeAlias = dict[str, Any]
Progress: TypeAlias = Callable[[int, int], None]
#: How an aspect was judged: `pairs` are comparisons of two outputs, `turing` those with a reference.
Way: TypeAlias = Literal["ratings", "dialogues", "comparisons", "pairs", "turing"]


@dataclass(frozen=True)
class Query:
    """The parameters of a board, all of them texts. Subclasses add fields, each with its default."""

    kind: ClassVar[str] = ""
    #: The page of the board below the address of its project.
    page: ClassVar[str] = ""
    #: Whether several levels can be asked for with a grouping, and whether dialogues are one of them.
    has_grouping: ClassVar[bool] = False
    has_dialogues: ClassVar[bool] = False
    #: Whether the table names raters, who must not be named in exports and snapshots.
    names_raters: ClassVar[bool] = False
    #: The coefficients that fit, where not all do.
    coefficients: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(cls.defaults())

    @classmethod
    def defaults(cls) -> dict[str, str]:
        """The parameters with their defaults."""
        return {one.name: str(one.default) for one in fields(cls)}

    @classmethod
    def complete(cls, values: dict[str, str], usual_method: Callable[[str, str], str]) -> dict[str, str]:
        """The given parameters with defaults that depend on the project: `usual_method` gives the method for an aspect
        and a campaign."""
        return values

    def faults(self) -> Iterator[tuple[str, str]]:
        """Sentences on parameters that do not fit together, each with the parameter to change."""
        from scoring.boards.choices import COMPARED, OF_LEVEL

        level, coefficient = getattr(self, "level", ""), getattr(self, "coefficient", "")
        if self.has_grouping and level in GROUPED and getattr(self, "grouping", "none") != "none":
            yield GROUPED[level], "grouping"
        if level == "dialogue" and not self.has_dialogues:
            yield "Dialogues are a level of the main table of evaluators only.", "level"
        if self.coefficients and coefficient not in self.coefficients:
            yield f"coefficient is one of {', '.join(self.coefficients)} here, not “{coefficient}”.", "coefficient"
        elif self.has_grouping and OF_LEVEL.get(coefficient, level) != level:
            yield f"{COMPARED[coefficient]} belongs to the level {OF_LEVEL[coefficient]}.", "coefficient"

    def choices(self) -> dict[str, Sequence[str]]:
        """The values that fit, for parameters of which not all do."""
        from scoring.boards.choices import COMPARED, OF_LEVEL

        level = getattr(self, "level", "segment")
        fits = [name for name in COMPARED if OF_LEVEL.get(name, level) == level]
        return {"coefficient": self.coefficients or fits}

    @property
    def params(self) -> dict[str, str]:
        """All parameters."""
        return asdict(self)

    @property
    def non_default_params(self) -> dict[str, str]:
        """The parameters that the address of the board names."""
        defaults = self.defaults()
        return {name: value for name, value in self.params.items() if value != defaults[name]}

    @property
    def chosen(self) -> list[str]:
        """Slugs of the evaluators to compare; empty means all."""
        return [name for name in getattr(self, "evaluators", "").split(",") if name]

    @property
    def rater_filter(self) -> str:
        """The name of the filter of raters."""
        return getattr(self, "filter", "")

    @property
    def campaign_slug(self) -> str:
        """The campaign whose judgements count alone; empty means all."""
        return getattr(self, "campaign", "")

    @property
    def reference_set(self) -> str:
        """The one reference set that the board reads; empty where it reads none or several."""
        return getattr(self, "references", "")

    @property
    def reads_scores(self) -> bool:
        """Whether the table changes when something is scored."""
        return True

    @property
    def plays_games(self) -> bool:
        """Whether only a run computes the table, from an evaluator's verdicts."""
        return False

    def is_large(self, size: Size) -> bool:
        """Whether computing the table would keep a reader waiting."""
        raise NotImplementedError

    def select_sets(self, data: Data, aspect: str) -> list[Any]:
        """The sets of scores that the table reads."""
        return data.score_sets(self, aspect)

    def describe_source(self, data: Data, table: Mapping[str, Any], names: Callable[[Any], str]) -> Table:
        """What an export tells beside the parameters, so that the table can be computed again. `names` gives the name
        of a set of scores."""
        return {"sets": [names(one) for one in self.select_sets(data, table["aspect"])]} if self.reads_scores else {}


GROUPED = {
    "system": "The system level has one value per system: use the grouping none.",
    "dialogue": "A dialogue stands for itself: use the grouping none.",
}


@dataclass(frozen=True)
class AspectInfo:
    """An aspect with the ends of its scale, where it has one; `row` is whatever the source of the data knows it by."""

    name: str
    low: float | None = None
    high: float | None = None
    row: Any = None


class Data(Protocol):
    """The judgements and scores of one project. Outputs are numbers that only the source understands; sets of scores
    are whatever it lists."""

    @property
    def draws(self) -> Mapping[str, Any]:
        """Seed, resamples and such where they are not the usual ones."""

    def choose_aspect(self, name: str, way: Way, *, campaign: str = "", otherwise: str = "") -> AspectInfo:
        """The aspect of this name, or the first that was judged in this way. `otherwise` is advice for the case that
        outputs were compared but not rated."""

    def load_ratings(self, aspect: AspectInfo, query: Query) -> Ratings: ...

    def load_dialogues(self, aspect: AspectInfo, query: Query) -> Ratings:
        """Ratings of whole dialogues, each dialogue as the output of its own item."""

    def load_turns(self, dialogues: IntArray) -> tuple[IntArray, IntArray]:
        """The outputs that are turns of these dialogues, and for each the place of its dialogue."""

    def load_comparisons(self, aspect: AspectInfo, query: Query, *, turing: bool) -> Comparisons: ...

    def list_ways(self, query: Any) -> Sequence[tuple[AspectInfo, str]]:
        """The aspects and ways of judging of a query about agreement, in the order of the project."""

    def describe_judged(self, aspect: AspectInfo | None = None, way: str = "") -> Table:
        """What a table of agreement tells beside its figures, in no export: names of campaigns, ends of the scale."""

    def load_judged(self, aspect: AspectInfo, way: str, query: Query) -> RaterJudgements: ...

    def load_controls(self, query: Query) -> Mapping[str, tuple[int, int]]:
        """Rater -> control items answered, and how many of them not as expected."""

    def load_outputs(self, subset: str) -> tuple[IntArray, IntArray, IntArray]:
        """All outputs of a subset of systems in the order of items and systems, with their groups and systems."""

    def choose_key(self, key: str) -> str:
        """This key of the items' `meta`, or the first that divides them into parts."""

    def load_parts(self, outputs: IntArray, key: str) -> NDArray[Any]:
        """The value of a key for the item of every output."""

    def score_sets(self, query: Query, aspect: str | None, *, one_each: bool = False) -> list[Any]:
        """The sets of scores of the query's evaluators; with `one_each` one of each evaluator."""

    def score_sets_by_references(self, query: Query, aspect: str) -> tuple[list[str], list[dict[str, Any]]]:
        """Names of reference sets, and for each evaluator its sets of scores by reference set."""

    def describe_references(self, names: Sequence[str]) -> Table:
        """What a table by reference set tells of them beside its figures, in no export."""

    def load_scored(self, score_set: Any, outputs: IntArray) -> Scored:
        """The scores of these outputs, nan where there is none."""

    def find_learned(self, score_sets: Sequence[Any], outputs: IntArray) -> BoolArray:
        """Which of the outputs any of these evaluators learned from."""

    def load_system_scores(self, query: Any) -> tuple[Table, Scores, Any]:
        """The evaluator that a board of systems is by, its scores, and its own values of systems."""

    def list_unapplied(self, query: Query) -> dict[str, str]:
        """Trivial baselines that were not applied -> the reason that stands in their row."""

    def compute_by_aspect(self, query: Any, progress: Progress | None) -> list[Table]:
        """The main table of evaluators for every rated aspect."""


class Size(Protocol):
    """How much of a project a query reads, asked without counting further than the limit of one request."""

    @property
    def rows(self) -> int: ...

    @property
    def judged(self) -> int: ...

    @property
    def correlated(self) -> int: ...

    @property
    def systems(self) -> int: ...

    def more_than(self, what: str, limit: float, aspect: str = "") -> bool:
        """Whether there are more `ratings`, `comparisons`, `dialogues`, `scores` or `systems` than the limit."""

    def more_judged(self, aspect: str, way: str, limit: float, otherwise: str = "") -> bool:
        """Whether the chosen aspect has more judgements of this way."""

    def count_sets(self, query: Query) -> int:
        """Sets of scores that the query compares, at least 1."""

    def count_cells(self, query: Query) -> tuple[int, int]:
        """Reference sets, and sets of scores made with any of them, at least 1."""

    def share(self, n: int) -> Size:
        """What each of `n` tables may take of one request."""

    def missing_by_aspect(self, query: Any) -> Sequence[Query]:
        """The queries of the main table by aspect whose tables are not stored."""


#: The cost of a figure with its interval beside one evaluator's part of the tests, and of a coefficient of ranks beside
#: Pearson's: each draw of a test sorts the ranks again.
FIGURE_COST, RANKS_COST = 4, 5
