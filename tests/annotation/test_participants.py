"""Hired participants: from the link to the completion code, by the pages."""

from __future__ import annotations

import csv
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import (
    Assignment,
    CampaignMember,
    Comparison,
    ConsentText,
    Judgement,
    Participant,
    Rating,
    Recruitment,
    Slot,
)
from annotation.services.campaigns import close_campaign, pause_campaign
from annotation.services.recruitments import ban_participant, update_recruitment
from evalapp.accounts import limits
from evalapp.accounts.models import Membership, User
from tests.annotation.hired import CONTROLS, PRACTICE, Study, Visitor
from tests.cast import Cast

pytestmark = pytest.mark.django_db
CODES = {"passed": {"code": "C-PASS"}, "failed": {"code": "C-FAIL"}, "screened": {"code": "C-SCREEN"},
         "full": {"code": "C-FULL"}, "refused": {"code": "C-NO"}}  # fmt: skip


def read_payments(study: Study, client: Client) -> list[dict[str, str]]:
    parts = [study.cast.project.slug, study.campaign.pk, study.link.pk]
    response = client.get(reverse("annotation:participants-file", args=parts))
    assert response.status_code == 200
    return list(csv.DictReader(StringIO(response.content.decode("utf-8-sig"))))


def sign_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_from_the_link_to_the_code_and_the_file(cast: Cast) -> None:
    address = "https://platform.example/done?cc={code}&who={PROLIFIC_PID}&s={SESSION_ID}"
    study = Study(
        cast, platform="prolific", outcomes={**CODES, "passed": {"code": "C-PASS", "address": address}}, pay=2.5,
        currency="GBP",
    )  # fmt: skip
    nora = Visitor(study, "id-1")
    page = nora.open(STUDY_ID="st", SESSION_ID="a&b"[:1], unknown="x")
    assert b"<strong>answers</strong>" in page.content
    assert not Participant.objects.exists(), "reading the consent text stores nothing"
    page = nora.begin(STUDY_ID="st", SESSION_ID="se", unknown="x")
    assert page.redirect_chain[-1][0] == f"/my/{study.campaign.pk}/"
    page = nora.finish()
    assert b"C-PASS" in page.content
    assert b"https://platform.example/done?cc=C-PASS&amp;who=id-1&amp;s=se" in page.content
    row = nora.row
    assert (row.state, row.place, row.meta) == ("passed", 1, {"STUDY_ID": "st", "SESSION_ID": "se"})
    assert row.consent == ConsentText.objects.get()
    assert Rating.objects.filter(judgement__isnull=False).count() == 3
    paid = read_payments(study, sign_in(cast.researcher))
    assert len(paid) == 1
    wanted = {"participant": "id-1", "state": "passed", "units": "3", "pay": "2.5", "currency": "GBP", "code": "C-PASS",
              "STUDY_ID": "st", "SESSION_ID": "se", "consent_version": "1"}  # fmt: skip
    assert {name: paid[0][name] for name in wanted} == wanted
    assert paid[0]["rater"] == Membership.objects.get(user=row.user).pseudonym


def test_refusing_stores_nothing_and_can_be_reconsidered(cast: Cast) -> None:
    study = Study(cast, outcomes=CODES)
    nora = Visitor(study, "id-1")
    page = nora.client.post(study.get_address("id-1"), {"do": "refuse"})
    assert b"C-NO" in page.content
    assert not User.objects.filter(is_participant=True).exists()
    assert not Participant.objects.exists()
    study.link.refresh_from_db()
    assert study.link.refusals == 1
    nora.begin()
    assert nora.row.state == "working"


def test_consent_versions_stay_with_who_agreed_to_them(cast: Cast) -> None:
    study = Study(cast)
    Visitor(study, "id-1").begin()
    update_recruitment(recruitment=study.link, user=cast.researcher, changes={"consent": "A new text."})
    page = Visitor(study, "id-2").begin(version=1)  # read before the change
    assert page.status_code == 422
    assert b"A new text." in page.content
    assert b"was changed while you were reading" in page.content
    assert not Participant.objects.filter(external_id="id-2").exists()
    Visitor(study, "id-2").begin(version=2)
    rows = Participant.objects.order_by("pk").values_list("external_id", "consent__version", "consent__text")
    assert list(rows) == [("id-1", 1, "We store your **answers** under a pseudonym."), ("id-2", 2, "A new text.")]


