"""Reads and writes the interchange format: bytes to checked plain rows, and rows to canonical bytes. Pure: no Django
and no database; pipelines check whether the keys in a row exist."""

from .faults import KEPT_FAULTS, Fault, Faults, Limits, StopReading
from .files import FileName, is_derived, name_file, open_plain, shorten_name
from .kinds import KINDS, check_dataset
from .rows import read_document, read_rows
from .writer import canonical, encode_cell, encode_document, encode_row, guard_cell

__all__ = [
    "KEPT_FAULTS",
    "KINDS",
    "Fault",
    "Faults",
    "FileName",
    "Limits",
    "StopReading",
    "canonical",
    "check_dataset",
    "encode_cell",
    "encode_document",
    "encode_row",
    "guard_cell",
    "is_derived",
    "name_file",
    "open_plain",
    "read_document",
    "read_rows",
    "shorten_name",
]
