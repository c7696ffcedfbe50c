"""A study with hired participants in a browser on a phone: from the link to the code, refusing, returning, full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils.translation import gettext, override
from playwright.sync_api import expect

from annotation.models import Judgement, Participant
from tests.annotation.hired import PRACTICE, Study
from tests.browser.judging_page import get_card_id
from tests.cast import Cast

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
PHONE = {"width": 390, "height": 780}
OUTCOMES = {
    "passed": {"code": "C-PASS", "address": "https://platform.example/done?cc={code}&who={participant}"},
    "full": {"code": "C-FULL"},
    "refused": {"code": "C-NO"},
}
QUESTIONS = [
    {"name": "age", "question": "How old are you?", "kind": "number", "low": 18, "high": 99},
    {"name": "english", "question": "Is English your first language?", "kind": "choice", "choices": ["yes", "no"]},
]


@pytest.fixture(params=["en-gb", "zh-hans", "ar"])
def language(request: pytest.FixtureRequest) -> str:
    """The language of the campaign, which its pages have in a browser of another language."""
    return str(request.param)


def has_language(page: Any, language: str) -> bool:
    found = page.evaluate("[document.documentElement.lang, getComputedStyle(document.body).direction]")
    return bool(found == [language, "rtl" if language == "ar" else "ltr"])


def answer(page: Any, value: int) -> None:
    page.click(f"label:has([name='answer.naturalness'][value='{value}'])")
    page.click("button[data-submit]")


def answer_next(page: Any, value: int) -> None:
    """Answer, and wait for the next text or the end."""
    before = get_card_id(page)
    answer(page, value)
    page.wait_for_function(
        "id => document.querySelector('[data-outcome]')"
        " || (document.querySelector('article[data-id]')?.dataset.id ?? id) !== id",
        arg=before,
    )


def fits(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def test_from_the_link_to_the_code(
    cast: Cast, page_for: Open, axe: Callable[..., list[str]], language: str
) -> None:  # fmt: skip
    plan = {"practice": PRACTICE, "guidelines": "Rate the **reply** only.", "options": {"language": language}}
    study = Study(cast, plan=plan, pass_mark=1, outcomes=OUTCOMES, questions=QUESTIONS)
    page = page_for(None, **PHONE)
    page.goto(study.get_address("5f2a"))
    expect(page.locator("[data-consent]")).to_contain_text("We store your answers", use_inner_text=True)
    assert axe(page) == []
    assert fits(page)
    assert has_language(page, language)
    page.fill("[name=q-age]", "31")
    page.check("[name=q-english][value=no]")
    page.click("button[value=begin]")
    page.click("form[data-begin] button")
    page.wait_for_selector("article[data-practice] form.answer")
    assert fits(page)
    assert has_language(page, language)
    with override(language):
        expect(page.locator("button[data-submit]")).to_contain_text(gettext("Submit and next"), use_inner_text=True)
    answer(page, 6)
    page.wait_for_selector("[data-passed=yes]")
    page.click("[data-go-on]")
    page.wait_for_selector("article:not([data-practice]) form.answer")
    for value in (3, 4, 5):
        answer_next(page, value)
    page.wait_for_selector("[data-outcome=passed]")
    expect(page.locator("#secret-completion")).to_have_value("C-PASS")
    returning = "https://platform.example/done?cc=C-PASS&who=5f2a"
    expect(page.locator("[data-return]")).to_have_attribute("href", returning)
    assert axe(page) == []
    assert fits(page)
    assert has_language(page, language)
    row = Participant.objects.get()
    assert (row.state, row.answers) == ("passed", {"age": 31, "english": "no"})
    given = Judgement.objects.filter(assignment__unit__kind="normal").order_by("pk")
    assert [one["naturalness"] for one in given.values_list("answer", flat=True)] == [3, 4, 5]


def test_refusing(cast: Cast, page_for: Open, language: str) -> None:
    study = Study(cast, plan={"options": {"language": language}}, outcomes=OUTCOMES, questions=QUESTIONS)
    page = page_for(None, **PHONE)
    page.goto(study.get_address("5f2a"))
    page.click("button[value=refuse]")  # without answering the questions
    page.wait_for_selector("[data-outcome=refused]")
    expect(page.locator("#secret-completion")).to_have_value("C-NO")
    assert has_language(page, language)
    assert not Participant.objects.exists()


def test_returning_continues_with_the_same_text(cast: Cast, page_for: Open, language: str) -> None:
    study = Study(cast, plan={"options": {"language": language}}, outcomes=OUTCOMES)
    page = page_for(None, **PHONE)
    page.goto(study.get_address("5f2a"))
    page.click("button[value=begin]")
    page.wait_for_selector("form.answer")
    answer_next(page, 3)
    card = get_card_id(page)
    page.context.clear_cookies(name="sessionid")
    page.goto(study.get_address("5f2a"))
    page.wait_for_selector("form.answer")
    assert get_card_id(page) == card
    other = page_for(None, **PHONE)
    other.goto(study.get_address("5f2a"))
    if language == "en-gb":
        expect(other.locator("main")).to_contain_text("in another browser", use_inner_text=True)
    assert has_language(other, language)
    assert Participant.objects.count() == 1


def test_a_full_study_says_so_before_anything_else(cast: Cast, page_for: Open, language: str) -> None:
    study = Study(cast, plan={"options": {"language": language}}, places=1, outcomes=OUTCOMES)
    first, second = page_for(None, **PHONE), page_for(None, **PHONE)
    for page, name in ((first, "a"), (second, "b")):
        page.goto(study.get_address(name))
    first.click("button[value=begin]")
    first.wait_for_selector("form.answer")
    second.click("button[value=begin]")  # read the text while the last place was taken
    second.wait_for_selector("[data-outcome=full]")
    expect(second.locator("#secret-completion")).to_have_value("C-FULL")
    second.goto(study.get_address("c"))
    second.wait_for_selector("[data-outcome=full]")
    assert has_language(second, language)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_of_a_link_with_all_parts_open(
    cast: Cast, page_for: Open, axe: Callable[..., list[str]], scheme: str
) -> None:  # fmt: skip
    study = Study(cast, outcomes=OUTCOMES, questions=QUESTIONS, min_seconds=3, pay=2.5)
    page = page_for(cast.researcher, scheme=scheme, **PHONE)
    page.goto(f"/projects/{cast.project.slug}/campaigns/{study.campaign.pk}/participants/{study.link.pk}/edit/")
    expect(page.locator("details.section[open]")).to_have_count(4)
    assert axe(page) == []
    assert fits(page)


def test_a_researcher_creates_a_link(cast: Cast, page_for: Open) -> None:
    study = Study(cast)
    page = page_for(cast.researcher)
    page.goto(f"/projects/{cast.project.slug}/campaigns/{study.campaign.pk}/participants/new/")
    page.fill("[name=places]", "20")
    page.select_option("[name=platform]", "prolific")
    consent, pay = (page.locator("summary", has_text=text) for text in ("Consent and questions", "Pay"))
    expect(page.locator("[name=consent]")).to_be_hidden()
    consent.click()
    page.fill("[name=consent]", "Do you agree?")
    page.fill("[name=questions-0-name]", "age")
    page.fill("[name=questions-0-question]", "How old are you?")
    page.select_option("[name=questions-0-kind]", "number")
    page.fill("[name=questions-0-details]", "99..18")
    page.click("main form button.primary")
    expect(page.locator(".errorlist").first).to_contain_text("must not be below", use_inner_text=True)
    page.fill("[name=questions-0-details]", "18..99")
    pay.click()
    page.fill("[name=pay]", "")
    pay.click()
    page.click("main form button.primary")
    expect(page.locator("[name=pay]")).to_be_visible()  # the browser refuses it, and names a field that can be seen
    page.fill("[name=pay]", "2.5")
    page.click("main form button.primary")
    page.wait_for_selector("#secret-study")
    address = page.input_value("#secret-study")
    assert address.endswith("?PROLIFIC_PID={ID}")
    other = page_for(None, **PHONE)
    other.goto(address.replace("{ID}", "w1"))
    expect(other.locator("[data-consent]")).to_have_text("Do you agree?", use_inner_text=True)
    expect(other.locator("[name=q-age]")).to_have_attribute("min", "18.0")
