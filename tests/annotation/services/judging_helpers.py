"""Open campaigns and answers for the tests of judging."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from annotation.models import Campaign
from annotation.services.campaigns import create_campaign, open_campaign
from annotation.services.judging import Submitted, submit_answer
from tests.factories import make_items, make_outputs

ANSWERS: dict[str, Any] = {"likert": 4, "pairwise": "a", "turing": "cannot_decide"}


def open_for(cast: Any, kind: str = "likert", *, items: int = 4, systems: tuple[str, ...] = ("sys-a", "sys-b"), **plan: Any) -> Campaign:  # fmt: skip  # noqa: E501
    if not cast.project.items.exists():
        make_outputs(cast.project, make_items(cast.project, items), systems)
    aspect = {"name": f"{kind}-quality", "question": "How good?", "low": 1, "high": 5}
    raw = {"name": f"Test {kind}", "kind": kind, "aspects": [aspect], **plan}
    campaign = create_campaign(project=cast.project, user=cast.researcher, plan=raw)
    return open_campaign(campaign=campaign, user=cast.researcher)


def answer_to(campaign: Campaign, value: Any = None) -> dict[str, Any]:
    return {f"{campaign.kind}-quality": ANSWERS[campaign.kind] if value is None else value}


def send(user: Any, campaign: Campaign, public: str, value: Any = None, **more: Any) -> Submitted:
    more.setdefault("submission", uuid4())
    return submit_answer(user=user, public=public, answer=answer_to(campaign, value), **more)
