"""Interfaces of all boards: the query, the data it reads and the table that answers it.

Each board is a package with the modules `query`, `compute`, `columns` and `table`; `registry` finds it by its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

from evalapp.translation import gettext as _
from scoring.boards.choices import COMPARED, LEVEL_OF_COEFFICIENT, LEVELS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evalapp.stats.agreement.judged import RaterJudgements
    from evalapp.stats.core.coding import BoolArray, IntArray
    from scoring.boards.data.columns import Comparisons, Ratings, Scores
    from scoring.boards.metrics.people import Scored

Table: TypeAlias = dict[str, Any]
#: Parameters of a query with the draws of the data.
Settings: TypeAlias = Mapping[str, Any]
Progress: TypeAlias = Callable[[int, int], None]
#: Kinds of judgement: `pairs` are comparisons of two outputs, `turing` those with a reference.
Way: TypeAlias = Literal["ratings", "dialogues", "comparisons", "pairs", "turing"]
#: Names that a project offers for a parameter.
Known: TypeAlias = Mapping[str, Sequence[str]]


def order_evaluators(row: Mapping[str, Any], estimate: Mapping[str, Any]) -> tuple[bool, float, str]:
    """Return the key that sorts evaluators by an estimate, highest first, undefined ones last."""
    value = estimate["value"]
    return (value is None, -(value or 0.0), row["evaluator"])


@dataclass(frozen=True)
class Query:
    """The parameters of a board, as strings. Subclasses add fields with defaults."""

    kind: ClassVar[str] = ""
    #: Address of the page below that of the project.
    page: ClassVar[str] = ""
    #: Documentation of the API call, and whether it is below `leaderboards/`.
    description: ClassVar[str] = ""
    in_leaderboards: ClassVar[bool] = True
    #: Label of the tab, if the page is one of the tabs of metric leaderboards.
    tab: ClassVar[str] = ""
    #: Help of the flag `--KIND` of the command `meta`, if it has one, and the parameter that the flag's value sets.
    flag_help: ClassVar[str] = ""
    flag_value: ClassVar[str] = ""
    #: Parameters with a field above the table, in this order.
    form_fields: ClassVar[tuple[str, ...]] = ()
    #: Kind of judgement that an aspect needs to be offered.
    judged_by: ClassVar[Literal["ratings", "comparisons"]] = "ratings"
    has_grouping: ClassVar[bool] = False
    has_dialogues: ClassVar[bool] = False
    #: Whether the table names raters, which exports and snapshots must not.
    names_raters: ClassVar[bool] = False
    #: The coefficients to choose from, if not all.
    coefficients: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the parameters."""
        return tuple(cls.defaults())

    @classmethod
    def defaults(cls) -> dict[str, str]:
        """Return the parameters with their defaults."""
        return {one.name: str(one.default) for one in fields(cls)}

    @classmethod
    def complete(cls, values: dict[str, str], default_method: Callable[[str, str], str]) -> dict[str, str]:
        """Add defaults that depend on the project: `default_method` gives the method for an aspect and a campaign."""
        return values

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Drop a coefficient and a grouping that do not fit the level; forms still send them when the level changes."""
        level = values.get("level") or "segment"
        unfit = {name for name in ("coefficient",) if LEVEL_OF_COEFFICIENT.get(values.get(name, ""), level) != level}
        unfit |= {"grouping"} if level != "segment" else set()
        return {name: value for name, value in values.items() if name not in unfit}

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield a sentence on each combination of parameters that is invalid, with the parameter to change."""
        level, coefficient = getattr(self, "level", ""), getattr(self, "coefficient", "")
        if self.has_grouping and level != "segment" and getattr(self, "grouping", "none") != "none":
            yield _("The level %(level)s has no groups: use the grouping none.") % {"level": level}, "grouping"
        if level == "dialogue" and not self.has_dialogues:
            yield _("Only the main leaderboard of evaluators has the level dialogue."), "level"
        if self.coefficients and coefficient not in self.coefficients:
            known = ", ".join(self.coefficients)
            text = _("coefficient must be one of %(known)s here, not “%(value)s”.")
            yield text % {"known": known, "value": coefficient}, "coefficient"
        elif self.has_grouping and LEVEL_OF_COEFFICIENT.get(coefficient, level) != level:
            text = _("%(coefficient)s needs the level %(level)s.")
            names = {"coefficient": _(COMPARED[coefficient]), "level": LEVEL_OF_COEFFICIENT[coefficient]}
            yield text % names, "coefficient"

    def list_fields(self, known: Known) -> Sequence[str]:
        """Return the parameters to show above the table, given what the project offers."""
        return self.form_fields

    def list_choices(self, known: Known) -> dict[str, Sequence[str]]:
        """Return the valid values of parameters that do not take all of `CHOICES`."""
        level = getattr(self, "level", "segment")
        fitting = [name for name in COMPARED if LEVEL_OF_COEFFICIENT.get(name, level) == level]
        has_dialogues = self.has_dialogues and "dialogue" in known.get("level", ())
        levels = [name for name in LEVELS if name != "dialogue" or has_dialogues]
        return {"coefficient": self.coefficients or fitting, "level": levels}

    @property
    def params(self) -> dict[str, str]:
        """All parameters."""
        return asdict(self)

    @property
    def non_default_params(self) -> dict[str, str]:
        """The parameters that the address of the board contains."""
        defaults = self.defaults()
        return {name: value for name, value in self.params.items() if value != defaults[name]}

    @property
    def chosen(self) -> list[str]:
        """Slugs of the evaluators to compare; empty means all."""
        return [name for name in getattr(self, "evaluators", "").split(",") if name]

    @property
    def scored_by(self) -> str:
        """The slug of the evaluator whose scores a table of systems reads; empty if it reads none."""
        return ""

    @property
    def rater_filter(self) -> str:
        """The name of the filter of raters."""
        return getattr(self, "filter", "")

    @property
    def campaign_slug(self) -> str:
        """The only campaign whose judgements count; empty means all."""
        return getattr(self, "campaign", "")

    @property
    def reference_set(self) -> str:
        """The reference set; empty if the board uses none or several."""
        return getattr(self, "references", "")

    @property
    def reads_scores(self) -> bool:
        """Whether new scores change the table."""
        return True

    @property
    def plays_games(self) -> bool:
        """Whether the table is computed by a run from an evaluator's verdicts."""
        return False

    @classmethod
    def list_exported(cls, judged: Mapping[str, Collection[Way]], has_scores: bool) -> Sequence[Query]:
        """Return the queries whose tables every export has. `judged` are the aspects with the ways of judging them."""
        return []

    def is_large(self, size: Size) -> bool:
        """Whether computing the table takes too long for a request."""
        raise NotImplementedError

    def select_sets(self, data: Data, aspect: str) -> list[Any]:
        """Return the score sets of the table."""
        return data.score_sets(self, aspect)

    def describe_source(self, data: Data, table: Mapping[str, Any], names: Callable[[Any], str]) -> Table:
        """Return what an export needs besides the parameters to recompute the table. `names` names a score set."""
        return {"sets": [names(one) for one in self.select_sets(data, table["aspect"])]} if self.reads_scores else {}


