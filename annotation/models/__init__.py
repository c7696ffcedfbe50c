"""Rows of the annotation room: what is judged (data), what judging is (campaigns), what was uploaded."""

from .campaigns import (
    Assignment,
    Campaign,
    CampaignAspect,
    CampaignMember,
    ItemFlag,
    Judgement,
    Slot,
    Unit,
)
from .data import (
    Aspect,
    Comparison,
    CorpusPair,
    Dialogue,
    Item,
    Output,
    Rating,
    Reference,
    ReferenceSet,
    System,
)
from .kept import TextBlock
from .uploads import Upload, UploadChange, UploadFault

__all__ = [
    "Aspect",
    "Assignment",
    "Campaign",
    "CampaignAspect",
    "CampaignMember",
    "Comparison",
    "CorpusPair",
    "Dialogue",
    "Item",
    "ItemFlag",
    "Judgement",
    "Output",
    "Rating",
    "Reference",
    "ReferenceSet",
    "Slot",
    "System",
    "TextBlock",
    "Unit",
    "Upload",
    "UploadChange",
    "UploadFault",
]
