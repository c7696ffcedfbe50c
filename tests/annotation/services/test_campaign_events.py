"""Events of campaigns: complete, failed control items, a participant who has finished, the week."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Assignment, Campaign, CampaignMember, Judgement
from annotation.services.campaign_events import find_campaign_events, report_week
from annotation.services.judging import get_next_assignment, submit_answer
from annotation.services.participants import Applicant, Entry, join_study
from evalapp.events.models import Event
from evalapp.events.tasks import report_week as report_last_week
from tests.annotation.hired import CONTROLS, Study
from tests.writing import fill_ports, open_task_view, start_writing
from tests.writing import send as send_text

from .judging_helpers import open_for, send


def judge_all(user: Any, campaign: Campaign, value: Any = None) -> int:
    """Answer every text that the annotator gets; return their number."""
    for n in range(100):
        shown = get_next_assignment(user=user, campaign_id=campaign.pk).shown
        if shown is None:
            return n
        send(user, campaign, shown.public, value)
    raise AssertionError("it does not end")


def list_events(kind: str) -> list[dict[str, Any]]:
    return [row.data for row in Event.objects.filter(kind=kind).order_by("pk")]


@pytest.mark.parametrize("kind", ["likert", "pairwise"])
def test_a_campaign_is_complete_after_its_last_answer(cast, kind):
    campaign = open_for(cast, kind, overlap=2)
    judge_all(cast.annotator, campaign)
    find_campaign_events()
    assert list_events("campaign.complete") == [], "the second annotator is missing"
    shown = get_next_assignment(user=cast.researcher, campaign_id=campaign.pk).shown
    while shown is not None:
        find_campaign_events()
        assert list_events("campaign.complete") == []
        shown = send(cast.researcher, campaign, shown.public, then="next").next
    find_campaign_events()
    find_campaign_events()
    (data,) = list_events("campaign.complete")
    assert data == {
        "campaign": {"id": campaign.pk, "slug": campaign.slug, "name": campaign.name, "kind": kind},
        "answers": campaign.unit_count * 2, "annotators": 2,
    }  # fmt: skip
    assert Event.objects.get().path == f"/projects/alpha/campaigns/{campaign.pk}/"


def test_a_campaign_with_adaptive_pairs_is_complete_when_its_plan_is(cast):
    """The pool keeps the pairs that were not needed."""
    campaign = open_for(cast, "pairwise", systems=("a", "b", "c"), options={"adaptive": True}, overlap=1)
    judge_all(cast.annotator, campaign)
    find_campaign_events()
    campaign.refresh_from_db()
    assert campaign.begun_count == campaign.unit_count
    assert len(list_events("campaign.complete")) == 1


def test_a_closed_campaign_without_its_answers_is_not_complete(cast):
    campaign = open_for(cast)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    send(cast.annotator, campaign, shown.public)
    Campaign.objects.update(state=Campaign.State.CLOSED)
    find_campaign_events()
    assert not Event.objects.exists()


def test_a_campaign_that_nobody_works_in_is_not_looked_at(cast):
    """Campaigns that were complete long ago are not reported after an upgrade."""
    campaign = open_for(cast)
    judge_all(cast.annotator, campaign)
    CampaignMember.objects.update(last_at=timezone.now() - timedelta(days=8))
    find_campaign_events()
    assert not Event.objects.exists()


def test_the_number_of_queries_does_not_grow_with_the_campaigns(cast):
    counts = []
    for name in ("first", "second"):
        judge_all(cast.annotator, open_for(cast, name=name))
        find_campaign_events()
        with CaptureQueriesContext(connection) as captured:
            find_campaign_events()
        counts.append(len(captured))
    assert Event.objects.count() == 2
    assert counts[0] == counts[1]


def test_an_annotator_who_fails_control_items(cast):
    study = Study(cast, plan={"controls": CONTROLS, "max_per_annotator": None})
    campaign = study.campaign
    judge_all_of_study(cast.annotator, campaign, 4)
    find_campaign_events()
    assert list_events("controls.failed") == [], "one failed item is not enough"
    control = Judgement.objects.get(assignment__unit__kind="control")
    assert control.passed is False
    second = campaign.units.create(
        kind="control", item=control.assignment.unit.item, output_a=control.assignment.unit.output_a, expected={}
    )
    assignment = Assignment.objects.create(
        campaign=campaign, unit=second, annotator=cast.annotator, order_number=99, public="x", state="submitted",
        lease_until=timezone.now(), opened_at=timezone.now(), version=1,
    )  # fmt: skip
    Judgement.objects.create(
        campaign=campaign, assignment=assignment, annotator=cast.annotator, version=1, answer={}, passed=False,
        submission="5c2f8a4e-8a0e-4a6e-9d3c-0a2b7f1c9e12", body_hash="",
    )  # fmt: skip
    find_campaign_events()
    find_campaign_events()
    (data,) = list_events("controls.failed")
    assert (data["rater"], data["failed"], data["controls"]) == ("p-anna", 2, 2)
    assert "anna" not in str(data).replace("p-anna", "")


def judge_all_of_study(user: Any, campaign: Campaign, value: float) -> None:
    while (shown := get_next_assignment(user=user, campaign_id=campaign.pk).shown) is not None:
        submit_answer(user=user, public=shown.public, submission=uuid4(), answer={"naturalness": value})


def test_a_participant_who_has_finished(cast):
    study = Study(cast, consent="")
    applicant = Applicant("worker-7", {}, "browser")
    person = join_study(recruitment=study.link, applicant=applicant, entry=Entry(0, {}))
    with transaction.atomic():
        judge_all_of_study(person.user, study.campaign, 4)
        assert len(list_events("participant.finished")) == 1
        transaction.set_rollback(True)
    assert list_events("participant.finished") == [], "it did not happen"
    judge_all_of_study(person.user, study.campaign, 4)
    (data,) = list_events("participant.finished")
    assert (data["participant"], data["state"]) == (person.pk, "passed")
    assert "worker-7" not in str(data)


def test_a_participant_finishes_even_if_the_event_cannot_be_recorded(cast, monkeypatch, caplog):
    def fail(*_arguments: object) -> None:
        Event.objects.create(kind="x")  # a fault of the database, which ends PostgreSQL's transaction

    monkeypatch.setattr("evalapp.events.services.recording.send_event_mails", fail)
    study = Study(cast, consent="")
    applicant = Applicant("worker-7", {}, "browser")
    person = join_study(recruitment=study.link, applicant=applicant, entry=Entry(0, {}))
    judge_all_of_study(person.user, study.campaign, 4)
    person.refresh_from_db()
    assert (person.state, Event.objects.count()) == ("passed", 0)
    assert f"the end of participant {person.pk} is not reported" in caplog.text


MONDAY = datetime(2026, 11, 16, tzinfo=UTC)


def test_the_week(cast):
    campaign = open_for(cast, overlap=2)
    done = judge_all(cast.annotator, campaign)
    first, *others = Judgement.objects.filter(campaign=campaign).order_by("pk")
    Judgement.objects.filter(pk=first.pk).update(created_at=MONDAY - timedelta(seconds=1))
    Judgement.objects.filter(pk__in=[row.pk for row in others]).update(created_at=MONDAY + timedelta(days=6.9))
    report_week(MONDAY, MONDAY + timedelta(days=7))
    report_week(MONDAY, MONDAY + timedelta(days=7))
    (data,) = list_events("progress.weekly")
    assert (data["from"], data["to"]) == ("2026-11-16", "2026-11-22")
    (row,) = data["campaigns"]
    assert (row["id"], row["answers_in_week"], row["answers"], row["planned"]) == (
        campaign.pk, done - 1, done, 2 * campaign.unit_count,
    )  # fmt: skip


def test_a_week_without_answers_is_not_reported(cast):
    judge_all(cast.annotator, open_for(cast))
    report_week(MONDAY, MONDAY + timedelta(days=7))
    assert not Event.objects.exists()


def test_written_texts_count_in_the_week(cast, monkeypatch):
    fill_ports(monkeypatch)
    campaign = start_writing(cast)
    send_text(cast.annotator, open_task_view(cast.annotator, campaign), "A good reply of my own.")
    report_week(MONDAY, timezone.now() + timedelta(days=1))
    (data,) = list_events("progress.weekly")
    (row,) = data["campaigns"]
    assert (row["id"], row["answers_in_week"], row["planned"]) == (campaign.pk, 1, None)


def test_the_task_reports_the_last_full_week(cast, monkeypatch):
    judge_all(cast.annotator, open_for(cast))
    for now, weeks in (
        (datetime(2026, 11, 23, 6, tzinfo=UTC), ["2026-W47"]),
        (datetime(2026, 11, 29, 6, tzinfo=UTC), ["2026-W47"]),
        (datetime(2026, 11, 30, 6, tzinfo=UTC), ["2026-W47", "2026-W48"]),
    ):
        Judgement.objects.update(created_at=now - timedelta(days=now.weekday() + 3))
        CampaignMember.objects.update(last_at=now)
        monkeypatch.setattr(timezone, "now", lambda now=now: now)
        report_last_week()
        assert list(Event.objects.order_by("key").values_list("key", flat=True)) == weeks
