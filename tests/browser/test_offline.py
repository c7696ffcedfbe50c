"""Answers while the connection, the server or the browser is gone: each is sent once, in order, as soon as possible.
With Chromium, a web process that is killed, and a browser profile that is closed and reopened."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import expect

from annotation.models import Assignment, Judgement
from annotation.services.campaigns import open_campaign
from tests.browser.conftest import CHROMIUM_ARGUMENTS, TIMEOUT_MS, Site
from tests.browser.judging_page import (
    ANSWERED_BEFORE,
    DISCARD,
    DISCARD_PERMANENTLY,
    NO_CONNECTION,
    NOT_STORED_HERE,
    SAVED,
    WAITING,
    get_answers,
    get_card_id,
    offline_status,
    open_judging_page,
    rejected_message,
    settle,
    wait_for_answers,
)
from tests.cast import Cast
from tests.judging import ONE_QUESTION, make_draft, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
CAMPAIGNS = 5


def answer_by_keyboard(page: Any, key: str) -> None:
    page.keyboard.press(key)
    page.keyboard.press("Enter")


def wait_for_prefetch(page: Any) -> None:
    page.wait_for_load_state("networkidle")


@pytest.mark.promise("draft", "submission")
def test_ten_answers_offline(cast: Cast, page_for: Open) -> None:
    """A page has the current and the next text, so ten answers offline need five campaigns in one browser."""
    campaigns = [open_rating(cast, items=3, aspects=ONE_QUESTION)]
    for number in range(1, CAMPAIGNS):
        draft = make_draft(cast, aspects=ONE_QUESTION, name=f"Replies {number}", slug=f"replies-{number}")
        campaigns.append(open_campaign(campaign=draft, user=cast.researcher))
    first = open_judging_page(page_for(cast.annotator), campaigns[0])
    pages = [first, *(open_judging_page(first.context.new_page(), campaign) for campaign in campaigns[1:])]
    for page in pages:
        wait_for_prefetch(page)
    first.context.set_offline(True)
    expected = {}
    for number, (page, campaign) in enumerate(zip(pages, campaigns, strict=True)):
        page.bring_to_front()
        keys = (str(1 + number), str(6 - number))
        answer_by_keyboard(page, keys[0])
        page.wait_for_function("() => !document.querySelector('form.answer input:checked')")
        answer_by_keyboard(page, keys[1])
        page.wait_for_selector(offline_status(2 * number + 2))
        expected[campaign.pk] = [{"naturalness": int(key)} for key in keys]
    assert not Judgement.objects.exists()
    first.context.set_offline(False)
    for page, campaign in zip(pages, campaigns, strict=True):
        page.wait_for_selector("article[data-id]")
        assert wait_for_answers(page, campaign, 2) == expected[campaign.pk]
    # All tabs sent the same outbox at the same time; each answer is stored once, in the order in which it was given.
    order = Judgement.objects.order_by("pk").values_list("campaign", flat=True)
    assert list(order) == [campaign.pk for campaign in campaigns for _ in range(2)]
    pages[-1].reload()
    pages[-1].wait_for_function("() => !Object.keys(localStorage).some(key => key.includes('outbox'))")


@pytest.mark.promise("draft", "submission")
def test_web_process_is_killed_and_restarted(cast: Cast, page_for: Open, site: Site) -> None:
    """Between a draft and its answer, while the page stays open."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page(page_for(cast.annotator), campaign)
    wait_for_prefetch(page)
    page.keyboard.press("2")
    page.keyboard.press("n")
    page.keyboard.type("half a")
    page.wait_for_selector(SAVED)
    site.kill()
    try:
        page.keyboard.type(" thought")
        page.wait_for_selector(offline_status())
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(offline_status(1))
        settle(page)
        answer_by_keyboard(page, "5")
        page.wait_for_selector(WAITING)
        assert Assignment.objects.get(order_number=1).draft["answer"] == {"naturalness": 2}
    finally:
        site.start()
    assert wait_for_answers(page, campaign, 2) == [{"naturalness": 2}, {"naturalness": 5}]
    assert Judgement.objects.earliest("pk").note == "half a thought"
    page.wait_for_selector("article[data-id]")
    answer_by_keyboard(page, "1")
    assert len(wait_for_answers(page, campaign, 3)) == 3


