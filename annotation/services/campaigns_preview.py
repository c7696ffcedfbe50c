"""One text of a campaign's plan, as its judging page would show it: for those who plan it, before it is opened."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from annotation.models import Campaign, Output, Reference
from annotation.models.data import ORIGINAL
from evalapp.names import natural_key

from .campaigns_units import selected_outputs


def preview_assignment(campaign: Campaign, number: int = 0) -> dict[str, Any] | None:
    """The text at place `number`, in the order of the data; None where there is none."""
    first = (
        selected_outputs(campaign).select_related("item").order_by("item_id", "system_id", "pk")[number : number + 1]
    )
    output = next(iter(first), None)
    if output is None:
        return None
    texts = [output.text]
    if campaign.kind == Campaign.Kind.PAIRWISE:
        other: Any = (
            selected_outputs(campaign)
            .filter(item=output.item_id)
            .exclude(system=output.system_id)
            .order_by("pk")
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


def texts_of_item(campaign: Campaign, item: Any) -> tuple[list[Output], list[Reference]]:
    """Outputs of one item of the project (for choosing practice and controls), and its original references."""
    outputs = list(
        Output.objects.filter(project_id=campaign.project_id, item=item)
        .select_related("system")
        .order_by(F("step").asc(nulls_first=True))
    )
    outputs.sort(key=lambda output: natural_key(output.system.name))
    if campaign.kind != Campaign.Kind.TURING:
        return outputs, []
    return outputs, list(Reference.objects.filter(item=item, set__name=ORIGINAL).order_by("position"))
