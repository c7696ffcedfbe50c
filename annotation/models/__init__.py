"""Rows of the annotation room: what is judged (data), what judging is (campaigns), what was uploaded."""

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
from .uploads import Upload, UploadChange, UploadFault

__all__ = [
    "Aspect",
    "Comparison",
    "CorpusPair",
    "Dialogue",
    "Item",
    "Output",
    "Rating",
    "Reference",
    "ReferenceSet",
    "System",
    "Upload",
    "UploadChange",
    "UploadFault",
]
