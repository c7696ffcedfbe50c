"""The size estimate of a draft matches the units that opening creates."""

from __future__ import annotations

from typing import Any

import pytest

from annotation.models import Campaign, Item, Output, Reference, System
from annotation.services import campaigns_units
from annotation.services.campaigns import create_campaign, open_campaign
from annotation.services.campaigns_units import estimate_units
from tests.cast import Cast
from tests.factories import make_items, make_outputs
from tests.pages import read_page

pytestmark = pytest.mark.django_db
RATED = {"name": "natural", "low": 1, "high": 5}
CHECK = {"item": "i000", "system": "sys-a", "expected": {"natural": [1, 2]}}
COMPARED = {"kind": "pairwise", "aspects": ["better"], "steps": "all"}
#: Plan -> units, counted by hand: 6 items with 3 systems, i000 with a fourth system at 3 steps; 5 items have
#: references.
PLANS: dict[str, tuple[dict[str, Any], int]] = {
    "ratings": ({}, 18 + 3),
    "ratings of last steps": ({"steps": "last"}, 18 + 1),
    "ratings with a practice text": ({"practice": [CHECK]}, 18 + 3 - 1),
    "a sample of items": ({"items": {"sample": 2}, "systems": ["sys-a", "sys-b"]}, 4),
    "all pairs": (COMPARED, 5 * 3 + 15),
    "all pairs of last steps": ({**COMPARED, "steps": "last"}, 5 * 3 + 6),
    "some pairs": ({**COMPARED, "pairs": 7}, 7),
    "adaptive pairs": ({**COMPARED, "pairs": 7, "options": {"adaptive": True}}, 7),
    "more adaptive pairs than there are": ({**COMPARED, "pairs": 500, "options": {"adaptive": True}}, 30),
    "all pairs, adaptive": ({**COMPARED, "options": {"adaptive": True}}, 30),
    "texts against references": ({"kind": "turing", "aspects": ["human"], "steps": "all"}, 15 + 3),
    "texts of last steps against references": ({"kind": "turing", "aspects": ["human"]}, 15 + 1),
}


@pytest.fixture
def drafts(cast: Cast) -> Any:
    make_outputs(cast.project, make_items(cast.project, 6), ("sys-a", "sys-b", "sys-c"))
    trained = System.objects.create(project=cast.project, name="trained")
    for step in (10, 20, 30):
        Output.objects.create(
            project=cast.project, item=Item.objects.get(key="i000"), system=trained, step=step, text=f"at {step}"
        )
    Reference.objects.filter(item__key="i005").delete()

    def make(plan: dict[str, Any]) -> Campaign:
        whole = {"name": "Plan", "kind": "likert", "aspects": [RATED], "overlap": 2, **plan}
        return create_campaign(project=cast.project, user=cast.researcher, plan=whole)

    return make


@pytest.mark.parametrize("name", PLANS)
def test_estimate_matches_the_opened_campaign(drafts: Any, cast: Cast, name: str) -> None:
    plan, expected = PLANS[name]
    campaign = drafts(plan)
    before = dict(campaign.plan)
    assert estimate_units(campaign).units == expected
    assert campaign.plan == before
    opened = open_campaign(campaign=campaign, user=cast.researcher)
    assert opened.unit_count == expected


@pytest.mark.parametrize("name", [name for name in PLANS if "practice" not in name])
def test_large_campaign_is_counted_without_creating_units(drafts: Any, monkeypatch: Any, name: str) -> None:
    monkeypatch.setattr(campaigns_units, "HERE_AT_MOST", 0)
    monkeypatch.setattr(campaigns_units, "choose_units", None)
    plan, expected = PLANS[name]
    assert estimate_units(drafts(plan)).units == expected


def test_page_of_an_adaptive_draft(drafts: Any, cast: Cast, client: Any) -> None:
    """This estimate was once ten times too large: it counted the pool instead of the requested pairs."""
    campaign = drafts({**COMPARED, "pairs": 2, "options": {"adaptive": True}, "items": {"sample": 6, "seed": 1}})
    client.force_login(cast.researcher)
    page = client.get(f"/projects/alpha/campaigns/{campaign.pk}/")
    assert page.context["estimate"]["judgements"] == 4
    text = " ".join(read_page(page).split())
    assert "adaptive: each next pair is chosen from a larger pool by the answers so far" in text
    assert "20 % at random" in text
    assert '<dt>Items</dt> <dd dir="auto">random sample of 6</dd>' in text
