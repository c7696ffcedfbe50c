"""Read answers of judges: ratings and verdicts, or the reason why there is none.

With log-probabilities the rating is the expected value over the scale (Liu et al. 2023, G-Eval): an answer of several
tokens has the product of their probabilities. The share of the probability that is on the scale is reported, and a low
share makes the answer undefined.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalapp.translation import gettext_noop
from scoring.ml.judges.requests import VERDICTS
from scoring.ml.judges.rubric import Rubric

#: Less probability on the scale means that the model answered something else.
MIN_SHARE = 0.5
#: Log-probability of impossible tokens, which has to be a number.
LEAST_LOGPROB = -9999.0
#: Reasons for undefined scores.
REFUSED = gettext_noop("the model refused")
NO_LOGPROBS = gettext_noop("the server returned no log-probabilities")
OFF_SCALE = gettext_noop("less than half of the probability is on the scale")
NO_ANSWER = gettext_noop("no rating in the answer")
OUT_OF_RANGE = gettext_noop("the rating is not on the scale")


@dataclass(frozen=True)
class Answer:
    """What a server answered. `tokens` has for each generated token (token, {alternative: log-probability})."""

    text: str
    model: str
    finish: str = ""
    refused: bool = False
    tokens: tuple[tuple[str, Mapping[str, float]], ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the answer without model, tokens and time, which are stored separately."""
        tokens = [[token, list(map(list, top.items()))] for token, top in self.tokens]
        return {"text": self.text, "finish": self.finish, "refused": self.refused, "tokens": tokens}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], model: str) -> Answer:
        tokens = tuple((token, dict(top)) for token, top in content["tokens"])
        return cls(content["text"], model, content["finish"], content["refused"], tokens)


@dataclass(frozen=True)
class Reading:
    """A rating, a verdict ("a", "b", "tie"), or the `reason` why there is none; `share` is the probability on the
    scale, None without log-probabilities. `repairable`: asking again for the format may help. `orders`: the verdicts of
    a pair in both orders."""

    value: float | None = None
    verdict: str = ""
    share: float | None = None
    reason: str = ""
    repairable: bool = False
    orders: tuple[str, ...] = ()


def weigh_answers(answer: Answer, labels: Sequence[str]) -> dict[str, float]:
    """Return the probability of each of the `labels` as the whole answer.

    Follows the generated tokens as long as they may still become another label: the probabilities of a label's tokens
    are multiplied. Alternatives are known only along the generated tokens, so a label of several tokens that branches
    off earlier has no probability.
    """
    result = dict.fromkeys(labels, 0.0)
    prefix, passed = "", 1.0
    for token, alternatives in answer.tokens:
        on_path, before = 0.0, prefix.strip()
        is_label = before in result
        for text, log_p in alternatives.items():
            whole = (prefix + text).strip()
            if text == token and any(label != whole and label.startswith(whole) for label in labels):
                on_path = passed * math.exp(log_p)  # decided by the next token
            elif whole in result:
                # Off the path the continuation of a label such as 1 (of 1 to 10) is unknown; it counts as the label.
                result[whole] += passed * math.exp(log_p)
            elif is_label and not any(label.startswith(whole) for label in labels):
                result[before] += passed * math.exp(log_p)  # the answer ended before this token
        if not on_path:
            return result
        prefix, passed = prefix + token, on_path
    if prefix.strip() in result:
        result[prefix.strip()] += passed
    return result


def read_rating(
    answer: Answer,
    rubric: Rubric,
    *,
    by_probability: bool,
    min_share: float = MIN_SHARE,
    labels: Mapping[str, float] | None = None,
) -> Reading:
    """Return the expected rating (`by_probability`), or the rating in the JSON of the answer. `labels` are the answers
    with their ratings, by default the points of the scale."""
    if answer.refused:
        return Reading(reason=REFUSED)
    if not by_probability:
        return _read_json_rating(answer, rubric)
    if not answer.tokens:
        return Reading(reason=NO_LOGPROBS)
    labels = rubric.answers if labels is None else labels
    weights = weigh_answers(answer, list(labels))
    share = math.fsum(weights.values())
    if share < min_share:
        return Reading(share=share, reason=OFF_SCALE)
    value = math.fsum(weights[label] * labels[label] for label in labels) / share
    return Reading(value=value, share=min(share, 1.0))


