"""The version of the data behind a leaderboard is computed without scanning the tables of judgements."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from scoring.boards.choices import CHOICES
from scoring.boards.leaderboard_file import Entry
from scoring.boards.registry import list_boards
from scoring.boards.shapes import find_faults
from scoring.selectors.leaderboards import compute_stamp


def test_data_version_uses_only_indexes(cast):
    """A project without judgements is as fast as its neighbour with millions. (Without the indexes by project and
    number, PostgreSQL scans all rows from the newest: 1.5 s for a million.)"""
    with CaptureQueriesContext(connection) as asked:
        compute_stamp(cast.project)
    plans = []
    with connection.cursor() as cursor:
        for query in asked.captured_queries:
            cursor.execute("EXPLAIN QUERY PLAN " + query["sql"])
            plans += [row[3] for row in cursor.fetchall()]
    assert not [plan for plan in plans if plan.startswith("SCAN ")]
    for index in ("rating_project", "comparison_project", "judgement_campaign"):
        assert [plan for plan in plans if f"COVERING INDEX {index} " in plan], index


def test_requestable_options_can_be_read_back():
    """Every choice of a query is valid in an entry of an export, and the table of every board is checked."""
    for name, choices in CHOICES.items():
        for value in choices:
            entry = {"kind": "systems", "params": {name: value}, "table": {"kind": "systems"}}
            assert list(find_faults(Entry, entry, "entry")) == [], (name, value)
    for board in list_boards().values():
        assert board.module("table").NEEDED
