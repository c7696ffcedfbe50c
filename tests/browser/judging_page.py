"""Helpers for tests of the judging page."""

from __future__ import annotations

from typing import Any

from annotation.models import Campaign, Judgement

#: Selectors of messages. Tests take the wording of messages only from here.
SAVED = "#saved >> text=/Saved \\d\\d:\\d\\d:\\d\\d/"
WAITING = "#stage [data-waiting]"
SIGNED_OUT = "text=You are signed out. Your answers are saved in this browser"
NOT_STORED_HERE = "text=This browser cannot save your answers"
NOTHING_LEFT = "#stage [data-why=empty]"
ANSWERED_BEFORE = "#stage [data-answered]"
LAST_ANSWER = "#stage .empty a[href$='/back/']"
CORRECTION_STORED = "#messages [data-level=success]"
NO_CONNECTION = "text=No connection. Your answer stays on this page"
NOT_AS_EXPECTED = "#stage [data-passed=no]"
#: The button below the guidelines.
BEGIN = "[data-begin] button"
#: An error above a question.
UNANSWERED = "form.answer .errorlist[role=alert]"
DISCARD, DISCARD_PERMANENTLY = "button:text-is('Discard')", "button:text('Discard permanently')"


def offline_status(count: int = 0) -> str:
    """Return the selector of the status while `count` answers wait in the outbox."""
    if not count:
        return "#saved >> text=Offline. Your answer is saved in this browser."
    subject = "answer is" if count == 1 else "answers are"
    return f"#saved >> text=Offline. {count} {subject} saved in this browser."


def rejected_message(count: int) -> str:
    """Return the selector of the message about answers that the server rejected."""
    return f"text={count} answer was rejected" if count == 1 else f"text={count} answers were rejected"


def open_judging_page(page: Any, campaign: Campaign) -> Any:
    """Open the page; on the first visit, begin after the guidelines."""
    page.goto(f"/my/{campaign.pk}/")
    begin = page.locator(BEGIN)
    if begin.count():
        begin.click()
    page.wait_for_selector("article[data-id], .empty")
    page.wait_for_load_state()
    return page


def open_judging_page_with_next(page: Any, campaign: Campaign) -> Any:
    """Open the page and wait until it has prefetched the next text."""
    with page.expect_response(lambda response: "?after=" in response.url) as prefetched:
        open_judging_page(page, campaign)
    prefetched.value.finished()
    return page


def get_card_id(page: Any) -> str:
    return str(page.get_attribute("article[data-id]", "data-id"))


def get_answers(campaign: Campaign) -> list[dict[str, Any]]:
    rows = Judgement.objects.filter(campaign=campaign, current=True).order_by("pk")
    return list(rows.values_list("answer", flat=True))


def wait_for_answers(page: Any, campaign: Campaign, n: int, seconds: float = 60) -> list[dict[str, Any]]:
    """Return the stored answers as soon as there are `n`. After an offline phase, a page retries within 30 seconds."""
    for _ in range(int(seconds * 20)):
        rows = get_answers(campaign)
        if len(rows) >= n:
            return rows
        page.wait_for_timeout(50)
    return get_answers(campaign)


def settle(page: Any) -> None:
    """Wait until an Enter no longer counts as the second press of a double Enter."""
    page.wait_for_timeout(650)
