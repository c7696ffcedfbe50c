"""Two hundred annotators judge at once for thirty seconds, over HTTP like browsers, then finish the rest: no server
error, every unit judged exactly as often as planned, no answer lost, changed or stored twice. benchmarks/annotators.py
measures the speed."""

from __future__ import annotations

import asyncio

import pytest
from django.db.models import Count

from annotation.models import Assignment
from tests.cast import PASSWORD
from tests.services.annotators import Behaviour, Report, count_violations, make_crowd_project, run_crowd

ANNOTATORS, SECONDS, ITEMS, OVERLAP = 200, 30, 80, 3


@pytest.mark.slow
@pytest.mark.promise("overlap", "submission")
def test_two_hundred_annotators_at_once(postgres_stack, record_property):
    stack = postgres_stack
    names = [f"judge{k:03d}" for k in range(ANNOTATORS)]
    campaign = make_crowd_project(ITEMS, names, PASSWORD, OVERLAP)
    stack.start("redis", "web")
    report = Report()
    asyncio.run(run_crowd(stack.url, names, PASSWORD, campaign, SECONDS, Behaviour(think=12.0, finish=True), report))
    assert not report.errors, report.errors
    texts = report.displayed_texts
    assert len(texts) == len(set(texts)), "an annotator got the same text twice"
    violations = count_violations(campaign, report.sent)
    assert violations.pop("stored") == len(report.sent) == ITEMS * 2 * OVERLAP
    assert not any(violations.values()), violations
    per_unit = Assignment.objects.filter(campaign=campaign, state="submitted").values("unit").annotate(n=Count("pk"))
    assert [row["n"] for row in per_unit] == [OVERLAP] * (ITEMS * 2)
    assert "Traceback" not in stack.log("web")
    annotators, answers = len({annotator for annotator, _ in texts}), len(report.sent)
    record_property("figure", f"{annotators} people at once: {answers} judgements, 0 lost, 0 doubled, 0 over overlap")