@contextmanager
def open_browser(browser: Any, chromium: str, site: Site, folder: Path) -> Iterator[Any]:
    """Open a separate browser with its profile in `folder`."""
    context = browser.browser_type.launch_persistent_context(
        folder, executable_path=chromium, args=list(CHROMIUM_ARGUMENTS), base_url=site.url
    )
    context.set_default_timeout(TIMEOUT_MS)
    yield context
    context.close()


@pytest.mark.promise("draft", "submission")
def test_browser_is_closed_with_unsent_answers(
    cast: Cast, site: Site, db: None, browser: Any, chromium_path: str, tmp_path: Path
) -> None:
    """The browser is closed with two unsent answers and an unresolved conflict."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    client = Client()
    client.force_login(cast.annotator)
    session = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site.url}
    with open_browser(browser, chromium_path, site, tmp_path) as context:
        context.add_cookies([{**session, "expires": time.time() + 86_400}])
        first = open_judging_page(context.new_page(), campaign)
        second = open_judging_page(context.new_page(), campaign)
        conflicting = get_card_id(first)
        first.bring_to_front()
        answer_by_keyboard(first, "2")
        wait_for_answers(first, campaign, 1)
        second.bring_to_front()
        answer_by_keyboard(second, "6")
        second.wait_for_selector("#conflict[open]")
        first.bring_to_front()
        first.reload()  # this tab now also asks for a decision about the conflict
        first.wait_for_selector("#conflict[open]")
        first.evaluate("document.getElementById('conflict').close()")
        wait_for_prefetch(first)
        context.set_offline(True)
        answer_by_keyboard(first, "3")
        first.wait_for_selector(offline_status(1))
        settle(first)
        answer_by_keyboard(first, "4")
        first.wait_for_selector(offline_status(2))
    assert get_answers(campaign) == [{"naturalness": 2}]
    with open_browser(browser, chromium_path, site, tmp_path) as context:
        page = context.new_page()
        page.goto("/my/")
        page.wait_for_selector("#unsent[data-sent='2'][data-undecided='1']")
        page.goto(f"/my/{campaign.pk}/")
        page.wait_for_selector("#conflict[open]")
        question = ONE_QUESTION[0]["question"]
        expect(page.locator("[data-mine]")).to_contain_text(f"{question} 6", use_inner_text=True)
        expect(page.locator("[data-theirs]")).to_contain_text(f"{question} 2", use_inner_text=True)
        page.click("[data-replace]")
        page.wait_for_function("() => !Object.keys(localStorage).some((key) => key.includes('outbox'))")
    rows = Judgement.objects.filter(campaign=campaign, current=True).order_by("assignment__order_number")
    assert list(rows.values_list("answer__naturalness", flat=True)) == [6, 3, 4]
    assert Assignment.objects.get(public=conflicting).version == 2


@pytest.mark.promise("submission")
def test_back_and_forward_in_the_browser(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    page.goto("/my/")
    open_judging_page(page, campaign)
    wait_for_prefetch(page)
    first = get_card_id(page)
    answer_by_keyboard(page, "2")
    wait_for_answers(page, campaign, 1)
    page.go_back()
    page.go_forward()
    page.wait_for_selector("article[data-id]")
    assert get_card_id(page) != first
    settle(page)
    answer_by_keyboard(page, "5")
    assert wait_for_answers(page, campaign, 2) == [{"naturalness": 2}, {"naturalness": 5}]
    assert Judgement.objects.filter(campaign=campaign).count() == 2


@pytest.mark.promise("draft")
def test_browser_storage_is_full_or_disabled(cast: Cast, page_for: Open) -> None:
    """Answers are sent nevertheless, and the page warns about an answer that is not sent yet."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    page.add_init_script("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };")
    open_judging_page(page, campaign)
    wait_for_prefetch(page)
    answer_by_keyboard(page, "2")
    assert wait_for_answers(page, campaign, 1) == [{"naturalness": 2}]
    page.wait_for_selector(SAVED)
    wait_for_prefetch(page)
    settle(page)
    page.context.set_offline(True)
    answer_by_keyboard(page, "3")
    page.wait_for_selector(NOT_STORED_HERE)
    page.context.set_offline(False)
    assert wait_for_answers(page, campaign, 2) == [{"naturalness": 2}, {"naturalness": 3}]


