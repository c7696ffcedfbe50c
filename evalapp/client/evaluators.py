"""Online scores: texts in, scores out, without storing anything. A worker of the installation keeps the models warm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypedDict, runtime_checkable

from evalapp.client.errors import UnexpectedAnswer
from evalapp.client.session import Session, segment

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


def as_pair(given: str | Mapping[str, Any] | HasText) -> dict[str, Any]:
    """The wire form of a text, a mapping with `text`, or a record. Raises ValueError without a text."""
    if isinstance(given, str):
        return {"context": [], "text": given, "references": []}
    if isinstance(given, Mapping):
        text, context, references = given.get("text"), given.get("context"), given.get("references")
        unknown = sorted(set(given) - {"text", "context", "references"})
        if unknown:
            raise ValueError(f"a pair has text, context and references, not {unknown[0]!r}")
    else:
        text, context, references = given.text, given.context, given.references
    if not isinstance(text, str):
        raise ValueError(f"a pair needs a text, not {text!r}")
    if isinstance(context, str) or isinstance(references, str):
        raise ValueError("context and references are lists of texts")
    return {"context": list(context or ()), "text": text, "references": list(references or ())}


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

        Raises Unavailable when the live worker is down, BadRequest for what the evaluator cannot score, NotFound
        when there is no such evaluator.
        """
        values: list[float] = []
        reasons: list[str] = []
        signatures: dict[str, None] = {}
        left = map(as_pair, pairs)
        while batch := list(islice(left, MOST_PAIRS)):
            answer = self._ask("score", {"pairs": batch}, timeout)
            scores = answer.get("scores") if isinstance(answer, dict) else None
            if not isinstance(scores, list) or len(scores) != len(batch):
                raise UnexpectedAnswer(f"{self.slug} answered without one score for each of {len(batch)} texts")
            values += [float("nan") if score is None else float(score) for score in scores]
            reasons += map(str, answer.get("reasons") or [""] * len(batch))
            signatures[str(answer.get("signature", ""))] = None
        return OnlineScores(tuple(values), tuple(signatures), tuple(reasons))

    def reliability(self, context: Sequence[str], references: Sequence[str], *, timeout: float | None = None) -> float:
        """How reliable a set of references is for a context; nan where that is undefined. BadRequest from evaluators
        that do not say (REAM does)."""
        if isinstance(context, str) or isinstance(references, str):
            raise ValueError("context and references are lists of texts")
        answer = self._ask("reliability", {"context": list(context), "references": list(references)}, timeout)
        value = answer.get("reliability")
        return float("nan") if value is None else float(value)

    def _ask(self, what: str, body: dict[str, Any], timeout: float | None) -> Any:
        if self.options:
            body["options"] = self.options
        path = f"evaluators/{segment(self.slug)}/{what}/"
        query = {"project": self.project}
        return self._session.call("POST", path, params=query, json=body, idempotent=True, timeout=timeout)

    def compare(self, a: Sequence[HasText], b: Sequence[HasText], *, timeout: float | None = None) -> tuple[int, ...]:
        """For each i the verdict of a[i] over b[i]: +1 better, 0 tie (or undefined), -1 worse.

        The scores of the two texts are compared, each text with the other one as its only reference, for evaluators
        that read references. The comparative evaluator measures a text against common texts of its own instead: here
        it says which of two texts fares better against those, not what it would say of the pair. For verdicts on
        pairs load its folder (`scoring.ml.load(folder).compare`).
        """
        if len(a) != len(b):
            raise ValueError(f"{len(a)} texts cannot be compared with {len(b)}")
        pairs = []
        for one, other in zip(a, b, strict=True):
            pairs.append({**as_pair(one), "references": [other.text]})
            pairs.append({**as_pair(other), "references": [one.text]})
        values = self.score(pairs, timeout=timeout).values
        return tuple((x > y) - (x < y) for x, y in zip(values[::2], values[1::2], strict=True))
