"""Open campaigns for tests, made through the services. The texts name no system, so that a test can search everything
an annotator receives for a system's name."""

from __future__ import annotations

from typing import Any

from annotation.models import Campaign, Item, Output, System
from annotation.services.campaigns import create_campaign, open_campaign
from tests.cast import Cast
from tests.factories import make_items

SYSTEMS = ("sys-alpha", "sys-beta")
SCALES: list[dict[str, Any]] = [
    {"name": "naturalness", "question": "How natural is it?", "low": 1, "high": 6, "labels": {"1": "awkward"}},
    {"name": "relevance", "question": "How relevant is it?", "low": 1, "high": 5},
]
ONE_QUESTION = SCALES[:1]


def make_texts(cast: Cast, items: int = 6) -> list[Item]:
    """Items with one output of each system: “Text 0-0.”, “Text 0-1.”, ..."""
    found = make_items(cast.project, items)
    systems = [System.objects.create(project=cast.project, name=name) for name in SYSTEMS]
    Output.objects.bulk_create(
        Output(project=cast.project, item=item, system=system, text=f"Text {number}-{place}.")
        for place, system in enumerate(systems)
        for number, item in enumerate(found)
    )
    return found


def make_draft(cast: Cast, **plan: Any) -> Campaign:
    whole = {"name": "Replies", "kind": "likert", "aspects": SCALES, "guidelines": "Rate the **reply** only.", **plan}
    return create_campaign(project=cast.project, user=cast.researcher, plan=whole)


def open_rating(cast: Cast, *, items: int = 6, **plan: Any) -> Campaign:
    make_texts(cast, items)
    return open_campaign(campaign=make_draft(cast, **plan), user=cast.researcher)


def open_comparison(cast: Cast, *, items: int = 6, **plan: Any) -> Campaign:
    whole = {"kind": "pairwise", "aspects": [{"name": "quality", "question": "Which one is better?"}], **plan}
    return open_rating(cast, items=items, **whole)


PRACTICE = [
    {
        "item": "i000",
        "system": "sys-alpha",
        "expected": {"naturalness": [5, 6], "relevance": [1, 2]},
        "why": "It is short.",
    }
]
