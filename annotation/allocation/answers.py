"""What a campaign asks and which answers it takes: form, check, sides, comparison with what was expected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Problem = tuple[str, str]
"""(field, message)."""

VERDICTS: dict[str, tuple[str, ...]] = {
    "likert": (),
    "pairwise": ("a", "b", "tie", "both_bad"),
    "turing": ("a", "b", "cannot_decide"),
}
VERDICT_LABELS = {
    "a": "The first",
    "b": "The second",
    "tie": "Equally good",
    "both_bad": "Both bad",
    "cannot_decide": "Cannot decide",
}
VERDICT_KEYS = {
    "a": ("ArrowLeft", "a"),
    "b": ("ArrowRight", "d"),
    "tie": ("ArrowDown", "="),
    "both_bad": ("x",),
    "cannot_decide": ("ArrowDown", "="),
}
MAX_POINTS = 11
NOTE_LENGTH = 4000
_OTHER_SIDE = {"a": "b", "b": "a"}


@dataclass(frozen=True)
class AspectForm:
    """One question. `low`, `high` and `step` are None in comparisons; `step` None with limits is a continuous scale."""

    name: str
    question: str
    low: float | None = None
    high: float | None = None
    step: float | None = 1.0
    labels: Mapping[str, str] | None = None

    def points(self) -> list[float]:
        """The values to choose from; empty for a continuous or a very long scale."""
        if self.low is None or self.high is None or not self.step:
            return []
        count = round((self.high - self.low) / self.step) + 1
        return [_plain(self.low + k * self.step) for k in range(count)] if 2 <= count <= MAX_POINTS else []

    def as_dict(self, kind: str) -> dict[str, Any]:
        """As it goes to the browser, each point with the key that chooses it."""
        head: dict[str, Any] = {"name": self.name, "question": self.question}
        if kind != "likert":
            return head
        labels = self.labels or {}
        points = self.points()
        return {
            **head,
            "low": _plain(self.low),
            "high": _plain(self.high),
            "step": _plain(self.step),
            "points": [
                {"value": value, "label": labels.get(f"{value:g}", ""), "key": key}
                for value, key in zip(points, _point_keys(points), strict=True)
            ],
            "labels": dict(labels),
        }


@dataclass(frozen=True)
class Form:
    kind: str
    aspects: tuple[AspectForm, ...]

    def as_dict(self, options: Mapping[str, Any]) -> dict[str, Any]:
        verdicts = [
            {"value": name, "label": VERDICT_LABELS[name], "keys": list(VERDICT_KEYS[name])}
            for name in VERDICTS[self.kind]
        ]
        aspects = [aspect.as_dict(self.kind) for aspect in self.aspects]
        return {"kind": self.kind, "aspects": aspects, "verdicts": verdicts, "options": dict(options)}


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _point_keys(points: Sequence[float]) -> list[str]:
    """The digits themselves where the scale is one of digits, else the places, the tenth being 0."""
    if all(isinstance(value, int) and 0 <= value <= 9 for value in points):
        return [str(value) for value in points]
    return [str((place + 1) % 10) if len(points) <= 10 else "" for place in range(len(points))]


def check_answer(form: Form, answer: Any) -> tuple[dict[str, Any], list[Problem]]:
    """The answer with plain numbers, and what is wrong with it by field; empty when nothing is."""
    if not isinstance(answer, Mapping):
        return {}, [("answer", "The answer must be an object: one member per question.")]
    clean: dict[str, Any] = {}
    problems: list[Problem] = []
    known = {aspect.name for aspect in form.aspects}
    for name in answer:
        if name not in known:
            problems.append((f"answer.{name}", f"This campaign does not ask for “{name}”."))
    for aspect in form.aspects:
        value = answer.get(aspect.name)
        field = f"answer.{aspect.name}"
        if value is None or value == "":
            problems.append((field, f"“{aspect.question or aspect.name}” has no answer yet."))
        elif form.kind == "likert":
            number, message = _check_value(aspect, value)
            clean[aspect.name] = number
            if message:
                problems.append((field, message))
        elif value not in VERDICTS[form.kind]:
            problems.append((field, f"Choose one of: {', '.join(VERDICTS[form.kind])}."))
        else:
            clean[aspect.name] = value
    return clean, problems


def _check_value(aspect: AspectForm, value: Any) -> tuple[Any, str]:
    low, high, step = aspect.low, aspect.high, aspect.step
    if low is None or high is None:
        return None, f"“{aspect.name}” has no scale."
    scale = f"from {low:g} to {high:g}" + (f" in steps of {step:g}" if step else "")
    try:
        number = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        return None, f"Choose a number {scale}."
    value = number
    if not low <= value <= high:
        return None, f"{value:g} is outside the scale. Choose a number {scale}."
    if step and abs((value - low) / step - round((value - low) / step)) > 1e-9:
        return None, f"{value:g} is between two points. Choose a number {scale}."
    return _plain(value), ""


def turn(answer: Mapping[str, Any], swapped: bool) -> dict[str, Any]:
    """Exchange sides: from what was shown to the order of the unit, and back (its own inverse). Values of scales
    stay as they are."""
    if not swapped:
        return dict(answer)
    return {name: _OTHER_SIDE.get(value, value) if isinstance(value, str) else value for name, value in answer.items()}


def check_expected(form: Form, expected: Any, where: str) -> list[Problem]:
    """What is wrong with an expected answer: a value, a range [low, high], or (comparisons) a verdict or a list of
    verdicts, for at least one of the questions."""
    if not isinstance(expected, Mapping) or not expected:
        return [(where, "Say the expected answer of at least one question.")]
    problems: list[Problem] = []
    by_name = {aspect.name: aspect for aspect in form.aspects}
    for name, value in expected.items():
        field = f"{where}.{name}"
        if name not in by_name:
            problems.append((field, f"This campaign does not ask for “{name}”."))
            continue
        for single in value if isinstance(value, list) else [value]:
            if form.kind == "likert":
                message = _check_value(by_name[name], single)[1]
            else:
                message = "" if single in VERDICTS[form.kind] else f"Use one of: {', '.join(VERDICTS[form.kind])}."
            if message:
                problems.append((field, message))
        if isinstance(value, list) and (not value or (form.kind == "likert" and len(value) != 2)):
            problems.append((field, "A range has two ends: [lowest, highest]."))
    return problems


def is_expected(kind: str, expected: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether `answer`, sides as in the unit, is the expected one in every question that has an expectation."""
    for name, wanted in expected.items():
        value = answer.get(name)
        if value is None:
            return False
        if kind == "likert":
            ends = [float(end) for end in (wanted if isinstance(wanted, list) else [wanted])]
            if not min(ends) <= value <= max(ends):
                return False
        elif value not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return True


def shown_expected(expected: Mapping[str, Any], swapped: bool) -> dict[str, Any]:
    """The expected answer as the sides were shown."""
    return {
        name: [turn({"_": one}, swapped)["_"] for one in value] if isinstance(value, list)
        else turn({"_": value}, swapped)["_"]
        for name, value in expected.items()
    }  # fmt: skip
