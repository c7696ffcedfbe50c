"""Reads tables of any layout as rows of the interchange format: `open_table` reads a file, `propose_mapping` proposes a
mapping from its columns, `convert_rows` turns its rows into rows of the format. Pure: no Django and no database.

    >>> table = open_table("scores.csv")
    >>> mapping = propose_mapping(table).mapping
    >>> rows = list(convert_rows(table, mapping))
"""

from .convert import ConvertedRow, convert_rows, preview_rows
from .draft import Question
from .left_out import LeftOut, list_left_out
from .mapping import Cells, Ids, Mapping, MappingFault, Reading, Turns, WrongMapping, read_mapping
from .plan import Fault
from .presets import PRESETS, Preset, find_preset
from .propose import Proposal, describe_proposal, propose_mapping, propose_preset
from .tables import Table, open_files, open_table

__all__ = [
    "PRESETS",
    "Cells",
    "ConvertedRow",
    "Fault",
    "Ids",
    "LeftOut",
    "Mapping",
    "MappingFault",
    "Preset",
    "Proposal",
    "Question",
    "Reading",
    "Table",
    "Turns",
    "WrongMapping",
    "convert_rows",
    "describe_proposal",
    "find_preset",
    "list_left_out",
    "open_files",
    "open_table",
    "preview_rows",
    "propose_mapping",
    "propose_preset",
    "read_mapping",
]
