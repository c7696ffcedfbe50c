"""Online scores of texts, without storing anything. A worker of the installation keeps the models in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, runtime_checkable

from evalapp.client.addresses import quote_segment
from evalapp.client.errors import InvalidArgument, UnexpectedAnswer, expecting
from evalapp.client.json_lines import BAD_SURROGATE
from evalapp.client.rows import need_pandas
from evalapp.client.session import Session
from evalapp.markup import MAX_ROWS, write_html_table

if TYPE_CHECKING:
    import pandas

#: Largest number of pairs that the server accepts in one call.
MAX_PAIRS = 64


class Pair(TypedDict, total=False):
    """A text with its context and references."""

    text: str
    context: Sequence[str]
    references: Sequence[str]


@dataclass(frozen=True)
class Record:
    """A text with the attributes that evaluators of `scoring.ml` read."""

    text: str
    references: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    source: str | None = None
    item: str = ""
    system: str = ""
    step: int | None = None
    group: str = ""


@runtime_checkable
class HasText(Protocol):
    """A `Record` of this module or of `scoring.ml`."""

    @property
    def text(self) -> str:
        """The text to score."""

    @property
    def context(self) -> tuple[str, ...]:
        """The turns before the text, oldest first."""

    @property
    def references(self) -> tuple[str, ...]:
        """The references of the item."""


@dataclass(frozen=True)
class OnlineScores:
    """Scores in the order of the texts. Undefined scores are nan, with their `reasons` if the server gives them.
    `signatures` are all signatures of the responses; scores are comparable if there is only one."""

    values: tuple[float, ...]
    signatures: tuple[str, ...]
    reasons: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<OnlineScores: {len(self.values):,} values, {', '.join(self.signatures)}>"

    def _repr_html_(self) -> str:
        more = max(0, len(self.values) - MAX_ROWS)
        return write_html_table(("score", *self.signatures), [(value,) for value in self.values[:MAX_ROWS]], more)

    def to_pandas(self) -> pandas.Series:
        """Return the scores as a Series named by the signature. Raises `MissingPackage` without pandas."""
        return need_pandas("to_pandas()").Series(self.values, name=self.signature, dtype="float64")

    @property
    def signature(self) -> str:
        """The signature of all scores. Raises `UnexpectedAnswer` if the evaluator was replaced between two calls, so
        that there are several."""
        if len(self.signatures) > 1:
            raise UnexpectedAnswer("the scores have several signatures: " + ", ".join(self.signatures))
        return self.signatures[0] if self.signatures else ""

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)


@dataclass(frozen=True)
class OnlineVerdicts:
    """Verdicts in the order of the pairs: 1 if the first text is better, 0 for a tie, -1 if the second is better.
    `probabilities` of better, tie and worse, if the server gives them."""

    verdicts: tuple[int, ...]
    probabilities: tuple[tuple[float, float, float], ...]
    signatures: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<OnlineVerdicts: {len(self.verdicts):,} verdicts, {', '.join(self.signatures)}>"

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[int]:
        return iter(self.verdicts)


def make_pair(given: str | Mapping[str, Any] | HasText) -> dict[str, Any]:
    """Return the JSON object of `given`: a text, a mapping with `text`, or a record. Raises `InvalidArgument` for other
    values."""
    text: Any
    context: Any = None
    references: Any = None
    if isinstance(given, str):
        text = given
    elif isinstance(given, Mapping):
        text, context, references = given.get("text"), given.get("context"), given.get("references")
        unknown = sorted(set(map(str, given)) - {"text", "context", "references"})
        if unknown:
            raise InvalidArgument(
                f"a pair has text, context and references, not {unknown[0]!r}; options such as the aspect are given to "
                "client.evaluator(name, options={...})"
            )
    elif not isinstance(given, HasText):
        raise InvalidArgument(f"a pair is a text, a mapping with text, or a record, not {given!r}")
    else:
        text, context, references = given.text, given.context, given.references
    if not isinstance(text, str):
        raise InvalidArgument(f"a pair needs a text, not {text!r}")
    if isinstance(context, str) or isinstance(references, str):
        raise InvalidArgument("context and references are lists of texts")
    pair = {"context": list(context or ()), "text": text, "references": list(references or ())}
    try:
        "".join([*pair["context"], text, *pair["references"]]).encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"a text {BAD_SURROGATE}") from error
    except TypeError as error:
        raise InvalidArgument(f"context and references are lists of texts: {error}") from error
    return pair


def _make_pairs(pairs: Iterable[str | Mapping[str, Any] | HasText]) -> Iterator[dict[str, Any]]:
    for number, given in enumerate(pairs):
        try:
            yield make_pair(given)
        except InvalidArgument as error:
            raise InvalidArgument(f"pairs[{number}]: {error}") from error


class Evaluator:
    """An evaluator with the name `slug` and `options` of scoring. Creating it sends no request. `project` is needed if
    several projects have an evaluator of that name. `session` sends the requests.

        client.evaluator("bleu-4").score([{"text": "Hi.", "references": ["Hello."]}]).values
    """

    def __init__(
        self, session: Session, slug: str, *, project: str | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self._session, self.slug, self.project, self.options = session, slug, project, dict(options or {})

    def __repr__(self) -> str:
        return f"Evaluator({self.slug!r})"

    def score(
        self, pairs: Iterable[str | Mapping[str, Any] | HasText], *, timeout: float | None = None
    ) -> OnlineScores:
        """Score `pairs` (texts, mappings with `text`, or records), in calls of at most 64. `timeout` limits each call,
        in seconds.

        Raises `InvalidArgument` for other values, `Unavailable` if the live worker is down, `BadRequest` for a pair
        that the evaluator cannot score, `NotFound` for an unknown evaluator."""
        values: list[float] = []
        reasons: list[str] = []
        responses = self._ask_in_batches("score", _make_pairs(pairs), "scores", timeout)
        with expecting("scores"):
            for response in responses:
                scores = response["scores"]
                values += [float("nan") if score is None else float(score) for score in scores]
                reasons += map(str, response.get("reasons") or [""] * len(scores))
        return OnlineScores(tuple(values), _list_signatures(responses), tuple(reasons))

    def _ask_in_batches(
        self, call: str, pairs: Iterable[dict[str, Any]], member: str, timeout: float | None
    ) -> list[dict[str, Any]]:
        """Return the responses to batches of pairs; each has a list `member` with a value for each pair."""
        responses = []
        iterator = iter(pairs)
        while batch := list(islice(iterator, MAX_PAIRS)):
            response = self._ask(call, {"pairs": batch}, timeout)
            values = response.get(member) if isinstance(response, dict) else None
            if not isinstance(values, list) or len(values) != len(batch):
                noun = member.removesuffix("s")
                raise UnexpectedAnswer(f"{self.slug} responded without one {noun} for each of {len(batch)} pairs")
            responses.append(response)
        return responses

    def reliability(self, context: Sequence[str], references: Sequence[str], *, timeout: float | None = None) -> float:
        """Return the predicted reliability of a set of `references` for a `context`; nan if it is undefined. `timeout`
        is in seconds. Raises `BadRequest` for evaluators that do not predict it (`ream` does)."""
        if isinstance(context, str) or isinstance(references, str):
            raise InvalidArgument("context and references are lists of texts")
        response = self._ask("reliability", {"context": list(context), "references": list(references)}, timeout)
        with expecting("a reliability"):
            value = response["reliability"]
            return float("nan") if value is None else float(value)

    def _ask(self, call: str, body: dict[str, Any], timeout: float | None) -> Any:
        if self.options:
            body["options"] = self.options
        path = f"evaluators/{quote_segment(self.slug)}/{call}/"
        query = {"project": self.project}
        return self._session.call("POST", path, params=query, json=body, idempotent=True, timeout=timeout)

    def compare(self, a: Sequence[HasText], b: Sequence[HasText], *, timeout: float | None = None) -> tuple[int, ...]:
        """Return for each i the verdict on `a[i]` and `b[i]`: 1 if `a[i]` is better, 0 for a tie, -1 if `b[i]` is
        better. `timeout` and errors: see `judge`."""
        return self.judge(a, b, timeout=timeout).verdicts

    def judge(self, a: Sequence[HasText], b: Sequence[HasText], *, timeout: float | None = None) -> OnlineVerdicts:
        """Compare each `a[i]` with `b[i]`, in calls of at most 64 pairs; `timeout` limits each call, in seconds.

        Only the comparative evaluator compares; others raise `BadRequest`. Raises `InvalidArgument` for lists of
        different lengths and for texts of different contexts; other errors: see `score`.
        """
        if len(a) != len(b):
            raise InvalidArgument(f"{len(a)} texts cannot be compared with {len(b)}")
        pairs = [_join_pair(first, second) for first, second in zip(a, b, strict=True)]
        responses = self._ask_in_batches("compare", pairs, "verdicts", timeout)
        with expecting("verdicts"):
            verdicts = tuple(int(verdict) for response in responses for verdict in response["verdicts"])
            probabilities = tuple(
                (float(row["better"]), float(row["tie"]), float(row["worse"]))
                for response in responses
                for row in response.get("probabilities") or []
            )
        return OnlineVerdicts(verdicts, probabilities, _list_signatures(responses))


def _list_signatures(responses: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(response.get("signature", "")) for response in responses))


def _join_pair(one: HasText, other: HasText) -> dict[str, Any]:
    first, second = make_pair(one), make_pair(other)
    if first["context"] != second["context"]:
        raise InvalidArgument("the two texts of a pair must have one context")
    return {"context": first["context"], "a": first["text"], "b": second["text"]}