QUESTIONS = [
    {"name": "age", "question": "How old are you?", "kind": "number", "low": 18, "high": 99},
    {"name": "english", "question": "Is English your first language?", "kind": "choice", "choices": ["yes", "no"]},
    {"name": "remark", "question": "Anything else?", "kind": "text", "required": False},
]


@pytest.mark.parametrize(
    ("answers", "faulty"),
    [
        ({"age": "17", "english": "yes"}, "age"),
        ({"age": "many", "english": "yes"}, "age"),
        ({"age": "nan", "english": "yes"}, "age"),
        ({"english": "yes"}, "age"),
        ({"age": "30", "english": "maybe"}, "english"),
        ({"age": "30", "english": "yes", "remark": "x" * 2001}, "remark"),
        ({"age": "30", "english": "yes", "remark": "\x00"}, "remark"),
    ],
)
def test_wrong_answers_to_questions_are_marked(cast: Cast, answers: dict[str, str], faulty: str) -> None:
    study = Study(cast, questions=QUESTIONS)
    page = Visitor(study, "id-1").begin(answers)
    assert page.status_code == 422
    assert list(page.context["form"].errors) == [faulty]
    assert not Participant.objects.exists()


def test_answers_to_questions_are_stored_with_the_consent_to_publish(cast: Cast) -> None:
    study = Study(cast, questions=QUESTIONS)
    Visitor(study, "id-1").begin({"age": "30", "english": "no", "May-export": "on"})
    Visitor(study, "id-2").begin({"age": "31.5", "english": "yes"})
    rows = Participant.objects.order_by("pk").values_list("answers", "may_export")
    assert list(rows) == [({"age": 30, "english": "no"}, True), ({"age": 31.5, "english": "yes"}, False)]


def test_the_same_browser_continues_and_another_one_does_not(cast: Cast) -> None:
    study = Study(cast)
    nora = Visitor(study, "id-1")
    nora.begin()
    before = nora.get_open()
    nora.client.post("/account/sign-out/")
    page = nora.open()
    assert page.redirect_chain[-1][0] == f"/my/{study.campaign.pk}/"
    assert nora.get_open() == before
    thief = Visitor(study, "id-1")
    for page in (thief.open(), thief.begin()):
        assert page.status_code == 403
        assert b"in another browser" in page.content
        assert "_auth_user_id" not in thief.client.session
    assert Participant.objects.count() == 1


def test_another_browser_continues_if_the_study_allows_it(cast: Cast) -> None:
    study = Study(cast, any_browser=True)
    Visitor(study, "id-1").begin()
    other = Visitor(study, "id-1")
    assert b"You have begun this study before" in other.open().content
    assert "_auth_user_id" not in other.client.session, "a link alone signs nobody in"
    page = other.client.post(study.get_address("id-1"), follow=True)
    assert page.redirect_chain[-1][0] == f"/my/{study.campaign.pk}/"
    assert Participant.objects.count() == 1


def test_a_key_of_another_participant_opens_only_that_one(cast: Cast) -> None:
    study = Study(cast)
    Visitor(study, "id-1").begin()
    mallory = Visitor(study, "id-2")
    mallory.begin()
    assert Visitor(study, "id-1", mallory.client).open().status_code == 403


def test_two_windows_of_a_browser_are_one_participant(cast: Cast) -> None:
    """Both have read the consent text before either agrees."""
    study = Study(cast)
    first = Visitor(study, "id-1")
    first.open()
    second = Visitor(study, "id-1", Client())
    second.client.cookies["participant"] = first.client.cookies["participant"].value
    for window in (first, second):
        assert window.begin().redirect_chain[-1][0] == f"/my/{study.campaign.pk}/"
    assert study.get_states() == {"id-1": "working"}
    assert first.client.session["_auth_user_id"] == second.client.session["_auth_user_id"]


@pytest.mark.parametrize("any_browser", [False, True])
def test_ids_cannot_be_tried_from_another_browser(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, any_browser: bool
) -> None:  # fmt: skip
    monkeypatch.setattr(limits, "OTHER_BROWSERS", limits.Limit("participant-browser", 2, 900))
    study = Study(cast, any_browser=any_browser)
    nora = Visitor(study, "id-1")
    nora.begin()
    statuses = [Visitor(study, "id-1").open().status_code for _ in range(3)]
    assert statuses == [200 if any_browser else 403] * 2 + [429]
    assert nora.open().status_code == 200, "the participant's own browser is never refused"
    assert Visitor(study, "id-2").begin().status_code == 200


