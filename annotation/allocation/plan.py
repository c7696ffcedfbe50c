"""The plan of a judging campaign as people write it (on a page, in the API, in a JSON file): format, defaults and
validation. Names are not looked up here.

    {"slug": "naturalness", "name": "Naturalness of descriptions", "kind": "likert",
     "aspects": [{"name": "naturalness", "question": "How natural is it?", "low": 1, "high": 6,
                  "labels": {"1": "awkward", "6": "native"}}],
     "overlap": 3, "max_per_annotator": 40, "lease_minutes": 30, "seed": 13, "guidelines": "Markdown",
     "items": "all" | {"sample": 40, "seed": 7} | {"keys": ["i1"]} | {"groups": ["g1"]} | {"search": "hotel"},
     "systems": ["a", {"system": "b", "step": 900}], "pairs": 500, "steps": "all" | "last",
     "options": {"control_rate": 0.1, "repeat_share": 0.05, "answer_on_key": true},
     "practice": [{"item": "i1", "system": "a", "expected": {"naturalness": [1, 2]}, "why": "Words are missing."}],
     "controls": [{"item": "i2", "system": "shuffled", "expected": {"naturalness": [1, 3]}}]}

Other members of `items` are values in the items' meta: {"sample": 8, "domain": "hotels"}. A practice or control unit of
a comparison also has `system_b` (or both in `systems`); in a Turing campaign it can have the position of the
`reference`.

Instead of items and systems, a rating campaign may list its `outputs`, each with the `chance` with which it was drawn
(0: selected for a reason, so that estimates leave its ratings out). Ratings store the chance, and `chosen` says how the
outputs were selected: {"outputs": [{"item": "i1", "system": "a", "chance": 0.2}], "chosen": {"evaluator": "ridge"}}.

With the option `adaptive`, a comparison campaign selects the pair of systems that is most informative for the ranking
(`adaptive_goal`: `ranking`, or `best` for its first place). At least the share `adaptive_floor` of the pairs is random,
and every judgement stores the probability with which its pair was selected."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evalapp.languages import LANGUAGES
from evalapp.translation import gettext as _

from .answers import AspectForm, Form, Problem, check_expected
from .plan_reading import BasePlan, Option, Reader, get_defaults

KINDS = ("likert", "pairwise", "turing")
ADAPTIVE_GOALS = ("ranking", "best")
OPTION_RULES: dict[str, Option] = {
    "answer_on_key": Option(False),
    "allow_note": Option(True),
    "allow_skip": Option(True),
    "allow_revise": Option(True),
    # Whether annotators see how long they take; it is measured in any case.
    "show_clock": Option(True),
    # Of the pages for annotators who have not chosen one; empty for that of the browser.
    "language": Option("", choices=("", *LANGUAGES)),
    "control_rate": Option(0.1, 0, 0.5, type=float),
    "repeat_share": Option(0.0, 0, 0.5, type=float),
    "repeat_gap": Option(10, 0, 10_000, type=int),
    "adaptive": Option(False),
    "adaptive_goal": Option("ranking", choices=ADAPTIVE_GOALS),
    # A smaller share of random pairs would give some judgements more than twenty times the weight of others.
    "adaptive_floor": Option(0.2, 0.05, 1, type=float),
}
OPTIONS = get_defaults(OPTION_RULES)
#: Options for the browser; the others would reveal which units are controls and repeats.
SHOWN_OPTIONS = ("answer_on_key", "allow_note", "allow_skip", "allow_revise", "show_clock")
_FIELDS = {
    "slug",
    "name",
    "kind",
    "aspects",
    "overlap",
    "max_per_annotator",
    "lease_minutes",
    "seed",
    "guidelines",
    "items",
    "systems",
    "outputs",
    "chosen",
    "pairs",
    "steps",
    "options",
    "practice",
    "controls",
}
#: Outputs that a plan may list.
MOST_OUTPUTS = 10_000  # fmt: skip


@dataclass(frozen=True)
class Check:
    """A practice or control unit."""

    item: str
    system: str
    expected: dict[str, Any]
    why: str = ""
    system_b: str | None = None
    step: int | None = None
    step_b: int | None = None
    reference: int = 0


@dataclass(frozen=True)
class ListedOutput:
    """An output of a plan, and the chance with which it was drawn; None if that is not known."""

    item: str
    system: str
    step: int | None = None
    chance: float | None = None


@dataclass(frozen=True)
class Selection:
    """The units that are created when the campaign is opened. `systems`: (name, step), step None for any; empty:
    all. `outputs`: exactly these instead; `chosen`: how they were selected."""

    items: dict[str, Any] = field(default_factory=dict)
    systems: tuple[tuple[str, int | None], ...] = ()
    pairs: int | None = None
    steps: str = "all"
    outputs: tuple[ListedOutput, ...] = ()
    chosen: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        systems = [name if step is None else {"system": name, "step": step} for name, step in self.systems]
        plan = {"items": self.items, "systems": systems, "pairs": self.pairs, "steps": self.steps}
        if self.outputs:
            plan |= {"outputs": [asdict(row) for row in self.outputs], "chosen": self.chosen}
        return plan


@dataclass(frozen=True, kw_only=True)
class Plan(BasePlan):
    """The plan of a judging campaign."""

    aspects: tuple[AspectForm, ...]
    overlap: int
    selection: Selection
    practice: tuple[Check, ...]
    controls: tuple[Check, ...]


def read_plan(raw: Any) -> tuple[Plan | None, list[Problem]]:
    """The plan with its defaults, or None and the errors by field."""
    if not isinstance(raw, Mapping):
        return None, [("", _("A plan is an object with at least name, kind and aspects."))]
    reader = Reader(raw)
    reader.refuse_others(_FIELDS)
    base = reader.base(KINDS, raw.get("kind"), slug_length=63)
    kind = base["kind"]
    aspects = _aspects(reader, kind)
    form = Form(kind, aspects)
    plan = Plan(
        **base,
        aspects=aspects,
        overlap=reader.whole("overlap", 1, 1, 100),
        selection=_selection(reader, kind),
        options=_options(reader, kind),
        practice=_checks(reader, "practice", form),
        controls=_checks(reader, "controls", form),
    )
    return (None if reader.problems else plan), reader.problems


def _aspects(reader: Reader, kind: str) -> tuple[AspectForm, ...]:
    rows = reader.raw.get("aspects")
    if isinstance(rows, (list, tuple)) and rows:
        rows_read = [_aspect(reader, row, index, kind) for index, row in enumerate(rows)]
    else:
        reader.say("aspects", _("Name at least one aspect: what is asked about each text."))
        return ()
    names = [aspect.name for aspect in rows_read if aspect]
    if len(set(names)) < len(names):
        reader.say("aspects", _("An aspect is named twice."))
    return tuple(aspect for aspect in rows_read if aspect)


def _aspect(reader: Reader, row: Any, index: int, kind: str) -> AspectForm | None:
    where = f"aspects[{index}]"
    if isinstance(row, str):
        row = {"name": row}
    if not isinstance(row, Mapping) or not isinstance(row.get("name"), str) or not row["name"].strip():
        example = '{"name": "naturalness", "question": "..."}'
        reader.say(where, _("An aspect is an object with a name: %(example)s.", example=example))
        return None
    for key in row:
        if key not in {"name", "question", "low", "high", "min", "max", "step", "labels"}:
            reader.say(f"{where}.{key}", _("An aspect has name, question, low, high, step and labels."))
    name = row["name"].strip()[:100]
    question = str(row.get("question") or "").strip()[:300]
    reader.check_name(f"{where}.name", name)
    if kind != "likert":
        return AspectForm(name, question or _("Which one is better?"), step=None)
    low, high, step = row.get("low", row.get("min", 1)), row.get("high", row.get("max", 5)), row.get("step", 1)
    for key, value in (("low", low), ("high", high)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            reader.say(f"{where}.{key}", _("Use a number."))
            return None
    if not low < high:
        reader.say(f"{where}.high", _("The highest value must be above the lowest."))
        return None
    if step is not None and (isinstance(step, bool) or not isinstance(step, (int, float)) or step <= 0):
        reader.say(f"{where}.step", _("Use a number above 0, or null for a continuous scale."))
        return None
    labels = row.get("labels") or {}
    if isinstance(labels, list):
        labels = {f"{low + k * (step or 1):g}": text for k, text in enumerate(labels)}
    if not isinstance(labels, Mapping):
        example = '{"1": "awkward", "6": "native"}'
        reader.say(f"{where}.labels", _("Labels map values to words: %(example)s.", example=example))
        labels = {}
    clean = {str(key): str(value) for key, value in labels.items()}
    return AspectForm(
        name, question or f"{name.capitalize()}?", float(low), float(high), None if step is None else float(step), clean
    )


def _options(reader: Reader, kind: str) -> dict[str, Any]:
    options = OPTIONS | reader.options(OPTION_RULES)
    if options["adaptive"] and kind != "pairwise":
        reader.say("options.adaptive", _("Only a comparison of two outputs can select pairs adaptively."))
    return options


def _selection(reader: Reader, kind: str) -> Selection:
    items, systems = reader.items(), _systems(reader)
    steps = reader.raw.get("steps") or ("all" if kind == "likert" else "last")
    if steps not in ("all", "last"):
        reader.say("steps", _("Use all or last: every training step of a system, or its latest."))
        steps = "all"
    pairs = reader.raw.get("pairs")
    if pairs == "all":
        pairs = None
    if pairs is not None and kind != "pairwise":
        reader.say("pairs", _("Only a pairwise campaign has pairs."))
    elif pairs is not None and (isinstance(pairs, bool) or not isinstance(pairs, int) or pairs < 1):
        reader.say("pairs", _("Use a whole number above 0, or leave it out for all pairs."))
        pairs = None
    return Selection(items, systems, pairs, steps, *_outputs(reader, kind))


def _outputs(reader: Reader, kind: str) -> tuple[tuple[ListedOutput, ...], dict[str, Any]]:
    """The listed outputs, and how they were selected."""
    rows, chosen = reader.raw.get("outputs") or [], reader.raw.get("chosen") or {}
    if not rows:
        return (), {}
    if kind != "likert":
        reader.say("outputs", _("Only a rating campaign can list its outputs."))
    if reader.raw.get("items") not in (None, "all", {}) or reader.raw.get("systems"):
        reader.say("outputs", _("A plan lists outputs, or selects items and systems, not both."))
    if not isinstance(rows, (list, tuple)) or len(rows) > MOST_OUTPUTS:
        reader.say("outputs", _("Use a list of at most %(n)d outputs.", n=MOST_OUTPUTS))
        return (), {}
    if not isinstance(chosen, Mapping) or not all(isinstance(one, (str, int, float)) for one in chosen.values()):
        reader.say("chosen", _("Use an object of texts and numbers."))
        chosen = {}
    listed = [_output(row) for row in rows]
    for index, output in enumerate(listed):
        if output is None:
            example = '{"item": "i1", "system": "a", "chance": 0.2}'
            reader.say(f"outputs[{index}]", _("An output is %(example)s, its chance from 0 to 1.", example=example))
    known = [row for row in listed if row]
    if len({(row.item, row.system, row.step) for row in known}) < len(known):
        reader.say("outputs", _("An output is listed twice."))
    return tuple(known), dict(chosen)


def _output(row: Any) -> ListedOutput | None:
    if not isinstance(row, Mapping) or set(row) - {"item", "system", "step", "chance"}:
        return None
    item, system, step, chance = (row.get(name) for name in ("item", "system", "step", "chance"))
    is_number = isinstance(chance, (int, float)) and not isinstance(chance, bool)
    if chance is not None and not (is_number and 0 <= chance <= 1):
        return None
    if step is not None and (isinstance(step, bool) or not isinstance(step, int)):
        return None
    return ListedOutput(item, system, step, chance) if isinstance(item, str) and isinstance(system, str) else None


def _systems(reader: Reader) -> tuple[tuple[str, int | None], ...]:
    rows = reader.raw.get("systems") or []
    if rows == "all":
        return ()
    if not isinstance(rows, (list, tuple)):
        reader.say("systems", _("Use a list of names of systems; empty means all."))
        return ()
    systems = [_system(row) for row in rows]
    for index, row in enumerate(systems):
        if row is None:
            message = _("Use a name, or %(example)s.", example='{"system": name, "step": number}')
            reader.say(f"systems[{index}]", message)
    return tuple(row for row in systems if row)


def _system(row: Any) -> tuple[str, int | None] | None:
    """(name, step) of a system given by its name or with a step; None if it is neither."""
    if isinstance(row, str) and row:
        return row, None
    if isinstance(row, Mapping) and isinstance(row.get("system"), str) and not set(row) - {"system", "step"}:
        step = row.get("step")
        if step is None or (isinstance(step, int) and not isinstance(step, bool)):
            return row["system"], step
    return None


def _checks(reader: Reader, name: str, form: Form) -> tuple[Check, ...]:
    rows = reader.raw.get(name) or []
    if not isinstance(rows, (list, tuple)):
        reader.say(name, _("Use a list."))
        return ()
    checks: list[Check] = []
    for index, row in enumerate(rows):
        where = f"{name}[{index}]"
        if not isinstance(row, Mapping) or not row.get("item"):
            reader.say(where, _("Name the item and the system whose output is shown."))
            continue
        sides = row.get("systems") or [
            {"system": row.get("system") or row.get("system_a"), "step": row.get("step")},
            *([{"system": row["system_b"], "step": row.get("step_b")}] if row.get("system_b") else []),
        ]
        named = [_system(side) for side in sides] if isinstance(sides, list) else []
        wanted = 2 if form.kind == "pairwise" else 1
        if len(named) != wanted or None in named:
            two, one = _("Name the two systems whose outputs are shown."), _("Name the system whose output is shown.")
            reader.say(where, two if wanted == 2 else one)
            continue
        reader.problems += check_expected(form, row.get("expected"), f"{where}.expected")
        pairs = [side for side in named if side]
        checks.append(
            Check(
                item=str(row["item"]),
                system=pairs[0][0],
                step=pairs[0][1],
                system_b=pairs[1][0] if wanted == 2 else None,
                step_b=pairs[1][1] if wanted == 2 else None,
                expected=dict(row["expected"]) if isinstance(row.get("expected"), Mapping) else {},
                why=str(row.get("why") or ""),
                reference=row["reference"] if isinstance(row.get("reference"), int) else 0,
            )
        )
    return tuple(checks)
