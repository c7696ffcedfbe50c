"""`snapshot`: take, list, show, compare and delete snapshots of leaderboards."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from evalapp.common.run_commands import key_value
from scoring.api.snapshots import ChangesSerializer
from scoring.boards.registry import get_board, list_boards
from scoring.boards.render.console import as_lines, interval
from scoring.selectors.leaderboards import parse_query
from scoring.selectors.snapshots import compare_tables, get_snapshot, list_snapshots
from scoring.services.leaderboards import get_leaderboard
from scoring.services.snapshots import delete_snapshot, take_snapshot

NOW = "now"
ACTIONS = {"list": 0, "take": 0, "show": 1, "compare": 2, "delete": 1}


class Command(commands.Command):
    help = "Take, list, show, compare (two, or one with now) and delete snapshots of leaderboards."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("action", choices=list(ACTIONS))
        parser.add_argument("names", nargs="*", metavar="NAME", help="names of snapshots; `now` is the current table")
        parser.add_argument("--board", default="systems", choices=list(list_boards()), help="with take")
        parser.add_argument(
            "--set", dest="query", action="append", default=[], type=key_value, metavar="key=value",
            help="with take: parameters as in `systems` and `meta`, such as aspect, method, level; may be repeated",
        )  # fmt: skip
        parser.add_argument("--title", default="", help="with take")
        parser.add_argument("--note", default="", help="with take: the purpose of the snapshot")
        parser.add_argument("--name", default="", metavar="NAME", help="with take: its name in URLs")

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"])
        action, names = options["action"], options["names"]
        if len(names) != ACTIONS[action]:
            raise commands.WrongUsage(f"{action} takes {ACTIONS[action] or 'no'} name(s) of snapshots.")
        if action == "list":
            return {"action": action, "results": [describe_snapshot(row) for row in list_snapshots(project)]}
        if action == "take":
            query = parse_query(
                get_board(options["board"]).query, _check_params(options["board"], dict(options["query"])), project
            )
            get_leaderboard(project=project, query=query)  # a command may wait for a large one
            row = take_snapshot(
                project=project, query=query, title=options["title"], note=options["note"], slug=options["name"]
            )
            return {"action": action, **describe_snapshot(row)}
        if action == "delete":
            delete_snapshot(project=project, slug=names[0])
            return {"action": action, "name": names[0]}
        if action == "show":
            row = get_snapshot(project, names[0])
            return {"action": action, **describe_snapshot(row), "table": row.table}
        first = get_snapshot(project, names[0])
        if names[1] == NOW:
            query = parse_query(get_board(first.kind).query, first.params, project)
            second = get_leaderboard(project=project, query=query).table
        else:
            second = get_snapshot(project, names[1]).table
        return {"action": action, "names": names, **ChangesSerializer(compare_tables(first.table, second)).data}

    def show(self, result: dict[str, Any]) -> None:
        if result["action"] == "list":
            rows = [[row["name"], row["board"], row["created_at"][:16], row["title"]] for row in result["results"]]
            self.stdout.write("\n".join(as_lines(["name", "table", "taken", "title"], rows, left=(0, 1, 2, 3))))
        elif result["action"] == "compare":
            for name, one, two in ((part["name"], part["first"], part["second"]) for part in result["settings"]):
                self.stdout.write(f"Different {name}: {one} -> {two}")
            rows = [
                [row["name"], f"{row['rank_first']} -> {row['rank_second']}",
                 *(interval(row[side]) if row[side] else "-" for side in ("first", "second")),
                 "-" if row["difference"] is None else f"{row['difference']:+.3f}"]
                for row in result["rows"]
            ]  # fmt: skip
            self.stdout.write("\n".join(as_lines(["", "rank", *result["names"], "difference"], rows)))
        elif result["action"] == "delete":
            self.stdout.write(f"{result['name']} was deleted.")
        else:
            self.stdout.write(f"{result['name']}: {result['title']}")
            self.stdout.write(result["signature"])


def _check_params(board: str, given: dict[str, str]) -> dict[str, str]:
    """Refuse unknown parameters, which would take a snapshot of another table."""
    known = get_board(board).query.names()
    if unknown := sorted(set(given) - set(known)):
        raise commands.WrongUsage(f"{board} has no parameter {unknown[0]}. Known: {', '.join(known)}.")
    return given


def describe_snapshot(row: Any) -> dict[str, Any]:
    """Return the facts of a snapshot without its table."""
    return {
        "name": row.slug, "title": row.title, "note": row.note, "board": row.kind, "params": row.params,
        # Rows of a list are loaded without their tables.
        "signature": (row.table.get("signature") if "table" in row.__dict__ else row.signature) or "",
        "computed_at": row.computed_at.isoformat(), "created_at": row.created_at.isoformat(),
        "created_by": row.created_by.username if row.created_by else None,
    }  # fmt: skip