def test_the_page_that_asks_for_the_id_keeps_further_parameters(cast: Cast) -> None:
    study = Study(cast, meta_parameters=["SESSION_ID"])
    page = Client().get(f"/participate/{study.secret}/?SESSION_ID=s1&other=x")
    assert b'<input type="hidden" name="SESSION_ID" value="s1">' in page.content
    assert b'"other"' not in page.content


def test_a_question_may_have_any_permitted_name(cast: Cast) -> None:
    study = Study(cast, questions=[{"name": "may-export", "question": "?", "kind": "choice", "choices": ["a", "b"]}])
    Visitor(study, "id-1").begin({"may-export": "b"})
    assert (Participant.objects.get().answers, Participant.objects.get().may_export) == ({"may-export": "b"}, False)


def test_places_are_exact_and_released_when_people_leave(cast: Cast) -> None:
    study = Study(cast, places=2, outcomes=CODES)
    first, second, third = (Visitor(study, f"id-{n}") for n in range(3))
    first.begin()
    second.finish()
    page = third.begin()
    assert b"C-FULL" in page.content
    assert not Participant.objects.filter(external_id="id-2").exists()
    Participant.objects.filter(pk=first.row.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert b"C-PASS" in third.finish().content
    assert study.get_states() == {"id-0": "left", "id-1": "passed", "id-2": "passed"}
    page = first.open()  # comes back too late
    assert page.redirect_chain[-1][0] == "/my/participation/"
    assert b"C-FULL" in page.content
    assert sorted(Participant.objects.filter(place__isnull=False).values_list("place", flat=True)) == [1, 2]


def test_who_comes_back_gets_a_free_place_again(cast: Cast) -> None:
    study = Study(cast, places=2, outcomes=CODES)
    first, second = Visitor(study, "id-0"), Visitor(study, "id-1")
    first.begin()
    Participant.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    second.begin()
    assert first.row.state == "left"
    assert b"C-PASS" in first.finish().content
    assert (first.row.state, second.row.state) == ("passed", "working")


def test_the_database_allows_no_second_holder_of_an_id_or_a_place(cast: Cast) -> None:
    study = Study(cast)
    Visitor(study, "id-1").begin()
    row = Participant.objects.get()
    for changes in ({"external_id": "id-1", "place": 2}, {"external_id": "id-2", "place": 1}, {"external_id": "id-2", "place": None}):  # fmt: skip  # noqa: E501
        user = User.objects.create_user(username="x", password="a-long-enough-one")
        with pytest.raises(IntegrityError), transaction.atomic():
            Participant.objects.create(recruitment=row.recruitment, user=user, state="working", **changes)
        user.delete()


def test_practice_screens_out_before_the_first_text(cast: Cast) -> None:
    study = Study(cast, plan={"practice": PRACTICE}, pass_mark=1, outcomes=CODES, places=1)
    nora, otto = Visitor(study, "id-1"), Visitor(study, "id-2")
    nora.begin()
    nora.answer(1)  # 5 or 6 is expected
    page = nora.client.get(f"/my/{study.campaign.pk}/", follow=True)
    assert b"C-SCREEN" in page.content
    assert (nora.row.state, nora.row.place) == ("screened", None)
    assert not Assignment.objects.filter(annotator=nora.row.user, unit__kind="normal").exists()
    otto.begin()
    otto.answer(6)
    otto.client.get(f"/my/{study.campaign.pk}/")
    assert otto.finish().status_code == 200
    assert study.get_states() == {"id-1": "screened", "id-2": "passed"}


def test_nothing_is_handed_out_ahead_of_the_practice(cast: Cast) -> None:
    study = Study(cast, plan={"practice": PRACTICE}, pass_mark=1)
    nora = Visitor(study, "id-1")
    nora.begin()
    assert nora.client.get(f"/my/{study.campaign.pk}/next/").status_code == 204
    assert Assignment.objects.filter(annotator=nora.row.user).count() == 1


@pytest.mark.parametrize(
    ("settings", "rule"), [({"min_controls": 0.9}, "controls"), ({"min_seconds": 3}, "speed"), ({}, "")]
)
def test_rules_decide_who_passes(cast: Cast, settings: dict[str, Any], rule: str) -> None:
    plan = {"controls": CONTROLS, "options": {"control_rate": 0.5}, "max_per_annotator": 4}
    study = Study(cast, plan=plan, outcomes=CODES, **settings)
    page = Visitor(study, "id-1").finish(6)  # controls expect 1 or 2; answers take less than a second
    row = Participant.objects.get()
    assert (row.state, row.failed_rules) == (("failed", [rule]) if rule else ("passed", []))
    assert (b"C-FAIL" if rule else b"C-PASS") in page.content
    assert row.place == 1, "a failed participant keeps the place unless the link says otherwise"


def test_agreement_is_a_rule_with_enough_shared_texts(cast: Cast) -> None:
    plan = {"max_per_annotator": 6}
    study = Study(cast, items=3, plan=plan, min_agreement=0.5, outcomes=CODES)
    Visitor(study, "id-1").finish(6)
    assert study.get_states()["id-1"] == "passed", "nobody to agree with"
    Visitor(study, "id-2").finish(5)  # a quarter of the scale from 1 to 6 is 1.25
    Visitor(study, "id-3").finish(1)
    assert study.get_states() == {"id-1": "passed", "id-2": "passed", "id-3": "failed"}


def test_texts_and_place_of_who_failed_go_to_others(cast: Cast, django_capture_on_commit_callbacks: Any) -> None:
    plan = {"max_per_annotator": 4, "overlap": 1}
    study = Study(cast, items=2, plan=plan, min_seconds=3, replace_failed=True, places=1, outcomes=CODES)
    with django_capture_on_commit_callbacks(execute=True):
        page = Visitor(study, "id-1").finish()
    assert b"C-FAIL" in page.content
    row = Participant.objects.get()
    assert (row.state, row.place, row.set_aside) == ("failed", None, True)
    assert Judgement.objects.filter(extra=True).count() == 4, "answers are kept, but do not count"
    assert not Rating.objects.filter(judgement__isnull=False).exists()
    assert Slot.objects.filter(state="free").count() == 4
    update_recruitment(recruitment=study.link, user=cast.researcher, changes={"min_seconds": None})
    assert b"C-PASS" in Visitor(study, "id-2").finish().content
    assert Rating.objects.filter(judgement__isnull=False).count() == 4


def test_a_finished_participant_cannot_change_answers(cast: Cast) -> None:
    study = Study(cast, outcomes=CODES)
    nora = Visitor(study, "id-1")
    nora.finish()
    last = Assignment.objects.filter(annotator=nora.row.user).order_by("-pk")[0]
    page = nora.client.post(
        f"/my/{study.campaign.pk}/{last.public}/",
        {"submission": "5c2f8a4e-8a0e-4a6e-9d3c-0a2b7f1c9e11", "answer.naturalness": "1", "replaces": "1"}, follow=True,
    )  # fmt: skip
    assert b"You have finished this study" in page.content
    assert Judgement.objects.filter(assignment=last).count() == 1


def test_personal_codes_differ_and_are_long(cast: Cast) -> None:
    study = Study(cast, personal_codes=True)
    codes = []
    for number in range(3):
        visitor = Visitor(study, f"id-{number}")
        page = visitor.finish()
        codes.append(visitor.row.code)
        assert codes[-1].encode() in page.content
    assert len(set(codes)) == 3
    assert all(len(code) == 10 for code in codes)


def test_withdrawing_deletes_answers_and_id_and_frees_the_texts(cast: Cast) -> None:
    study = Study(cast, plan={"overlap": 1}, questions=QUESTIONS[2:])
    nora, otto = Visitor(study, "id-1"), Visitor(study, "id-2")
    otto.finish()
    nora.begin({"remark": "I am Nora."})
    nora.answer()
    user = nora.row.user
    taken = Slot.objects.filter(state="taken").count()
    assert b"you will not get a completion code" in nora.client.get("/my/participation/withdraw/").content
    page = nora.client.post("/my/participation/withdraw/")
    assert b"Your answers are deleted" in page.content
    row = Participant.objects.get(user=user)
    assert (row.state, row.external_id, row.answers, row.meta, row.place) == (
        "withdrawn", f"{{withdrawn-{row.pk}}}", {}, {}, None,
    )  # fmt: skip
    assert not Judgement.objects.filter(annotator=user).exists()
    assert not CampaignMember.objects.filter(annotator=user).exists()
    assert not Membership.objects.filter(user=user).exists()
    assert Slot.objects.filter(state="taken").count() < taken
    assert Rating.objects.filter(judgement__isnull=False).count() == 3, "those of the other participant stay"
    assert not Comparison.objects.exists()
    assert nora.client.get(f"/my/{study.campaign.pk}/").status_code == 302, "signed out"


def test_nobody_can_take_the_id_of_a_withdrawn_participant(cast: Cast) -> None:
    from annotation.services.participant_answers import withdraw_participant

    study = Study(cast, personal_codes=True)
    nora = Visitor(study, "id-1")
    nora.finish()
    row = nora.row
    for external_id in (f"withdrawn-{row.pk}", f"{{withdrawn-{row.pk}}}"):
        Visitor(study, external_id).begin()
    withdraw_participant(participant=row, actor=cast.owner)
    row.refresh_from_db()
    assert (row.state, row.code) == ("withdrawn", "")
    assert set(study.get_states()) == {f"withdrawn-{row.pk}", row.external_id}


def test_withdrawing_while_a_text_is_open_ends_the_session(cast: Cast) -> None:
    study = Study(cast)
    nora = Visitor(study, "id-1")
    nora.begin()
    row, text = nora.row, nora.get_open()
    client = sign_in(cast.researcher)
    parts = [cast.project.slug, study.campaign.pk, study.link.pk, row.pk]
    client.post(reverse("annotation:participant-withdraw", args=parts))
    page = nora.answer(assignment=text)
    assert page.redirect_chain[0][0].startswith("/account/sign-in/")
    assert not Judgement.objects.exists()
    assert not Slot.objects.filter(state="taken").exists()


def test_who_works_when_the_link_closes_can_finish(cast: Cast) -> None:
    from annotation.services.recruitments import close_recruitment

    study = Study(cast, outcomes=CODES)
    nora, otto = Visitor(study, "id-1"), Visitor(study, "id-2")
    nora.begin()
    otto.open()
    close_recruitment(recruitment=study.link, user=cast.researcher)
    assert b"This study has ended" in otto.begin().content, "read the text before the link was closed"
    assert b"C-PASS" in nora.finish().content
    assert study.get_states() == {"id-1": "passed"}


def test_a_place_released_while_its_holder_answers(cast: Cast) -> None:
    study = Study(cast, places=1, outcomes=CODES)
    nora, otto = Visitor(study, "id-1"), Visitor(study, "id-2")
    nora.begin()
    text = nora.get_open()
    Participant.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    otto.begin()
    assert b"C-FULL" in nora.answer(assignment=text).content
    assert Judgement.objects.get().assignment == text, "the answer is stored"
    assert b"C-PASS" in otto.finish().content
    assert study.get_states() == {"id-1": "left", "id-2": "passed"}


def test_a_researcher_withdraws_and_the_paid_place_stays(cast: Cast) -> None:
    study = Study(cast, places=1, pay=2, outcomes=CODES)
    Visitor(study, "id-1").finish()
    row = Participant.objects.get()
    client = sign_in(cast.researcher)
    parts = [cast.project.slug, study.campaign.pk, study.link.pk, row.pk]
    assert b"id-1" in client.get(reverse("annotation:participant-withdraw", args=parts)).content
    client.post(reverse("annotation:participant-withdraw", args=parts))
    paid = read_payments(study, client)
    assert [(one["participant"], one["state"], one["pay"]) for one in paid] == [
        (f"{{withdrawn-{row.pk}}}", "withdrawn", "2")
    ]
    assert b"C-FULL" in Visitor(study, "id-2").open().content


def test_banned_ids_stay_out_and_working_ones_are_stopped(cast: Cast) -> None:
    study = Study(cast, plan={"overlap": 1})
    nora = Visitor(study, "id-1")
    nora.begin()
    client = sign_in(cast.researcher)
    address = reverse("annotation:participants-ban", args=[cast.project.slug, study.campaign.pk])
    client.post(address, {"external_id": "id-1", "reason": "copies answers"})
    assert (nora.row.state, nora.row.place) == ("banned", None)
    assert not Slot.objects.filter(state="taken").exists()
    page = nora.client.get(f"/my/{study.campaign.pk}/", follow=True)
    assert b"You cannot take part in this study" in page.content
    ban_participant(project=cast.project, user=cast.researcher, external_id="id-2")
    assert b"You cannot take part in this study" in Visitor(study, "id-2").begin().content
    assert client.post(address, {"external_id": "id-2"}).status_code == 422
    row = cast.project.participant_bans.get(external_id="id-2")
    lift = reverse("annotation:participants-unban", args=[cast.project.slug, study.campaign.pk, row.pk])
    client.post(lift)
    Visitor(study, "id-2").begin()
    assert study.get_states() == {"id-1": "banned", "id-2": "working"}


def test_only_new_people_if_the_link_says_so(cast: Cast) -> None:
    from annotation.services.recruitments import create_recruitment

    study = Study(cast)
    Visitor(study, "id-1").begin()
    second, secret = create_recruitment(
        campaign=study.campaign, user=cast.owner, settings={"places": 5, "only_new": True}
    )
    study.link, study.secret = second, secret
    assert b"another study" in Visitor(study, "id-1").begin(version=0).content
    Visitor(study, "id-2").begin(version=0)
    assert study.get_states() == {"id-2": "working"}


def test_paused_and_closed_campaigns_say_so(cast: Cast) -> None:
    study = Study(cast, outcomes=CODES)
    nora = Visitor(study, "id-1")
    nora.begin()
    pause_campaign(campaign=study.campaign, user=cast.owner)
    assert b"This study is paused" in Visitor(study, "id-2").open().content
    close_campaign(campaign=study.campaign, user=cast.owner)
    assert b"This study has ended" in Visitor(study, "id-2").open().content
    nora.answer()
    assert b"This study has ended" in nora.client.get(f"/my/{study.campaign.pk}/", follow=True).content


def test_no_text_left_ends_or_says_full(cast: Cast) -> None:
    study = Study(cast, items=1, plan={"overlap": 1, "max_per_annotator": 5}, outcomes=CODES)
    assert b"C-PASS" in Visitor(study, "id-1").finish().content  # two texts, all there are
    assert b"C-FULL" in Visitor(study, "id-2").open().content


# ---- pages of researchers ---------------------------------------------------------------------------------

NEW_LINK = {
    "places": "5", "lease_minutes": "60", "pay": "0", "pay_failed": "0", "pay_screened": "0", "bonus": "0",
    "ask_export": "on", "questions-TOTAL_FORMS": "1", "questions-INITIAL_FORMS": "0", "questions-0-kind": "choice",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "opened"),
    [
        ({}, set()),
        ({"consent": "Yes?"}, {"consent"}),
        ({"ask_export": ""}, {"consent"}),
        ({"questions-0-name": "A b"}, {"consent"}),
        ({"min_seconds": "3"}, {"passing"}),
        ({"pass_mark": "101"}, {"passing"}),
        ({"full_address": "mailto:a@x.org"}, {"outcomes"}),
        ({"personal_codes": "on"}, {"outcomes"}),
        ({"pay": "", "currency": "GBP"}, {"pay"}),
    ],
)
def test_parts_with_values_or_errors_are_shown_open(cast: Cast, changes: dict[str, str], opened: set[str]) -> None:
    study = Study(cast)
    address = reverse("annotation:participants-new", args=[cast.project.slug, study.campaign.pk])
    page = sign_in(cast.researcher).post(address, {**NEW_LINK, **changes, "places": "0"})
    assert page.status_code == 422
    assert page.context["opened"] == opened
    assert page.content.count(b'<details class="section" open>') == len(opened)


