"""The state of the data behind a leaderboard is found without reading the tables of judgements."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from scoring.boards import kept_tables
from scoring.selectors.leaderboards import CHOICES, SHAPES, stamp_of


def test_the_stamp_is_found_by_indexes_alone(cast):
    """A project without judgements is asked for as soon as one beside it that has millions. (Without the indexes by
    project and number PostgreSQL goes through all of them from the newest: 1.5 s of a million.)"""
    with CaptureQueriesContext(connection) as asked:
        stamp_of(cast.project)
    plans = []
    with connection.cursor() as cursor:
        for query in asked.captured_queries:
            cursor.execute("EXPLAIN QUERY PLAN " + query["sql"])
            plans += [row[3] for row in cursor.fetchall()]
    assert not [plan for plan in plans if plan.startswith("SCAN ")]
    for index in ("rating_project", "comparison_project", "judgement_campaign"):
        assert [plan for plan in plans if f"COVERING INDEX {index} " in plan], index


def test_what_can_be_asked_for_can_be_read_back():
    """The check of kept tables is a pure room and has the choices of its own."""
    for name, choices in CHOICES.items():
        for value in choices:
            assert list(kept_tables.CHOICES[name](value, name)) == [], (name, value)
    assert set(SHAPES) == set(kept_tables.KINDS)
