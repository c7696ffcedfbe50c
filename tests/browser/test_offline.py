"""Answers without connection, without server, without browser: what a person has answered leaves this browser once, in
order, when it can. A real Chromium, a real web process that is killed, a profile that is closed and opened again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from annotation.models import Assignment, Judgement
from annotation.services.campaigns import open_campaign
from tests.browser.conftest import CHROMIUM_ARGUMENTS, PATIENCE, Site
from tests.browser.judging_page import (
    ANSWERED_BEFORE,
    DISCARD,
    DISCARD_PERMANENTLY,
    NO_CONNECTION,
    NOT_STORED_HERE,
    SAVED,
    WAITING,
    answers,
    card_id,
    judging,
    offline,
    rejected,
    settle,
    wait_for_answers,
)
from tests.cast import Cast
from tests.judging import ONE_QUESTION, make_draft, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
CAMPAIGNS = 5


def answer(page: Any, key: str) -> None:
    page.keyboard.press(key)
    page.keyboard.press("Enter")


def fetched_ahead(page: Any) -> None:
    page.wait_for_load_state("networkidle")


@pytest.mark.promise("draft", "submission")
def test_ten_answers_without_connection(cast: Cast, page_for: Open) -> None:
    """Each page holds the text on show and the one after it, so ten answers come from five campaigns in one browser."""
    campaigns = [open_rating(cast, items=3, aspects=ONE_QUESTION)]
    for number in range(1, CAMPAIGNS):
        draft = make_draft(cast, aspects=ONE_QUESTION, name=f"Replies {number}", slug=f"replies-{number}")
        campaigns.append(open_campaign(campaign=draft, user=cast.researcher))
    first = judging(page_for(cast.annotator), campaigns[0])
    pages = [first, *(judging(first.context.new_page(), campaign) for campaign in campaigns[1:])]
    for page in pages:
        fetched_ahead(page)
    first.context.set_offline(True)
    meant = {}
    for number, (page, campaign) in enumerate(zip(pages, campaigns, strict=True)):
        page.bring_to_front()
        keys = (str(1 + number), str(6 - number))
        answer(page, keys[0])
        page.wait_for_function("() => !document.querySelector('form.answer input:checked')")
        answer(page, keys[1])
        page.wait_for_selector(offline(2 * number + 2))
        meant[campaign.pk] = [{"naturalness": int(key)} for key in keys]
    assert not Judgement.objects.exists()
    first.context.set_offline(False)
    for page, campaign in zip(pages, campaigns, strict=True):
        page.wait_for_selector("article[data-id]")
        assert wait_for_answers(page, campaign, 2) == meant[campaign.pk]
    # All tabs sent the same outbox at once, and still each answer is there once, in the order in which it was given.
    order = Judgement.objects.order_by("pk").values_list("campaign", flat=True)
    assert list(order) == [campaign.pk for campaign in campaigns for _ in range(2)]
    pages[-1].reload()
    pages[-1].wait_for_function("() => !Object.keys(localStorage).some(key => key.includes('outbox'))")


@pytest.mark.promise("draft", "submission")
def test_the_web_process_is_killed_and_comes_back(cast: Cast, page_for: Open, site: Site) -> None:
    """Between a draft and its answer, with the page open all the time; nobody touches the page but to judge."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = judging(page_for(cast.annotator), campaign)
    fetched_ahead(page)
    page.keyboard.press("2")
    page.keyboard.press("n")
    page.keyboard.type("half a")
    page.wait_for_selector(SAVED)
    site.kill()
    try:
        page.keyboard.type(" thought")
        page.wait_for_selector(offline())
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(offline(1))
        settle(page)
        answer(page, "5")
        page.wait_for_selector(WAITING)
        assert Assignment.objects.get(order_number=1).draft["answer"] == {"naturalness": 2}
    finally:
        site.start()
    assert wait_for_answers(page, campaign, 2) == [{"naturalness": 2}, {"naturalness": 5}]
    assert Judgement.objects.earliest("pk").note == "half a thought"
    page.wait_for_selector("article[data-id]")
    answer(page, "1")
    assert len(wait_for_answers(page, campaign, 3)) == 3


