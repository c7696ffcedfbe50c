"""The judging page in a browser: keyboard, drafts, the outbox of answers, conflicts, page weight."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from annotation.models import Assignment, Comparison, ItemFlag, Judgement
from annotation.services.campaigns import pause_campaign
from annotation.services.judging import get_next_assignment
from tests.browser.judging_page import (
    ANSWERED_BEFORE,
    CORRECTION_STORED,
    NOT_AS_EXPECTED,
    NOTHING_LEFT,
    SAVED,
    SIGNED_OUT,
    UNANSWERED,
    WAITING,
    get_answers,
    get_card_id,
    offline_status,
    open_judging_page,
    open_judging_page_with_next,
    settle,
    wait_for_answers,
)
from tests.cast import Cast
from tests.judging import ONE_QUESTION, PRACTICE, SYSTEMS, open_comparison, open_rating

pytestmark = pytest.mark.browser
Open = Callable[..., Any]


def test_keyboard_only_rating(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, items=3)
    page = open_judging_page(page_for(cast.annotator), campaign)
    for number in range(6):
        before = get_card_id(page)
        page.keyboard.press("4")
        # The focus is on the next question, so the next key answers it.
        assert page.evaluate("document.activeElement.name") == "answer.relevance"
        page.keyboard.press("2")
        assert page.evaluate("document.activeElement.hasAttribute('data-submit')")
        page.keyboard.press("Enter")
        if number < 5:
            page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
            page.wait_for_selector("article[data-id]")
    page.wait_for_selector(NOTHING_LEFT)
    assert get_answers(campaign) == [{"naturalness": 4, "relevance": 2}] * 6
    expect(page.locator("#done-count")).to_have_text("6", use_inner_text=True)


def test_next_text_is_prefetched(cast: Cast, page_for: Open) -> None:
    """The next text is prefetched while one is judged, so Enter shows it even offline. Later ones arrive with the
    confirmation of each answer, without further requests."""
    campaign = open_rating(cast, items=8, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if "?after=" in request.url else None)
    with page.expect_response(lambda response: "?after=" in response.url) as response:
        open_judging_page(page, campaign)
    for number in range(1, 4):
        response.value.finished()
        before = get_card_id(page)
        page.context.set_offline(True)
        page.keyboard.press("3")
        page.keyboard.press("Enter")
        page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
        assert get_card_id(page)
        with page.expect_response(lambda response: response.url.endswith("/submit/")) as response:
            page.context.set_offline(False)
        wait_for_answers(page, campaign, number)
    assert len(requests) == 1


def test_double_click_submits_once_and_leaves_the_next_text_alone(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, items=3, aspects=ONE_QUESTION)
    page = open_judging_page_with_next(page_for(cast.annotator), campaign)
    settle(page)
    page.keyboard.press("3")
    before = get_card_id(page)
    page.locator("button[data-submit]").dblclick()
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
    wait_for_answers(page, campaign, 1)
    expect(page.locator(UNANSWERED)).to_have_count(0)
    assert get_answers(campaign) == [{"naturalness": 3}]


def test_pairwise_keys(cast: Cast, page_for: Open) -> None:
    campaign = open_comparison(cast, items=4)
    page = open_judging_page(page_for(cast.annotator), campaign)
    for key, verdict in (("ArrowLeft", "a"), ("d", "b"), ("=", "tie"), ("x", "both_bad")):
        before = get_card_id(page)
        page.keyboard.press(key)
        assert page.evaluate("document.querySelector('fieldset[data-aspect] input:checked').value") == verdict
        page.keyboard.press("Enter")
        page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
    assert wait_for_answers(page, campaign, 4) == [{"quality": verdict} for verdict in ("a", "b", "tie", "both_bad")]


def test_texts_of_a_comparison_look_alike(cast: Cast, page_for: Open) -> None:
    campaign = open_comparison(cast)
    page = open_judging_page(page_for(cast.annotator), campaign)
    looks = page.evaluate(
        """[...document.querySelectorAll('.sides .text')].map(text => {
          const style = getComputedStyle(text);
          return [text.getBoundingClientRect().top, style.fontSize, style.color, style.fontWeight].join() })"""
    )
    assert len(looks) == 2
    assert looks[0] == looks[1]


def test_answer_on_key(cast: Cast, page_for: Open) -> None:
    campaign = open_comparison(cast, items=2, options={"answer_on_key": True})
    page = open_judging_page(page_for(cast.annotator), campaign)
    before = get_card_id(page)
    page.keyboard.press("a")
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
    # Caps Lock does not change the meaning of a key.
    page.evaluate(
        "document.body.dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'X', modifierCapsLock: true, bubbles: true, cancelable: true}))"
    )
    page.wait_for_selector(NOTHING_LEFT)
    assert get_answers(campaign) == [{"quality": "a"}, {"quality": "both_bad"}]


@pytest.mark.promise("submission")
def test_a_key_that_is_held_down_answers_one_question(cast: Cast, page_for: Open) -> None:
    campaign = open_comparison(cast, items=3, options={"answer_on_key": True})
    page = open_judging_page(page_for(cast.annotator), campaign)
    before = get_card_id(page)
    page.keyboard.down("a")
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
    for _ in range(5):
        page.keyboard.down("a")  # a keyboard repeats a key that is held down
        page.wait_for_timeout(50)
    assert len(wait_for_answers(page, campaign, 1)) == 1
    page.keyboard.up("a")
    page.keyboard.press("d")
    assert wait_for_answers(page, campaign, 2) == [{"quality": "a"}, {"quality": "b"}]


def test_sleep_does_not_count_as_time_spent(cast: Cast, page_for: Open) -> None:
    page = page_for(cast.annotator)
    page.clock.install(time="2026-03-01T12:00:00Z")
    open_judging_page(page, open_rating(cast))
    # The mouse moves again after an hour of sleep; then the system clock is set back.
    for index, hour in enumerate((13, 11)):
        page.clock.set_system_time(f"2026-03-01T{hour}:00:00Z")
        page.mouse.move(10 * index + 10, 10)
        page.wait_for_timeout(1200)
        minutes, seconds = page.inner_text("#elapsed").split(":")
        assert (int(minutes), int(seconds) >= 0) == (0, True)


@pytest.mark.promise("submission")
def test_double_enter_is_one_answer(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = page_for(cast.annotator)
    page.clock.set_fixed_time(
        "2026-03-01T12:00:00Z"
    )  # so that the second Enter counts as immediate even on a busy machine
    open_judging_page_with_next(page, campaign)
    page.keyboard.press("5")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert wait_for_answers(page, campaign, 1) == [{"naturalness": 5}]
    page.wait_for_timeout(300)
    assert get_answers(campaign) == [{"naturalness": 5}]
    expect(page.locator(".errorlist")).to_have_count(0)
    page.clock.set_fixed_time("2026-03-01T12:00:01Z")
    page.keyboard.press("Enter")
    expect(page.locator(UNANSWERED)).to_have_count(1)


@pytest.mark.promise("submission")
def test_double_enter_in_practice_is_one_answer(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, practice=PRACTICE)
    page = page_for(cast.annotator)
    page.clock.set_fixed_time(
        "2026-03-01T12:00:00Z"
    )  # so that the second Enter counts as immediate even on a busy machine
    open_judging_page(page, campaign)
    page.keyboard.press("5")
    page.keyboard.press("4")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_selector(NOT_AS_EXPECTED)
    page.keyboard.press("Enter")  # ignored, because the expected answer has just appeared
    expect(page.locator("#conflict[open]")).to_have_count(0)
    assert len(get_answers(campaign)) == 1
    feedback = page.locator("#stage dd[data-expected='1 to 2'][data-given='4']").inner_text()
    assert re.findall(r"\d", feedback) == ["1", "2", "4"]
    expect(page.locator("#stage")).to_contain_text("It is short.", use_inner_text=True)
    page.clock.set_fixed_time("2026-03-01T12:00:01Z")
    page.keyboard.press("Enter")
    page.wait_for_selector("form.answer")
    expect(page.locator("article")).not_to_contain_text("Practice", use_inner_text=True)


def test_keys_wait_for_the_script_of_a_slow_page(cast: Cast, page_for: Open) -> None:
    """The fixture of these tests holds a key back until the page reads keys."""
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page(page_for(cast.annotator), campaign)

    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.setCacheDisabled", {"cacheDisabled": True})
    slow = {"offline": False, "latency": 1000, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.emulateNetworkConditions", slow)
    page.goto(f"/my/{campaign.pk}/", wait_until="commit")
    page.wait_for_selector("form.answer")
    page.keyboard.press("3")
    expect(page.locator("form.answer input:checked")).to_have_value("3")


@pytest.mark.promise("draft")
def test_offline_and_back(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page_with_next(page_for(cast.annotator), campaign)
    page.context.set_offline(True)
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    page.wait_for_selector(offline_status(1))
    page.keyboard.press("6")
    page.keyboard.press("Enter")
    page.wait_for_selector(WAITING)
    page.wait_for_selector(offline_status(2))
    assert get_answers(campaign) == []
    page.context.set_offline(False)
    page.wait_for_selector("article[data-id]")
    assert wait_for_answers(page, campaign, 2) == [{"naturalness": 3}, {"naturalness": 6}]
    page.wait_for_selector(SAVED)
    expect(page.locator("#done-count")).to_have_text("2", use_inner_text=True)


@pytest.mark.promise("draft")
def test_answers_survive_closing_the_page_offline(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page_with_next(page_for(cast.annotator), campaign)
    page.context.set_offline(True)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    page.wait_for_selector(offline_status(1))
    context = page.context
    page.close()
    context.set_offline(False)
    again = open_judging_page(context.new_page(), campaign)
    assert wait_for_answers(again, campaign, 1) == [{"naturalness": 2}]


@pytest.mark.promise("draft")
def test_draft_is_there_after_reload(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast)
    page = open_judging_page(page_for(cast.annotator), campaign)
    page.keyboard.press("5")
    page.keyboard.press("n")
    page.keyboard.type("a little stiff")
    page.wait_for_selector(SAVED)
    page.reload()
    expect(page.locator("[name='answer.naturalness'][value='5']")).to_be_checked()
    expect(page.locator("#note")).to_have_value("a little stiff")
    assert Assignment.objects.get(public=get_card_id(page)).draft["answer"] == {"naturalness": 5}


@pytest.mark.promise("draft")
def test_draft_follows_to_another_browser(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast)
    page = open_judging_page(page_for(cast.annotator), campaign)
    page.keyboard.press("6")
    page.wait_for_selector(SAVED)
    other = open_judging_page(page_for(cast.annotator), campaign)
    expect(other.locator("[name='answer.naturalness'][value='6']")).to_be_checked()


@pytest.mark.promise("draft")
def test_newer_draft_of_another_device_replaces_the_local_one(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast)
    first, second = (open_judging_page(page_for(cast.annotator), campaign) for _ in range(2))
    for page, value in ((first, 5), (second, 2)):
        page.reload()
        page.check(f"[name='answer.naturalness'][value='{value}']")
        page.wait_for_selector(SAVED)
    first.reload()
    expect(first.locator("[name='answer.naturalness'][value='2']")).to_be_checked()


@pytest.mark.promise("submission")
def test_conflict_between_tabs_asks_which_answer_to_keep(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    first = open_judging_page(page_for(cast.annotator), campaign)
    second = open_judging_page(first.context.new_page(), campaign)
    assert get_card_id(first) == get_card_id(second)
    first.keyboard.press("2")
    first.keyboard.press("Enter")
    assert wait_for_answers(first, campaign, 1) == [{"naturalness": 2}]
    second.bring_to_front()
    second.keyboard.press("6")
    second.keyboard.press("Enter")
    second.wait_for_selector("#conflict[open]")
    question = ONE_QUESTION[0]["question"]
    expect(second.locator("[data-mine]")).to_contain_text(f"{question} 6", use_inner_text=True)
    expect(second.locator("[data-theirs]")).to_contain_text(f"{question} 2", use_inner_text=True)
    expect(second.locator("#saved")).to_have_text("Not saved", use_inner_text=True)
    second.click("[data-replace]")
    for _ in range(1200):
        if get_answers(campaign) == [{"naturalness": 6}]:
            break
        second.wait_for_timeout(50)
    assert get_answers(campaign) == [{"naturalness": 6}]
    assert Judgement.objects.filter(campaign=campaign).count() == 2


@pytest.mark.promise("submission")
def test_keeping_the_stored_answer(cast: Cast, page_for: Open) -> None:
    campaign = open_comparison(cast)
    first = open_judging_page(page_for(cast.annotator), campaign)
    second = open_judging_page(first.context.new_page(), campaign)
    first.keyboard.press("a")
    first.keyboard.press("Enter")
    wait_for_answers(first, campaign, 1)
    second.bring_to_front()
    second.keyboard.press("d")
    second.keyboard.press("Enter")
    second.wait_for_selector("#conflict[open]")
    expect(second.locator("[data-mine]")).to_contain_text("The second", use_inner_text=True)
    second.keyboard.press("Escape")
    expect(second.locator("#conflict[open]")).to_have_count(1)
    second.click("[data-keep]")
    second.wait_for_timeout(200)
    assert get_answers(campaign) == [{"quality": "a"}]


@pytest.mark.parametrize("kind", ["flag", "skip"])
def test_esc_returns_from_flag_and_skip(cast: Cast, page_for: Open, kind: str) -> None:
    """In place, Esc closes the dialog and what was typed stays. On the page, Esc first leaves a field that has text;
    otherwise it returns to the judging page."""
    campaign = open_rating(cast)
    page = open_judging_page(page_for(cast.annotator), campaign)
    card, field = get_card_id(page), page.locator("main :is(#flag-text, #skip-reason):visible")
    for _ in range(2):
        page.keyboard.press("f" if kind == "flag" else "s")
        page.wait_for_selector(f"dialog#{kind}[open]")
        page.keyboard.press("Escape")
        page.wait_for_selector(f"dialog#{kind}[open]", state="detached")
    page.click(f"[data-opens={kind}]")
    field.fill("half a remark")
    page.click(f"dialog#{kind} [data-close]")
    page.click(f"[data-opens={kind}]")
    expect(field).to_have_value("half a remark")
    assert get_card_id(page) == card
    page.goto(f"/my/{campaign.pk}/{card}/{kind}/")
    page.keyboard.press("Escape")
    page.wait_for_url(f"**/my/{campaign.pk}/")
    page.goto(f"/my/{campaign.pk}/{card}/{kind}/")
    field.fill("half a remark")
    page.keyboard.press("Escape")
    expect(field).to_have_value("half a remark")
    assert page.url.endswith(f"/{kind}/")
    page.keyboard.press("Escape")
    page.wait_for_url(f"**/my/{campaign.pk}/")


def test_revise_skip_and_flag_by_keyboard(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page(page_for(cast.annotator), campaign)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    wait_for_answers(page, campaign, 1)
    settle(page)
    page.keyboard.press("u")
    page.wait_for_selector(ANSWERED_BEFORE)
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    page.wait_for_selector(CORRECTION_STORED)
    assert get_answers(campaign) == [{"naturalness": 3}]
    page.evaluate("window.stays = true")
    skipped = get_card_id(page)
    page.keyboard.press("s")
    page.wait_for_function("() => document.activeElement.id === 'skip-reason'")
    page.keyboard.type("too short")
    page.keyboard.press("Enter")
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=skipped)
    page.keyboard.press("5")
    page.keyboard.press("f")
    page.wait_for_function("() => document.activeElement.matches('dialog input[type=radio]')")
    page.keyboard.press("Enter")  # without a reason
    page.wait_for_selector("dialog#flag [data-error]:not([hidden])")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog#flag[open]", state="detached")
    assert Assignment.objects.get(state="skipped").skip_reason == "too short"
    flag = ItemFlag.objects.get()
    assert (flag.reason, flag.assignment.public) == ("broken", get_card_id(page))
    # The page was not left: the answer is still chosen, and Enter submits it.
    assert page.evaluate("window.stays && document.querySelector('#stage fieldset input:checked').value") == "5"
    settle(page)
    page.keyboard.press("Enter")
    assert wait_for_answers(page, campaign, 2)[-1] == {"naturalness": 5}


def test_skip_without_connection_keeps_the_text(cast: Cast, page_for: Open) -> None:
    page = open_judging_page_with_next(page_for(cast.annotator), open_rating(cast, aspects=ONE_QUESTION))
    card = get_card_id(page)
    page.context.set_offline(True)
    page.keyboard.press("s")
    page.keyboard.type("later")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog#skip [data-error]:not([hidden])")
    expect(page.locator("#skip-reason")).to_have_value("later")
    page.context.set_offline(False)
    page.keyboard.press("Enter")
    page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=card)
    assert Assignment.objects.get(public=card).skip_reason == "later"


@pytest.mark.promise("draft")
def test_signed_out_keeps_the_answer(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page_with_next(page_for(cast.annotator), campaign)
    session = page.context.cookies()
    page.context.clear_cookies(name="sessionid")
    page.keyboard.press("4")
    page.keyboard.press("Enter")
    page.wait_for_selector(SIGNED_OUT)
    assert get_answers(campaign) == []
    page.context.add_cookies(session)
    open_judging_page(page, campaign)
    assert wait_for_answers(page, campaign, 1) == [{"naturalness": 4}]


@pytest.mark.promise("late")
def test_answers_are_accepted_after_the_campaign_was_paused(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    page = open_judging_page_with_next(page_for(cast.annotator), campaign)
    pause_campaign(campaign=campaign, user=cast.researcher)
    for key in "45":
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        settle(page)
    page.wait_for_selector("#stage [data-why=paused]")
    assert get_answers(campaign) == [{"naturalness": 4}, {"naturalness": 5}]


def test_help_and_guidelines_by_key(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast)
    page = open_judging_page(page_for(cast.annotator), campaign)
    page.keyboard.press("?")
    expect(page.locator("dialog#keys[open] kbd", has_text="Enter").first).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    expect(page.locator("dialog#guidelines[open] .markdown")).to_have_text(
        campaign.guidelines.replace("*", ""), use_inner_text=True
    )
    # Keys do not answer while a dialog is open.
    page.keyboard.press("3")
    expect(page.locator("#stage input:checked")).to_have_count(0)


def test_page_is_small_and_names_no_system(cast: Cast, page_for: Open) -> None:
    """The page with all its files is below 60 KB; no response, also to an answer, names a system."""
    campaign = open_rating(cast)
    get_next_assignment(user=cast.annotator, campaign_id=campaign.pk)  # the page of the guidelines does not count
    page = page_for(cast.annotator)
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    sizes: list[float] = []
    bodies: list[str] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.on("response", lambda response: bodies.append(response.url + str(response.all_headers()) + response.text()))
    open_judging_page(page, campaign)
    page.wait_for_timeout(500)
    total = sum(sizes)
    print(f"judging page with all files and the next text: {total / 1000:.1f} KB in {len(sizes)} responses")
    assert total < 60_000
    page.keyboard.press("4")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    wait_for_answers(page, campaign, 1)
    page.wait_for_timeout(300)
    assert any(re.search(r"Text \d-\d", body) for body in bodies)
    for name in SYSTEMS:
        assert not [body for body in bodies if name in body]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100])
def test_accessible_and_without_horizontal_scrolling(
    cast: Cast, page_for: Open, axe: Callable[..., list[str]], scheme: str, width: int
) -> None:
    campaign = open_comparison(cast, aspects=[{"name": "q", "question": "Which?"}, {"name": "r", "question": "And?"}])
    page = open_judging_page(page_for(cast.annotator, width=width, scheme=scheme), campaign)
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_without_script(cast: Cast, page_for: Open) -> None:
    campaign = open_rating(cast)
    page = open_judging_page(page_for(cast.annotator, script=False), campaign)
    page.click("label:has([name='answer.naturalness'][value='3'])")
    page.click("button[data-submit]")
    expect(page.locator("form.answer")).to_contain_text("Answer the question", use_inner_text=True)
    expect(page.locator("[name='answer.naturalness'][value='3']")).to_be_checked()
    page.click("label:has([name='answer.relevance'][value='5'])")
    page.click("button[data-submit]")
    page.wait_for_selector("form.answer")
    assert get_answers(campaign) == [{"naturalness": 3, "relevance": 5}]


def test_generation_against_reference_by_keyboard(cast: Cast, page_for: Open) -> None:
    """Turing test M1: the stored comparison always has the generation as `a`, on whichever side it was shown."""
    campaign = open_comparison(cast, items=3, kind="turing", systems=[SYSTEMS[0]])
    page = open_judging_page(page_for(cast.annotator), campaign)
    expected = []
    for key in ("ArrowLeft", "ArrowRight", "="):
        first = page.text_content(".sides section:first-of-type .text")
        generation_left = first.startswith("Text ")  # references begin with “Answer”
        expected.append("cannot_decide" if key == "=" else "a" if (key == "ArrowLeft") == generation_left else "b")
        before = get_card_id(page)
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        page.wait_for_function("id => document.querySelector('article[data-id]')?.dataset.id !== id", arg=before)
    wait_for_answers(page, campaign, 3)
    rows = Comparison.objects.filter(project=cast.project).order_by("judgement")
    assert list(rows.values_list("verdict", flat=True)) == expected
    assert all(row.output_b_id is None and row.reference is not None for row in rows)
