"""Online scores: texts in, scores out, without storing anything. A worker of the installation keeps the models warm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypedDict, runtime_checkable

from evalapp.client.errors import InvalidArgument, UnexpectedAnswer, expecting
from evalapp.client.session import HALF, Session, segment

#: The most that the server scores in one call.
MOST_PAIRS = 64


class Pair(TypedDict, total=False):
    """A text with what it may be measured against."""

    text: str
    context: Sequence[str]
    references: Sequence[str]


@dataclass(frozen=True)
class Record:
    """The same as an object, with the members that evaluators of `scoring.ml` read."""

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
    def text(self) -> str: ...
    @property
    def context(self) -> tuple[str, ...]: ...
    @property
    def references(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class OnlineScores:
    """Scores in the order of the texts; nan is undefined, and `reasons`, where the server gives them, say why.
    `signatures` holds each one the server gave, in order: scores may be compared when there is one."""

    values: tuple[float, ...]
    signatures: tuple[str, ...]
    reasons: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<OnlineScores: {len(self.values):,} values, {', '.join(self.signatures)}>"

    @property
    def signature(self) -> str:
        """The one signature. Raises UnexpectedAnswer when there were several: the evaluator was exchanged between
        two calls."""
        if len(self.signatures) > 1:
            raise UnexpectedAnswer("the scores have several signatures: " + ", ".join(self.signatures))
        return self.signatures[0] if self.signatures else ""

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)


@dataclass(frozen=True)
class OnlineVerdicts:
    """Verdicts in the order of the pairs: 1 the first text is better, 0 neither, -1 the second. `probabilities`, where
    the server gives them: better, tie, worse."""

    verdicts: tuple[int, ...]
    probabilities: tuple[tuple[float, float, float], ...]
    signatures: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<OnlineVerdicts: {len(self.verdicts):,} verdicts, {', '.join(self.signatures)}>"

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[int]:
        return iter(self.verdicts)


def as_pair(given: str | Mapping[str, Any] | HasText) -> dict[str, Any]:
    """The wire form of a text, a mapping with `text`, or a record. Raises InvalidArgument without a text."""
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
        raise InvalidArgument(f"a text {HALF}") from error
    except TypeError as error:
        raise InvalidArgument(f"context and references are lists of texts: {error}") from error
    return pair


def _as_pairs(pairs: Iterable[str | Mapping[str, Any] | HasText]) -> Iterator[dict[str, Any]]:
    for number, given in enumerate(pairs):
        try:
            yield as_pair(given)
        except InvalidArgument as error:
            raise InvalidArgument(f"pairs[{number}]: {error}") from error


class Evaluator:
    """An evaluator by its name, with options of scoring. Nothing is asked of the server until something is scored.
    `project` is needed where several projects have trained one of that name."""

    def __init__(
        self, session: Session, slug: str, *, project: str | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self._session, self.slug, self.project, self.options = session, slug, project, dict(options or {})

    def __repr__(self) -> str:
        return f"Evaluator({self.slug!r})"

    def score(
        self, pairs: Iterable[str | Mapping[str, Any] | HasText], *, timeout: float | None = None
    ) -> OnlineScores:
        """Score any number of texts, in calls of at most 64; `timeout` holds for each call.

        Raises InvalidArgument for what is no pair, Unavailable when the live worker is down, BadRequest for what the
        evaluator cannot score, NotFound when there is no such evaluator.
        """
        values: list[float] = []
        reasons: list[str] = []
        signatures: dict[str, None] = {}
        left = _as_pairs(pairs)
        while batch := list(islice(left, MOST_PAIRS)):
            answer = self._ask("score", {"pairs": batch}, timeout)
            scores = answer.get("scores") if isinstance(answer, dict) else None
            if not isinstance(scores, list) or len(scores) != len(batch):
                raise UnexpectedAnswer(f"{self.slug} answered without one score for each of {len(batch)} texts")
            with expecting("scores"):
                values += [float("nan") if score is None else float(score) for score in scores]
                reasons += map(str, answer.get("reasons") or [""] * len(batch))
            signatures[str(answer.get("signature", ""))] = None
        return OnlineScores(tuple(values), tuple(signatures), tuple(reasons))

    def reliability(self, context: Sequence[str], references: Sequence[str], *, timeout: float | None = None) -> float:
        """How reliable a set of references is for a context; nan where that is undefined. BadRequest from evaluators
        that do not say (REAM does)."""
        if isinstance(context, str) or isinstance(references, str):
            raise InvalidArgument("context and references are lists of texts")
        answer = self._ask("reliability", {"context": list(context), "references": list(references)}, timeout)
        with expecting("a reliability"):
            value = answer["reliability"]
            return float("nan") if value is None else float(value)

    def _ask(self, what: str, body: dict[str, Any], timeout: float | None) -> Any:
        if self.options:
            body["options"] = self.options
        path = f"evaluators/{segment(self.slug)}/{what}/"
        query = {"project": self.project}
        return self._session.call("POST", path, params=query, json=body, idempotent=True, timeout=timeout)

    def compare(self, a: Sequence[HasText], b: Sequence[HasText], *, timeout: float | None = None) -> tuple[int, ...]:
        """For each i the verdict of a[i] over b[i]: +1 better, 0 neither, -1 worse. `judge` says more."""
        return self.judge(a, b, timeout=timeout).verdicts

    def judge(self, a: Sequence[HasText], b: Sequence[HasText], *, timeout: float | None = None) -> OnlineVerdicts:
        """Compare a[i] with b[i], for any number of pairs, in calls of at most 64; `timeout` holds for each call.

        The comparative evaluator compares; others answer with BadRequest. Raises InvalidArgument for lists of different
        lengths and for a pair whose texts stand in different contexts; else as `score`.
        """
        if len(a) != len(b):
            raise InvalidArgument(f"{len(a)} texts cannot be compared with {len(b)}")
        pairs = [_compared(one, other) for one, other in zip(a, b, strict=True)]
        verdicts: list[int] = []
        probabilities: list[tuple[float, float, float]] = []
        signatures: dict[str, None] = {}
        for start in range(0, len(pairs), MOST_PAIRS):
            batch = pairs[start : start + MOST_PAIRS]
            answer = self._ask("compare", {"pairs": batch}, timeout)
            found = answer.get("verdicts") if isinstance(answer, dict) else None
            if not isinstance(found, list) or len(found) != len(batch):
                raise UnexpectedAnswer(f"{self.slug} answered without one verdict for each of {len(batch)} pairs")
            with expecting("verdicts"):
                verdicts += map(int, found)
                probabilities += [
                    (float(row["better"]), float(row["tie"]), float(row["worse"]))
                    for row in answer.get("probabilities") or []
                ]
            signatures[str(answer.get("signature", ""))] = None
        return OnlineVerdicts(tuple(verdicts), tuple(probabilities), tuple(signatures))


def _compared(one: HasText, other: HasText) -> dict[str, Any]:
    first, second = as_pair(one), as_pair(other)
    if first["context"] != second["context"]:
        raise InvalidArgument("the two texts of a pair must have one context")
    return {"context": first["context"], "a": first["text"], "b": second["text"]}