def read_verdict(answer: Answer, *, by_probability: bool, min_share: float = MIN_SHARE) -> Reading:
    """Return the verdict, and as `value` the preference for text A: 1, 0, or between by probability; a tie is 1/2."""
    if answer.refused:
        return Reading(reason=REFUSED)
    if not by_probability:
        content = find_json(answer.text)
        letter = str(content.get("verdict", "")).strip().upper() if content else ""
        letter = "C" if letter == "TIE" else letter
        if letter not in VERDICTS:
            return Reading(reason=NO_ANSWER, repairable=True)
        verdict = VERDICTS[letter]
        return Reading(value={"a": 1.0, "b": 0.0, "tie": 0.5}[verdict], verdict=verdict)
    if not answer.tokens:
        return Reading(reason=NO_LOGPROBS)
    weights = weigh_answers(answer, list(VERDICTS))
    share = math.fsum(weights.values())
    if share < min_share:
        return Reading(share=share, reason=OFF_SCALE)
    verdict = VERDICTS[max(weights, key=lambda letter: weights[letter])]
    return Reading(value=(weights["A"] + weights["C"] / 2) / share, verdict=verdict, share=min(share, 1.0))


def settle_orders(first: Reading, second: Reading) -> Reading:
    """Return the verdict of both orders: `first` has the texts as (a, b), `second` as (b, a). Two orders that disagree
    are a tie; the preference is the mean of both."""
    for reading in (first, second):
        if reading.value is None:
            return reading
    assert first.value is not None
    assert second.value is not None
    turned = {"a": "b", "b": "a", "tie": "tie"}[second.verdict]
    shares = [share for share in (first.share, second.share) if share is not None]
    verdict = first.verdict if first.verdict == turned else "tie"
    value = (first.value + 1 - second.value) / 2
    orders = (first.verdict, second.verdict)
    return Reading(value=value, verdict=verdict, share=min(shares) if shares else None, orders=orders)


def read_reward(answer: Answer) -> Reading:
    """Return the number that a reward model gave to a response."""
    try:
        value = float(answer.text)
    except ValueError:
        value = math.nan
    return Reading(value=value) if math.isfinite(value) else Reading(reason=NO_ANSWER)


def settle_rewards(first: Reading, second: Reading) -> Reading:
    """Return the verdict by two rewards: the larger one is better. The preference for the first text is that of the
    Bradley-Terry model, by which reward models are trained."""
    for reading in (first, second):
        if reading.value is None:
            return reading
    assert first.value is not None
    assert second.value is not None
    difference = first.value - second.value
    verdict = "tie" if difference == 0 else "a" if difference > 0 else "b"
    return Reading(value=(1 + math.tanh(difference / 2)) / 2, verdict=verdict)


def _read_json_rating(answer: Answer, rubric: Rubric) -> Reading:
    content = find_json(answer.text)
    raw = content.get("rating") if content else None
    try:
        value = math.nan if raw is None or isinstance(raw, bool) else float(raw)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        return Reading(reason=NO_ANSWER, repairable=True)
    if not rubric.low <= value <= rubric.high:
        return Reading(reason=OUT_OF_RANGE, repairable=True)
    return Reading(value=value)


def find_json(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text, which may have words or a code fence around it; None without one."""
    decoder, start = json.JSONDecoder(), text.find("{")
    for _attempt in range(20):
        if start < 0:
            return None
        try:
            content, _end = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            content = None
        if isinstance(content, dict):
            return content
        start = text.find("{", start + 1)
    return None
