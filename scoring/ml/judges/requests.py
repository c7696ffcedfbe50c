"""The requests of a judge: bodies of the chat completion call, and their hashes, by which answers are stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from scoring.ml.judges.prompts import SYSTEM, Example, PromptTemplate, fill_template, find_controls, make_reward_turns
from scoring.ml.judges.rubric import Rubric

if TYPE_CHECKING:
    from scoring.ml.types import Record

Method: TypeAlias = Literal["logprobs", "yes-no", "json", "reward"]
#: Methods that read log-probabilities.
BY_PROBABILITY = frozenset({"logprobs", "yes-no"})
#: Answers of a comparison -> verdict for the first text.
VERDICTS = {"A": "a", "B": "b", "C": "tie"}
#: Servers return at most this many alternatives for a token.
TOP = 20
_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode
REPAIR = "This is not the requested JSON. Answer again, only with JSON in the requested format."


@dataclass(frozen=True)
class Request:
    """A chat completion call without the address. `repeat` numbers equal calls, whose answers are stored separately.
    `labels` are the answers whose probabilities a model in a folder gives."""

    model: str
    messages: tuple[tuple[str, str], ...]
    method: Method
    max_tokens: int
    temperature: float = 0.0
    schema: str = ""
    repeat: int = 0
    labels: tuple[str, ...] = ()

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the call; not kept, because a chunk of requests has thousands."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": role, "content": text} for role, text in self.messages],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }
        if self.labels:
            body |= {"labels": self.labels}
        elif self.method in BY_PROBABILITY:
            body |= {"logprobs": True, "top_logprobs": TOP}
        elif self.schema:
            schema = {"name": "answer", "strict": True, "schema": json.loads(self.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    @cached_property
    def digest(self) -> str:
        """The hash of the body, 64 hexadecimal digits; equal for all repeats."""
        return hashlib.sha256(_encode(self.body).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def n_characters(self) -> int:
        return sum(len(text) for _role, text in self.messages)

    def make_repair(self, answer: str) -> Request:
        """Return the request that shows the faulty answer and asks for the JSON alone."""
        more = (("assistant", answer[:4_000]), ("user", REPAIR))
        return replace(self, messages=(*self.messages, *more))


@dataclass(frozen=True)
class Judge:
    """A model with its instructions; makes the requests for texts. `is_local`: the model is in a folder, and `controls`
    are its special tokens (see `prompts.select_controls`)."""

    model: str
    rubric: Rubric
    template: PromptTemplate
    method: Method = "logprobs"
    temperature: float = 0.0
    examples: tuple[Example, ...] = ()
    is_local: bool = False
    controls: tuple[str, ...] = ()

    @property
    def is_pairwise(self) -> bool:
        return self.template.kind == "pairwise"

    @property
    def is_by_probability(self) -> bool:
        return self.method in BY_PROBABILITY

    @property
    def examples_digest(self) -> str:
        text = repr([(one.record.context, one.record.source, one.record.text, one.answer) for one in self.examples])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8] if self.examples else ""

    def make_orders(self, record: Record, other: Record | None, repeat: int) -> tuple[Request, ...]:
        """Return the requests for a text, or for a pair: both orders, or for a reward model one for each text."""
        if other is None:
            return (self.make_request(record, repeat=repeat),)
        if self.method == "reward":
            return self.make_request(record, repeat=repeat), self.make_request(other, repeat=repeat)
        return self.make_request(record, other, repeat), self.make_request(other, record, repeat)

    def make_request(self, record: Record, other: Record | None = None, repeat: int = 0) -> Request:
        """Return the request to rate `record`, or to compare it as text A with `other` as text B."""
        if self.method == "reward":
            return Request(self.model, make_reward_turns(record, self.controls), "reward", 0, repeat=repeat)
        prompt = fill_template(
            self.template, self.rubric, record, self.answer_format, other=other, examples=self.examples,
            controls=self.controls,
        )  # fmt: skip
        messages = (("system", SYSTEM), ("user", prompt))
        labels = tuple(self.labels) if self.is_local and self.is_by_probability else ()
        # Longest label with a space and a line break before it: every further token costs, and none is read.
        room = max(map(len, self.labels)) + 2 if self.is_by_probability else 400
        return Request(self.model, messages, self.method, room, self.temperature, self._schema, repeat, labels)

    def has_controls(self, record: Record) -> bool:
        """Whether the text of the record has a control token of a chat model."""
        return find_controls(record.text, self.controls)

    @cached_property
    def labels(self) -> dict[str, float]:
        """The answers whose probabilities are read, with the value of each: points of the scale, yes and no, or
        preferences for text A."""
        if self.is_pairwise:
            return {"A": 1.0, "B": 0.0, "C": 0.5}
        if self.method == "yes-no":
            low, high = self.rubric.low, self.rubric.high
            return {"yes": high, "Yes": high, "no": low, "No": low}
        return self.rubric.answers

    @cached_property
    def answer_format(self) -> str:
        """The last lines of a prompt, which say how to answer."""
        if self.is_pairwise:
            meaning = "A if text A is better, B if text B is better, C for a tie"
            if self.is_by_probability:
                return f"Answer with one letter and nothing else: {meaning}.\nAnswer: "
            return f'Answer only with JSON such as {{"verdict": "A"}}: {meaning}.'
        if self.method == "yes-no":
            return "Does the text deserve the best rating? Answer yes or no and nothing else.\nAnswer: "
        if self.method == "logprobs":
            return "Answer with the number and nothing else.\nRating: "
        return f'Answer only with JSON such as {{"rating": {self.rubric.high:g}}}.'

    @cached_property
    def _schema(self) -> str:
        if self.method != "json":
            return ""
        kind: dict[str, Any]
        if self.is_pairwise:
            name, kind = "verdict", {"type": "string", "enum": list(VERDICTS)}
        elif self.rubric.points:
            name, kind = "rating", {"type": "number", "enum": [_plain(point) for point in self.rubric.points]}
        else:
            name, kind = "rating", {"type": "number"}
        properties = {"type": "object", "properties": {name: kind}, "required": [name], "additionalProperties": False}
        return json.dumps(properties, sort_keys=True)

    def make_signature(self, reported: str, **more: str) -> str:
        """Return the signature: `reported`, the model id of the server, template, scale and all options. `more` are
        further parts, such as the number of samples."""
        rubric = self.rubric
        question = repr((rubric.question, sorted(rubric.labels.items()), rubric.guidelines))
        scale = f"{rubric.low:g}-{rubric.high:g}" + ("" if rubric.step is None else f"/{rubric.step:g}")
        parts = {
            "model": reported,
            "template": f"{self.template.name}@{self.template.digest}",
            "rubric": hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:8],
            "scale": scale,
            "method": self.method,
            "t": f"{self.temperature:g}",
            **({"examples": f"{len(self.examples)}@{self.examples_digest}"} if self.examples else {}),
            **more,
        }
        return "|".join(["judge", *(f"{name}:{value}" for name, value in parts.items()), f"v:{REVISION}"])


#: Part of the signature, like `Entry.revision` of other evaluators.
REVISION = 1


def _plain(point: float) -> float | int:
    return int(point) if float(point).is_integer() else point


def order_pairs(pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return each pair in both orders, so that the effect of the position is measured and removed.

    >>> order_pairs([("x", "y")])
    [('x', 'y'), ('y', 'x')]
    """
    return [order for a, b in pairs for order in ((a, b), (b, a))]
