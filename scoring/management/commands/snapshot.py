"""`snapshot`: keep a leaderboard as it stands, look at kept ones, compare two, delete one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from scoring.boards.registry import get_board, list_boards
from scoring.boards.render.console import as_lines, interval
from scoring.management.following import key_value
from scoring.selectors.leaderboards import parse_query
from scoring.selectors.snapshots import compare_tables, get_snapshot, list_snapshots
from scoring.services.leaderboards import get_leaderboard
from scoring.services.snapshots import delete_snapshot, take_snapshot

NOW = "now"
ACTIONS = {"list": 0, "take": 0, "show": 1, "compare": 2, "delete": 1}


class Command(commands.Command):
    help = "Snapshots of leaderboards: take one, list, show, compare two (or one with now), delete."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("action", choices=list(ACTIONS))
        parser.add_argument("names", nargs="*", metavar="NAME", help="of a snapshot; `now` is the table as it is")
        parser.add_argument("--board", default="systems", choices=list(list_boards()), help="with take")
        parser.add_argument(
            "--set", dest="query", action="append", default=[], type=key_value, metavar="key=value",
            help="with take: aspect, method, level and so on, as `systems` and `meta` have them; may be repeated",
        )  # fmt: skip
        parser.add_argument("--title", default="", help="with take")
        parser.add_argument("--note", default="", help="with take: why it is kept")
        parser.add_argument("--name", default="", metavar="NAME", help="with take: the end of its address")

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"])
        action, names = options["action"], options["names"]
        if len(names) != ACTIONS[action]:
            raise commands.WrongUsage(f"{action} takes {ACTIONS[action] or 'no'} name(s) of snapshots.")
        if action == "list":
            return {"action": action, "results": [described(row) for row in list_snapshots(project)]}
        if action == "take":
            query = parse_query(
                get_board(options["board"]).query, _known(options["board"], dict(options["query"])), project
            )
            get_leaderboard(project=project, query=query)  # a command may wait for a large one
            row = take_snapshot(
                project=project, query=query, title=options["title"], note=options["note"], slug=options["name"]
            )
            return {"action": action, **described(row)}
        if action == "delete":
            delete_snapshot(project=project, slug=names[0])
            return {"action": action, "name": names[0]}
        if action == "show":
            row = get_snapshot(project, names[0])
            return {"action": action, **described(row), "table": row.table}
        first = get_snapshot(project, names[0])
        if names[1] == NOW:
            query = parse_query(get_board(first.kind).query, first.params, project)
            second = get_leaderboard(project=project, query=query).table
        else:
            second = get_snapshot(project, names[1]).table
        return {"action": action, "names": names, **compare_tables(first.table, second).as_dict()}

    def show(self, found: dict[str, Any]) -> None:
        if found["action"] == "list":
            rows = [[row["name"], row["board"], row["created_at"][:16], row["title"]] for row in found["results"]]
            self.stdout.write("\n".join(as_lines(["name", "table", "taken", "title"], rows, left=(0, 1, 2, 3))))
        elif found["action"] == "compare":
            for name, one, two in ((part["name"], part["first"], part["second"]) for part in found["settings"]):
                self.stdout.write(f"Another {name}: {one} -> {two}")
            rows = [
                [row["name"], f"{row['rank_first']} -> {row['rank_second']}",
                 *(interval(row[side]) if row[side] else "-" for side in ("first", "second")),
                 "-" if row["difference"] is None else f"{row['difference']:+.3f}"]
                for row in found["rows"]
            ]  # fmt: skip
            self.stdout.write("\n".join(as_lines(["", "rank", *found["names"], "difference"], rows)))
        elif found["action"] == "delete":
            self.stdout.write(f"{found['name']} is gone.")
        else:
            self.stdout.write(f"{found['name']}: {found['title']}")
            self.stdout.write(found["signature"])


def _known(board: str, given: dict[str, str]) -> dict[str, str]:
    """A misspelt parameter would keep another table than was meant."""
    known = get_board(board).query.names()
    if unknown := sorted(set(given) - set(known)):
        raise commands.WrongUsage(f"{board} has no parameter {unknown[0]}. There are: {', '.join(known)}.")
    return given


def described(row: Any) -> dict[str, Any]:
    """A snapshot without its table, as plain values."""
    return {
        "name": row.slug, "title": row.title, "note": row.note, "board": row.kind, "params": row.params,
        # Those of a list are without their tables.
        "signature": (row.table.get("signature") if "table" in row.__dict__ else row.signature) or "",
        "computed_at": row.computed_at.isoformat(), "created_at": row.created_at.isoformat(),
        "created_by": row.created_by.username if row.created_by else None,
    }  # fmt: skip