def test_editing_without_a_change_changes_nothing(cast: Cast) -> None:
    """Also where the API or a file gave numbers with decimals."""
    plan = {"controls": CONTROLS, "practice": PRACTICE}
    study = Study(
        cast, plan=plan, platform="prolific", questions=QUESTIONS, outcomes=CODES, pass_mark=0.675, min_controls=1 / 3,
        min_seconds=2.5, pay=2.25, bonus=0.1, bonus_controls=0.9, replace_failed=True,
    )  # fmt: skip
    study.link.refresh_from_db()
    before = study.link.settings
    address = reverse("annotation:participants-edit", args=[cast.project.slug, study.campaign.pk, study.link.pk])
    client = sign_in(cast.researcher)
    shown = client.get(address).context
    body = {}
    for form in (shown["form"], *shown["rows"].forms, shown["rows"].management_form):
        body |= {field.html_name: field.value() for field in form if field.value() not in (None, False)}
    assert client.post(address, body).status_code == 302
    study.link.refresh_from_db()
    before["min_controls"] = pytest.approx(1 / 3, abs=1e-6)
    assert study.link.settings == before


def test_a_new_address_replaces_the_old_one(cast: Cast) -> None:
    study = Study(cast)
    old = study.get_address("id-1")
    client = sign_in(cast.researcher)
    address = reverse("annotation:participants-link", args=[cast.project.slug, study.campaign.pk, study.link.pk])
    page = client.post(address, {"do": "renew"})
    assert page.headers["Cache-Control"] == "no-store"
    new = page.context["address"].replace("{ID}", "id-1").removeprefix("http://testserver")
    assert (Client().get(old).status_code, Client().get(new).status_code) == (404, 200)
    client.post(address, {"do": "close"})
    assert b"This study has ended" in Client().get(new).content
    client.post(address, {"do": "reopen"})
    assert b"I agree and begin" in Client().get(new).content


