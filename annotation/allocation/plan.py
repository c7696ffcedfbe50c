"""The plan of a campaign as people write it (a page, the API, a JSON file): its shape, defaults and mistakes. Names
are not looked up here.

    {"slug": "naturalness", "name": "Naturalness of descriptions", "kind": "likert",
     "aspects": [{"name": "naturalness", "question": "How natural is it?", "low": 1, "high": 6,
                  "labels": {"1": "awkward", "6": "native"}}],
     "overlap": 3, "max_per_annotator": 40, "lease_minutes": 30, "seed": 13, "guidelines": "Markdown",
     "items": "all" | {"sample": 40, "seed": 7} | {"keys": ["i1"]} | {"groups": ["g1"]} | {"search": "hotel"},
     "systems": ["a", {"system": "b", "step": 900}], "pairs": 500, "steps": "all" | "last",
     "options": {"control_rate": 0.1, "repeat_share": 0.05, "answer_on_key": true},
     "practice": [{"item": "i1", "system": "a", "expected": {"naturalness": [1, 2]}, "why": "Words are missing."}],
     "controls": [{"item": "i2", "system": "shuffled", "expected": {"naturalness": [1, 3]}}]}

Further members of `items` are values in the items' meta: {"sample": 8, "domain": "hotels"}. A practice or control
unit of a comparison names `system_b` too (or both as `systems`); of a Turing campaign, optionally, the position of
the `reference`.

With the option `adaptive` a comparison campaign begins the next pair of systems where it tells most about the ranking
(`adaptive_goal`: `ranking`, or `best` for its first place); at least `adaptive_floor` of the choices are random, and
every judgement keeps the chance with which its pair was taken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .answers import AspectForm, Form, Problem, check_expected
from .plan_reading import Reader, slugify

KINDS = ("likert", "pairwise", "turing")
OPTIONS: dict[str, bool | int | float | str] = {
    "answer_on_key": False,
    "allow_note": True,
    "allow_skip": True,
    "allow_revise": True,
    "control_rate": 0.1,
    "repeat_share": 0.0,
    "repeat_gap": 10,
    "adaptive": False,
    "adaptive_goal": "ranking",
    "adaptive_floor": 0.2,
}
ADAPTIVE_GOALS = ("ranking", "best")
#: Less chance than this of a random pair would make some judgements count twenty times as much as others.
LEAST_FLOOR = 0.05
#: Options the browser needs; the others would tell which units are controls and repeats.
SHOWN_OPTIONS = ("answer_on_key", "allow_note", "allow_skip", "allow_revise")
_FIELDS = {
    "slug", "name", "kind", "aspects", "overlap", "max_per_annotator", "lease_minutes", "seed", "guidelines",
    "items", "systems", "pairs", "steps", "options", "practice", "controls",
}  # fmt: skip
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


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
class Selection:
    """Which units are made when the campaign opens. `systems`: (name, step), step None for any; empty: all."""

    items: dict[str, Any] = field(default_factory=dict)
    systems: tuple[tuple[str, int | None], ...] = ()
    pairs: int | None = None
    steps: str = "all"

    def as_dict(self) -> dict[str, Any]:
        systems = [name if step is None else {"system": name, "step": step} for name, step in self.systems]
        return {"items": self.items, "systems": systems, "pairs": self.pairs, "steps": self.steps}


@dataclass(frozen=True)
class Plan:
    name: str
    slug: str
    kind: str
    aspects: tuple[AspectForm, ...]
    overlap: int
    lease_minutes: int
    max_per_annotator: int | None
    seed: int
    guidelines: str
    selection: Selection
    options: dict[str, Any]
    practice: tuple[Check, ...]
    controls: tuple[Check, ...]


def read_plan(raw: Any) -> tuple[Plan | None, list[Problem]]:
    """The plan with its defaults, or None and what is wrong by field."""
    if not isinstance(raw, Mapping):
        return None, [("", "A plan is an object with at least name, kind and aspects.")]
    reader = Reader(raw)
    reader.refuse_others(_FIELDS)
    name = reader.name("name", limit=200)
    if not name:
        reader.say("name", "Give the campaign a name; annotators see it.")
    slug = reader.text("slug", limit=63) or slugify(name)
    if name and not _SLUG.fullmatch(slug):
        reader.say("slug", "Use a-z, 0-9 and hyphens, at most 63 characters.")
    kind = raw.get("kind")
    if kind not in KINDS:
        reader.say("kind", f"Use one of: {', '.join(KINDS)}.")
        kind = "likert"
    aspects = _aspects(reader, kind)
    form = Form(kind, aspects)
    plan = Plan(
        name=name,
        slug=slug,
        kind=kind,
        aspects=aspects,
        overlap=reader.whole("overlap", 1, 1, 100),
        lease_minutes=reader.whole("lease_minutes", 30, 1, 1440),
        max_per_annotator=reader.whole_or_none("max_per_annotator", 1, 10_000_000),
        seed=reader.whole("seed", 13, 0, 2**31 - 1),
        guidelines=reader.text("guidelines", limit=100_000),
        selection=_selection(reader, kind),
        options=_options(reader, kind),
        practice=_checks(reader, "practice", form),
        controls=_checks(reader, "controls", form),
    )
    return (None if reader.problems else plan), reader.problems


def _aspects(reader: Reader, kind: str) -> tuple[AspectForm, ...]:
    rows = reader.raw.get("aspects")
    if isinstance(rows, (list, tuple)) and rows:
        found = [_aspect(reader, row, index, kind) for index, row in enumerate(rows)]
    else:
        reader.say("aspects", "Name at least one aspect: what is asked about each text.")
        return ()
    names = [aspect.name for aspect in found if aspect]
    if len(set(names)) < len(names):
        reader.say("aspects", "An aspect is named twice.")
    return tuple(aspect for aspect in found if aspect)


def _aspect(reader: Reader, row: Any, index: int, kind: str) -> AspectForm | None:
    where = f"aspects[{index}]"
    if isinstance(row, str):
        row = {"name": row}
    if not isinstance(row, Mapping) or not isinstance(row.get("name"), str) or not row["name"].strip():
        reader.say(where, 'An aspect is an object with a name: {"name": "naturalness", "question": "..."}.')
        return None
    for key in row:
        if key not in {"name", "question", "low", "high", "min", "max", "step", "labels"}:
            reader.say(f"{where}.{key}", "An aspect has name, question, low, high, step and labels.")
    name = row["name"].strip()[:100]
    question = str(row.get("question") or "").strip()[:300]
    reader.check_name(f"{where}.name", name)
    if kind != "likert":
        return AspectForm(name, question or "Which one is better?", step=None)
    low, high, step = row.get("low", row.get("min", 1)), row.get("high", row.get("max", 5)), row.get("step", 1)
    for key, value in (("low", low), ("high", high)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            reader.say(f"{where}.{key}", "Use a number.")
            return None
    if not low < high:
        reader.say(f"{where}.high", "The highest value must be above the lowest.")
        return None
    if step is not None and (isinstance(step, bool) or not isinstance(step, (int, float)) or step <= 0):
        reader.say(f"{where}.step", "Use a number above 0, or null for a continuous scale.")
        return None
    labels = row.get("labels") or {}
    if isinstance(labels, list):
        labels = {f"{low + k * (step or 1):g}": text for k, text in enumerate(labels)}
    if not isinstance(labels, Mapping):
        reader.say(f"{where}.labels", 'Labels map values to words: {"1": "awkward", "6": "native"}.')
        labels = {}
    clean = {str(key): str(value) for key, value in labels.items()}
    return AspectForm(
        name, question or f"{name.capitalize()}?", float(low), float(high), None if step is None else float(step), clean
    )


def _options(reader: Reader, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = dict(OPTIONS)
    for name, value in reader.options().items():
        where = f"options.{name}"
        if name not in OPTIONS:
            reader.say(where, f"There is no such option. There are: {', '.join(OPTIONS)}.")
        elif isinstance(OPTIONS[name], bool):
            if not isinstance(value, bool):
                reader.say(where, "Use true or false.")
            found[name] = value
        elif name == "repeat_gap":
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10_000:
                reader.say(where, "Use a whole number from 0 to 10000.")
            found[name] = value
        elif name == "adaptive_goal":
            if value not in ADAPTIVE_GOALS:
                reader.say(where, f"Use one of: {', '.join(ADAPTIVE_GOALS)}.")
            found[name] = value
        elif name == "adaptive_floor":
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not LEAST_FLOOR <= value <= 1:
                reader.say(where, f"Use a share from {LEAST_FLOOR:g} to 1.")
            found[name] = value
        else:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 0.5:
                reader.say(where, "Use a share from 0 to 0.5.")
            found[name] = value
    if found["adaptive"] is True and kind != "pairwise":
        reader.say("options.adaptive", "Only a comparison of two outputs chooses pairs.")
    return found


def _selection(reader: Reader, kind: str) -> Selection:
    items, systems = reader.items(), _systems(reader)
    steps = reader.raw.get("steps") or ("all" if kind == "likert" else "last")
    if steps not in ("all", "last"):
        reader.say("steps", "Use all or last: every training step of a system, or its latest.")
        steps = "all"
    pairs = reader.raw.get("pairs")
    if pairs == "all":
        pairs = None
    if pairs is not None and kind != "pairwise":
        reader.say("pairs", "Only a pairwise campaign has pairs.")
    elif pairs is not None and (isinstance(pairs, bool) or not isinstance(pairs, int) or pairs < 1):
        reader.say("pairs", "Use a whole number above 0, or leave it out for all pairs.")
        pairs = None
    return Selection(items, systems, pairs, steps)


def _systems(reader: Reader) -> tuple[tuple[str, int | None], ...]:
    rows = reader.raw.get("systems") or []
    if rows == "all":
        return ()
    if not isinstance(rows, (list, tuple)):
        reader.say("systems", "Use a list of names of systems; empty means all.")
        return ()
    found = [_system(row) for row in rows]
    for index, row in enumerate(found):
        if row is None:
            reader.say(f"systems[{index}]", 'Use a name, or {"system": name, "step": number}.')
    return tuple(row for row in found if row)


def _system(row: Any) -> tuple[str, int | None] | None:
    """A system as a name or with its step; None when it is neither."""
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
        reader.say(name, "Use a list.")
        return ()
    found: list[Check] = []
    for index, row in enumerate(rows):
        where = f"{name}[{index}]"
        if not isinstance(row, Mapping) or not row.get("item"):
            reader.say(where, "Name the item and the system whose output is shown.")
            continue
        sides = row.get("systems") or [
            {"system": row.get("system") or row.get("system_a"), "step": row.get("step")},
            *([{"system": row["system_b"], "step": row.get("step_b")}] if row.get("system_b") else []),
        ]
        named = [_system(side) for side in sides] if isinstance(sides, list) else []
        wanted = 2 if form.kind == "pairwise" else 1
        if len(named) != wanted or None in named:
            reader.say(where, f"Name {'two systems' if wanted == 2 else 'the system'} whose output is shown.")
            continue
        reader.problems += check_expected(form, row.get("expected"), f"{where}.expected")
        pairs = [side for side in named if side]
        found.append(
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
    return tuple(found)