@dataclass(frozen=True)
class AspectInfo:
    """An aspect with the ends of its scale; `row` identifies it in the source of the data."""

    name: str
    low: float | None = None
    high: float | None = None
    row: Any = None


class Data(Protocol):
    """Judgements and scores of a project. Numbers of outputs and score sets have a meaning only for the source."""

    @property
    def draws(self) -> Mapping[str, Any]:
        """Seed, resamples and such that differ from the defaults."""

    def choose_aspect(self, name: str, way: Way, *, campaign: str = "", otherwise: str = "") -> AspectInfo:
        """Return the aspect of this name, or the first judged in this way. `otherwise` is advice for the error if
        outputs were only compared."""

    def load_ratings(self, aspect: AspectInfo, query: Query) -> Ratings: ...

    def load_dialogues(self, aspect: AspectInfo, query: Query) -> Ratings:
        """Return ratings of dialogues, each dialogue as the only output of an item."""

    def load_turns(self, dialogues: IntArray) -> tuple[IntArray, IntArray]:
        """Return the outputs that are turns of the dialogues, and the position of the dialogue of each."""

    def load_comparisons(self, aspect: AspectInfo, query: Query, *, turing: bool) -> Comparisons: ...

    def list_ways(self, query: Any) -> Sequence[tuple[AspectInfo, str]]:
        """Return aspects and ways of judging of a query about agreement, in the project's order."""

    def describe_judged(self, aspect: AspectInfo | None = None, way: str = "") -> Table:
        """Return members of a table of agreement that exports do not have: campaign names, ends of the scale."""

    def load_judged(self, aspect: AspectInfo, way: str, query: Query) -> RaterJudgements: ...

    def load_controls(self, query: Query) -> Mapping[str, tuple[int, int]]:
        """Return rater -> number of control items answered and failed."""

    def load_outputs(self, subset: str) -> tuple[IntArray, IntArray, IntArray]:
        """Return all outputs of a subset of systems by item and system, with their groups and systems."""

    def choose_key(self, key: str) -> str:
        """Return this key of the items' `meta`, or the first that divides the items."""

    def load_parts(self, outputs: IntArray, key: str) -> NDArray[Any]:
        """Return the value of a key for the item of each output."""

    def score_sets(self, query: Query, aspect: str | None, *, one_each: bool = False) -> list[Any]:
        """Return the score sets of the query's evaluators; with `one_each` one for each evaluator."""

    def score_sets_by_references(self, query: Query, aspect: str) -> tuple[list[str], list[dict[str, Any]]]:
        """Return names of reference sets, and for each evaluator its score sets by reference set."""

    def describe_references(self, names: Sequence[str]) -> Table:
        """Return members of a table by reference set that exports do not have."""

    def load_scored(self, score_set: Any, outputs: IntArray) -> Scored:
        """Return the scores of the outputs, nan if there is none."""

    def find_learned(self, score_sets: Sequence[Any], outputs: IntArray) -> BoolArray:
        """Return which outputs are in the training data of any given evaluator."""

    def load_system_scores(self, query: Any) -> tuple[Table, Scores, Any]:
        """Return the evaluator of a board of systems, its scores, and the values it gives whole systems."""

    def list_unapplied(self, query: Query) -> dict[str, str]:
        """Return trivial baselines that were not applied -> the reason shown in their row."""

    def compute_by_aspect(self, query: Any, progress: Progress | None) -> list[Table]:
        """Return the main table of evaluators for every rated aspect."""


class Size(Protocol):
    """Limits of a request, and whether a query exceeds them. Nothing is counted beyond the limits."""

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
        """Whether the chosen aspect has more judgements of this way than the limit."""

    def count_sets(self, query: Query) -> int:
        """Return the number of score sets that the query compares, at least 1."""

    def count_cells(self, query: Query) -> tuple[int, int]:
        """Return the number of reference sets, and of score sets made with any of them, at least 1."""

    def share(self, n: int) -> Size:
        """Return the limits for each of `n` tables of a request."""

    def missing_by_aspect(self, query: Any) -> Sequence[Query]:
        """Return the queries of the main table by aspect whose tables are not stored."""


#: Cost of a figure with its interval relative to the share of an evaluator in the tests, and of a rank correlation
#: relative to Pearson's: each resample sorts the ranks again.
FIGURE_COST, RANKS_COST = 4, 5
