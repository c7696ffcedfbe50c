"""Stored answers of judges are found by the index of their hashes, however many a project has."""

from __future__ import annotations

import hashlib

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalapp.accounts.models import Project
from scoring.ml.judges import Request
from scoring.models import JudgeAnswer
from scoring.selectors.judges import load_answers


def explain(statement):
    """Return how the database runs the query for two of 3,000 answers."""
    project = Project.objects.create(slug="p", name="P")
    JudgeAnswer.objects.bulk_create(
        JudgeAnswer(
            project=project, endpoint="hosted", digest=hashlib.sha256(str(k).encode()).hexdigest(), model="large-2",
            answer={}, characters=1, cost=0, seconds=0,
        )
        for k in range(3_000)
    )  # fmt: skip
    with CaptureQueriesContext(connection) as queries:
        load_answers(project, "hosted", "large-2", [Request("m", (("user", text),), "json", 1) for text in "ab"])
    (asked,) = queries
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute(f"{statement} {asked['sql']}")
        return " ".join(map(str, sum(cursor.fetchall(), ())))


@pytest.mark.django_db
def test_answers_are_found_by_their_hashes_on_sqlite():
    assert "(project_id=? AND digest=?" in explain("EXPLAIN QUERY PLAN")


def test_answers_are_found_by_their_hashes_on_postgres(postgres_db):
    assert "digest" in explain("EXPLAIN").partition("Index Cond:")[2].partition("Filter:")[0]
