"""The state of the data behind a leaderboard is found without reading the tables of judgements."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from scoring.selectors.leaderboards import stamp_of


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