@pytest.mark.promise("draft", "submission")
@pytest.mark.parametrize(
    ("reached", "body"), [(True, '{"draft_version": 1, "id'), (False, "<html>Sign in to this network.</html>")]
)
def test_unreadable_success_response_is_no_confirmation(cast: Cast, page_for: Open, reached: bool, body: str) -> None:
    """The server died while it responded, or the sign-in page of a wireless network responded instead: draft and answer
    are sent again, and each is stored once."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    spoiled: list[tuple[str, str]] = []

    def spoil_first_response(route: Any) -> None:
        if (route.request.method, route.request.url) in spoiled:
            route.continue_()
            return
        spoiled.append((route.request.method, route.request.url))
        if reached:
            route.fetch()
        route.fulfill(status=200, content_type="application/json" if reached else "text/html", body=body)

    page.route("**/api/v1/assignments/**", spoil_first_response)
    page.route("**/submit/", spoil_first_response)
    open_judging_page(page, campaign)
    wait_for_prefetch(page)
    page.keyboard.press("2")
    page.wait_for_selector(offline_status())
    page.wait_for_selector(SAVED)
    (stored,) = Assignment.objects.filter(draft_version__gt=0)
    assert stored.draft["answer"] == {"naturalness": 2}
    expect(page.locator("article[data-id]")).to_have_attribute("data-draft-version", str(stored.draft_version))
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    page.wait_for_selector(offline_status(1))
    assert wait_for_answers(page, campaign, 1) == [{"naturalness": 3}]
    page.wait_for_selector(SAVED)
    assert page.evaluate("Object.keys(localStorage).filter(key => key.includes('outbox'))") == []
    assert Judgement.objects.count() == 1
    assert [method for method, _ in spoiled] == ["PATCH", "POST"]


@pytest.mark.promise("draft", "submission")
def test_correction_with_truncated_confirmation_is_resent_with_the_same_id(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page(page_for(cast.annotator), campaign)
    answer_by_keyboard(page, "2")
    wait_for_answers(page, campaign, 1)
    settle(page)
    page.keyboard.press("u")
    page.wait_for_selector(ANSWERED_BEFORE)

    def truncate_response(route: Any) -> None:
        route.fetch()
        route.fulfill(status=200, content_type="application/json", body='{"id": 1, "vers')

    page.route("**/submit/", truncate_response)
    answer_by_keyboard(page, "3")
    page.wait_for_selector(NO_CONNECTION)
    assert get_answers(campaign) == [{"naturalness": 3}]  # stored, but not confirmed to the page
    page.unroute("**/submit/")
    settle(page)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator("#conflict[open]")).to_have_count(0)
    assert Judgement.objects.count() == 2


@pytest.mark.promise("draft")
def test_rejected_answer_in_full_storage_is_sent_once_and_replaced_by_a_new_one(cast: Cast, page_for: Open) -> None:
    """The storage has no room for the reason of the rejection. The answer must not be sent forever: its text is shown
    again, and the new answer replaces it."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    page.add_init_script(
        """const put = Storage.prototype.setItem;
        Storage.prototype.setItem = function (key, value) {
          if (value.includes('"problem"')) throw new DOMException('full', 'QuotaExceededError');
          put.call(this, key, value);
        };"""
    )
    attempts: list[str] = []

    def reject(route: Any) -> None:
        attempts.append(route.request.url)
        route.fulfill(status=400, content_type="application/problem+json", body='{"detail": "Not like that."}')

    page.route("**/submit/", reject)
    open_judging_page(page, campaign)
    wait_for_prefetch(page)
    first = get_card_id(page)
    answer_by_keyboard(page, "2")
    page.wait_for_selector(rejected_message(1))
    page.wait_for_timeout(500)
    assert len(attempts) == 1
    page.unroute("**/submit/")
    settle(page)
    answer_by_keyboard(page, "3")
    page.wait_for_selector(f"article[data-id='{first}']")
    expect(page.locator(rejected_message(1))).to_be_visible()
    settle(page)
    answer_by_keyboard(page, "4")
    assert wait_for_answers(page, campaign, 2) == [{"naturalness": 3}, {"naturalness": 4}]
    page.wait_for_selector(rejected_message(1), state="hidden")
    # The browser empties its outbox when it has read the confirmation.
    page.wait_for_function("() => !Object.keys(localStorage).some(key => key.includes('outbox'))")