# ---- doors ------------------------------------------------------------------------------------------------


def test_accounts_of_participants_open_one_campaign_and_nothing_else(cast: Cast) -> None:
    from evalapp.accounts.roles import Role
    from evalapp.accounts.services import create_invitation
    from tests.judging import make_draft

    study = Study(cast)
    nora = Visitor(study, "id-1")
    nora.begin()
    other = make_draft(cast, slug="other")
    from annotation.services.campaigns import open_campaign

    open_campaign(campaign=other, user=cast.researcher)
    assert nora.client.get(f"/my/{other.pk}/").status_code == 403
    assert nora.client.post("/account/tokens/", {"name": "t", "scopes": ["read"], "days": "9"}).status_code == 422
    assert nora.client.post("/account/", {"first_name": "N", "email": "n@x.org"}).status_code == 422
    assert not nora.row.user.has_usable_password()
    assert nora.client.post("/account/password/", {
        "old_password": "", "new_password1": "a-long-enough-one", "new_password2": "a-long-enough-one"
    }).status_code == 422  # fmt: skip
    nora.client.post("/account/reset/", {"email": ""})
    assert not User.objects.get(pk=nora.row.user.pk).has_usable_password()
    _, secret = create_invitation(project=cast.foreign, role=Role.OWNER, actor=cast.stranger)
    page = nora.client.post(f"/invitations/{secret}/", {"username": "nora"})
    assert page.status_code == 422, "asks for an account of the person's own"
    assert Membership.objects.filter(user=nora.row.user).count() == 1


