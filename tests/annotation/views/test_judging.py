"""The judging page as plain forms, without script."""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from annotation.models import Assignment, Campaign, ItemFlag, Judgement
from annotation.services.campaigns import close_campaign, open_campaign, pause_campaign, resume_campaign
from tests.cast import Cast
from tests.judging import ONE_QUESTION, PRACTICE, SYSTEMS, make_draft, make_texts, open_comparison, open_rating
from tests.pages import read_page

pytestmark = pytest.mark.django_db


class Annotator:
    """A person with a browser without JavaScript: reads pages, submits forms, and checks every response for system
    names."""

    def __init__(self, user: Any) -> None:
        self.client = Client()
        self.client.force_login(user)

    def get(self, url: str, status: int = 200) -> str:
        """Read a page; begin if the guidelines come first."""
        text = self._read(self.client.get(url, follow=True), status)
        return self.post(f"{url}guidelines/", {}) if "data-begin" in text else text

    def post(self, url: str, data: dict[str, Any], status: int = 200) -> str:
        return self._read(self.client.post(url, data, follow=True), status)

    def _read(self, response: Any, status: int) -> str:
        text = read_page(response)
        assert response.status_code == status, text[:2000]
        for name in SYSTEMS:
            assert name not in text + str(response.headers) + str(response.redirect_chain)
        return text

    @staticmethod
    def form(text: str) -> tuple[str, dict[str, str]]:
        """The target of the answer form and its hidden fields."""
        found = re.search(r'<form class="answer" method="post" action="([^"]+)"', text)
        assert found, text
        hidden = re.findall(r'<input type="hidden" name="(submission|replaces)" value="([^"]+)"', text)
        return found[1], dict(hidden)

    def answer(self, text: str, note: str = "", **values: Any) -> str:
        url, hidden = self.form(text)
        return self.post(url, {**hidden, "note": note, **{f"answer.{name}": v for name, v in values.items()}})


@pytest.fixture
def anna(cast: Cast) -> Annotator:
    return Annotator(cast.annotator)


def list_faulty(text: str) -> list[str]:
    """The questions on a page that have an error."""
    return re.findall(r'<fieldset data-aspect="(\w+)"[^>]*><legend[^>]*>[^<]*</legend> ?<ul class="errorlist"', text)


def current(campaign: Campaign) -> list[dict[str, Any]]:
    rows = Judgement.objects.filter(campaign=campaign, current=True).order_by("pk")
    return list(rows.values_list("answer", flat=True))


def test_guidelines_come_before_the_first_text(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast)
    home, guidelines = f"/my/{campaign.pk}/", f"/my/{campaign.pk}/guidelines/"
    for _ in range(2):  # until the annotator begins
        assert anna.client.get(home).headers["Location"] == guidelines
    assert "data-begin" in read_page(anna.client.get(guidelines))
    assert not Assignment.objects.exists()
    assert anna.client.post(guidelines).headers["Location"] == home
    assert anna.client.get(home).status_code == 200
    assert "data-begin" not in read_page(anna.client.get(guidelines))
    assert Assignment.objects.count() == 1


@pytest.mark.parametrize("end", [pause_campaign, close_campaign])
def test_no_guidelines_before_a_campaign_without_any_or_without_texts(cast: Cast, anna: Annotator, end: Any) -> None:
    campaign = open_rating(cast, guidelines="")
    assert anna.client.get(f"/my/{campaign.pk}/").status_code == 200
    other = open_campaign(campaign=make_draft(cast, slug="other"), user=cast.researcher)
    end(campaign=other, user=cast.researcher)
    assert "data-why=" in read_page(anna.client.get(f"/my/{other.pk}/"))
    assert "data-begin" not in read_page(anna.client.get(f"/my/{other.pk}/guidelines/"))


def test_rates_everything_by_forms(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, items=2)
    text = anna.get(f"/my/{campaign.pk}/")
    for number in range(4):
        assert f">{number}</span> of 4" in text
        text = anna.answer(text, naturalness=5, relevance=2, note="fine" if number == 0 else "")
    assert 'data-why="empty"' in text
    assert current(campaign) == [{"naturalness": 5, "relevance": 2}] * 4
    assert Judgement.objects.order_by("pk").first().note == "fine"


def test_incomplete_answer_keeps_the_choices(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast)
    url, hidden = anna.form(anna.get(f"/my/{campaign.pk}/"))
    text = anna.post(url, {**hidden, "answer.naturalness": "4", "note": "half done"}, status=422)
    assert re.search(r'name="answer.naturalness" value="4"[^>]* checked', text)
    assert "half done" in text
    assert list_faulty(text) == ["relevance"]
    assert current(campaign) == []


