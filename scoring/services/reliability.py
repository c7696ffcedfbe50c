"""Predict the reliability of references with a trained evaluator, for the check of submitted texts. Without an
available evaluator there is a note, never an error: writing continues."""

from __future__ import annotations

from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _

from annotation.models import Item, UploadChange
from annotation.services.hooks import Reliability
from evalapp.accounts.models import Project
from evalapp.common.errors import EvalappError, Unavailable

from ..live.asking import ask_live
from ..models import Evaluator
from ..selectors.training import list_reference_judges, name_reference_judges


def list_evaluators(*, project: Project) -> list[tuple[str, str]]:
    """Return (slug, label) of the evaluators that can predict reliability, newest first."""
    rows = list_reference_judges(project).filter(state=Evaluator.State.READY).values_list("slug", "created_at")
    return [(slug, _("%(name)s (trained %(day)s)") % {"name": slug, "day": f"{at:%Y-%m-%d}"}) for slug, at in rows]


def predict_reliability(
    *, project: Project, evaluator: str, item: Item, sets: list[tuple[str, ...]], timeout: float | None = None
) -> Reliability:
    """Return the predicted reliability of each set, or None and a note without an answer within `timeout` seconds.

    The default timeout is the setting LIVE_TIMEOUT_MS.
    """
    try:
        request = make_request(project, evaluator, item)
        answer = ask_live({**request, "kind": "sets", "sets": [list(texts) for texts in sets]}, timeout=timeout)
    except EvalappError as error:
        return Reliability((None,) * len(sets), note=describe_error(error))
    return Reliability(tuple(answer["values"]), answer["signature"])


def make_request(project: Project, slug: str, item: Item) -> dict[str, Any]:
    """Return evaluator and item for a live worker. Raises `Unavailable` if there is no such evaluator.

    `is_own`: the evaluator was trained in this project, so names of items and groups are the same. `beside`: items of
    the group that may have been in a training group.
    """
    # The record is large, and this is called for each key press.
    rows = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.TRAINED, slug=slug)
    rows = rows.only("slug", "name", "folder", "state", "damage").annotate(choice=F("record__choice"))
    row = rows.first() if slug else None
    if row is None:
        names = ", ".join(name for name, _label in list_evaluators(project=project))
        text = _("There is no evaluator “%(name)s”.") % {"name": slug} if slug else _("No evaluator is selected.")
        hint = _("Available: %(names)s") % {"names": names} if names else _("Train one under Evaluators: ream")
        raise Unavailable(f"{text} {hint}.")
    if row.name not in name_reference_judges():
        text = _("%(name)s was trained as %(method)s; only ream predicts the reliability of references.")
        raise Unavailable(text % {"name": slug, "method": row.name})
    if row.state == Evaluator.State.DAMAGED:
        raise Unavailable(_("%(name)s cannot be used: %(damage)s") % {"name": slug, "damage": row.damage})
    return {
        "source": {"folder": row.folder, "slug": row.slug},
        "options": {},
        "item": {
            "context": [str(turn) for turn in item.context], "source": item.source, "key": item.key,
            "group": item.group, "is_own": bool(row.choice),
            "beside": _list_changed_neighbours(item) if row.choice else [],
        },
    }  # fmt: skip


def _list_changed_neighbours(item: Item) -> list[str]:
    """Return other items of the group that an upload has changed: they may come from a group used in training."""
    changed = UploadChange.objects.filter(upload__project=item.project_id, table="items")
    if not changed.exists():
        return []
    others = Item.objects.filter(project=item.project_id, group=item.group, pk__in=changed.values("row"))
    return list(others.exclude(pk=item.pk).order_by("order_key").values_list("key", flat=True))


def describe_error(error: EvalappError) -> str:
    """Return the note for an error."""
    return _("Score not available: %(reason)s") % {"reason": error.detail[:1].lower() + error.detail[1:]}
