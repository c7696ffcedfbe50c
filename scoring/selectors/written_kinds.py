"""Texts that people wrote under constraints, by the kind of ending that each constraint collects, beside the outputs of
machines for the same items: what the robustness report reads (EVALUATORS 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotation.allocation.writing_plan import CONSTRAINTS
from annotation.models import Item, Output, Reference, System, WritingCampaign, WrittenReference
from evalapp.accounts.models import Project

if TYPE_CHECKING:
    from scoring.ml import Record

#: In the order of the report.
KINDS = {
    "MGE": "outputs of machines",
    "HWE": "written freely",
    "LDHWE": "written without the original's words",
    "HWEBQ": "better than the original, as others confirmed",
    "AE": "minimally edited to be wrong",
}


def texts_by_kind(project: Project) -> dict[str, list[Record]]:
    """Every text that stands in the set of a campaign under a constraint, and machines' outputs for the same items.
    The only reference of each is the item's original: its first in the set that the campaign began from. Texts for an
    item without one are left out."""
    written = (
        WrittenReference.objects.filter(
            campaign__project=project, campaign__kind=WritingCampaign.Kind.CONSTRAINT,
            state=WrittenReference.State.SHOWN,
        )
        .order_by("pk").values_list("unit__item", "campaign__start_set", "campaign__options__constraint", "text")
    )  # fmt: skip
    rows = list(written)
    items = Item.objects.in_bulk({item for item, *_ in rows})
    originals = _originals({(item, start) for item, start, *_ in rows})
    found: dict[str, list[Record]] = {kind: [] for kind in KINDS}
    first: dict[int, str] = {}
    for item, start, constraint, text in rows:
        original = originals.get((item, start))
        if original is not None:
            first.setdefault(item, original)
            found[CONSTRAINTS[constraint]].append(_record(items[item], text, original))
    machines = Output.objects.filter(item__in=first, system__kind=System.Kind.MACHINE).order_by("pk")
    for item, system, text in machines.values_list("item", "system__name", "text"):
        found["MGE"].append(_record(items[item], text, first[item], system))
    return found


def _originals(places: set[tuple[int, int | None]]) -> dict[tuple[int, int], str]:
    rows = Reference.objects.filter(item__in={item for item, _ in places}, set__in={start for _, start in places})
    found: dict[tuple[int, int], str] = {}
    for item, start, text in rows.order_by("position").values_list("item", "set", "text"):
        found.setdefault((item, start), text)
    return found


def _record(item: Item, text: str, original: str, system: str = "") -> Record:
    from scoring.ml import Record

    context = tuple(map(str, item.context))
    return Record(text, (original,), context, item.source, item.key, system, group=item.group)