def test_participants_are_no_members_whose_role_can_be_changed(cast: Cast) -> None:
    from evalapp.accounts.selectors import my_projects
    from evalapp.accounts.services import change_role, lift_campaign_limit
    from evalapp.common.errors import NotAllowed

    study = Study(cast)
    people = my_projects(cast.owner).get(pk=cast.project.pk).people  # type: ignore[attr-defined]
    Visitor(study, "id-1").begin()
    user = Participant.objects.get().user
    member = Membership.objects.get(user=user)
    client = sign_in(cast.owner)
    assert user.username.encode() not in client.get(f"/projects/{cast.project.slug}/people/").content
    assert my_projects(cast.owner).get(pk=cast.project.pk).people == people  # type: ignore[attr-defined]
    address = reverse("accounts:member-role", args=[cast.project.slug, member.pk])
    assert client.post(address, {"role": "researcher"}).status_code == 404
    with pytest.raises(NotAllowed):
        change_role(member=member, role="researcher", actor=cast.owner)
    with pytest.raises(NotAllowed):
        lift_campaign_limit(member=member, actor=cast.owner)
    member.refresh_from_db()
    assert (member.role, member.campaigns) == ("annotator", [f"judging:{study.campaign.pk}"])


def test_links_cannot_be_guessed(cast: Cast, client: Client) -> None:
    study = Study(cast)
    assert len(study.secret) == 32
    assert study.secret not in str(Recruitment.objects.values().get())
    answers = [
        client.get(f"/participate/guess-{n}/?participant=a").status_code for n in range(limits.LINK_FAILURES.most + 1)
    ]
    assert answers == [404] * limits.LINK_FAILURES.most + [429]
    assert client.get(study.get_address("id-1")).status_code == 200, "a working link is never refused"


