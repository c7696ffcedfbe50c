"""Read the answers to a judge by its method: ratings, verdicts of pairs, and values of outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, get_args

from evalapp.translation import gettext as _
from scoring.ml.judges.answers import (
    Answer,
    Reading,
    read_rating,
    read_reward,
    read_verdict,
    settle_orders,
    settle_rewards,
)
from scoring.ml.judges.prompts import Example, PromptTemplate, check_template
from scoring.ml.judges.requests import Judge, Method, Request
from scoring.ml.judges.rubric import Rubric, RubricError

#: The digest of a request and its number among equal ones.
Key: TypeAlias = tuple[str, int]
#: The options of every judge.
OPTIONS = (
    "endpoint", "model", "aspect", "kind", "template", "template_text", "campaign", "question", "low", "high", "step",
    "labels", "guidelines", "references", "method", "temperature", "samples", "pairs", "examples", "seed",
)  # fmt: skip
#: What the first text of a pair gets by the verdict.
WINS = {"a": 1.0, "tie": 0.5, "b": 0.0}


def make_key(request: Request) -> Key:
    """Return the key by which the answer to a `request` is stored: hash of the call, and number among equal ones."""
    return request.digest, request.repeat


def read_judge(options: Mapping[str, Any], examples: Sequence[Example] = ()) -> Judge:
    """Return the judge with stored `options` (see `OPTIONS`) and the `examples` of its prompts. Raises `RubricError` if
    they do not fit together."""
    template = PromptTemplate(options["template"], options["kind"], options["template_text"])
    check_template(template)
    rubric = Rubric(**{name: options[name] for name in ("question", "low", "high", "step", "labels", "guidelines")})
    return Judge(
        # An export writes 0.0 as 0, which would be another request.
        options["model"], rubric, template, options["method"], float(options["temperature"]), tuple(examples),
        is_local=options.get("local", "") != "", controls=tuple(options.get("controls", ())),
    )  # fmt: skip


def find_option_fault(options: Mapping[str, Any]) -> str:
    """Return why stored options, such as those in a file, are none of a judge; "" if they are."""
    if missing := [name for name in OPTIONS if name not in options]:
        return _("%(name)s is missing") % {"name": missing[0]}
    texts = (
        "endpoint", "model", "aspect", "template_text", "guidelines", "question", "campaign", "references", "pairs",
    )  # fmt: skip
    if wrong := [name for name in texts if not isinstance(options[name], str)]:
        return _("%(name)s must be text") % {"name": wrong[0]}
    counts = ("samples", "examples", "seed")
    if wrong := [name for name in counts if type(options[name]) is not int or not 0 <= options[name] < 2**31]:
        return _("%(name)s must be a whole number") % {"name": wrong[0]}
    controls = options.get("controls", [])
    if not isinstance(controls, list) or not all(isinstance(one, str) and one for one in controls):
        text = _('%(name)s must be a list of texts, such as ["first", "second"].') % {"name": "controls"}
        return text.rstrip(".")
    if options["method"] not in get_args(Method):
        return _("%(name)s is unknown") % {"name": "method"}
    try:
        read_judge(options).rubric.describe_scale()
    except RubricError as error:
        return str(error).rstrip(".")
    except (TypeError, ValueError, AttributeError):
        return _("they do not fit together")
    return ""


class Reader:
    """Reads answers by the method of a judge."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def read(self, answer: Answer | str) -> Reading:
        """Return the reading of an answer, or of the reason why there is none."""
        if isinstance(answer, str):
            return Reading(reason=answer)
        judge = self.judge
        if judge.method == "reward":
            return read_reward(answer)
        if judge.is_pairwise:
            return read_verdict(answer, by_probability=judge.is_by_probability)
        labels = judge.labels if judge.is_by_probability else None
        return read_rating(answer, judge.rubric, by_probability=judge.is_by_probability, labels=labels)

    def list_repairs(self, requests: Sequence[Request], answers: Mapping[Key, Answer | str]) -> dict[Key, Request]:
        """Return the second requests for answers that are no JSON, by the key of the first."""
        repairs: dict[Key, Request] = {}
        if self.judge.method != "json":
            return repairs
        for request in requests:
            answer = answers.get(make_key(request))
            if answer is not None and not isinstance(answer, str) and self.read(answer).repairable:
                repairs[make_key(request)] = request.make_repair(answer.text)
        return repairs

    def settle(self, orders: Sequence[Sequence[Request]], answers: Mapping[Key, Answer | str]) -> list[Reading | None]:
        """Return the reading of each sample, for a pair that of both orders; None without all answers."""
        result: list[Reading | None] = []
        for sample in orders:
            found = [answers.get(make_key(request)) for request in sample]
            readings = [self.read(answer) for answer in found if answer is not None]
            result.append(None if len(readings) < len(found) else self.join(readings))
        return result

    def join(self, readings: Sequence[Reading]) -> Reading:
        """Return the reading of a text, or of a pair by both answers."""
        if len(readings) == 1:
            return readings[0]
        first, second = readings
        return settle_rewards(first, second) if self.judge.method == "reward" else settle_orders(first, second)
