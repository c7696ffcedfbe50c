"""The form of a campaign and its answers: validation, exchange of sides, comparison with expected answers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop

Problem = tuple[str, str]
"""(field, message)."""

VERDICTS: dict[str, tuple[str, ...]] = {
    "likert": (),
    "pairwise": ("a", "b", "tie", "both_bad"),
    "turing": ("a", "b", "cannot_decide"),
}
VERDICT_LABELS = {
    "a": gettext_noop("The first"),
    "b": gettext_noop("The second"),
    "tie": gettext_noop("Equally good"),
    "both_bad": gettext_noop("Both bad"),
    "cannot_decide": gettext_noop("Cannot decide"),
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
    """A question. `low`, `high` and `step` are None in comparisons; if `step` is None with limits, the scale is
    continuous."""

    name: str
    question: str
    low: float | None = None
    high: float | None = None
    step: float | None = 1.0
    labels: Mapping[str, str] | None = None

    def points(self) -> list[float]:
        """The values to choose from; empty for a continuous or very long scale."""
        if self.low is None or self.high is None or not self.step:
            return []
        count = round((self.high - self.low) / self.step) + 1
        return [_plain(self.low + k * self.step) for k in range(count)] if 2 <= count <= MAX_POINTS else []

    def as_dict(self, kind: str) -> dict[str, Any]:
        """The form as JSON for the browser; each point has the key that selects it."""
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
    """The digits of a scale of digits, otherwise the positions (0 for the tenth)."""
    if all(isinstance(value, int) and 0 <= value <= 9 for value in points):
        return [str(value) for value in points]
    return [str((place + 1) % 10) if len(points) <= 10 else "" for place in range(len(points))]


def check_answer(form: Form, answer: Any) -> tuple[dict[str, Any], list[Problem]]:
    """The answer with plain numbers, and error messages by field (empty if it is valid)."""
    if not isinstance(answer, Mapping):
        return {}, [("answer", _("The answer must be an object with one member per question."))]
    clean: dict[str, Any] = {}
    problems: list[Problem] = []
    known = {aspect.name for aspect in form.aspects}
    for name in answer:
        if name not in known:
            problems.append((f"answer.{name}", _("This campaign has no question “%(name)s”.", name=name)))
    for aspect in form.aspects:
        value = answer.get(aspect.name)
        field = f"answer.{aspect.name}"
        if value is None or value == "":
            problems.append((field, _("Answer the question “%(name)s”.", name=aspect.question or aspect.name)))
        elif form.kind == "likert":
            number, message = _check_value(aspect, value)
            clean[aspect.name] = number
            if message:
                problems.append((field, message))
        elif value not in VERDICTS[form.kind]:
            problems.append((field, _use_verdict(form)))
        else:
            clean[aspect.name] = value
    return clean, problems


def _check_value(aspect: AspectForm, value: Any) -> tuple[Any, str]:
    low, high, step = aspect.low, aspect.high, aspect.step
    if low is None or high is None:
        return None, _("“%(name)s” has no scale.", name=aspect.name)
    choose = _("Choose a number from %(low)g to %(high)g in steps of %(step)g.") if step else None
    choose = (choose or _("Choose a number from %(low)g to %(high)g.")) % {"low": low, "high": high, "step": step}
    try:
        number = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        return None, choose
    value = number
    if not low <= value <= high:
        return None, _("%(value)g is outside the scale.", value=value) + f" {choose}"
    if step and abs((value - low) / step - round((value - low) / step)) > 1e-9:
        return None, _("%(value)g is between two points.", value=value) + f" {choose}"
    return _plain(value), ""


def _use_verdict(form: Form) -> str:
    return _("Choose one of: %(choices)s.", choices=", ".join(VERDICTS[form.kind]))


def turn(answer: Mapping[str, Any], swapped: bool) -> dict[str, Any]:
    """Exchange the sides between the order on the page and the order in the unit (its own inverse). Ratings are
    unchanged."""
    if not swapped:
        return dict(answer)
    return {name: _OTHER_SIDE.get(value, value) if isinstance(value, str) else value for name, value in answer.items()}


def check_expected(form: Form, expected: Any, where: str) -> list[Problem]:
    """Errors of an expected answer: a value, a range [low, high], or (comparisons) a verdict or a list of verdicts, for
    at least one of the questions."""
    if not isinstance(expected, Mapping) or not expected:
        return [(where, _("Give the expected answer to at least one question."))]
    problems: list[Problem] = []
    by_name = {aspect.name: aspect for aspect in form.aspects}
    for name, value in expected.items():
        field = f"{where}.{name}"
        if name not in by_name:
            problems.append((field, _("This campaign has no question “%(name)s”.", name=name)))
            continue
        for single in value if isinstance(value, list) else [value]:
            if form.kind == "likert":
                message = _check_value(by_name[name], single)[1]
            else:
                message = "" if single in VERDICTS[form.kind] else _use_verdict(form)
            if message:
                problems.append((field, message))
        if isinstance(value, list) and (not value or (form.kind == "likert" and len(value) != 2)):
            problems.append((field, _("A range has two ends: [lowest, highest].")))
    return problems


def is_expected(kind: str, expected: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether `answer`, with sides as in the unit, is as expected in every question that has an expected answer."""
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


def turn_expected(expected: Mapping[str, Any], swapped: bool) -> dict[str, Any]:
    """The expected answer with the sides as shown."""
    return {
        name: [turn({"_": one}, swapped)["_"] for one in value] if isinstance(value, list)
        else turn({"_": value}, swapped)["_"]
        for name, value in expected.items()
    }  # fmt: skip
