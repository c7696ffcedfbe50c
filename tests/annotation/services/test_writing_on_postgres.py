"""Concurrent writing on PostgreSQL: no text is overwritten, the last place is given once, every text is scored against
the set it entered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from annotation.models import (
    Reference,
    ReferenceSet,
    WritingAttempt,
    WritingCampaign,
    WritingMember,
    WritingTask,
    WrittenConfirmation,
    WrittenReference,
)
from annotation.selectors.writing import list_written
from annotation.selectors.writing_watch import watch
from annotation.services import writing_plans
from annotation.services.campaigns import open_campaign, pause_campaign, update_campaign
from annotation.services.writing_acts import finish_task, flag_task
from annotation.services.writing_answers import Outcome, TaskClosed
from annotation.services.writing_later import confirm_reference, get_next_confirmation, withdraw_reference
from evalapp.accounts.roles import Role
from tests.cast import Cast, join, make_cast, person
from tests.writing import draft_writing, fill_ports, open_task_view, send, start_constraint, start_writing


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """The result or exception of each call; all start at the same time."""
    barrier, results = threading.Barrier(len(calls)), [None] * len(calls)

    def work(place: int) -> None:
        barrier.wait()
        try:
            results[place] = calls[place]()
        except Exception as error:
            results[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    unforeseen = [row for row in results if isinstance(row, Exception) and not isinstance(row, TaskClosed)]
    assert not unforeseen, [repr(row) for row in results]
    return results


def crowd(cast: Cast, count: int) -> list[Any]:
    people = [person(f"w{n}") for n in range(count)]
    for user in people:
        join(cast.project, user, Role.ANNOTATOR)
    return people


def test_writing_at_the_same_moment(postgres_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_ports(monkeypatch)
    cast = make_cast()
    people = crowd(cast, 6)
    campaign = start_writing(cast, items=1, options={"target": 8})

    # All start at the same time: each gets a distinct number.
    views = at_once([lambda user=user: open_task_view(user, campaign) for user in people])
    assert sorted(WritingMember.objects.values_list("number", flat=True)) == list(range(6))

    # All add at the same time: no text is overwritten, and each score refers to the set at that moment.
    calls = [lambda user=user, view=view: send(user, view, f"Good and good by {user}.".lower())
             for user, view in zip(people, views, strict=True)]  # fmt: skip
    outcomes = at_once(calls)
    assert [row.decision for row in outcomes if isinstance(row, Outcome)] == ["accept"] * 6
    rows = list(Reference.objects.filter(set=campaign.target_set).order_by("position"))
    assert [row.position for row in rows] == list(range(7))
    scores = [row.written.attempt.score_before for row in rows[1:]]
    assert scores == [0.125 * place for place in range(6)]

    # One place is left: it is given once, the others keep their text as a draft.
    calls = [lambda user=user, view=view: send(user, view, f"Another good one by {user}.")
             for user, view in zip(people, views, strict=True)]  # fmt: skip
    outcomes = at_once(calls)
    assert sum(isinstance(row, Outcome) and row.decision == "accept" for row in outcomes) == 1
    assert sum(isinstance(row, TaskClosed) for row in outcomes) == 5
    assert Reference.objects.filter(set=campaign.target_set).count() == 8
    assert set(WritingMember.objects.values_list("done", flat=True)) == {1}
    found = watch(user=cast.researcher, campaign=campaign)
    assert (found.figures["references"], found.by_arm["scores"][-1].mean) == (7, 0.875)
    assert len(list_written(campaign=campaign)) == 7


@pytest.mark.promise("submission")
def test_one_submission_from_four_tabs(postgres_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_ports(monkeypatch)
    cast = make_cast()
    campaign = start_writing(cast, items=2, options={"target": 3})
    views = at_once([lambda: open_task_view(cast.annotator, campaign)] * 4)
    assert len({view.public for view in views}) == 1
    submission = uuid4()
    outcomes = at_once([lambda: send(cast.annotator, views[0], "A good one.", submission=submission)] * 4)
    assert [row.decision for row in outcomes] == ["accept"] * 4
    assert sorted(row.repeated for row in outcomes) == [False, True, True, True]
    assert (WrittenReference.objects.count(), WritingAttempt.objects.count()) == (1, 1)
    assert get_next_confirmation(user=cast.annotator, campaign_id=campaign.pk).public == ""


def test_one_comparison_and_one_flag_from_four_tabs(postgres_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_ports(monkeypatch)
    cast = make_cast()
    campaign = start_constraint(cast, "better-than-original", confirmations=2)
    view = open_task_view(cast.annotator, campaign)
    send(cast.annotator, view, "Another reply.")
    (other,), submission = crowd(cast, 1), uuid4()
    public = get_next_confirmation(user=other, campaign_id=campaign.pk).public
    rows = at_once([lambda: confirm_reference(user=other, public=public, submission=submission, better="a")] * 4)
    assert {row.public for row in rows} == {public}
    assert WrittenConfirmation.objects.count() == 1
    flags = at_once([lambda: flag_task(user=cast.annotator, public=view.public, reason="other", text="Odd.")] * 4)
    assert len({flag.pk for flag in flags}) == 1


def test_candidate_with_an_unstorable_name_is_rejected(postgres_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_ports(monkeypatch)
    cast = make_cast()
    campaign = start_writing(cast, items=1)
    client = Client()
    client.force_login(cast.annotator)
    address = reverse("annotation:write-one", args=[campaign.pk, open_task_view(cast.annotator, campaign).public])
    assert client.get(f"{address}?use=%00").status_code == 200


# ---- what is read after a wait --------------------------------------------------------------------------------


def aside(call: Callable[[], Any], found: list[Any]) -> threading.Thread:
    """Starts `call` in a thread and lets it run until it blocks; its result or exception goes into `found`."""

    def work() -> None:
        try:
            found.append(call())
        except Exception as error:
            found.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(0.5)
    return thread


def test_joining_while_a_campaign_opens_uses_its_set(postgres_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening locks the campaign until its set exists; a waiting request must see that set and not create another."""
    fill_ports(monkeypatch)
    cast = make_cast()
    campaign = draft_writing(cast, items=1)
    found: list[Any] = []
    threads: list[threading.Thread] = []
    begin = writing_plans.begin_set

    def begin_slowly(*arguments: Any, **named: Any) -> ReferenceSet:
        threads.append(aside(lambda: open_task_view(cast.annotator, campaign), found))
        return begin(*arguments, **named)

    monkeypatch.setattr(writing_plans, "begin_set", begin_slowly)
    campaign = open_campaign(user=cast.researcher, campaign=campaign)
    threads[0].join()
    assert [view.member.set for view in found] == [campaign.target_set]
    assert sorted(ReferenceSet.objects.values_list("name", flat=True)) == ["more-replies", "original"]


