"""The language of pages: chosen by the person, else that of the campaign, else that of the browser."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format, localize

from annotation.allocation.answers import VERDICT_KEYS
from annotation.models import Campaign, Participant, System, Unit
from annotation.selectors.judging_sheet import read_form
from evalapp.accounts.roles import SCOPES
from evalapp.common.documentation import GROUPS
from evalapp.common.models import Run
from evalapp.languages import LANGUAGES, lower_word
from evalapp.number_text import show_count
from scoring.models import Evaluator, SharedReport
from tests.annotation.hired import Study, Visitor
from tests.cast import Cast
from tests.pages import read_page

pytestmark = pytest.mark.django_db


def read_language(client: Client, path: str, browser: str = "en-US,en;q=0.9", **headers: str) -> str:
    page = read_page(client.get(path, follow=True, headers={"Accept-Language": browser, **headers}))
    return page.partition('<html lang="')[2].partition('"')[0]


@pytest.mark.parametrize(
    ("browser", "language"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh-hans"), ("de-AT", "de"), ("pt-BR", "pt"), ("en-US,de;q=0.5", "en-gb"),
        ("xx", "en-gb"), ("", "en-gb"), ("fa;q=0.1, ar", "ar"), ("../../etc", "en-gb"),
    ],
)  # fmt: skip
def test_page_has_the_language_of_the_browser(client: Client, browser: str, language: str) -> None:
    assert read_language(client, "/account/sign-in/", browser) == language


def test_choice_comes_before_browser_and_follows_the_account(client: Client, cast: Cast) -> None:
    client.post("/account/display/", {"language": "ja"})
    assert read_language(client, "/account/sign-in/", "de") == "ja"
    client.force_login(cast.viewer)
    assert read_language(client, "/", "de") == "ja", "a choice before signing in stays"
    client.post("/account/display/", {"language": "ko"})
    other = Client()
    other.force_login(cast.viewer)
    assert read_language(other, "/", "de") == "ko"
    other.cookies["display"] = "system.normal.system.ja"
    assert read_language(other, "/", "de") == "ko", "the account comes before the browser"


def test_right_to_left_languages_say_so(client: Client) -> None:
    for language in LANGUAGES:
        client.post("/account/display/", {"language": language})
        side = "rtl" if language in ("ar", "fa") else "ltr"
        assert f'<html lang="{language}" dir="{side}"' in read_page(client.get("/account/sign-in/"))


def test_campaign_sets_the_language_of_its_annotators(client: Client, cast: Cast) -> None:
    study = Study(cast)
    campaign = study.campaign
    Campaign.objects.filter(pk=campaign.pk).update(options={**campaign.options, "language": "ar"})
    client.force_login(cast.annotator)
    path = reverse("annotation:judge", args=[campaign.pk])
    assert read_language(client, path, "de") == "ar"
    assert client.get(path).headers["Content-Language"] == "ar"
    assert read_language(client, "/my/", "de") == "de"
    # Scripts of an open page ask for its language.
    ahead = client.get(path, headers={"Accept-Language": "de", "X-Requested-With": "fetch"})
    assert ahead.headers["Content-Language"] == "de"
    client.post("/account/display/", {"language": "de"})
    assert read_language(client, path, "en") == "de"
    consent = read_page(Visitor(study, "id-1").open())
    assert '<html lang="ar" dir="rtl"' in consent


def test_api_answers_in_english(client: Client, cast: Cast) -> None:
    client.post("/account/display/", {"language": "de"})
    answers = [
        client.get("/api/v1/projects/", headers={"Accept-Language": language}).json() for language in ("de", "en")
    ]
    assert answers[0] == answers[1]


def test_counts_and_dates_follow_the_language() -> None:
    assert [show_count(-12345, code) for code in ("en-gb", "zh-hans", "de")] == ["−12,345", "−12,345", "−12\u202f345"]
    moment: Any = parse_datetime("2026-11-27T08:05:00+00:00")
    shown = {}
    for code in ("en-gb", "de", "ja"):
        with translation.override(code):
            shown[code] = date_format(moment)
    assert shown == {"en-gb": "27 November 2026", "de": "27. November 2026", "ja": "2026年11月27日"}


def test_numbers_have_a_decimal_point_in_every_language() -> None:
    for code in LANGUAGES:
        with translation.override(code):
            assert localize(1234.5) == "1234.5", code


def test_labels_inside_sentences() -> None:
    assert [lower_word("Failed", code) for code in ("en-gb", "es", "de")] == ["failed", "failed", "Failed"]


@pytest.mark.parametrize(
    ("code", "one", "other", "labels"),
    [
        ("zh-hans", Unit.Kind.CONTROL, System.Kind.CONTROL, ("质控", "对照")),
        ("de", Run.State.FAILED, Participant.State.FAILED, ("Fehlgeschlagen", "Nicht bestanden")),
        ("de", SCOPES["annotate"], Evaluator.Kind.JUDGE, ("Beurteilen", "Richtermodell")),
        ("es", Campaign.State.OPEN, SharedReport.State.OPEN, ("Abierta", "Abierto")),
        ("zh-hans", System.Kind.REFERENCE, GROUPS["reference"], ("参考文本", "参考资料")),
    ],
)
def test_equal_english_words_with_two_meanings(code: str, one: Any, other: Any, labels: tuple[str, str]) -> None:
    """They need a context, because other languages have two words."""
    words = [getattr(label, "label", label) for label in (one, other)]
    with translation.override("en-gb"):
        assert str(words[0]) == str(words[1])
    with translation.override(code):
        assert tuple(map(str, words)) == labels


def test_keys_change_sides_where_the_first_text_is_on_the_right() -> None:
    verdicts = [{"value": value, "label": "The first", "keys": list(VERDICT_KEYS[value])} for value in "ab"]
    form = orjson.dumps({"verdicts": verdicts})
    keys = {}
    for code in ("de", "ar"):
        with translation.override(code):
            keys[code] = [verdict["keys"] for verdict in read_form(form)["verdicts"]]
    assert keys == {
        "de": [["ArrowLeft", "a"], ["ArrowRight", "d"]],
        "ar": [["ArrowRight", "d"], ["ArrowLeft", "a"]],
    }


def test_pages_of_researchers_are_in_languages_that_have_them(client: Client, cast: Cast) -> None:
    client.force_login(cast.viewer)
    shown = {code: read_language(client, f"/projects/{cast.project.slug}/items/", code) for code in ("de", "fr", "ar")}
    assert shown == {"de": "de", "fr": "en-gb", "ar": "en-gb"}
    assert read_language(client, "/my/", "ar") == "ar"
