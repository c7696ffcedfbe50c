"""The judging page as tests of it use it."""

from __future__ import annotations

from typing import Any

from annotation.models import Campaign, Judgement


def judging(page: Any, campaign: Campaign) -> Any:
    page.goto(f"/my/{campaign.pk}/")
    page.wait_for_selector("article[data-id], .empty")
    return page


def judging_with_next(page: Any, campaign: Campaign) -> Any:
    """And the text after the one on show has come, too, which the page fetches by itself."""
    with page.expect_response(lambda response: "?after=" in response.url) as fetched:
        judging(page, campaign)
    fetched.value.finished()
    return page


def card_id(page: Any) -> str:
    return str(page.get_attribute("article[data-id]", "data-id"))


def answers(campaign: Campaign) -> list[dict[str, Any]]:
    rows = Judgement.objects.filter(campaign=campaign, current=True).order_by("pk")
    return list(rows.values_list("answer", flat=True))


def wait_for_answers(page: Any, campaign: Campaign, n: int, seconds: float = 60) -> list[dict[str, Any]]:
    """As soon as there are so many; a page that has been without a connection tries again after up to half a minute."""
    for _ in range(int(seconds * 20)):
        found = answers(campaign)
        if len(found) >= n:
            return found
        page.wait_for_timeout(50)
    return answers(campaign)


def settle(page: Any) -> None:
    """Longer than an Enter counts as the second half of a double one."""
    page.wait_for_timeout(650)