def test_two_concurrent_draft_changes_are_both_stored(postgres_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_ports(monkeypatch)
    cast = make_cast()
    campaign = draft_writing(cast, items=1)
    ReferenceSet.objects.create(project=cast.project, name="other")
    found: list[Any] = []
    threads: list[threading.Thread] = []
    first = threading.current_thread()
    read = writing_plans.make_writing_plan

    def change(**changes: Any) -> Any:
        return update_campaign(user=cast.researcher, campaign=campaign, changes=changes)

    def read_slowly(row: Any) -> Any:
        if threading.current_thread() is first:
            threads.append(aside(lambda: change(name="Another name"), found))
        return read(row)

    monkeypatch.setattr(writing_plans, "make_writing_plan", read_slowly)
    change(start_set="other")
    threads[0].join()
    campaign = WritingCampaign.objects.select_related("start_set").get(pk=campaign.pk)
    assert (campaign.name, campaign.start_set.name, len(found)) == ("Another name", "other", 1)  # type: ignore[union-attr]


def test_request_waiting_for_another_tab_sees_the_pause(postgres_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_ports(monkeypatch)
    cast = make_cast()
    campaign = start_writing(cast, items=2)
    finish_task(user=cast.annotator, public=open_task_view(cast.annotator, campaign).public)
    found: list[Any] = []
    with transaction.atomic():
        WritingMember.objects.select_for_update(no_key=True).get()
        waiting = aside(lambda: open_task_view(cast.annotator, campaign), found)
        pause_campaign(user=cast.researcher, campaign=campaign)
    waiting.join()
    assert [view.why for view in found] == ["paused"]
    assert WritingTask.objects.count() == 1


def test_next_item_does_not_wait_for_one_being_taken_back(postgres_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A possible deadlock: taking back locks the task and then the person; handing out the next item locks in the other
    order."""
    fill_ports(monkeypatch)
    cast = make_cast()
    campaign = start_writing(cast, items=2, options={"target": 2})
    first = open_task_view(cast.annotator, campaign)
    assert send(cast.annotator, first, "A good one.").view.state == "done"
    withdraw_reference(user=cast.owner, reference_id=WrittenReference.objects.get().pk)
    found: list[Any] = []
    with transaction.atomic():
        WritingTask.objects.select_for_update().get()
        thread = aside(lambda: open_task_view(cast.annotator, campaign), found)
        thread.join(5)
        assert [view.public for view in found] not in ([], [first.public])
