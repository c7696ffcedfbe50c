"""The annotator's page of reference writing, as plain forms and as called by its script."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Reference, WritingAttempt, WritingFlag, WritingMember, WritingTask, WrittenReference
from annotation.services.own_data import own_parts, withdraw_texts
from evalapp.accounts.roles import Role
from tests.cast import Cast, join, person
from tests.pages import read_flashes, read_page, squeeze
from tests.writing import FakePorts, fill_ports, open_task_view, send, start_constraint, start_writing

pytestmark = pytest.mark.django_db
SCORE = re.compile(r"score|reliab|0\.\d\d\d", re.IGNORECASE)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePorts:
    return fill_ports(monkeypatch)


@pytest.fixture
def anna(client: Client, cast: Cast) -> Client:
    client.force_login(cast.annotator)
    return client


def at(campaign: Any, public: str = "", name: str = "one") -> str:
    arguments = [campaign.pk, public] if public else [campaign.pk]
    return reverse(f"annotation:write-{name}" if public else "annotation:write", args=arguments)


def form(text: str, **more: Any) -> dict[str, Any]:
    return {"submission": str(uuid4()), "text": text, **more}


def post_json(client: Client, url: str, body: dict[str, Any]) -> Any:
    return client.post(url, json.dumps(body), content_type="application/json")


def test_improving_text_is_added_by_a_plain_form(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1, references=1, options={"target": 3})
    page = anna.get(at(campaign))
    assert page.status_code == 200
    html = read_page(page)
    assert "Hello number 0?" in html
    assert "Answer 0 to i000." in html
    public = page.context["view"].public
    answer = anna.post(at(campaign, public), form("A good reply."))
    html = read_page(answer)
    assert "Added. Reliability 0.000 → 0.125." in html
    assert 'yours, <span class="nowrap">+0.125</span>' in html
    assert Reference.objects.filter(set=campaign.target_set, text="A good reply.").exists()


def test_guidelines_come_before_the_first_item(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1, guidelines="Be **kind**.")
    guidelines = f"{at(campaign)}guidelines/"
    assert anna.get(at(campaign)).headers["Location"] == guidelines
    assert "data-begin" in read_page(anna.get(guidelines))
    assert not WritingMember.objects.exists()
    assert anna.post(guidelines).headers["Location"] == at(campaign)
    assert anna.get(at(campaign)).status_code == 200
    assert "data-begin" not in read_page(anna.get(guidelines))


@pytest.mark.parametrize("arm", ["scores", "control", "candidates"])
def test_page_says_what_to_do_and_what_the_score_means(anna: Client, cast: Cast, fake: FakePorts, arm: str) -> None:
    campaign = start_writing(cast, items=1, options={"arms": [arm], "min_gain": 0.05, "target": 3})
    page = anna.get(at(campaign))
    html = read_page(page)
    assert 'id="how"' in html
    assert ("gain-help" in html) == (arm == "scores")
    if arm != "scores":
        assert not SCORE.search(html)
        return
    aside = html.partition('id="reliability"')[2].partition("</aside>")[0]
    for number in ("0 = ", "1 = ", "0.05", "0.01"):
        assert number in aside
    public = page.context["view"].public
    anna.post(at(campaign, public), form("A good reply."))
    assert 'id="now-bar" max="1" value="0.1250"' in read_page(anna.get(at(campaign)))


def test_an_instruction_replaces_the_line_of_the_page(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_constraint(cast, "minimally-wrong", instruction="Make it wrong.")
    html = read_page(anna.get(at(campaign)))
    assert "Make it wrong." in html
    assert 'id="how"' not in html


def test_own_texts_are_listed_and_lead_to_their_items(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1, options={"arms": ["control"], "target": 9})
    public = anna.get(at(campaign)).context["view"].public
    for text in ("The first text.", "The second text."):
        anna.post(at(campaign, public), form(text))
    nora = person("nora")
    join(cast.project, nora, Role.ANNOTATOR)
    send(nora, open_task_view(nora, campaign), "A text of nora.")
    html = read_page(anna.get(f"{at(campaign)}texts/"))
    assert html.index("The second text.") < html.index("The first text.")
    assert html.count(f'href="{at(campaign, public)}"') == 2
    assert "A text of nora." not in html


def test_clock_is_shown_unless_the_plan_says_no(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1, options={"arms": ["control"], "show_clock": False})
    assert 'id="elapsed"' not in read_page(anna.get(at(campaign)))
    del campaign.options["show_clock"]  # a campaign from before this option
    campaign.save()
    assert 'id="elapsed"' in read_page(anna.get(at(campaign)))


def test_skip_and_flag_by_script_answer_with_json(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=2)
    public = anna.get(at(campaign)).context["view"].public
    refused = post_json(anna, at(campaign, public, "flag"), {"reason": "dull"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "reason")
    assert post_json(anna, at(campaign, public, "flag"), {"reason": "broken"}).json() == {}
    assert post_json(anna, at(campaign, public, "skip"), {"reason": "later"}).json() == {}
    assert WritingTask.objects.get(public=public).skip_reason == "later"
    assert WritingFlag.objects.count() == 1


def test_last_text_is_taken_back_by_form_and_by_script(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=2, references=1, options={"target": 2})
    public = anna.get(at(campaign)).context["view"].public
    anna.post(at(campaign, public), form("A good reply."))
    page = anna.get(at(campaign))  # the next item
    last = page.context["last"]
    shown = read_page(page).partition('id="last-text"')[2].partition("</form>")[0]
    assert f'action="{at(campaign, public, "back")}"' in shown
    assert f'name="reference" value="{last.reference}"' in shown
    assert "A good reply." in shown
    answer = anna.post(at(campaign, public, "back"), {"reference": last.reference}, follow=True)
    html = read_page(answer)
    assert [level for level, _ in read_flashes(answer)] == ["success"]
    assert ">A good reply.</textarea>" in html
    assert not Reference.objects.filter(text="A good reply.").exists()
    anna.post(at(campaign, public), form("A good reply, said again."))
    reference = WrittenReference.objects.latest("pk").public
    answer = post_json(anna, at(campaign, public, "back"), {"reference": reference})
    assert answer.status_code == 200
    assert 'data-state="write"' in answer.json()["html"]
    answer = anna.post(at(campaign, public), form("A good reply, said again."))
    last = anna.get(at(campaign)).context["last"]
    other = anna.get(at(campaign)).context["view"].public
    post_json(anna, at(campaign, other, "draft"), {"draft": {"text": "Begun"}, "version": 0})
    refused = post_json(anna, at(campaign, public, "back"), {"reference": last.reference})
    assert (refused.status_code, refused.json()["type"].split("#")[1]) == (409, "not-last")
    refused = anna.post(at(campaign, public, "back"), {"reference": last.reference}, follow=True)
    assert [level for level, _ in read_flashes(refused)] == ["error"]
    assert Reference.objects.filter(text="A good reply, said again.").exists()


def test_text_without_gain_returns_to_the_editor(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    public = anna.get(at(campaign)).context["view"].public
    html = read_page(anna.post(at(campaign, public), form("A plain reply.")))
    attempt = WritingAttempt.objects.get()
    assert (attempt.decision, attempt.why) == ("edit", "no-gain")
    assert re.search(r'<p id="outcome" class="note warn" role="status" aria-live="polite">[^<]* 2 [^<]+</p>', html)
    assert '<span id="attempts">2</span>' in html
    assert re.search(r"<textarea[^>]*>A plain reply\.</textarea>", html)
    assert not WrittenReference.objects.exists()


def test_error_keeps_the_input(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    public = anna.get(at(campaign)).context["view"].public
    answer = anna.post(at(campaign, public), form("Answer 0 to i000."))
    assert answer.status_code == 422
    html = read_page(answer)
    assert re.search(r'<p id="outcome" class="note bad" role="status" aria-live="polite">[^<]+</p>', html)
    assert re.search(r"<textarea[^>]*>Answer 0 to i000\.</textarea>", html)
    # It is refused because the item has this text: another one is taken.
    assert anna.post(at(campaign, public), form("Answer 1 to i000.")).status_code == 200


def test_without_a_score_the_text_waits_and_can_be_added(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    public = anna.get(at(campaign)).context["view"].public
    fake.down = True
    answer = post_json(anna, at(campaign, public), form("A good reply.")).json()
    assert (answer["decision"], answer["offer_unscored"]) == ("wait", True)
    assert "No score available" in answer["message"]
    assert WritingTask.objects.get().draft["text"] == "A good reply."
    answer = post_json(anna, at(campaign, public), form("A good reply.", unscored=True)).json()
    assert (answer["decision"], answer["message"]) == ("accept", "Added without a score.")
    assert WritingAttempt.objects.get().improved is None


@pytest.mark.parametrize("arm", ["control", "candidates"])
def test_other_arms_never_show_a_score(anna: Client, cast: Cast, fake: FakePorts, arm: str) -> None:
    campaign = start_writing(cast, items=1, options={"arms": [arm]})
    page = anna.get(at(campaign))
    view = page.context["view"]
    seen = [read_page(page)]
    from annotation.services.writing_candidates import remember_candidates
    from tests.writing import Candidate

    one = remember_candidates(task=view.task, rows=[Candidate("A good reply.", "Question?", 0.5, {})])[0]
    answer = post_json(anna, at(campaign, view.public), form("A good reply.", candidate=one)).json()
    assert (answer["decision"], answer["score_before"], answer["score_after"]) == ("accept", None, None)
    seen += [answer["html"], answer["message"], read_page(anna.get(at(campaign, view.public)))]
    assert WritingAttempt.objects.get().score_after == 0.125  # the server computes it nevertheless
    for html in seen:
        assert not SCORE.search(re.sub(r"<head>.*?</head>|data-[a-z-]+=\"[^\"]*\"", "", html, flags=re.DOTALL))
    assert "readonly" in seen[0] if arm == "candidates" else "readonly" not in seen[0]


def test_repeated_submission_is_one_reference(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    public = anna.get(at(campaign)).context["view"].public
    body = form("A good reply.")
    first, again = (post_json(anna, at(campaign, public), body).json() for _ in range(2))
    assert first["decision"] == again["decision"] == "accept"
    assert WrittenReference.objects.count() == 1


@pytest.mark.parametrize(("seconds", "status"), [(float("nan"), 400), (10**400, 200), (12.5, 200)])
def test_invalid_seconds_break_nothing(anna: Client, cast: Cast, fake: FakePorts, seconds: Any, status: int) -> None:
    campaign = start_writing(cast, items=1)
    url = at(campaign, open_task_view(cast.annotator, campaign).public)
    assert post_json(anna, url, form("A good reply.", seconds=seconds)).status_code == status
    assert WritingMember.objects.get().seconds == (12.5 if seconds == 12.5 else 0)


def test_draft_is_versioned_and_restored(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    public = anna.get(at(campaign)).context["view"].public
    url = at(campaign, public, "draft")
    assert post_json(anna, url, {"version": 0, "draft": {"text": "Half a"}}).json() == {"draft_version": 1}
    stale = post_json(anna, url, {"version": 0, "draft": {"text": "other"}})
    assert (stale.status_code, stale.json()["stored"]["draft"]) == (409, {"text": "Half a"})
    assert post_json(anna, url, {"version": "x", "draft": {}}).status_code == 400
    without_json = anna.post(url, {"version": 1})
    assert (without_json.status_code, without_json["Content-Type"]) == (400, "application/problem+json")
    assert re.search(r"<textarea[^>]*>Half a</textarea>", read_page(anna.get(at(campaign))))


def test_additions_of_others_appear_and_polling_returns_only_changes(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    page = anna.get(at(campaign))
    url, stamp = at(campaign, page.context["view"].public), page.context["stamp"]
    part = {"part": "references", "stamp": stamp}
    assert anna.get(url, part).status_code == 204
    otto = person("otto")
    join(cast.project, otto, Role.ANNOTATOR)
    send(otto, open_task_view(otto, campaign), "Another good reply.")
    html = read_page(anna.get(url, part))
    assert "Another good reply." in html
    assert "by another annotator" in html
    assert "otto" not in html


def test_done_skip_and_the_end(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=2)
    public = anna.get(at(campaign)).context["view"].public
    assert anna.post(at(campaign, public, "done"), form("")).url == at(campaign)
    public = anna.get(at(campaign)).context["view"].public
    assert "Skip this item?" in read_page(anna.get(at(campaign, public, "skip")))
    anna.post(at(campaign, public, "skip"), {"reason": "unclear"})
    assert WritingTask.objects.get(public=public).skip_reason == "unclear"
    assert 'data-why="empty"' in read_page(anna.get(at(campaign)))


def test_closed_campaign_keeps_the_text_as_a_draft(anna: Client, cast: Cast, fake: FakePorts) -> None:
    from annotation.services.campaigns import close_campaign

    campaign = start_writing(cast, items=1)
    public = anna.get(at(campaign)).context["view"].public
    close_campaign(user=cast.researcher, campaign=campaign)
    answer = post_json(anna, at(campaign, public), form("A good reply."))
    assert (answer.status_code, answer.headers["Content-Type"]) == (409, "application/problem+json")
    assert "saved as a draft" in answer.json()["detail"]
    assert "A good reply." in answer.json()["html"]


def test_candidates_without_script(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    url = at(campaign, anna.get(at(campaign)).context["view"].public)
    html = read_page(anna.get(url, {"candidates": "1"}))
    use = re.search(r'\?use=(\w+)">use', html)
    assert use is not None
    assert "Question 0?" in html
    html = read_page(anna.get(url, {"use": use[1]}))
    assert re.search(r"<textarea[^>]*>A good reply 0\.</textarea>", html)
    assert anna.post(url, form("A good reply 0.", candidate=use[1])).status_code == 200
    assert WritingAttempt.objects.get().source["corpus"] == "replies"
    dropped = read_page(anna.get(url, {"candidates": "1"}))
    assert use[1] not in dropped


def test_rounds_show_one_candidate_at_a_time(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1, options={"mode": "rounds", "target": 5})
    page = anna.get(at(campaign))
    html, public = read_page(page), page.context["view"].public
    assert "Candidate 1 of 3" in html
    assert 'id="candidates"' not in html
    first = page.context["hand"]["candidate"]
    body = {"submission": str(uuid4()), "candidate": first, "seconds": 3.5}
    answer = post_json(anna, at(campaign, public, "drop"), body).json()
    assert "Candidate 2 of 3" in squeeze(answer["html"])
    assert WritingAttempt.objects.values_list("decision", "seconds").get() == ("drop", 3.5)


def test_in_rounds_people_wait_for_each_other(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1, options={"mode": "rounds", "target": 5})
    page = anna.get(at(campaign))
    otto = person("otto")
    join(cast.project, otto, Role.ANNOTATOR)
    other = open_task_view(otto, campaign)
    public, first = page.context["view"].public, page.context["hand"]["candidate"]
    answer = post_json(anna, at(campaign, public, "drop"), {"submission": str(uuid4()), "candidate": first}).json()
    assert 'data-state="wait"' in answer["html"]
    assert 'id="awaited" data-waiting-for="1"' in squeeze(answer["html"])
    stamp = re.search(r'data-stamp="(\w+)"', answer["html"])
    assert stamp is not None
    part = {"part": "references", "stamp": stamp[1]}
    assert anna.get(at(campaign, public), part).status_code == 204
    send(otto, other, "A good reply by Otto.", candidate=other.candidate.public)
    html = read_page(anna.get(at(campaign, public), part))
    assert "Candidate 2 of 3" in html
    assert "Otto" not in html  # everyone grows their own set


def test_others_compare_a_text_with_the_original(client: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_constraint(cast, "better-than-original", items=2, instruction="Write a better ending.")
    otto = person("otto")
    join(cast.project, otto, Role.ANNOTATOR)
    send(otto, open_task_view(otto, campaign), "A much better reply.")
    client.force_login(cast.annotator)
    page = read_page(client.get(at(campaign)))
    assert "Write a better ending." in page
    assert "Compare 1" in page
    url = reverse("annotation:write-confirm", args=[campaign.pk])
    page = client.get(url)
    html = read_page(page)
    assert "A much better reply." in html
    assert "Answer 0 to i000." in html
    better = "ab"[page.context["pair"].texts.index("A much better reply.")]
    body = {"submission": str(uuid4()), "text": page.context["pair"].public, "better": better}
    assert client.post(url, body).status_code == 302
    assert WrittenReference.objects.get().state == "shown"
    assert client.get(url).url == at(campaign)


def test_page_needs_the_same_queries_with_many_references(
    anna: Client, cast: Cast, fake: FakePorts, django_assert_max_num_queries: Any
) -> None:
    campaign = start_writing(cast, items=1, options={"target": 40})
    view = open_task_view(cast.annotator, campaign)
    for number in range(6):
        send(cast.annotator, view, f"A good reply, number {number}.")
    with django_assert_max_num_queries(18):
        assert anna.get(at(campaign)).status_code == 200


def test_strangers_and_viewers_are_refused(client: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    public = open_task_view(cast.annotator, campaign).public
    for user, status in ((cast.stranger, 404), (cast.viewer, 403)):
        client.force_login(user)
        assert client.get(at(campaign)).status_code == status
    client.force_login(cast.researcher)
    assert client.get(at(campaign, public)).status_code == 404


def test_my_work_lists_writing(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=2)
    html = read_page(anna.get(reverse("annotation:my-work")))
    assert at(campaign) in html
    assert "0 of 2" in html
    open_task_view(cast.annotator, campaign)
    WritingMember.objects.update(done=1, seconds=30.0)
    html = read_page(anna.get(reverse("annotation:my-work")))
    assert re.search(r"<span data-pace>30 s [^<]+</span> · <span data-left>[^<]*30 s[^<]*</span>", html)
    WritingMember.objects.update(done=2)
    html = read_page(anna.get(reverse("annotation:my-work")))
    assert "data-pace" in html
    assert "data-left" not in html


def test_item_flag_appears_on_the_watch_page_and_is_resolved(anna: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    public = open_task_view(cast.annotator, campaign).public
    remark = "The turns are mixed up."
    page = read_page(anna.get(at(campaign, public)))
    assert f'href="{at(campaign, public, "flag")}" data-key="f"' in page
    assert 'name="reason" value="broken"' in read_page(anna.get(at(campaign, public, "flag")))
    refused = anna.post(at(campaign, public, "flag"), {"text": "no reason chosen"})
    assert refused.status_code == 422
    assert "no reason chosen" in read_page(refused)
    for _ in range(2):  # the same remark twice counts once
        sent = anna.post(at(campaign, public, "flag"), {"reason": "broken", "text": f" {remark} "})
        assert sent.headers["Location"] == at(campaign, public)
    flag = WritingFlag.objects.get()
    assert (flag.task.public, flag.reason, flag.text) == (public, "broken", remark)
    by_program = anna.post(
        f"/api/v1/writing-tasks/{public}/flag/", json.dumps({"reason": "other"}), content_type="application/json"
    )
    assert by_program.status_code == 201, by_program.content
    (own,) = (part for part in own_parts(user=cast.annotator) if part.name == "remarks")
    assert [row["text"] for row in own.rows] == [remark, ""]

    anna.force_login(cast.researcher)
    arguments = ["alpha", campaign.pk]
    watch = read_page(anna.get(reverse("annotation:writing", args=arguments)))
    assert "Open flags" in watch
    flags = reverse("annotation:writing-flags", args=arguments)
    assert remark in read_page(anna.get(flags))
    anna.post(reverse("annotation:writing-flag-resolve", args=[*arguments, flag.pk]))
    assert remark not in read_page(anna.get(flags))
    assert remark in read_page(anna.get(flags, {"resolved": "1"}))
    assert anna.post(reverse("annotation:writing-flag-resolve", args=[*arguments, 10**6])).status_code == 404
    assert withdraw_texts(user=cast.annotator)["flags"] == 1
    assert not WritingFlag.objects.exclude(text="").exists()


@pytest.mark.parametrize("name", ["one", "draft", "drop", "back"])
def test_script_learns_that_nobody_is_signed_in(client: Client, cast: Cast, fake: FakePorts, name: str) -> None:
    campaign = start_writing(cast, items=1)
    url = at(campaign, open_task_view(cast.annotator, campaign).public, name)
    # fetch follows a redirect to the sign-in page and takes its 200 for success: the text would be lost
    answer = post_json(client, url, form("A good reply.", version=0, draft={"text": "A"}))
    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert client.post(url, form("A good reply.")).status_code == 302
    assert not WritingAttempt.objects.exists()
