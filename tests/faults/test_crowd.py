"""Two hundred people judge at once for thirty seconds, over HTTP like browsers, then finish the rest: no server error,
every unit judged exactly as often as planned, no answer lost, changed or stored twice. benchmarks/annotators.py
measures the speed."""

from __future__ import annotations

import asyncio

import pytest
from django.db.models import Count

from annotation.models import Assignment
from tests.cast import PASSWORD
from tests.services.annotators import Habit, Report, crowd, found_in_database, make_house

PEOPLE, SECONDS, ITEMS, OVERLAP = 200, 30, 80, 3


@pytest.mark.slow
@pytest.mark.promise("overlap", "submission")
def test_two_hundred_people_at_once(postgres_stack, record_property):
    stack = postgres_stack
    names = [f"judge{k:03d}" for k in range(PEOPLE)]
    campaign = make_house(ITEMS, names, PASSWORD, OVERLAP)
    stack.start("redis", "web")
    report = Report()
    asyncio.run(crowd(stack.url, names, PASSWORD, campaign, SECONDS, Habit(think=12.0, finish=True), report))
    assert not report.errors, report.errors
    assert len(report.handed) == len(set(report.handed)), "a text was shown to one person twice as a new one"
    found = found_in_database(campaign, report.sent)
    assert found.pop("stored") == len(report.sent) == ITEMS * 2 * OVERLAP
    assert not any(found.values()), found
    per_unit = Assignment.objects.filter(campaign=campaign, state="submitted").values("unit").annotate(n=Count("pk"))
    assert [row["n"] for row in per_unit] == [OVERLAP] * (ITEMS * 2)
    assert "Traceback" not in stack.log("web")
    people, answers = len({who for who, _ in report.handed}), len(report.sent)
    record_property("figure", f"{people} people at once: {answers} judgements, 0 lost, 0 doubled, 0 over overlap")
