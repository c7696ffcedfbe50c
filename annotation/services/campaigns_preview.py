"""A text of a campaign's plan as the judging page would show it, before the campaign is opened."""

from typing import Any

from django.db.models import Exists, F, OuterRef

from annotation.models import Campaign, Item, Output, Reference
from annotation.models.data import ORIGINAL

from .campaigns_units import select_outputs


def preview_assignment(campaign: Campaign, number: int = 0) -> dict[str, Any] | None:
    """The text with this number, in natural order of items and systems; None if there is none."""
    outputs = select_outputs(campaign)
    items = Item.objects.filter(project=campaign.project_id).filter(Exists(outputs.filter(item=OuterRef("pk"))))
    # The first items have the first outputs, so only their outputs are sorted.
    near = outputs.filter(item__in=items.order_by("order_key").values("pk")[: number + 1]).select_related("item")
    step = F("step").asc(nulls_first=True)
    output = near.order_by("item__order_key", "system__order_key", step)[number : number + 1].first()
    if output is None:
        return None
    texts = [output.text]
    if campaign.kind == Campaign.Kind.PAIRWISE:
        other: Any = (
            outputs.filter(item=output.item_id)
            .exclude(system=output.system_id)
            .order_by("system__order_key", step)
            .first()
        )
        texts += [other.text] if other else []
    elif campaign.kind == Campaign.Kind.TURING:
        other = Reference.objects.filter(item=output.item_id, set__name=ORIGINAL).order_by("position").first()
        texts += [other.text] if other else []
    if campaign.kind != Campaign.Kind.LIKERT and len(texts) < 2:
        return None
    return {
        "public": "preview",
        "state": "open",
        "version": 0,
        "draft_version": 0,
        "draft": None,
        "is_practice": False,
        "number": number + 1,
        "context": output.item.context,
        "source": output.item.source,
        "texts": texts,
    }


def get_item_texts(campaign: Campaign, item: Any) -> tuple[list[Output], list[Reference]]:
    """Outputs and original references of an item, for selecting practice and control units."""
    outputs = list(
        Output.objects.filter(project_id=campaign.project_id, item=item)
        .select_related("system")
        .order_by("system__order_key", F("step").asc(nulls_first=True))
    )
    if campaign.kind != Campaign.Kind.TURING:
        return outputs, []
    return outputs, list(Reference.objects.filter(item=item, set__name=ORIGINAL).order_by("position"))
