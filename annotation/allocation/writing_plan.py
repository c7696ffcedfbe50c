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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalapp.languages import LANGUAGES
from evalapp.translation import gettext as _

from .answers import Problem
from .plan_reading import BasePlan, Option, Reader, get_defaults
from .writing import ARMS

KINDS = ("ream", "constraint")
#: The kind of response that each constraint collects, as named in the robustness report of the Perception Score.
CONSTRAINTS = {"free": "HWE", "avoid-original-words": "LDHWE", "better-than-original": "HWEBQ", "minimally-wrong": "AE"}
OPTION_RULES: dict[str, Option] = {
    "arms": Option(["scores"], choices=ARMS, type=list),
    "assign": Option("annotator", choices=("annotator", "item")),
    "mode": Option("free", choices=("free", "rounds")),
    "group_size": Option(3, 2, 100, type=int),
    "max_attempts": Option(3, 1, 100, type=int),
    "min_gain": Option(0.0, 0, 0.999999, type=float),
    "target": Option(10, 1, 1000, type=int),
    "candidates": Option(100, 1, 1000, type=int),
    "candidate_turns": Option(None, 1, 1000, type=int, optional=True),
    "own_text": Option(True),
    "language": Option("", choices=("", *LANGUAGES)),  # of the pages for annotators who have not chosen one
    "show_clock": Option(True),  # whether annotators see how long they take; it is measured in any case
    "instruction": Option("", high=4000, type=str),
    "constraint": Option("", choices=("", *CONSTRAINTS)),
    "confirmations": Option(0, 0, 20, type=int),
    "shared_words": Option(0, 0, 1000, type=int),
    "changed_words": Option(None, 1, 1000, type=int, optional=True),
}
OPTIONS = get_defaults(OPTION_RULES)
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


def find_opening_problems(plan: WritingPlan) -> list[Problem]:
    """Errors by field in a plan that is valid as a draft but cannot be opened."""
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
    defaults = {"arms": ["control"], "target": 1, "constraint": "free"} if kind == "constraint" else {}
    options = OPTIONS | defaults | reader.options(OPTION_RULES)
    options["min_gain"], options["instruction"] = float(options["min_gain"]), options["instruction"].strip()
    if options["constraint"] == "better-than-original" and not options["confirmations"]:
        options["confirmations"] = 1
    _fit(reader, kind, options)
    return options


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
        reader.say("options.constraint", OPTION_RULES["constraint"].explain(None))
