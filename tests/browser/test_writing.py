"""The page for writing references in a browser: keyboard, live scores, arms, two annotators on one item, a worker that
dies, offline work. Everything is real except the model, which `FakeWorker` replaces by a rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from annotation.models import WritingAttempt, WritingCampaign, WritingFlag, WritingTask, WrittenReference
from annotation.services.campaigns import create_writing, open_campaign
from evalapp.accounts.roles import Role
from tests.browser.conftest import TIMEOUT_MS, Site, new_database, redis_database_url, run_site
from tests.browser.judging_page import BEGIN
from tests.browser.live_worker import FakeWorker
from tests.cast import Cast, join, person
from tests.factories import make_items
from tests.retrieval.corpora import make_corpus
from tests.scoring.training import make_trained
from tests.writing import open_task_view, send

pytestmark = [pytest.mark.browser, pytest.mark.server("redis")]
Open = Callable[..., Any]
PLAIN = "A plain answer from the corpus."
PAIRS = (
    ("Hello number 0? Yes?", "A good answer from the corpus."),
    ("Hello number 1? Yes?", PLAIN),
    ("Hello you?", "A bad answer from the corpus."),
)
#: Selectors of messages.
RAISED = "#outcome.good:has-text('0.250'):has-text('0.375')"
WITH_TEXT = "#score:has-text('0.375'):has-text('+0.125')"
FLAGGED = "#messages [data-level=success]"
NOTHING_LEFT = "#stage [data-why=empty]"
SCORE_PATTERN = re.compile(r"\d\.\d{3}|score|reliab", re.IGNORECASE)


@pytest.fixture(scope="module")
def queue_url() -> str:
    return redis_database_url(15)


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, queue_url: str) -> Iterator[Site]:
    """A web process for this module, with a queue."""
    folder = tmp_path_factory.mktemp("writing-site")
    with new_database(request, folder) as database:
        yield from run_site(folder, database, REDIS_URL=queue_url)


@pytest.fixture
def worker(db: None, queue_url: str) -> Iterator[FakeWorker]:
    worker = FakeWorker(queue_url)
    worker.client.flushdb()
    worker.start()
    yield worker
    worker.kill()


@pytest.fixture
def open_writing(cast: Cast, site: Site, settings: Any, worker: FakeWorker) -> Callable[..., WritingCampaign]:
    """An open campaign on the site, with a corpus and an evaluator."""

    def start(items: int = 1, pairs: Any = PAIRS, **options: Any) -> WritingCampaign:
        settings.CORPORA_DIR = site.folder / "corpora"
        settings.ARTEFACTS_DIR = site.folder / "artefacts"
        make_items(cast.project, items, 1)
        make_corpus(cast.project, "replies", pairs)
        make_trained(cast.project, "rater", "ream")
        plan = {
            "name": "More replies", "evaluator": "rater", "corpus": "replies", "guidelines": "Be kind.",
            "options": {"target": 5, **options},
        }  # fmt: skip
        campaign = create_writing(user=cast.researcher, project=cast.project, plan=plan)
        return open_campaign(user=cast.researcher, campaign=campaign)

    return start


def open_writing_page(page: Any, campaign: WritingCampaign) -> Any:
    """Open the page; on the first visit, begin after the guidelines."""
    page.goto(f"/my/writing/{campaign.pk}/")
    begin = page.locator(BEGIN)
    if begin.count():
        begin.click()
    page.wait_for_selector("article[data-id]")
    page.wait_for_load_state()
    return page


def wait_until(page: Any, condition: Callable[[], bool]) -> None:
    for _ in range(TIMEOUT_MS // 50):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"The condition is not met after {TIMEOUT_MS / 1000:.0f} seconds.")


def get_references_text(page: Any) -> str:
    return str(page.inner_text("#references"))


def test_keyboard_only_with_scores(cast: Cast, page_for: Open, open_writing: Any, axe: Any) -> None:
    campaign = open_writing(max_attempts=2, target=4)
    page = open_writing_page(page_for(cast.annotator), campaign)
    page.wait_for_selector("#candidates .gain")
    expect(page.locator("#now")).to_have_text("0.250", use_inner_text=True)
    gains = page.locator("#candidates .gain").all_inner_texts()
    assert sorted(gains) == ["+0.000", "+0.125 ▲", "−0.125 ▽"]
    # A candidate that does not improve the reliability has to be edited.
    page.keyboard.press("c")
    page.keyboard.press("2")
    expect(page.locator("#text")).to_have_value(PLAIN)
    page.wait_for_selector("#score[data-state=known]")
    expect(page.locator("#score")).to_contain_text("not more reliable", use_inner_text=True)
    page.keyboard.press("Control+Enter")
    # The refusal returns the focus to the editor, where “e” would be a letter.
    page.wait_for_selector("#text:focus")
    page.wait_for_selector("#attempts:text-is('2')")
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.keyboard.type(" It is good.")
    page.wait_for_selector(WITH_TEXT)
    expect(page.locator("#with-text")).to_contain_text("→ 0.375 ▲", use_inner_text=True)
    assert axe(page) == []
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(RAISED)
    expect(page.locator("#text")).to_have_value("")
    assert f"{PLAIN} It is good.\nyours, +0.125" in get_references_text(page)
    expect(page.locator("svg.growth circle")).to_have_count(1)
    # Undone and added again.
    page.keyboard.press("u")
    page.wait_for_selector("text=Taken back.")
    assert "It is good" not in get_references_text(page)
    expect(page.locator("#text")).to_have_value(f"{PLAIN} It is good.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(RAISED)
    page.wait_for_selector("#candidates .gain")
    # Another candidate is dropped, and texts written by the annotator complete the item.
    page.keyboard.press("c")
    page.keyboard.press("1")
    page.keyboard.press("x")
    page.wait_for_function("() => document.getElementById('text').value === ''")
    page.keyboard.press("e")
    page.keyboard.type("My own good text.")
    page.keyboard.press("Control+Enter")
    page.wait_for_function("() => document.getElementById('references').textContent.includes('My own good text.')")
    page.keyboard.press("e")
    page.keyboard.type("One more good text.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(NOTHING_LEFT)
    rows = list(WritingAttempt.objects.order_by("pk").values_list("decision", "edited", "relevant"))
    assert [decision for decision, _, _ in rows] == ["edit", "accept", "accept", "drop", "accept", "accept"]
    assert (WritingAttempt.objects.get(decision="drop").seconds or 0) > 0
    first = WritingAttempt.objects.order_by("pk")[1]
    assert (first.score_before, first.score_after, first.source["corpus"]) == (0.25, 0.375, "replies")


VISIBLE_KEY_CAPS = """() => [...document.querySelectorAll('#stage kbd, header kbd')]
    .filter((cap) => cap.checkVisibility({ visibilityProperty: true })).map((cap) => cap.textContent)"""


def test_displayed_keys_never_type_into_the_text(cast: Cast, page_for: Open, open_writing: Any) -> None:
    """Choose a candidate with `c2`, mark it as relevant with `y`, edit and add it. Only working keys are displayed."""
    page = open_writing_page(page_for(cast.annotator), open_writing(max_attempts=3))
    page.wait_for_selector("#candidates .gain")
    assert {"c2", "f", "s", "d", "?"} <= set(page.evaluate(VISIBLE_KEY_CAPS))
    page.keyboard.press("c")
    page.keyboard.press("2")
    assert {"y", "n", "x", "c2"} <= set(page.evaluate(VISIBLE_KEY_CAPS))
    page.keyboard.press("y")
    expect(page.locator("input[name=relevant][value=yes]")).to_be_checked()
    expect(page.locator("#text")).to_have_value(PLAIN)
    # The focus is in the editor, where single keys type, so only other keys are displayed.
    assert page.evaluate("document.activeElement.id") == "text"
    assert page.evaluate(VISIBLE_KEY_CAPS) == ["Esc", "Ctrl", "Enter"]
    page.keyboard.type(" yn, dusk, good")
    # Esc leaves the editor; text, candidate and answer remain, and nothing is stored.
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "heading"
    page.keyboard.press("Escape")
    expect(page.locator("#text")).to_have_value(f"{PLAIN} yn, dusk, good")
    expect(page.locator("input[name=relevant][value=yes]")).to_be_checked()
    page.keyboard.press("n")
    expect(page.locator("input[name=relevant][value=no]")).to_be_checked()
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(RAISED)
    attempt = WritingAttempt.objects.get()
    assert (attempt.decision, attempt.relevant) == ("accept", False)


def test_candidate_chosen_by_mouse_can_be_edited_at_once(cast: Cast, page_for: Open, open_writing: Any) -> None:
    page = open_writing_page(page_for(cast.annotator), open_writing())
    page.locator("#candidates .use").nth(1).click()
    page.keyboard.type(" So dusk.")
    expect(page.locator("#text")).to_have_value(f"{PLAIN} So dusk.")


def test_keys_of_an_input_method_are_ignored(cast: Cast, page_for: Open, open_writing: Any) -> None:
    page = open_writing_page(page_for(cast.annotator), open_writing(max_attempts=3))
    page.wait_for_selector("#candidates .gain")
    for key in "c2y":
        page.keyboard.press(key)
    session = page.context.new_cdp_session(page)
    session.send("Input.imeSetComposition", {"text": "がんばる", "selectionStart": 4, "selectionEnd": 4})
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(500)
    assert page.evaluate("document.activeElement.id") == "text"
    expect(page.locator("#text")).to_have_value(f"{PLAIN}がんばる")
    assert not WritingAttempt.objects.exists()
    page.keyboard.insert_text("頑張る good")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#references >> text=頑張る good")
    assert WritingAttempt.objects.get().decision == "accept"


def test_one_undo_button_and_no_stale_message(cast: Cast, page_for: Open, open_writing: Any) -> None:
    page = open_writing_page(page_for(cast.annotator), open_writing(items=2, arms=["control"], target=3))
    page.keyboard.press("f")
    page.wait_for_function("() => document.activeElement.matches('input[type=radio]')")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_selector(FLAGGED)
    expect(page.locator("[data-opens=flag][data-done]")).to_have_count(1)
    page.fill("#text", "Text one.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#references >> text=Text one.")
    expect(page.locator("#messages")).to_have_text("", use_inner_text=True)
    page.fill("#text", "Text two.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#last-text q:text-is('Text two.')")
    page.fill("#text", "Text three.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#references >> text=Text three.")
    expect(page.locator("[data-key=u]")).to_have_count(1)
    page.keyboard.press("u")
    page.wait_for_selector("text=Taken back.")
    expect(page.locator("#text")).to_have_value("Text three.")


def test_control_arm_never_shows_a_score(cast: Cast, page_for: Open, open_writing: Any, worker: FakeWorker) -> None:
    campaign = open_writing(arms=["control"])
    page = page_for(cast.annotator)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    open_writing_page(page, campaign)
    page.wait_for_selector("#candidates .use kbd")
    page.keyboard.press("c")
    page.keyboard.press("3")
    page.keyboard.press("e")
    page.keyboard.type(" And more.")
    page.wait_for_timeout(500)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#references >> text=And more.")
    text = page.inner_text("body").replace(page.inner_text("#candidates"), "")
    assert not SCORE_PATTERN.search(text)
    expect(page.locator("#candidates .gain, #score, #reliability")).to_have_count(0)
    assert not [url for url in requests if "/score/" in url]
    attempt = WritingAttempt.objects.get()
    assert (attempt.decision, attempt.improved, attempt.score_before) == ("accept", None, 0.25)


def test_flag_by_keyboard_keeps_the_typed_text(cast: Cast, page_for: Open, open_writing: Any) -> None:
    page = open_writing_page(page_for(cast.annotator), open_writing(arms=["control"]))
    page.keyboard.press("e")
    typed = "Half of a flagged text"
    page.keyboard.type(typed)
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.wait_for_function("() => document.activeElement.matches('input[type=radio]')")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_selector(FLAGGED)
    expect(page.locator("#text")).to_have_value(typed)
    assert WritingFlag.objects.get().reason == "broken"


def test_skip_in_place_and_list_of_own_texts_by_keyboard(cast: Cast, page_for: Open, open_writing: Any) -> None:
    page = open_writing_page(page_for(cast.annotator), open_writing(items=2, arms=["control"]))
    page.fill("#text", "And more.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#references >> text=And more.")
    first = page.get_attribute("article[data-id]", "data-id")
    page.keyboard.press("s")
    page.wait_for_function("() => document.activeElement.id === 'skip-reason'")
    page.keyboard.type("enough")
    page.keyboard.press("Enter")
    page.wait_for_function("id => ![undefined, id].includes(document.querySelector('article')?.dataset.id)", arg=first)
    page.wait_for_selector("#outcome.good")
    assert WritingTask.objects.get(public=first).skip_reason == "enough"
    page.keyboard.press("l")
    page.click("[data-text] a:has-text('And more.')")
    page.wait_for_selector(f"article[data-id='{first}'][data-state=skipped] >> text=And more.")


@pytest.mark.parametrize(("width", "height"), [(360, 640), (640, 360)], ids=["phone", "200 % zoom"])
def test_actions_stay_in_view(cast: Cast, page_for: Open, open_writing: Any, width: int, height: int) -> None:
    page = open_writing_page(page_for(cast.annotator, width=width, height=height), open_writing())
    box = page.locator("form.answer .bar").bounding_box()
    assert 0 < box["y"] < box["y"] + box["height"] <= height
    assert box["height"] < height / 3
    page.click("[data-submit]")
    page.wait_for_selector("#outcome.bad")  # no text yet
    field = page.locator("#text").bounding_box()
    assert 0 <= field["y"] < field["y"] + field["height"] <= page.locator("form.answer .bar").bounding_box()["y"]


def test_rejected_text_is_not_shown_as_saved(cast: Cast, page_for: Open, open_writing: Any) -> None:
    page = open_writing_page(page_for(cast.annotator), open_writing(arms=["control"]))
    page.fill("#text", "Half of a text")
    page.wait_for_selector("#saved >> text=/Saved \\d/")
    page.fill("#text", "A long text. " * 6_000)
    page.wait_for_selector("#saved:has-text('too long')")
    page.wait_for_timeout(1500)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#outcome.bad:has-text('10,000')")
    expect(page.locator("#saved")).to_have_text("Not added", use_inner_text=True)
    # Nothing was stored, so the time counts for the next text.
    page.fill("#text", "A short text.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#references >> text=A short text.")
    expect(page.locator("#saved")).to_have_text(re.compile(r"^Saved \d"), use_inner_text=True)
    assert (WritingAttempt.objects.get().seconds or 0) >= 1.5


def test_two_annotators_on_one_item(cast: Cast, page_for: Open, open_writing: Any) -> None:
    campaign = open_writing()
    otto = person("otto")
    join(cast.project, otto, Role.ANNOTATOR)
    mine, theirs = (open_writing_page(page_for(user), campaign) for user in (cast.annotator, otto))
    mine.fill("#text", "Half of a good")
    theirs.fill("#text", "Otto's good text.")
    theirs.keyboard.press("Control+Enter")
    theirs.wait_for_selector("#references >> text=Otto's good text.")
    mine.wait_for_selector("#references >> text=by another annotator")
    expect(mine.locator("#text")).to_have_value("Half of a good")
    assert mine.evaluate("document.activeElement.id") == "text"
    expect(mine.locator("#now")).to_have_text("0.375", use_inner_text=True)
    # Both add a text at the same time; neither overwrites the other.
    mine.fill("#text", "Half of a good text.")
    theirs.fill("#text", "Another good text.")
    for page in (mine, theirs):
        page.keyboard.press("Control+Enter")
    mine.wait_for_selector("#references >> text=Half of a good text.")
    wait_until(mine, lambda: WrittenReference.objects.filter(state="shown").count() == 3)


def test_worker_killed_while_typing(cast: Cast, page_for: Open, open_writing: Any, worker: FakeWorker) -> None:
    campaign = open_writing()
    page = open_writing_page(page_for(cast.annotator), campaign)
    page.keyboard.press("e")
    parts = ["A good", " text, written on", " without any score."]
    page.keyboard.type(parts[0])
    page.wait_for_selector("#score[data-state=known]")
    worker.kill()
    page.keyboard.type(parts[1])
    page.wait_for_selector("#score[data-state=none]")
    expect(page.locator("#score")).to_contain_text("Score not available", use_inner_text=True)
    page.keyboard.type(parts[2])
    expect(page.locator("#text")).to_have_value("".join(parts))
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#outcome.warn")
    assert WritingTask.objects.get().draft["text"] == "".join(parts)
    assert not WritingAttempt.objects.exists()
    page.click("#unscored")
    page.wait_for_selector("#outcome.good")
    attempt = WritingAttempt.objects.get()
    assert (attempt.improved, attempt.unscored, attempt.score_after) == (None, True, None)
    worker.start()
    page.keyboard.press("e")
    page.keyboard.type("Back with a good one.")
    page.wait_for_selector("#score[data-state=known]")


def test_unconfirmed_undo_is_not_reported_as_failed(cast: Cast, page_for: Open, open_writing: Any) -> None:
    campaign = open_writing(max_attempts=2, target=4)
    page = open_writing_page(page_for(cast.annotator), campaign)
    page.wait_for_selector("#candidates .gain")
    page.keyboard.press("c")
    page.keyboard.press("2")
    page.keyboard.press("e")
    page.keyboard.type(" It is good.")
    page.wait_for_selector(WITH_TEXT)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(RAISED)

    def truncate_response(route: Any) -> None:
        route.fetch()
        route.fulfill(status=200, content_type="application/json", body='{"message": "Taken ba')

    page.route("**/back/", truncate_response)
    page.keyboard.press("u")
    page.wait_for_selector("#outcome.bad")
    assert "It is good" in get_references_text(page)  # the page cannot know that the undo is stored
    page.reload()
    page.wait_for_selector("#candidates .gain")
    assert "It is good" not in get_references_text(page)


def test_offline_and_back(cast: Cast, page_for: Open, open_writing: Any) -> None:
    campaign = open_writing()
    page = open_writing_page(page_for(cast.annotator), campaign)
    page.wait_for_selector("#candidates .use kbd")
    page.context.set_offline(True)
    page.fill("#text", "A good text from the tunnel.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#waiting >> text=A good text from the tunnel.")
    expect(page.locator("#text")).to_have_value("")
    rejected = "A plain text from the tunnel."
    page.fill("#text", rejected)
    page.keyboard.press("Control+Enter")
    wait_until(page, lambda: page.locator("#waiting li").count() == 2)
    page.fill("#text", "Still typing")
    assert not WritingAttempt.objects.exists()
    page.context.set_offline(False)
    page.wait_for_selector("#references .who >> text=yours")
    # The second text is rejected by the rules and can be restored; the text being typed is unchanged.
    page.wait_for_selector("text=needs another revision")
    expect(page.locator("#text")).to_have_value("Still typing")
    page.click("text=Restore it")
    expect(page.locator("#text")).to_have_value(rejected)
    page.click("text=Restore it")
    expect(page.locator("#text")).to_have_value("Still typing")
    assert list(WritingAttempt.objects.order_by("pk").values_list("decision", flat=True)) == ["accept", "edit"]


def test_open_table_stays_open_during_live_updates(cast: Cast, page_for: Open, open_writing: Any) -> None:
    campaign = open_writing(arms=["control"])
    send(cast.annotator, open_task_view(cast.annotator, campaign), "A good one.")
    WritingAttempt.objects.update(score_before=0.25, score_after=0.375)
    page = page_for(cast.researcher)
    page.goto(f"/projects/alpha/writing/{campaign.pk}/")
    page.click("#plot-1 summary")
    page.focus("#plot-2 summary")
    WritingAttempt.objects.update(score_after=0.5)
    page.evaluate("htmx.ajax('GET', location.pathname, {target: '#live', swap: 'outerHTML'})")
    page.wait_for_selector("#plot-1 >> text=0.500")
    assert page.locator("details[open]").evaluate_all("all => all.map((element) => element.id)") == ["plot-1"]
    assert page.evaluate("document.activeElement.id") == "plot-2-table"


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1100)])
def test_accessible_and_without_horizontal_scrolling(
    cast: Cast, page_for: Open, open_writing: Any, axe: Any, scheme: str, width: int
) -> None:
    campaign = open_writing()
    page = open_writing_page(page_for(cast.annotator, width=width, scheme=scheme), campaign)
    page.wait_for_selector("#candidates .gain")
    page.locator("#candidates .use").first.click()
    page.wait_for_selector("#score[data-state=known]")
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_without_script(cast: Cast, page_for: Open, open_writing: Any) -> None:
    campaign = open_writing()
    page = open_writing_page(page_for(cast.annotator, script=False), campaign)
    page.click("noscript a")
    page.locator(".candidate-list a").first.click()
    page.fill("#text", "A good text without script.")
    page.click("button[data-submit]")
    page.wait_for_selector(RAISED)