def test_value_outside_the_scale_is_refused(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    url, hidden = anna.form(anna.get(f"/my/{campaign.pk}/"))
    text = anna.post(url, {**hidden, "answer.naturalness": "7"}, status=422)
    assert list_faulty(text) == ["naturalness"]


@pytest.mark.promise("submission")
def test_same_form_twice_is_one_answer(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    url, hidden = anna.form(anna.get(f"/my/{campaign.pk}/"))
    for _ in range(2):
        anna.post(url, {**hidden, "answer.naturalness": "3"})
    assert Judgement.objects.filter(campaign=campaign).count() == 1


@pytest.mark.promise("submission")
def test_second_answer_to_an_answered_text_is_reported(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    url, hidden = anna.form(anna.get(f"/my/{campaign.pk}/"))
    anna.post(url, {**hidden, "answer.naturalness": "3"})
    text = anna.post(url, {"submission": str(uuid4()), "answer.naturalness": "6"})
    assert 'data-level="error"' in text
    assert current(campaign) == [{"naturalness": 3}]


def test_practice_shows_the_expected_answer(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, practice=PRACTICE)
    text = anna.get(f"/my/{campaign.pk}/")
    assert "Practice 1 of 1:" in text
    assert "It is short." not in text
    text = anna.answer(text, naturalness=6, relevance=4)
    assert 'data-passed="no"' in text
    assert 'data-expected="1 to 2" data-given="4"' in text
    assert "It is short." in text
    assert ">0</span> of" in text  # practice does not count
    assert "Practice 1" not in anna.get(f"/my/{campaign.pk}/")


def test_control_looks_like_every_other_text(cast: Cast, anna: Annotator) -> None:
    control = [{"item": "i000", "system": "sys-alpha", "expected": {"naturalness": 6}, "why": "secret why"}]
    campaign = open_rating(cast, items=2, aspects=ONE_QUESTION, controls=control, options={"control_rate": 0.5})
    text = anna.get(f"/my/{campaign.pk}/")
    while "judged everything" not in text:
        assert "secret why" not in text
        assert "control" not in re.search(r"<article.*</article>", text, re.S)[0].lower()
        text = anna.answer(text, naturalness=1)
    assert Judgement.objects.filter(passed=False, assignment__unit__kind="control").exists()


def test_goes_back_and_corrects(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    text = anna.answer(anna.get(f"/my/{campaign.pk}/"), naturalness=2)
    shown = re.search(r'data-id="([^"]+)"', text)[1]
    text = anna.get(f"/my/{campaign.pk}/back/?from={shown}")
    assert "data-answered" in text
    assert re.search(r'value="2"[^>]* checked', text)
    text = anna.answer(text, naturalness=4)
    assert 'data-level="success"' in text
    assert current(campaign) == [{"naturalness": 4}]
    assert Judgement.objects.filter(campaign=campaign).count() == 2


def test_back_without_an_answer_is_explained(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast)
    anna.get(f"/my/{campaign.pk}/")
    assert 'data-level="info"' in anna.get(f"/my/{campaign.pk}/back/")


def test_skips_with_a_reason(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast)
    first = re.search(r'data-id="([^"]+)"', anna.get(f"/my/{campaign.pk}/"))[1]
    assert "Skip this text?" in anna.get(f"/my/{campaign.pk}/{first}/skip/")
    text = anna.post(f"/my/{campaign.pk}/{first}/skip/", {"reason": "I know the author"})
    assert "Skipped." in text
    assert re.search(r'data-id="([^"]+)"', text)[1] != first
    assert Assignment.objects.get(public=first).skip_reason == "I know the author"


def test_flags_with_a_reason_and_needs_one(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast)
    shown = re.search(r'data-id="([^"]+)"', anna.get(f"/my/{campaign.pk}/"))[1]
    text = anna.post(f"/my/{campaign.pk}/{shown}/flag/", {"text": "odd signs"}, status=422)
    assert "odd signs" in text
    text = anna.post(f"/my/{campaign.pk}/{shown}/flag/", {"reason": "broken", "text": "odd signs"})
    assert f'data-id="{shown}"' in text
    assert list(ItemFlag.objects.values_list("reason", "text")) == [("broken", "odd signs")]


def test_skip_and_flag_by_script_answer_with_json(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast)
    shown = re.search(r'data-id="([^"]+)"', anna.get(f"/my/{campaign.pk}/"))[1]
    call = partial(anna.client.post, content_type="application/json")
    refused = call(f"/my/{campaign.pk}/{shown}/flag/", {"text": "odd signs"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "reason")
    assert call(f"/my/{campaign.pk}/{shown}/flag/", {"reason": "broken", "text": 5}).status_code == 200
    assert list(ItemFlag.objects.values_list("reason", "text")) == [("broken", "5")]
    assert call(f"/my/{campaign.pk}/{shown}/skip/", {"reason": "later"}).json() == {}
    assert Assignment.objects.get(public=shown).skip_reason == "later"
    anna.client.logout()
    assert call(f"/my/{campaign.pk}/{shown}/skip/", {}).status_code == 401


def test_own_answers_are_listed_by_page_and_nobody_elses(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, items=12, aspects=ONE_QUESTION, overlap=2)
    text = anna.get(f"/my/{campaign.pk}/")
    for number in range(22):
        text = anna.answer(text, naturalness=number % 6 + 1, note="stiff" if number == 21 else "")
    listed = anna.get(f"/my/{campaign.pk}/answers/")
    assert re.findall(r'data-answer="(\d+)"', listed) == [str(number) for number in range(22, 2, -1)]
    assert "stiff" in listed
    after = re.search(r'rel="next" href="([^"]+)"', listed)[1].replace("&amp;", "&")
    assert re.findall(r'data-answer="(\d+)"', anna.get(f"/my/{campaign.pk}/answers/{after}")) == ["2", "1"]
    rita = Annotator(cast.researcher)
    rita.get(f"/my/{campaign.pk}/")
    assert "data-answer" not in rita.get(f"/my/{campaign.pk}/answers/")


def test_clock_can_be_switched_off_while_people_judge(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    text = anna.answer(anna.get(f"/my/{campaign.pk}/"), naturalness=4)
    assert 'id="elapsed"' in text
    assert "pace" in text
    assert "data-pace" in anna.get("/my/")
    rita = Client()
    rita.force_login(cast.researcher)
    url = f"/projects/alpha/campaigns/{campaign.pk}/plan/"
    form = {name: value for name, value in rita.get(url).context["form"].initial.items() if value not in (None, False)}
    assert form["show_clock"] is True
    del form["show_clock"]
    assert rita.post(url, form).status_code == 302
    text = anna.get(f"/my/{campaign.pk}/")
    assert 'id="elapsed"' not in text
    assert "pace" not in text
    assert "data-pace" not in anna.get("/my/")
    anna.answer(text, naturalness=4)
    assert Judgement.objects.filter(seconds__isnull=False).count() == 2


@pytest.mark.promise("late")
def test_pause_resume_close(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    open_text = anna.get(f"/my/{campaign.pk}/")
    pause_campaign(campaign=campaign, user=cast.researcher)
    # An open assignment can still be submitted; no new one follows.
    assert 'data-why="paused"' in anna.answer(open_text, naturalness=1)
    assert "Paused" in anna.get("/my/")
    resume_campaign(campaign=campaign, user=cast.researcher)
    assert "form" in anna.get(f"/my/{campaign.pk}/")
    close_campaign(campaign=campaign, user=cast.researcher)
    shown = Assignment.objects.get(state="submitted").public
    text = anna.get(f"/my/{campaign.pk}/{shown}/")
    assert "data-answered" in text
    assert '<form class="answer"' not in text


def test_compares_by_forms(cast: Cast, anna: Annotator) -> None:
    campaign = open_comparison(cast, items=2)
    text = anna.get(f"/my/{campaign.pk}/")
    for verdict in ("a", "both_bad"):
        text = anna.answer(text, quality=verdict)
    assert "judged everything" in text
    assert current(campaign) == [{"quality": "a"}, {"quality": "both_bad"}]


def test_turing_by_forms(cast: Cast, anna: Annotator) -> None:
    aspects = [{"name": "human", "question": "Which did a person write?"}]
    campaign = open_rating(cast, items=1, kind="turing", aspects=aspects)
    text = anna.get(f"/my/{campaign.pk}/")
    assert "Cannot decide" in text
    anna.answer(text, human="cannot_decide")
    assert current(campaign) == [{"human": "cannot_decide"}]


def test_other_people_are_refused(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast)
    shown = re.search(r'data-id="([^"]+)"', anna.get(f"/my/{campaign.pk}/"))[1]
    stranger, viewer, second = Annotator(cast.stranger), Annotator(cast.viewer), Annotator(cast.researcher)
    stranger.get(f"/my/{campaign.pk}/", status=404)
    viewer.get(f"/my/{campaign.pk}/", status=403)
    second.get(f"/my/{campaign.pk}/{shown}/", status=404)
    second.post(f"/my/{campaign.pk}/{shown}/skip/", {}, status=404)


def test_anonymous_users_are_sent_to_sign_in(cast: Cast) -> None:
    campaign = open_rating(cast)
    response = Client().get(f"/my/{campaign.pk}/")
    assert response.status_code == 302
    assert response["Location"].endswith(f"next=/my/{campaign.pk}/")


def test_draft_campaign_is_not_open_yet(cast: Cast, anna: Annotator) -> None:
    make_texts(cast)
    campaign = make_draft(cast)
    assert "not open yet" in anna.get(f"/my/{campaign.pk}/", status=409)


def test_prefetched_text_is_a_fragment(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, items=1)
    first = re.search(r'data-id="([^"]+)"', anna.get(f"/my/{campaign.pk}/"))[1]
    text = anna.get(f"/my/{campaign.pk}/next/?after={first}")
    assert "<html" not in text
    assert re.search(r'data-id="([^"]+)"', text)[1] != first
    anna.get(f"/my/{campaign.pk}/next/?after={first}")
    campaign_of_one = open_comparison_of_one(cast)
    only = re.search(r'data-id="([^"]+)"', anna.get(f"/my/{campaign_of_one.pk}/"))[1]
    anna.get(f"/my/{campaign_of_one.pk}/next/?after={only}", status=204)


# ---- requests of the page's script ---------------------------------------------------------------------------


def find_id(html: str) -> str:
    return re.search(r'data-id="([^"]+)"', html)[1]


def sent(anna: Annotator, campaign: Campaign, public: str, body: dict[str, Any], status: int = 200) -> dict[str, Any]:
    url = f"/my/{campaign.pk}/{public}/submit/"
    answer = anna.client.post(url, body, content_type="application/json")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_confirmation_brings_the_text_after_the_shown_one(cast: Cast, anna: Annotator) -> None:
    """In order, each text once even if a request is repeated; nothing at the end."""
    campaign = open_rating(cast, items=2, aspects=ONE_QUESTION)
    shown = find_id(anna.get(f"/my/{campaign.pk}/"))
    following = find_id(anna.get(f"/my/{campaign.pk}/next/?after={shown}"))
    seen = [shown, following]
    for _ in range(2):
        body = {"submission": str(uuid4()), "answer": {"naturalness": 4}, "note": "", "seconds": 2.5, "next": "ahead"}
        answer = sent(anna, campaign, shown, body)
        assert sorted(answer) == ["html", "saved_at", "version"]
        again = sent(anna, campaign, shown, body)
        assert (find_id(again["html"]), again["saved_at"]) == (find_id(answer["html"]), answer["saved_at"])
        assert "<html" not in answer["html"]
        assert "Back" in answer["html"]
        assert not [name for name in SYSTEMS if name in answer["html"]]
        shown, following = following, find_id(answer["html"])
        seen.append(following)
    last = {"answer": {"naturalness": 4}}
    assert sent(anna, campaign, shown, {**last, "submission": str(uuid4()), "next": "ahead"})["html"] == ""
    assert "html" not in sent(anna, campaign, following, {**last, "submission": str(uuid4())})
    assert len(set(seen)) == len(seen) == Assignment.objects.filter(state="submitted").count() == 4


@pytest.mark.promise("submission")
def test_script_learns_why_an_answer_was_refused(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, items=2, aspects=ONE_QUESTION)
    other = open_comparison_of_one(cast)
    shown = find_id(anna.get(f"/my/{campaign.pk}/"))
    body = {"submission": str(uuid4()), "answer": {"naturalness": 4}, "next": "ahead"}
    assert "no such assignment" in sent(anna, other, shown, body, status=404)["detail"]
    assert "outside the scale" in sent(anna, campaign, shown, {**body, "answer": {"naturalness": 9}}, 400)["detail"]
    assert "next" in sent(anna, campaign, shown, {**body, "next": "all"}, 400)["detail"]
    url = f"/my/{campaign.pk}/{shown}/submit/"
    assert anna.client.post(url, "[1]", content_type="application/json").status_code == 400
    assert Client().post(url, body, content_type="application/json").status_code == 401
    assert Client(enforce_csrf_checks=True).post(url, body, content_type="application/json").status_code == 403
    assert sent(Annotator(cast.researcher), campaign, shown, body, status=404)["status"] == 404
    assert current(campaign) == []
    sent(anna, campaign, shown, body)
    told = sent(anna, campaign, shown, {**body, "submission": str(uuid4()), "answer": {"naturalness": 2}}, status=409)
    assert told["stored"]["answer"] == {"naturalness": 4}
    assert told["yours"]["answer"] == {"naturalness": 2}
    assert current(campaign) == [{"naturalness": 4}]


def open_comparison_of_one(cast: Cast) -> Campaign:
    from annotation.services.campaigns import open_campaign

    plan = {"name": "One", "kind": "pairwise", "aspects": [{"name": "quality"}], "pairs": 1}
    return open_campaign(campaign=make_draft(cast, **plan), user=cast.researcher)


def test_own_list_shows_the_remaining_work(cast: Cast, anna: Annotator) -> None:
    campaign = open_rating(cast, items=2)
    assert "0 of 4" in anna.get("/my/")
    anna.answer(anna.get(f"/my/{campaign.pk}/"), naturalness=1, relevance=1)
    assert "1 of 4" in anna.get("/my/")
