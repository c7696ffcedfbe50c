"""Chunks of outputs: the same whatever their size, read by the index of their items."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Output, System
from scoring.selectors.inputs import iterate_inputs

pytestmark = pytest.mark.django_db


def read(project, items, only=None):
    chunks = iterate_inputs(project, references=None, only=only, items=items)
    return [(one.output, one.record.item, one.record.system, one.record.text) for chunk in chunks for one in chunk]


def test_chunks_of_any_size_hold_all_outputs_in_order(scored):
    every = read(scored.project, 1000)
    assert [one[0] for one in every] == list(
        Output.objects.filter(project=scored.project).order_by("item", "pk").values_list("pk", flat=True)
    )
    assert read(scored.project, 1) == every
    system = System.objects.filter(project=scored.project).first()
    own = [one for one in every if one[2] == system.name]
    assert own
    assert read(scored.project, 2, only=(system.pk, None)) == own


@pytest.mark.parametrize("of_a_system", [False, True])
def test_a_chunk_reads_only_the_outputs_of_its_items(scored, of_a_system):
    only = (System.objects.filter(project=scored.project).first().pk, None) if of_a_system else None
    with CaptureQueriesContext(
        connection,
    ) as queries:
        read(scored.project, 2, only)
    asked = [one["sql"] for one in queries if 'FROM "annotation_output"' in one["sql"]]
    assert len(asked) > 1
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {asked[0]}")
            plan = " ".join(row[3] for row in cursor.fetchall())
        assert "item_id=?" in plan
        assert "SCAN" not in plan.replace("TEMP B-TREE", "")
