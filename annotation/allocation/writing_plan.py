"""The plan of a writing campaign as people write it (a page, the API, a JSON file): its shape, defaults and mistakes.
Names of evaluators, corpora and sets are not looked up here.

    {"slug": "hiking", "name": "More replies", "kind": "ream", "guidelines": "Markdown",
     "items": "all" | {"sample": 30} | {"keys": ["i1"]} | {"groups": ["g1"]} | {"search": "hotel"},
     "start_set": "original", "evaluator": "ream-1", "corpus": "replies", "seed": 13, "lease_minutes": 30,
     "options": {"arms": ["scores", "control"], "assign": "annotator", "mode": "rounds", "group_size": 3,
                 "max_attempts": 3, "min_gain": 0.0, "target": 10, "candidates": 100, "candidate_turns": null,
                 "own_text": true}}

    {"name": "Other endings", "kind": "constraint", "options": {"constraint": "avoid-original-words",
     "instruction": "Write another ending with other words.", "target": 1, "shared_words": 0}}

`target` counts the references of an item in the campaign's set: those it starts from and those written. In a `ream`
campaign the set begins as a copy of `start_set`; under a constraint it begins empty, and `start_set` holds the original
that annotators are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .answers import Problem
from .plan_reading import Reader, is_whole, slugify
from .writing import ARMS

KINDS = ("ream", "constraint")
ASSIGN = ("annotator", "item")
MODES = ("free", "rounds")
#: Constraint -> the kind of ending it collects, as the robustness report of the Perception Score names them.
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
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True)
class WritingPlan:
    name: str
    slug: str
    kind: str
    guidelines: str
    items: dict[str, Any]
    start_set: str
    evaluator: str
    corpus: str
    seed: int
    lease_minutes: int
    max_per_annotator: int | None
    options: dict[str, Any]


def read_writing_plan(raw: Any) -> tuple[WritingPlan | None, list[Problem]]:
    """The plan with its defaults, or None and what is wrong by field."""
    if not isinstance(raw, Mapping):
        return None, [("", "A plan is an object with at least name and kind.")]
    reader = Reader(raw)
    reader.refuse_others(_FIELDS)
    name = reader.name("name", limit=200)
    if not name:
        reader.say("name", "Give the campaign a name; annotators see it.")
    slug = reader.text("slug", limit=63) or slugify(name)[:40].strip("-")
    if name and not _SLUG.fullmatch(slug):
        reader.say("slug", "Use a-z, 0-9 and hyphens, at most 40 characters; the reference sets are named by it.")
    kind = raw.get("kind", "ream")
    if kind not in KINDS:
        reader.say("kind", f"Use one of: {', '.join(KINDS)}.")
        kind = "ream"
    plan = WritingPlan(
        name=name,
        slug=slug,
        kind=kind,
        guidelines=reader.text("guidelines", limit=100_000),
        items=reader.items(),
        start_set=reader.text("start_set", limit=63),
        evaluator=reader.text("evaluator", limit=200),
        corpus=reader.text("corpus", limit=200),
        seed=reader.whole("seed", 13, 0, 2**31 - 1),
        lease_minutes=reader.whole("lease_minutes", 30, 1, 1440),
        max_per_annotator=reader.whole_or_none("max_per_annotator", 1, 10_000_000),
        options=_options(reader, kind),
    )
    return (None if reader.problems else plan), reader.problems


def opening_problems(plan: WritingPlan) -> list[Problem]:
    """What a draft may lack, and an open campaign may not."""
    problems: list[Problem] = []
    arms, options = plan.options["arms"], plan.options
    if "scores" in arms and not plan.evaluator:
        problems.append(("evaluator", "The arm with scores needs a trained evaluator. Choose one, or another arm."))
    if not plan.corpus:
        if options["mode"] == "rounds":
            problems.append(("corpus", "Rounds show a candidate to a group. Choose the corpus it comes from."))
        elif "candidates" in arms:
            problems.append(("corpus", "The arm of candidates alone needs a corpus. Choose one, or another arm."))
        elif not options["own_text"]:
            problems.append(("corpus", "Without a corpus, texts of one's own must be allowed."))
    return problems


def _options(reader: Reader, kind: str) -> dict[str, Any]:
    found = dict(OPTIONS)
    if kind == "constraint":
        found |= {"arms": ["control"], "target": 1, "constraint": "free"}
    for name, value in reader.options().items():
        if name not in OPTIONS:
            reader.say(f"options.{name}", f"There is no such option. There are: {', '.join(OPTIONS)}.")
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
    """What is wrong with the value of an option; empty when nothing is."""
    if name == "arms":
        good = isinstance(value, (list, tuple)) and value and all(arm in ARMS for arm in value)
        return "" if good and len(set(value)) == len(value) else f"Name each arm once: {', '.join(ARMS)}."
    if name == "constraint":
        return "" if value in ("", *CONSTRAINTS) else f"Use one of: {', '.join(CONSTRAINTS)}."
    if name in _CHOICES:
        return "" if value in _CHOICES[name] else f"Use one of: {', '.join(_CHOICES[name])}."
    if name == "own_text":
        return "" if isinstance(value, bool) else "Use true or false."
    if name == "instruction":
        return "" if isinstance(value, str) and len(value) <= 4000 else "Use a text of at most 4000 characters."
    if name == "min_gain":
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1
        return "" if good else "Use a number from 0 to below 1."
    low, high = _WHOLE.get(name) or _WHOLE_OR_NONE[name]
    if value is None and name in _WHOLE_OR_NONE:
        return ""
    return "" if is_whole(value, low, high) else f"Use a whole number from {low} to {high}."


def _fit(reader: Reader, kind: str, options: dict[str, Any]) -> None:
    """What does not go together."""
    if kind == "ream":
        if options["constraint"]:
            reader.say("options.constraint", "A constraint belongs to a campaign of the kind constraint.")
        if options["confirmations"]:
            reader.say("options.confirmations", "Only texts under a constraint are confirmed by others.")
        return
    if options["arms"] != ["control"]:
        reader.say("options.arms", "Under a constraint nobody sees scores: leave the arms out, or name control alone.")
    if options["mode"] != "free":
        reader.say("options.mode", "Under a constraint everybody writes at their own pace: use free.")
    if not options["own_text"]:
        reader.say("options.own_text", "Under a constraint texts of one's own must be allowed.")
    if not options["constraint"]:
        reader.say("options.constraint", f"Use one of: {', '.join(CONSTRAINTS)}.")
