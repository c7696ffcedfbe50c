"""Rows of a project, and lazy lists of them. Names and types are those of the API; rows keep unknown members."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, cast, get_type_hints

from evalapp.client.errors import MissingPackage
from evalapp.client.session import PAGE_SIZE, Session
from evalapp.markup import write_html_table

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")
#: Rows that a notebook shows of a list.
SHOWN_ROWS = 10


class Item(TypedDict):
    id: int
    key: str
    context: list[str]
    source: str | None
    group: str
    meta: dict[str, Any]


class System(TypedDict):
    id: int
    name: str
    kind: str
    meta: dict[str, Any]
    declared: bool


class Output(TypedDict):
    id: int
    item: str
    system: str
    step: int | None
    text: str
    meta: dict[str, Any]


class Reference(TypedDict):
    id: int
    item: str
    set: str
    position: int
    text: str
    meta: dict[str, Any]


class Rating(TypedDict):
    id: int
    item: str | None
    system: str | None
    step: int | None
    dialogue: str | None
    aspect: str
    rater: str
    value: float
    simulated: bool
    judgement: int | None
    meta: dict[str, Any]


class Comparison(TypedDict):
    id: int
    item: str
    system_a: str
    step_a: int | None
    system_b: str | None
    step_b: int | None
    reference: int | None
    aspect: str
    rater: str
    verdict: str
    simulated: bool
    judgement: int | None
    meta: dict[str, Any]


class Dialogue(TypedDict):
    id: int
    key: str
    turns: list[str]
    speakers: list[str] | None
    system: str | None
    meta: dict[str, Any]


class Score(TypedDict):
    """A score. If `value` is None, it is undefined and `note` has the reason."""

    id: int
    item: str
    system: str
    step: int | None
    evaluator: str
    value: float | None
    note: str
    signature: str


class Judgement(TypedDict):
    """A judgement. `answer` refers to `system` and `system_b` in this order, independent of the sides shown."""

    id: int
    rater: str
    item: str
    system: str
    step: int | None
    system_b: str | None
    step_b: int | None
    reference: int | None
    unit: str
    repeat: int
    version: int
    current: bool
    answer: dict[str, Any]
    swapped: bool
    note: str
    seconds: float | None
    extra: bool
    passed: bool | None
    created_at: str


class Flag(TypedDict):
    id: int
    item: str
    system: str
    reason: str
    text: str
    created_at: str
    resolved_at: str | None


class CatalogueEntry(TypedDict):
    """An evaluator that can be applied or trained."""

    name: str
    kind: str
    summary: str
    needs: list[str]
    level: str
    scale: list[float | None]
    profiles: list[str]
    options: list[dict[str, Any]]
    citation: str


class ScoreSet(TypedDict):
    """Scores by an evaluator with one signature. `stale` is the reason why they are out of date, or empty."""

    id: int
    evaluator: str
    name: str
    kind: str
    options: dict[str, Any]
    references: str
    signature: str
    run: int | None
    created_at: str
    scored_at: str | None
    stale: str
    n_scores: int
    n_undefined: int
    n_truncated: int
    n_empty: int
    n_duplicate: int
    systems: Any
    summary: Any


def need_pandas(what: str) -> Any:
    """Return the module `pandas`. Raises `MissingPackage`, naming `what` needs it, if it is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise MissingPackage("pandas", what) from error
    return pandas


#: Names of integer members that may be missing.
INTEGERS = frozenset(
    name
    for row in (Item, System, Output, Reference, Rating, Comparison, Dialogue, Score, Judgement, Flag, ScoreSet)
    for name, hint in get_type_hints(row).items()
    if hint in (int, int | None)
)


def to_frame(rows: list[Any]) -> pandas.DataFrame:
    """Return `rows` as a DataFrame with the same names. Integers with missing values stay integers (`Int64`)."""
    module = need_pandas("a DataFrame")
    frame = cast("pandas.DataFrame", module.DataFrame(rows))
    for name in INTEGERS & set(frame.columns):
        values = [row.get(name) for row in rows]
        if frame[name].dtype.kind == "f" and all(value is None or type(value) is int for value in values):
            frame[name] = module.array(values, dtype="Int64")
    return frame


def _same(row: Any) -> Any:
    return row


class Rows(Generic[T]):
    """A list on the server. Each iteration requests it again, page by page.

    `session` sends the requests to `path` with the query `params`; `make` converts each row; `page_size` is the number
    of rows per request."""

    def __init__(
        self,
        session: Session,
        path: str,
        params: Mapping[str, Any] | None = None,
        make: Callable[[Any], T] = _same,
        page_size: int = PAGE_SIZE,
    ) -> None:
        self._session, self._path, self._params, self._make = session, path, dict(params or {}), make
        self.page_size = page_size

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page

    def pages(self) -> Iterator[list[T]]:
        """Yield pages of at most `page_size` rows."""
        for page in self._session.pages(self._path, self._params, self.page_size):
            yield [self._make(row) for row in page]

    def first(self) -> T | None:
        """Return the first row, with a request for a single row; None if the list is empty."""
        page = next(self._session.pages(self._path, self._params, 1), [])
        return self._make(page[0]) if page else None

    def to_pandas(self) -> pandas.DataFrame:
        """Return all rows as a DataFrame. Raises `MissingPackage` without pandas."""
        need_pandas("to_pandas()")
        return to_frame([row for page in self._session.pages(self._path, self._params, self.page_size) for row in page])

    def __repr__(self) -> str:
        return f"<Rows of {self._path}>"

    def _repr_html_(self) -> str:
        """The first rows, which are requested."""
        page = next(self._session.pages(self._path, self._params, SHOWN_ROWS + 1), [])
        names = list(dict.fromkeys(name for row in page for name in row))
        table = write_html_table(names, [[row.get(name) for name in names] for row in page[:SHOWN_ROWS]])
        return f"{table}<p>…</p>" if len(page) > SHOWN_ROWS else table
