"""Start automatic selections of references, and store the sets that they make. The selection is a pipeline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

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

from ..models import SelectionTrace
from ..selectors.candidates import CORPUS, OUTPUTS, WITHHELD, check_origin, parse_origin
from ..selectors.inputs import get_reference_set
from ..selectors.training import find_trained, name_reference_judges

KIND = "select-references"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
STARTS = {"one": gettext_lazy("one of them, drawn by the seed"), "all": gettext_lazy("all of them")}
PREVIEW_ITEMS = 5
MOST_REFERENCES, MOST_CANDIDATES = 200, 1000
CONTROLS = ("raw", "random")


@dataclass(frozen=True)
class ReferenceSelection:
    """Options of a selection of references. Only a preview may leave `into` empty."""

    evaluator: str = param(help="Trained ream that selects.", needed=gettext_noop("Name the evaluator that selects."))
    into: str = param("", help="Name of the new reference set; not needed for a preview.")
    mix: str = param("", help="Second trained ream: the new set is the union of both selections.")
    candidates: str = param(WITHHELD, help="`corpus:NAME`, `outputs`, or `withheld` (the item's further references).")
    references: str = param(ORIGINAL, help="Initial reference set.")
    start: str = param("one", help="Initial references of an item: one, drawn by the seed, or all.", choices=STARTS)
    max: int = param(
        10, help="Maximum number of references per item, including the first.", low=1, high=MOST_REFERENCES
    )
    min_gain: float = param(
        0.0, help="A candidate is accepted if it adds more than this to the reliability.", low=0, high=2
    )
    greedy: bool = param(
        False, help="Evaluate all candidates in each step and add the best; otherwise the first that helps."
    )
    seed: int = seed_param()
    per_item: int = param(100, help="Maximum number of candidates per item.", low=1, high=MOST_CANDIDATES)
    turns: int | None = param(None, help="Search a corpus with this number of last turns; null: all.", low=1)
    systems: tuple[str, ...] = param((), help="Systems whose outputs are candidates; empty: all.")
    items: tuple[str, ...] = param((), help="Keys of the items to process; empty: all.")
    sample: int | None = param(None, help="Number of items, drawn by the seed; null: all.", low=1)
    controls: bool = param(
        False, help="Also write NAME-raw (initial references) and NAME-random (the same number, drawn at random)."
    )


def start_reference_selection(
    *, project: Project, user: Any = None, options: ReferenceSelection, send: bool = True
) -> Run:
    """Queue a selection of references, or return the active run of the same request."""
    params = _check_options(project, options)
    for run in _active_runs(project):
        if run.params == params:
            return run
    for name in list_set_names(options.into, options.controls):
        check_name(project, name)
    title = gettext_noop("Select references for %(name)s with %(evaluators)s")
    title %= {"name": options.into, "evaluators": " + ".join(filter(None, (options.evaluator, options.mix)))}
    return enqueue_run(kind=KIND, project=project, user=user, params=params, title=title, send=send)


def start_preview(*, project: Project, user: Any = None, options: ReferenceSelection, send: bool = True) -> Run:
    """Queue a trial on a few items; its result has every step, and nothing is stored."""
    if options.into:
        for name in list_set_names(options.into, options.controls):
            check_name(project, name)
    params = _check_options(project, options)
    title = gettext_noop("Preview of references selected by %(evaluator)s") % {"evaluator": options.evaluator}
    return enqueue_run(kind="preview-references", project=project, user=user, params=params, title=title, send=send)


def list_set_names(into: str, controls: bool) -> list[str]:
    """Return the names of the sets that a selection writes."""
    return [into, *(f"{into}-{name}" for name in CONTROLS if controls)]


def _active_runs(project: Project) -> list[Run]:
    rows = Run.objects.filter(project=project, kind=KIND, state__in=Run.ACTIVE, cancel_requested=False)
    return list(rows.order_by("pk"))


def check_name(project: Project, name: str) -> None:
    """Check that a new set can have this name: it is valid, and neither a set nor an active run has it."""
    if name in RESERVED_SETS:
        text = _("“%(name)s” is the address of a page and cannot name a reference set. Choose another name.")
        raise BadInput.for_field("into", text % {"name": name})
    if not NAME.fullmatch(name):
        text = _("“%(name)s” cannot name a reference set: use lower-case letters, digits and hyphens, at most 63.")
        raise BadInput.for_field("into", text % {"name": name})
    runs = (run.params for run in _active_runs(project))
    pending = {made for params in runs for made in list_set_names(params["into"], bool(params["controls"]))}
    if name == ORIGINAL or name in pending or ReferenceSet.objects.filter(project=project, name=name).exists():
        text = _("The reference set “%(name)s” exists, and none is overwritten. Choose another name, or delete it.")
        raise Conflict.for_field("into", text % {"name": name})


def find_unsuited(project: Project, **slugs: str) -> list[Fault]:
    """Return a fault for each trained evaluator, given by field, that cannot predict the reliability of references."""
    faults, fitting = [], name_reference_judges()
    for field, slug in slugs.items():
        method = find_trained(project, slug).name if slug else ""
        if method and method not in fitting:
            text = _("%(name)s was trained as %(method)s; only ream predicts the reliability of references.")
            faults.append(Fault(text % {"name": slug, "method": method}, field=field))
    return faults


def _check_options(project: Project, options: ReferenceSelection) -> dict[str, Any]:
    """Return the parameters of the run. Raises `BadInput` with a fault for each invalid option."""
    faults = find_unsuited(project, evaluator=options.evaluator, mix=options.mix)
    if options.mix and options.mix == options.evaluator:
        faults.append(Fault(_("Choose a second evaluator that differs from the first."), field="mix"))
    origin = parse_origin(options.candidates)
    check_origin(project, origin)
    get_reference_set(project, options.references)
    faults += value_faults(options)
    if options.start == "all" and origin.kind == WITHHELD:
        text = _("Withheld candidates are the item's further references: start with a single reference.")
        faults.append(Fault(text, field="start"))
    if options.turns is not None and origin.kind != CORPUS:
        faults.append(Fault(_("Only candidates from a corpus have turns."), field="turns"))
    if options.systems and origin.kind != OUTPUTS:
        faults.append(Fault(_("Only candidates from outputs have systems."), field="systems"))
    items = Item.objects.filter(project=project)
    if unknown := _list_unknown(items, "key", options.items):
        text = _("Unknown items in %(project)s: %(names)s.") % {"project": project.slug, "names": unknown}
        faults.append(Fault(text, field="items"))
    if unknown := _list_unknown(System.objects.filter(project=project), "name", options.systems):
        text = _("Unknown systems in %(project)s: %(names)s.") % {"project": project.slug, "names": unknown}
        faults.append(Fault(text, field="systems"))
    if not items.exists():
        text = _("%(project)s has no items yet. Upload some first.") % {"project": project.slug}
        faults.append(Fault(text, field="items"))
    if faults:
        raise BadInput.from_faults(faults)
    return {
        **vars(options),
        "candidates": str(origin),
        "min_gain": float(options.min_gain),
        "items": sorted(set(options.items)),
        "systems": sorted(set(options.systems)),
    }


def _list_unknown(rows: QuerySet[Any], column: str, names: Sequence[str]) -> str:
    known = set(rows.filter(**{f"{column}__in": names}).values_list(column, flat=True)) if names else set()
    unknown = [name for name in names if name not in known]
    return ", ".join(unknown[:3]) + (", …" if len(unknown) > 3 else "")


# ---- storing ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NewSet:
    """A set to store."""

    name: str
    meta: dict[str, Any]
    #: (item, position, text, meta)
    references: Iterable[tuple[int, int, str, dict[str, Any]]]
    #: (item, before, after, in_training, steps)
    traces: Iterable[tuple[int, float | None, float | None, bool, list[dict[str, Any]]]] = ()


def store_reference_sets(*, project: Project, actor: Any = None, sets: Iterable[NewSet]) -> list[ReferenceSet]:
    """Store all sets or none. Raises `Conflict` if a name was taken meanwhile."""
    made = []
    with transaction.atomic():
        for new in sets:
            try:
                with transaction.atomic():
                    row = ReferenceSet.objects.create(project=project, name=new.name, meta=new.meta)
            except IntegrityError as error:
                raise _name_conflict(new.name) from error
            references = ((row.pk, item, at, text, _as_json(meta)) for item, at, text, meta in new.references)
            insert_rows(Reference, ("set_id", "item_id", "position", "text", "meta"), references)
            traces = ((row.pk, *figures, _as_json(steps)) for *figures, steps in new.traces)
            insert_rows(SelectionTrace, ("set_id", "item_id", "before", "after", "in_training", "steps"), traces)
            facts = {key: new.meta[key] for key in ("kind", "run", "evaluator", "mix", "of") if new.meta.get(key)}
            audit.record(verb="references.stored", project=project, actor=actor, object=row, **facts)
            made.append(row)
    return made


def require_free_names(project: Project, names: Iterable[str]) -> None:
    """Raise `Conflict` if a name is taken. A failed run reserves no name, so a retry checks before its work."""
    existing = ReferenceSet.objects.filter(project=project, name__in=list(names)).order_by("name").first()
    if existing is not None:
        raise _name_conflict(existing.name)


def _name_conflict(name: str) -> Conflict:
    text = _(
        "The reference set “%(name)s” now exists. Delete it, then retry this run, or select references under another "
        "name."
    )
    return Conflict(text % {"name": name})


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
