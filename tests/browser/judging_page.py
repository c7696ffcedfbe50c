"""The judging page as tests of it use it."""

from __future__ import annotations

from typing import Any

from annotation.models import Campaign, Judgement

#: Selectors of messages, the only place of their words in these tests.
SAVED = "#saved >> text=/Saved \\d\\d:\\d\\d:\\d\\d/"
WAITING = "#stage [data-waiting]"
SIGNED_OUT = "text=You are signed out. Your answers are saved in this browser"
NOT_STORED_HERE = "text=This browser cannot save your answers"
NOTHING_LEFT = "text=You have judged everything in this campaign"
ANSWERED_BEFORE = "text=You answered this"
LAST_ANSWER = "text=View my last answer"
CORRECTION_STORED = "#messages >> text=The correction is saved."
NO_CONNECTION = "text=No connection. Your answer stays on this page"
NOT_AS_EXPECTED = "text=Different from the expected answer"
DISCARD, DISCARD_PERMANENTLY = "button:text-is('Discard')", "button:text('Discard permanently')"


def offline(count: int = 0) -> str:
    """Return the selector of the status while `count` answers wait in the outbox."""
    if not count:
        return "#saved >> text=Offline. Your answer is saved in this browser."
    answers = "answer is" if count == 1 else "answers are"
    return f"#saved >> text=Offline. {count} {answers} saved in this browser."


def rejected(count: int) -> str:
    """Return the selector of the message about answers that the server rejected."""
    return f"text={count} answer was rejected" if count == 1 else f"text={count} answers were rejected"


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