def save_in_old_format(page: Any, urls: list[str], value: int) -> str:
    """Save answers as earlier versions did, as one list: one answer for each address, then one for the displayed text.
    Return the id of this text."""
    return str(
        page.evaluate(
            """([urls, value]) => {
              const card = document.querySelector("article[data-id]");
              const entries = [...urls, card.dataset.submitUrl].map((url) => {
                const id = crypto.randomUUID();
                const body = { submission: id, answer: { naturalness: value }, note: "", seconds: 1 };
                return { id, assignment: card.dataset.id, url, body, names: {} };
              });
              const user = document.getElementById("judging").dataset.user;
              localStorage.setItem("evalapp.outbox." + user, JSON.stringify(entries));
              return card.dataset.id;
            }""",
            [urls, value],
        )
    )


@pytest.mark.promise("draft")
def test_answers_saved_by_an_earlier_version_are_sent(cast: Cast, page_for: Open) -> None:
    """Two are rejected: no permission (403), text deleted (404). They do not block the others, and remain until the
    annotator discards them."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page(page_for(cast.annotator), campaign)
    rejected = [f"/api/v1/projects/{cast.project.slug}/campaigns/", "/api/v1/assignments/gone/submit/"]
    public = save_in_old_format(page, rejected, 4)
    page.reload()
    assert wait_for_answers(page, campaign, 1) == [{"naturalness": 4}]
    assert Assignment.objects.get(public=public).state == "submitted"
    open_judging_page(page, campaign).wait_for_selector(rejected_message(2))
    settle(page)
    answer_by_keyboard(page, "5")
    assert len(wait_for_answers(page, campaign, 2)) == 2
    page.goto("/my/")
    page.wait_for_selector(rejected_message(2))
    with page.expect_download() as download:
        page.click("button:text('Download')")
    rows = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert [row["answer"] for row in rows] == [{"naturalness": 4}, {"naturalness": 4}]
    assert all(row["why"] for row in rows)
    page.click(DISCARD)
    page.click(DISCARD_PERMANENTLY)
    assert page.evaluate("Object.keys(localStorage).filter(key => key.includes('outbox'))") == []


@pytest.mark.promise("draft")
def test_unsent_text_is_sent_only_by_its_own_page(cast: Cast, page_for: Open) -> None:
    """*My work* sends only answers: the result of sending a text must be shown in its editor."""
    page = page_for(cast.annotator)
    page.goto("/my/")
    is_still_unsent = """() => {
      const key = "evalapp.outbox." + document.getElementById("unsent").dataset.writing + ".x";
      localStorage.setItem(key, JSON.stringify({id: "x", at: 1, kind: "text", url: "/nowhere/", body: {text: "t"}}));
      window.dispatchEvent(new Event("online"));
      return new Promise((done) => setTimeout(() => done(localStorage.getItem(key) !== null), 1000));
    }"""
    assert page.evaluate(is_still_unsent)