def test_invented_ids_cannot_use_up_the_places(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PARTICIPANTS_BY_ADDRESS", limits.Limit("participant-ip", 2, 900))
    study = Study(cast)
    answers = [Visitor(study, f"id-{n}").begin().status_code for n in range(3)]
    assert answers == [200, 200, 429]


@pytest.mark.parametrize("external_id", ["", "%20", "{{%PROLIFIC_PID%}}", "x" * 101, "a%00", "a%E2%80%AEb"])
def test_missing_and_unreadable_ids(cast: Cast, external_id: str) -> None:
    study = Study(cast)
    address = f"/participate/{study.secret}/?participant={external_id}"
    for page in (Client().get(address), Client().post(address, {"do": "begin", "consent_version": 1})):
        assert page.status_code in (200, 400)
        assert b"articipant id" in page.content
    assert not Participant.objects.exists()


def test_cells_of_the_file_are_no_formulas(cast: Cast) -> None:
    study = Study(cast)
    Visitor(study, "=1%2B1").begin()
    row = Participant.objects.get()
    assert row.external_id == "=1+1"
    assert read_payments(study, sign_in(cast.researcher))[0]["participant"] == "'=1+1"


# ---- export, own data, tables -----------------------------------------------------------------------------


def test_an_export_tells_the_rules_and_answers_only_with_consent(cast: Cast) -> None:
    from annotation.exporters import campaigns, traces

    study = Study(
        cast, questions=QUESTIONS, outcomes={**CODES, "passed": {"code": "C-SECRET"}}, meta_parameters=["SESSION_ID"]
    )  # fmt: skip
    for name, more in (("id-1", {"May-export": "on"}), ("id-2", {})):
        Visitor(study, name).begin({"age": "30", "english": "no", **more}, SESSION_ID="secret-session")
    rows = dict(campaigns.rows(cast.project, str))
    (link,) = rows["campaigns"]["told"]["recruitment"]
    assert (link["places"], link["participants"]["working"], link["refused"]) == (5, 2, 0)
    assert link["consent_texts"] == [{"version": 1, "text": "We store your **answers** under a pseudonym."}]
    raters = [row for _, row in traces.raters(cast.project, str)]
    assert [(row["participant"], row.get("answers")) for row in raters].count(("working", None)) == 1
    assert {"age": 30, "english": "no"} in [row.get("answers") for row in raters]
    for secret in ("id-1", "C-SECRET", "secret-session"):
        assert secret not in str(rows) + str(raters)


def test_own_data_have_the_consent_and_the_answers(cast: Cast) -> None:
    from evalapp.accounts.services import collect

    study = Study(cast, questions=QUESTIONS)
    Visitor(study, "id-1").begin({"age": "30", "english": "no"})
    parts = {part.name: part.rows for part in collect(user=Participant.objects.get().user)}
    (row,) = parts["participation"]
    assert (row["external_id"], row["answers"], row["consent__version"]) == ("id-1", {"age": 30, "english": "no"}, 1)


def test_tables_are_out_of_date_after_a_withdrawal(cast: Cast) -> None:
    """The latest rating is of somebody else, so its number alone would not tell."""
    from annotation.services.participant_answers import withdraw_participant
    from scoring.selectors.leaderboards import compute_stamp

    study = Study(cast)
    for name in ("id-1", "id-2"):
        Visitor(study, name).finish()
    before = compute_stamp(cast.project)
    first = Participant.objects.order_by("pk")[0]
    withdraw_participant(participant=first, actor=cast.owner)
    assert compute_stamp(cast.project) != before


def test_a_campaign_with_participants_cannot_be_deleted(cast: Cast) -> None:
    from annotation.services.campaigns import delete_campaign
    from evalapp.common.errors import Conflict

    study = Study(cast)
    Visitor(study, "id-1").begin()
    with pytest.raises(Conflict, match="participants"):
        delete_campaign(campaign=study.campaign, user=cast.owner)


def test_a_project_is_deleted_with_its_participants(cast: Cast) -> None:
    from evalapp.accounts.services import delete_project

    study = Study(cast)
    Visitor(study, "id-1").finish()
    user = Participant.objects.get().user
    assert delete_project(project=cast.project, actor=cast.owner, confirmation=cast.project.slug) is None
    assert not Participant.objects.exists()
    assert not Recruitment.objects.exists()
    user.refresh_from_db()
    assert not user.is_active, "nothing is left that the account could be used for"