@contextmanager
def window(browser: Any, chromium: str, site: Site, folder: Path) -> Iterator[Any]:
    """A browser of its own with a profile that lies in `folder`."""
    context = browser.browser_type.launch_persistent_context(
        folder, executable_path=chromium, args=list(CHROMIUM_ARGUMENTS), base_url=site.url
    )
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.mark.promise("draft", "submission")
def test_the_browser_is_closed_with_unsent_answers(
    cast: Cast, site: Site, db: None, browser: Any, chromium_path: str, tmp_path: Path
) -> None:
    """Two answers that could not be sent and a conflict that nobody has decided; then the browser is closed."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    client = Client()
    client.force_login(cast.annotator)
    session = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site.url}
    with window(browser, chromium_path, site, tmp_path) as context:
        context.add_cookies([{**session, "expires": time.time() + 86_400}])
        first = judging(context.new_page(), campaign)
        second = judging(context.new_page(), campaign)
        doubted = card_id(first)
        first.bring_to_front()
        answer(first, "2")
        wait_for_answers(first, campaign, 1)
        second.bring_to_front()
        answer(second, "6")
        second.wait_for_selector("#conflict[open]")
        first.bring_to_front()
        first.reload()  # the conflict was told in the other tab; here, too, it waits for a decision
        first.wait_for_selector("#conflict[open]")
        first.evaluate("document.getElementById('conflict').close()")
        fetched_ahead(first)
        context.set_offline(True)
        answer(first, "3")
        first.wait_for_selector(offline(1))
        settle(first)
        answer(first, "4")
        first.wait_for_selector(offline(2))
    assert answers(campaign) == [{"naturalness": 2}]
    with window(browser, chromium_path, site, tmp_path) as context:
        page = context.new_page()
        page.goto("/my/")
        page.wait_for_selector("text=2 saved answers were sent. 1 answer needs your decision")
        page.goto(f"/my/{campaign.pk}/")
        page.wait_for_selector("#conflict[open]")
        assert "How natural is it? 6" in page.inner_text("[data-mine]")
        assert "How natural is it? 2" in page.inner_text("[data-theirs]")
        page.click("[data-replace]")
        page.wait_for_function("() => !Object.keys(localStorage).some((key) => key.includes('outbox'))")
    found = Judgement.objects.filter(campaign=campaign, current=True).order_by("assignment__order_number")
    assert list(found.values_list("answer__naturalness", flat=True)) == [6, 3, 4]
    assert Assignment.objects.get(public=doubted).version == 2


@pytest.mark.promise("submission")
def test_back_and_forward_in_the_browser(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    page.goto("/my/")
    judging(page, campaign)
    fetched_ahead(page)
    first = card_id(page)
    answer(page, "2")
    wait_for_answers(page, campaign, 1)
    page.go_back()
    page.go_forward()
    page.wait_for_selector("article[data-id]")
    assert card_id(page) != first
    settle(page)
    answer(page, "5")
    assert wait_for_answers(page, campaign, 2) == [{"naturalness": 2}, {"naturalness": 5}]
    assert Judgement.objects.filter(campaign=campaign).count() == 2


@pytest.mark.promise("draft")
def test_a_browser_that_keeps_nothing(cast: Cast, page_for: Open) -> None:
    """Its store is full or forbidden: answers leave all the same, and the page tells of one that waits."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    page.add_init_script("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };")
    judging(page, campaign)
    fetched_ahead(page)
    answer(page, "2")
    assert wait_for_answers(page, campaign, 1) == [{"naturalness": 2}]
    page.wait_for_selector(SAVED)
    fetched_ahead(page)
    settle(page)
    page.context.set_offline(True)
    answer(page, "3")
    page.wait_for_selector(NOT_STORED_HERE)
    page.context.set_offline(False)
    assert wait_for_answers(page, campaign, 2) == [{"naturalness": 2}, {"naturalness": 3}]


