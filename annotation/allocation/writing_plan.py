"""The plan of a writing campaign as people write it (on a page, in the API, in a JSON file): format, defaults and
validation. Names of evaluators, corpora and sets are not looked up here.

    {"slug": "hiking", "name": "More replies", "kind": "ream", "guidelines": "Markdown",
     "items": "all" | {"sample": 30} | {"keys": ["i1"]} | {"groups": ["g1"]} | {"search": "hotel"},
     "start_set": "original", "evaluator": "ream-1", "corpus": "replies", "seed": 13, "lease_minutes": 30,
     "options": {"arms": ["scores", "control"], "assign": "annotator", "mode": "rounds", "group_size": 3,
                 "max_attempts": 3, "min_gain": 0.0, "target": 10, "candidates": 100, "candidate_turns": null,
                 "own_text": true}}

    {"name": "Other endings", "kind": "constraint", "options": {"constraint": "avoid-original-words",
     "instruction": "Write another ending with other words.", "target": 1, "shared_words": 0}}

`target` is the number of references per item in the campaign's set, including those that it starts from. In a `ream`
campaign the set starts as a copy of `start_set`; under a constraint it starts empty, and `start_set` contains the
original that annotators see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evalapp.translation import gettext as _

from .answers import Problem
from .plan_reading import BasePlan, Reader, is_whole
from .writing import ARMS

KINDS = ("ream", "constraint")
ASSIGN = ("annotator", "item")
MODES = ("free", "rounds")
#: The kind of response that each constraint collects, as named in the robustness report of the Perception Score.
CONSTRAINTS = {"free": "HWE", "avoid-original-words": "LDHWE", "better-than-original": "HWEBQ", "minimally-wrong": "AE"}
OPTIONS: dict[str, Any] = {
    "arms": ["scores"],
    "assign": "annotator",
    "mode": "free",
    "group_size": 3,
    "max_attempts": 3,
    "min_gain": 0.0,
    "target": 10,
    "candidates": 100,
    "candidate_turns": None,
    "own_text": True,
    "instruction": "",
    "constraint": "",
    "confirmations": 0,
    "shared_words": 0,
    "changed_words": None,
}
_WHOLE = {
    "group_size": (2, 100),
    "max_attempts": (1, 100),
    "target": (1, 1000),
    "candidates": (1, 1000),
    "confirmations": (0, 20),
    "shared_words": (0, 1000),
}
_WHOLE_OR_NONE = {"candidate_turns": (1, 1000), "changed_words": (1, 1000)}
_CHOICES = {"assign": ASSIGN, "mode": MODES}
_FIELDS = {
    "slug", "name", "kind", "guidelines", "items", "start_set", "evaluator", "corpus", "seed", "lease_minutes",
    "max_per_annotator", "options",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WritingPlan(BasePlan):
    """The plan of a writing campaign."""

    items: dict[str, Any]
    start_set: str
    evaluator: str
    corpus: str


def read_writing_plan(raw: Any) -> tuple[WritingPlan | None, list[Problem]]:
    """The plan with its defaults, or None and the errors by field."""
    if not isinstance(raw, Mapping):
        return None, [("", _("A plan is an object with at least name and kind."))]
    reader = Reader(raw)
    reader.refuse_others(_FIELDS)
    base = reader.base(KINDS, raw.get("kind", "ream"), slug_length=40)
    plan = WritingPlan(
        **base,
        items=reader.items(),
        start_set=reader.text("start_set", limit=63),
        evaluator=reader.text("evaluator", limit=200),
        corpus=reader.text("corpus", limit=200),
        options=_options(reader, base["kind"]),
    )
    return (None if reader.problems else plan), reader.problems


def opening_problems(plan: WritingPlan) -> list[Problem]:
    """What a draft can lack but an open campaign needs, by field."""
    problems: list[Problem] = []
    arms, options = plan.options["arms"], plan.options
    if "scores" in arms and not plan.evaluator:
        message = _("The arm with scores needs a trained evaluator. Choose one, or another arm.")
        problems.append(("evaluator", message))
    if not plan.corpus:
        if options["mode"] == "rounds":
            problems.append(("corpus", _("Rounds show candidates to a group. Choose a corpus.")))
        elif "candidates" in arms:
            problems.append(("corpus", _("The arm with candidates only needs a corpus. Choose one, or another arm.")))
        elif not options["own_text"]:
            problems.append(("corpus", _("Without a corpus, own texts must be allowed.")))
    return problems


def _options(reader: Reader, kind: str) -> dict[str, Any]:
    found = dict(OPTIONS)
    if kind == "constraint":
        found |= {"arms": ["control"], "target": 1, "constraint": "free"}
    for name, value in reader.options().items():
        if name not in OPTIONS:
            message = _("There is no such option. Options: %(names)s.") % {"names": ", ".join(OPTIONS)}
            reader.say(f"options.{name}", message)
            continue
        message = _wrong(name, value)
        if message:
            reader.say(f"options.{name}", message)
        else:
            found[name] = value.strip() if isinstance(value, str) else value
    found["min_gain"] = float(found["min_gain"])
    if found["constraint"] == "better-than-original" and not found["confirmations"]:
        found["confirmations"] = 1
    _fit(reader, kind, found)
    return found


def _wrong(name: str, value: Any) -> str:
    """An error message for the value of an option; empty if it is valid."""
    if name == "arms":
        good = isinstance(value, (list, tuple)) and value and all(arm in ARMS for arm in value)
        return (
            ""
            if good and len(set(value)) == len(value)
            else _("Name each arm once: %(arms)s.") % {"arms": ", ".join(ARMS)}
        )
    if name == "constraint":
        return "" if value in ("", *CONSTRAINTS) else _use_one_of(CONSTRAINTS)
    if name in _CHOICES:
        return "" if value in _CHOICES[name] else _use_one_of(_CHOICES[name])
    if name == "own_text":
        return "" if isinstance(value, bool) else _("Use true or false.")
    if name == "instruction":
        return "" if isinstance(value, str) and len(value) <= 4000 else _("Use a text of at most 4000 characters.")
    if name == "min_gain":
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1
        return "" if good else _("Use a number of at least 0 and below 1.")
    low, high = _WHOLE.get(name) or _WHOLE_OR_NONE[name]
    if value is None and name in _WHOLE_OR_NONE:
        return ""
    message = _("Use a whole number from %(low)d to %(high)d.") % {"low": low, "high": high}
    return "" if is_whole(value, low, high) else message


def _use_one_of(choices: Iterable[str]) -> str:
    return _("Use one of: %(choices)s.") % {"choices": ", ".join(choices)}


def _fit(reader: Reader, kind: str, options: dict[str, Any]) -> None:
    """Check options that exclude each other."""
    if kind == "ream":
        if options["constraint"]:
            reader.say("options.constraint", _("A constraint belongs to a campaign of the kind constraint."))
        if options["confirmations"]:
            reader.say("options.confirmations", _("Only texts under a constraint are confirmed by other annotators."))
        return
    if options["arms"] != ["control"]:
        reader.say(
            "options.arms", _("Under a constraint there are no scores: leave out the arms, or use control only.")
        )
    if options["mode"] != "free":
        reader.say("options.mode", _("Under a constraint there are no rounds: use free."))
    if not options["own_text"]:
        reader.say("options.own_text", _("Under a constraint, own texts must be allowed."))
    if not options["constraint"]:
        reader.say("options.constraint", _use_one_of(CONSTRAINTS))
