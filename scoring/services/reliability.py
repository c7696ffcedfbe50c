"""How reliable a set of references is by a trained `ream`: for the check when a text is handed in. What is down is a
note, never an error: people can write on. Writes nothing."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from annotation.models import Item, UploadChange
from annotation.services.hooks import Reliability
from evalapp.accounts.models import Project
from evalapp.common.errors import EvalappError, Unavailable

from ..live.asking import ask_live
from ..models import Evaluator
from ..selectors.training import list_trained

REAM = "ream"
NOTHING = "Score not available"


def choices_for(*, project: Project) -> list[tuple[str, str]]:
    """(slug, label) of what can rate sets of references here, newest first."""
    rows = list_trained(project).filter(name=REAM, state=Evaluator.State.READY).values_list("slug", "created_at")
    return [(slug, f"{slug} (trained {at:%Y-%m-%d})") for slug, at in rows]


def predict_reliability(
    *, project: Project, evaluator: str, item: Item, sets: list[tuple[str, ...]], timeout: float | None = None
) -> Reliability:
    """The predicted reliability of each set; None and a note when there is no answer within `timeout` seconds (the
    setting LIVE_TIMEOUT_MS), or no such evaluator."""
    nothing = (None,) * len(sets)
    try:
        asked = writing_request(project, evaluator, item)
        found = ask_live({**asked, "kind": "sets", "sets": [list(texts) for texts in sets]}, timeout=timeout)
    except EvalappError as error:
        return Reliability(nothing, note=note_of(error))
    return Reliability(tuple(found["values"]), found["signature"])


def writing_request(project: Project, slug: str, item: Item) -> dict[str, Any]:
    """Which evaluator, and the item as it is read in a training; `is_own`: the evaluator was trained here, where the
    item and those `beside` it in its group go by these names. Raises `Unavailable` with the way out."""
    # Of its record, which is long, no more than this: it is asked for by every key that is pressed.
    rows = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.TRAINED, slug=slug)
    rows = rows.only("slug", "name", "folder", "state", "damage").annotate(choice=F("record__choice"))
    found = rows.first() if slug else None
    if found is None:
        there = ", ".join(name for name, _ in choices_for(project=project))
        how = f"There are: {there}" if there else "Train one under Evaluators: ream"
        raise Unavailable(f"no evaluator “{slug}” was trained here. {how}." if slug else f"none is chosen. {how}.")
    if found.name != REAM:
        raise Unavailable(f"{slug} is a trained {found.name}; only {REAM} rates sets of references.")
    if found.state == Evaluator.State.DAMAGED:
        raise Unavailable(f"{slug} cannot be used: {found.damage}")
    context = [str(turn) for turn in item.context]
    return {
        "source": {"folder": found.folder, "slug": found.slug},
        "options": {},
        "item": {
            "context": context, "source": item.source, "key": item.key, "group": item.group,
            "is_own": bool(found.choice), "beside": _changed_beside(item) if found.choice else [],
        },
    }  # fmt: skip


def _changed_beside(item: Item) -> list[str]:
    """Other items of its group that an upload has changed. Any of them may have come there out of a group that the
    evaluator learned from, and what shares a group with such a one is not new to it."""
    changed = UploadChange.objects.filter(upload__project=item.project_id, table="items")
    if not changed.exists():
        return []
    others = Item.objects.filter(project=item.project_id, group=item.group, pk__in=changed.values("row"))
    return list(others.exclude(pk=item.pk).order_by("order_key").values_list("key", flat=True))


def note_of(error: EvalappError) -> str:
    return f"{NOTHING}: {error.detail[:1].lower()}{error.detail[1:]}"
