"""Tables of a project, computed without storing them."""

from __future__ import annotations

from typing import Any

from scoring.boards.data.project import ProjectData
from scoring.boards.registry import get_board


def compute_table(project: Any, query: Any) -> dict[str, Any]:
    return get_board(query.kind).compute(ProjectData(project), query)
