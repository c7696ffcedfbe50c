"""Base class of the commands that print a leaderboard."""

from __future__ import annotations

from typing import Any

from evalapp.accounts.models import Project
from evalapp.common import commands
from scoring.boards.base import Query
from scoring.boards.render.console import as_text
from scoring.services.leaderboards import get_leaderboard, record_table_looks


class BoardCommand(commands.Command):
    def make_query(self, project: Project, options: dict[str, Any]) -> Query:
        raise NotImplementedError(type(self).__name__)

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"])
        board = get_leaderboard(project=project, query=self.make_query(project, options))
        record_table_looks(project=project, table=board.table)
        return {**board.table, "computed_at": board.computed_at.isoformat()}

    def show(self, result: dict[str, Any]) -> None:
        self.stdout.write(as_text(result))