@pytest.mark.promise("draft", "submission")
@pytest.mark.parametrize(
    ("reached", "body"), [(True, '{"draft_version": 1, "id'), (False, "<html>Sign in to this network.</html>")]
)
def test_good_news_that_nobody_can_read_is_no_confirmation(
    cast: Cast, page_for: Open, reached: bool, body: str
) -> None:
    """The server died while it confirmed, or a wireless network answered in its place: a draft and an answer are sent
    again, and each is stored once."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    cut: list[tuple[str, str]] = []

    def spoil_the_first(route: Any) -> None:
        if (route.request.method, route.request.url) in cut:
            route.continue_()
            return
        cut.append((route.request.method, route.request.url))
        if reached:
            route.fetch()
        route.fulfill(status=200, content_type="application/json" if reached else "text/html", body=body)

    page.route("**/api/v1/assignments/**", spoil_the_first)
    page.route("**/submit/", spoil_the_first)
    judging(page, campaign)
    fetched_ahead(page)
    page.keyboard.press("2")
    page.wait_for_selector(offline())
    page.wait_for_selector(SAVED)
    (stored,) = Assignment.objects.filter(draft_version__gt=0)
    assert stored.draft["answer"] == {"naturalness": 2}
    assert page.get_attribute("article[data-id]", "data-draft-version") == str(stored.draft_version)
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    page.wait_for_selector(offline(1))
    assert wait_for_answers(page, campaign, 1) == [{"naturalness": 3}]
    page.wait_for_selector(SAVED)
    assert page.evaluate("Object.keys(localStorage).filter(key => key.includes('outbox'))") == []
    assert Judgement.objects.count() == 1
    assert [method for method, _ in cut] == ["PATCH", "POST"]


@pytest.mark.promise("draft", "submission")
def test_a_correction_whose_confirmation_was_cut_is_the_same_one_when_it_comes_again(
    cast: Cast, page_for: Open
) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = judging(page_for(cast.annotator), campaign)
    answer(page, "2")
    wait_for_answers(page, campaign, 1)
    settle(page)
    page.keyboard.press("u")
    page.wait_for_selector(ANSWERED_BEFORE)

    def cut(route: Any) -> None:
        route.fetch()
        route.fulfill(status=200, content_type="application/json", body='{"id": 1, "vers')

    page.route("**/submit/", cut)
    answer(page, "3")
    page.wait_for_selector(NO_CONNECTION)
    assert answers(campaign) == [{"naturalness": 3}]  # which nobody has told the page
    page.unroute("**/submit/")
    settle(page)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert not page.locator("#conflict[open]").count()
    assert Judgement.objects.count() == 2


@pytest.mark.promise("draft")
def test_a_refused_answer_in_a_full_store_is_asked_for_once_and_gives_way_to_a_new_one(
    cast: Cast, page_for: Open
) -> None:
    """The reason does not fit beside the answer any more: the answer must not be sent for ever. Its text comes again,
    and what is said of it then stands in its place."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    page.add_init_script(
        """const put = Storage.prototype.setItem;
        Storage.prototype.setItem = function (key, value) {
          if (value.includes('"problem"')) throw new DOMException('full', 'QuotaExceededError');
          put.call(this, key, value);
        };"""
    )
    refused: list[str] = []

    def refuse(route: Any) -> None:
        refused.append(route.request.url)
        route.fulfill(status=400, content_type="application/problem+json", body='{"detail": "Not like that."}')

    page.route("**/submit/", refuse)
    judging(page, campaign)
    fetched_ahead(page)
    first = card_id(page)
    answer(page, "2")
    page.wait_for_selector(rejected(1))
    page.wait_for_timeout(500)
    assert len(refused) == 1
    page.unroute("**/submit/")
    settle(page)
    answer(page, "3")
    page.wait_for_selector(f"article[data-id='{first}']")
    assert page.is_visible(rejected(1))
    settle(page)
    answer(page, "4")
    assert wait_for_answers(page, campaign, 2) == [{"naturalness": 3}, {"naturalness": 4}]
    page.wait_for_selector(rejected(1), state="hidden")
    # The server has both; the browser has when it has read that.
    page.wait_for_function("() => !Object.keys(localStorage).some(key => key.includes('outbox'))")


def keep_in_old_format(page: Any, urls: list[str], key: int) -> str:
    """What the page kept before each answer had a place of its own: one list for all. An answer to each address, then
    one to the text on show."""
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
            [urls, key],
        )
    )


@pytest.mark.promise("draft")
def test_answers_kept_by_an_earlier_version_leave(cast: Cast, page_for: Open) -> None:
    """Two of them are refused: the right is gone (403), the text is gone (404). They hold up nobody, and stay until the
    person throws them away."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = judging(page_for(cast.annotator), campaign)
    refused = [f"/api/v1/projects/{cast.project.slug}/campaigns/", "/api/v1/assignments/gone/submit/"]
    kept = keep_in_old_format(page, refused, 4)
    page.reload()
    assert wait_for_answers(page, campaign, 1) == [{"naturalness": 4}]
    assert Assignment.objects.get(public=kept).state == "submitted"
    judging(page, campaign).wait_for_selector(rejected(2))
    settle(page)
    answer(page, "5")
    assert len(wait_for_answers(page, campaign, 2)) == 2
    page.goto("/my/")
    page.wait_for_selector(rejected(2))
    with page.expect_download() as download:
        page.click("button:text('Download')")
    rows = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert [row["answer"] for row in rows] == [{"naturalness": 4}, {"naturalness": 4}]
    assert all(row["why"] for row in rows)
    page.click(DISCARD)
    page.click(DISCARD_PERMANENTLY)
    assert page.evaluate("Object.keys(localStorage).filter(key => key.includes('outbox'))") == []


@pytest.mark.promise("draft")
def test_a_text_that_waits_is_left_to_its_own_page(cast: Cast, page_for: Open) -> None:
    """*My work* sends answers, no texts: what becomes of a text has to be seen in its editor."""
    page = page_for(cast.annotator)
    page.goto("/my/")
    kept = """() => {
      const key = "evalapp.outbox." + document.getElementById("unsent").dataset.writing + ".x";
      localStorage.setItem(key, JSON.stringify({id: "x", at: 1, kind: "text", url: "/nowhere/", body: {text: "t"}}));
      window.dispatchEvent(new Event("online"));
      return new Promise((done) => setTimeout(() => done(localStorage.getItem(key) !== null), 1000));
    }"""
    assert page.evaluate(kept)
