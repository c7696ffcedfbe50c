"""Asking for automatic annotations, and storing the sets they made. Choosing itself is a pipeline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from annotation.models import Item, Reference, ReferenceSet, System
from annotation.models.data import ORIGINAL
from annotation.parsers.kinds import RESERVED_SETS
from annotation.services.bulk import insert_rows
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.models import Run
from evalapp.common.params import param, seed_param, value_faults
from evalapp.common.queue import enqueue_run

from ..models import AnnotationTrace, Evaluator
from ..selectors.candidates import CORPUS, OUTPUTS, WITHHELD, check_origin, parse_origin
from ..selectors.inputs import get_reference_set
from ..selectors.training import find_trained

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
STARTS = {"one": "one of them, drawn by the seed", "all": "all of them"}
PREVIEW_ITEMS = 5
MOST_REFERENCES, MOST_CANDIDATES = 200, 1000
CONTROLS = ("raw", "random")


@dataclass(frozen=True)
class AnnotateWishes:
    """What somebody wants annotated. `into` may be empty in a preview only."""

    evaluator: str = param(help="A trained ream, which chooses.", needed="Name the trained evaluator that chooses.")
    into: str = param("", help="Name of the new reference set; a preview needs none.")
    mix: str = param("", help="A second trained ream: the new set is the union of what both choose.")
    candidates: str = param(WITHHELD, help="`corpus:NAME`, `outputs`, or `withheld` (the item's further references).")
    references: str = param(ORIGINAL, help="The set whose references an item begins with.")
    start: str = param("one", help="Begin with one of them, drawn by the seed, or with all.", choices=STARTS)
    max: int = param(10, help="At most so many references, the first included.", low=1, high=MOST_REFERENCES)
    min_gain: float = param(0.0, help="Take only what adds more than this to the reliability.", low=0, high=2)
    greedy: bool = param(False, help="Compare all candidates each time; otherwise take the first that helps.")
    seed: int = seed_param()
    per_item: int = param(100, help="At most so many candidates for an item.", low=1, high=MOST_CANDIDATES)
    turns: int | None = param(None, help="Last turns of the context that a corpus is searched for; null: all.", low=1)
    systems: tuple[str, ...] = param((), help="Candidates from outputs: of these systems only.")
    items: tuple[str, ...] = param((), help="Only the items of these ids.")
    sample: int | None = param(None, help="At most so many items, drawn by the seed; null: all.", low=1)
    controls: bool = param(
        False, help="Also write NAME-raw (what each item begins with) and NAME-random (as many, drawn at random)."
    )


def start_annotation(*, project: Project, user: Any = None, wishes: AnnotateWishes, send: bool = True) -> Run:
    """Queue an annotation. The same request joins the run that is already there."""
    params = _checked(project, wishes)
    for run in _under_way(project):
        if run.params == params:
            return run
    names = names_made(wishes.into, wishes.controls)
    for name in names:
        check_name(project, name)
    title = f"Annotate {wishes.into} with {wishes.evaluator}" + (f" and {wishes.mix}" if wishes.mix else "")
    return enqueue_run(kind="annotate", project=project, user=user, params=params, title=title, send=send, queue="gpu")


def start_preview(*, project: Project, user: Any = None, wishes: AnnotateWishes, send: bool = True) -> Run:
    """Queue a trial on five of the items; its result has every step, and nothing is stored."""
    if wishes.into:
        for name in names_made(wishes.into, wishes.controls):
            check_name(project, name)
    params = _checked(project, wishes)
    title = f"Preview of annotating with {wishes.evaluator}"
    return enqueue_run(
        kind="annotate-preview", project=project, user=user, params=params, title=title, send=send, queue="gpu"
    )


def names_made(into: str, controls: bool) -> list[str]:
    """The names of the sets that an annotation writes."""
    return [into, *(f"{into}-{name}" for name in CONTROLS if controls)]


def _under_way(project: Project) -> list[Run]:
    rows = Run.objects.filter(project=project, kind="annotate", state__in=Run.ACTIVE, cancel_requested=False)
    return list(rows.order_by("pk"))


def check_name(project: Project, name: str) -> None:
    """A name that a new set can have: well-formed, free, and wanted by no run under way."""
    if name in RESERVED_SETS:
        text = f"“{name}” is the address of a page, so it cannot name a reference set. Choose another name."
        raise BadInput(text, faults=[Fault(text, field="into")])
    if not NAME.fullmatch(name):
        text = f"“{name}” cannot name a reference set: use small letters, digits and hyphens, at most 63."
        raise BadInput(text, faults=[Fault(text, field="into")])
    wanted = {
        made for run in _under_way(project) for made in names_made(run.params["into"], bool(run.params["controls"]))
    }
    if name == ORIGINAL or name in wanted or ReferenceSet.objects.filter(project=project, name=name).exists():
        text = f"There is a reference set “{name}” already, and none is overwritten. Choose another name, or delete it."
        raise Conflict(text, faults=[Fault(text, field="into")])


def _checked(project: Project, wishes: AnnotateWishes) -> dict[str, Any]:
    """The parameters of the run. Every wish that cannot be met is a fault with its field."""
    faults: list[Fault] = []

    def fault(field: str, text: str) -> None:
        faults.append(Fault(text, field=field))

    for field in ("evaluator", "mix"):
        slug = getattr(wishes, field)
        if slug and (wrong := _why_not(find_trained(project, slug))):
            fault(field, wrong)
    if wishes.mix and wishes.mix == wishes.evaluator:
        fault("mix", "Name another evaluator than the first: the mix is the union of what two choose.")
    origin = parse_origin(wishes.candidates)
    check_origin(project, origin)
    get_reference_set(project, wishes.references)
    faults += value_faults(wishes)
    if wishes.start == "all" and origin.kind == WITHHELD:
        fault("start", "Withheld candidates are the item's further references: start with one of them.")
    if wishes.turns is not None and origin.kind != CORPUS:
        fault("turns", "turns is for candidates from a corpus only.")
    if wishes.systems and origin.kind != OUTPUTS:
        fault("systems", "systems is for candidates from outputs only.")
    faults += _unknown(project, "item", Item.objects.filter(project=project), "key", wishes.items)
    faults += _unknown(project, "system", System.objects.filter(project=project), "name", wishes.systems)
    if not Item.objects.filter(project=project).exists():
        fault("items", f"{project.slug} has no items yet. Upload some first.")
    if faults:
        raise BadInput(" ".join(found.message for found in faults), faults=faults)
    return {
        **{name: getattr(wishes, name) for name in AnnotateWishes.__dataclass_fields__},
        "candidates": str(origin),
        "min_gain": float(wishes.min_gain),
        "items": sorted(set(wishes.items)),
        "systems": sorted(set(wishes.systems)),
    }


def _why_not(evaluator: Evaluator) -> str:
    if evaluator.name != "ream":
        return f"{evaluator.slug} was trained as {evaluator.name}; only ream says how reliable references are."
    return ""


def _unknown(project: Project, noun: str, rows: QuerySet[Any], column: str, names: tuple[str, ...]) -> list[Fault]:
    if not names:
        return []
    there = set(rows.filter(**{f"{column}__in": names}).values_list(column, flat=True))
    missing = [name for name in names if name not in there]
    if not missing:
        return []
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return [Fault(f"{project.slug} has no {noun} “{missing[0]}”{more}.", field=f"{noun}s")]


def wishes_of(params: Mapping[str, Any]) -> AnnotateWishes:
    """What a run was asked for."""
    return AnnotateWishes(**{**params, "systems": tuple(params["systems"]), "items": tuple(params["items"])})


# ---- storing ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NewSet:
    """A set to be stored: `references` are (item, position, text, meta)."""

    name: str
    meta: dict[str, Any]
    references: Iterable[tuple[int, int, str, dict[str, Any]]]
    #: (item, before, after, in_training, steps)
    traces: Iterable[tuple[int, float | None, float | None, bool, list[dict[str, Any]]]] = ()


def store_reference_sets(*, project: Project, actor: Any = None, sets: Iterable[NewSet]) -> list[ReferenceSet]:
    """All of them or none. A name that was taken meanwhile is a `Conflict`; nothing is overwritten."""
    made = []
    with transaction.atomic():
        for new in sets:
            try:
                with transaction.atomic():
                    row = ReferenceSet.objects.create(project=project, name=new.name, meta=new.meta)
            except IntegrityError as error:
                raise _taken(new.name) from error
            insert_rows(
                Reference, ("set_id", "item_id", "position", "text", "meta"),
                ((row.pk, item, at, text, _as_json(meta)) for item, at, text, meta in new.references),
            )  # fmt: skip
            insert_rows(
                AnnotationTrace, ("set_id", "item_id", "before", "after", "in_training", "steps"),
                (
                    (row.pk, item, before, after, seen, _as_json(steps))
                    for item, before, after, seen, steps in new.traces
                ),
            )  # fmt: skip
            audit.record(verb="references.stored", project=project, actor=actor, object=row, **_told(new.meta))
            made.append(row)
    return made


def make_sure_of_names(project: Project, names: Iterable[str]) -> None:
    """Raises `Conflict` where one is taken: a run that had failed holds no name until it is retried, and should say so
    before it chooses and not after."""
    there = ReferenceSet.objects.filter(project=project, name__in=list(names)).order_by("name").first()
    if there is not None:
        raise _taken(there.name)


def _taken(name: str) -> Conflict:
    return Conflict(
        f"There is a reference set “{name}” by now. Delete it, then retry this run; or annotate under another name."
    )


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _told(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What of a set's description goes into the audit."""
    return {name: meta[name] for name in ("kind", "run", "evaluator", "mix", "of") if meta.get(name)}
