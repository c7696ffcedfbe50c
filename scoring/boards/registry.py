"""The boards by kind. A new board is a package in `PACKAGES`; nothing else names it.

Modules of a package are imported on first use, because numpy slows down the start of the web process.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from scoring.boards.base import Data, Progress, Query, Table
from scoring.boards.shapes import BoardTable

#: In the order of tabs and commands.
PACKAGES = ("systems", "metrics", "pairs", "aspects", "slices", "matrix", "references", "agreement")


@dataclass(frozen=True)
class Board:
    """A kind of board with its query and the modules of its package."""

    package: str
    query: type[Query]

    @property
    def kind(self) -> str:
        return self.query.kind

    @property
    def has_own_page(self) -> bool:
        """Whether the board has a separate address; others are below `evaluation/`."""
        return self.query.page != f"evaluation/{self.kind}/"

    def module(self, name: str) -> ModuleType:
        return import_module(f"{self.package}.{name}")

    def get_renderer(self, name: str) -> Any:
        """Return a function or name from the module `columns`, or what `render.cells` has instead."""
        own = self.module("columns")
        return getattr(own if hasattr(own, name) else import_module("scoring.boards.render.cells"), name)

    def choose_model(self, table: Any) -> type[BoardTable]:
        """Return the type that this table should have."""
        rules = self.module("table")
        model: type[BoardTable] = rules.choose_model(table) if hasattr(rules, "choose_model") else rules.Table
        return model

    def compute(self, data: Data, query: Any, progress: Progress | None = None) -> Table:
        """Return the table that answers the query."""
        table: Table = self.module("compute").compute(data, query, progress)
        return table


_boards: dict[str, Board] = {}


def register(package: str) -> Board:
    """Add the board of a package (dotted name), whose module `query` has one query class."""
    module = import_module(f"{package}.query")
    (query,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Query) and value.__module__ == module.__name__
    )
    board = Board(package, query)
    _boards[board.kind] = board
    return board


def unregister(kind: str) -> None:
    """Remove a board, in tests."""
    del _boards[kind]


def list_boards() -> Mapping[str, Board]:
    """Return all boards by kind."""
    return _boards


def list_flagged() -> list[Board]:
    """Return the boards that the command `meta` computes with a flag."""
    return [board for board in _boards.values() if board.query.flag_help]


def get_board(kind: str) -> Board:
    """Return the board of this kind. Raises `KeyError` if there is none."""
    return _boards[kind]


class BoardKind:
    """Path converter of kinds of boards below `evaluation/`."""

    regex = "[a-z]+"

    def to_python(self, value: str) -> str:
        if value not in _boards or _boards[value].has_own_page:
            raise ValueError(value)
        return value

    def to_url(self, value: str) -> str:
        return value


for _name in PACKAGES:
    register(f"scoring.boards.{_name}")
