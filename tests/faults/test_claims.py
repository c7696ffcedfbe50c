"""Annotators who do everything at once, in separate processes with jumping clocks, on both databases: every slot is
used once, every acknowledged answer is stored as intended, and no annotator sees a database error.
tests/annotation/services/test_judging_rows.py tests concurrency without such disorder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.db.models import Count, Q
from django.utils import timezone

from annotation.models import Assignment, Campaign, Comparison, Judgement, Rating, Slot
from annotation.services import judging_acts, judging_later
from annotation.services.judging import get_next_assignment, submit_answer
from annotation.services.judging_acts import save_draft
from annotation.services.judging_handout import return_expired_slots
from annotation.services.judging_rows import lock_member
from evalapp.accounts.models import User
from evalapp.ops.ports import wait_until
from tests.annotation.services.judging_helpers import open_for
from tests.cast import join, make_cast, person

from .claims_storm import choose_verdict
from .stack import ROOT, Stack

#: Multiplier of the number of actions, for `make soak`.
TIMES = max(1, int(os.environ.get("SOAK", "0")) // 50)
STORM = Path(__file__).with_name("claims_storm.py")
OVERLAP, ITEMS, PEOPLE = 3, 40, 8


def run_processes(
    stack: Stack, campaign: Campaign, names: list[str], processes: int, acts: int
) -> list[dict[str, Any]]:
    env = {**stack.env, "PYTHONPATH": str(ROOT)}
    running_processes = [
        subprocess.Popen(
            [sys.executable, str(STORM), str(campaign.pk), str(acts), str(seed), *names[seed::processes]],
            env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for seed in range(processes)
    ]  # fmt: skip
    reports = []
    for process in running_processes:
        out, err = process.communicate(timeout=300 + acts)
        assert process.returncode == 0, err[-3000:]
        reports.append(json.loads(out.splitlines()[-1]))
    return reports


def judge_rest(campaign: Campaign, users: list[User], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Let all annotators judge the remaining units undisturbed, after all leases have expired."""
    sent, original = {}, timezone.now
    monkeypatch.setattr("django.utils.timezone.now", lambda: original() + timedelta(days=500))
    for user in users:
        shown = get_next_assignment(user=user, campaign_id=campaign.pk).shown
        while shown is not None:
            submission = uuid4()
            sent[submission.hex] = shown.public
            answer = {"pairwise-quality": choose_verdict(shown)}
            done = submit_answer(user=user, public=shown.public, submission=submission, answer=answer, then="next")
            shown = done.next
    return sent


def check_slots(campaign: Campaign) -> None:
    """Every taken slot has exactly one assignment, and vice versa."""
    assignments = Assignment.objects.filter(campaign=campaign, slot__isnull=False)
    assert not assignments.exclude(state__in=["open", "submitted"]).exists()
    slots = list(assignments.values_list("slot", flat=True))
    assert len(slots) == len(set(slots))
    taken = set(Slot.objects.filter(campaign=campaign, state="taken").values_list("pk", flat=True))
    assert set(slots) == taken, "a slot was lost, or is assigned without being taken"


def check_answers(campaign: Campaign, sent: dict[str, str]) -> None:
    rows = Judgement.objects.filter(campaign=campaign).select_related("assignment")
    stored = {row.submission.hex: row.assignment.public for row in rows}
    assert stored == sent, "an acknowledged answer was lost, or an unacknowledged one was stored"
    versions: dict[int, list[int]] = {}
    for row in rows.order_by("version"):
        versions.setdefault(row.assignment_id, []).append(row.version)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in versions.values())
    current = Counter(rows.filter(current=True).values_list("assignment", flat=True))
    assert set(current) == set(versions)
    assert set(current.values()) <= {1}


def check_overlap(campaign: Campaign) -> None:
    counted = Q(assignments__state="submitted", assignments__slot__isnull=False)
    per_unit = campaign.units.annotate(n=Count("assignments", filter=counted)).values_list("n", flat=True)
    assert set(per_unit) == {OVERLAP}, Counter(per_unit)
    counts = Judgement.objects.filter(campaign=campaign, current=True, extra=False)
    comparisons = Comparison.objects.filter(project=campaign.project).select_related("output_a", "output_b")
    assert counts.count() == comparisons.count() == campaign.unit_count * OVERLAP
    swapped = [row.pk for row in comparisons if (row.verdict == "a") != (row.output_a.text < row.output_b.text)]
    assert swapped == [], "a verdict was stored with swapped sides"


def check_storm(stack: Stack, monkeypatch: pytest.MonkeyPatch, *, processes: int, acts: int) -> None:
    cast = make_cast()
    users = [person(f"judge{k:02d}") for k in range(PEOPLE)]
    for user in users:
        join(cast.project, user, "annotator")
    campaign = open_for(cast, "pairwise", items=ITEMS * TIMES, overlap=OVERLAP)
    reports = run_processes(stack, campaign, [user.username for user in users], processes, acts * TIMES)
    assert [error for report in reports for error in report["errors"]] == []
    slowest = max(report["slowest"] for report in reports)
    counts = sum((Counter(report["seen"]) for report in reports), Counter())
    print(f"slowest action: {slowest:.2f} s; actions:", dict(counts))
    check_slots(campaign)
    sent = {number: public for report in reports for number, public in report["sent"].items()}
    check_answers(campaign, sent)
    sent |= judge_rest(campaign, users, monkeypatch)
    check_slots(campaign)
    check_answers(campaign, sent)
    check_overlap(campaign)


@pytest.mark.slow
@pytest.mark.server("postgres")
@pytest.mark.promise("overlap", "submission", "late", "draft")
def test_concurrent_annotators_on_postgres(postgres_stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    check_storm(postgres_stack, monkeypatch, processes=2, acts=300)


@pytest.mark.slow
@pytest.mark.promise("overlap", "submission", "late", "draft")
def test_concurrent_annotators_on_sqlite(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    check_storm(stack, monkeypatch, processes=3, acts=150)


# ---- two tabs of the same person, statement by statement ----------------------------------------------------


def wait_until_another_transaction_waits(cursor: Any) -> None:
    """Wait until another transaction in this database waits for a lock."""

    def waits() -> bool:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # otherwise a transaction sees the same state each time
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])

    assert wait_until(waits, 300)


def start_thread(act: Callable[[], Any], results: list[Any]) -> threading.Thread:
    """Begin `act` in a thread with a database connection of its own; its result is added to `results`."""

    def run() -> None:
        try:
            results.append(act())
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.promise("overlap", "late", "draft")
@pytest.mark.parametrize("meanwhile", ["answer", "next"])
def test_draft_and_another_act_after_the_lease_use_one_slot(
    postgres_db: str, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """A laptop wakes up: its page saves the draft and at the same time sends the answer or requests the next unit."""
    cast = make_cast()
    campaign = open_for(cast, items=1, systems=("sys-a",), overlap=2)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    assert shown is not None
    original = timezone.now
    monkeypatch.setattr("django.utils.timezone.now", lambda: original() + timedelta(minutes=40))
    assert return_expired_slots() == 1
    answer = {"user": cast.annotator, "public": shown.public, "submission": uuid4(), "answer": {"likert-quality": 3}}
    acts: dict[str, Callable[[], Any]] = {
        "answer": lambda: submit_answer(**answer),
        "next": lambda: get_next_assignment(user=cast.annotator, campaign_id=campaign.pk),
    }
    results: list[Any] = []

    tabs: list[threading.Thread] = []
    take = judging_acts.take_free_slot

    def take_slowly(cursor: Any, unit: int) -> int | None:
        slot = take(cursor, unit)
        tabs.append(start_thread(acts[meanwhile], results))
        tabs[0].join(0.5)  # the other tab is in the middle of its action, or waits for this one
        return slot

    monkeypatch.setattr(judging_acts, "take_free_slot", take_slowly)
    assert save_draft(user=cast.annotator, public=shown.public, version=0, draft={"note": "x"}).holds
    tabs[0].join()
    assert len(results) == 1
    check_slots(campaign)
    if meanwhile == "answer":
        assert (results[0].extra, Slot.objects.filter(state="taken").count()) == (False, 1)


@pytest.mark.server("postgres")
@pytest.mark.promise("overlap", "late")
def test_lease_that_ends_during_a_late_answer_frees_no_used_slot(
    postgres_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three at once: the draft of a tab reclaims the slot, the answer of the other tab, which had read the assignment
    while its lease was expired, keeps that slot, and a server whose clock is ahead releases expired slots."""
    cast = make_cast()
    campaign = open_for(cast, items=1, systems=("sys-a",), overlap=2)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    assert shown is not None
    original = timezone.now
    later = lambda minutes: lambda: original() + timedelta(minutes=minutes)  # noqa: E731
    monkeypatch.setattr("django.utils.timezone.now", later(40))
    assert return_expired_slots() == 1
    answers: list[Any] = []
    released: list[int] = []

    store = judging_later._store_late

    def store_slowly(*args: Any) -> Any:
        ahead = original() + timedelta(days=400)
        start_thread(lambda: return_expired_slots(now=ahead), released).join()
        return store(*args)

    monkeypatch.setattr(judging_later, "_store_late", store_slowly)
    answer = {"user": cast.annotator, "public": shown.public, "submission": uuid4(), "answer": {"likert-quality": 3}}
    take = judging_acts.take_free_slot
    tabs: list[threading.Thread] = []

    def take_slowly(cursor: Any, unit: int) -> int | None:
        tabs.append(start_thread(lambda: submit_answer(**answer), answers))
        wait_until_another_transaction_waits(cursor)  # it has read the assignment and waits for the row of the member
        return take(cursor, unit)

    monkeypatch.setattr(judging_acts, "take_free_slot", take_slowly)
    assert save_draft(user=cast.annotator, public=shown.public, version=0, draft={"note": "x"}).holds
    tabs[0].join()
    check_slots(campaign)
    assert (len(answers), answers[0].extra, released) == (1, False, [0])


@pytest.mark.server("postgres")
@pytest.mark.promise("overlap", "late")
def test_answer_does_not_count_if_its_slot_went_to_another_while_it_waited(
    postgres_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer has read that its assignment is open with a slot, and waits for the row of the member. Meanwhile the
    lease ends, another annotator gets the slot, and a draft of the other tab reopens the assignment without one."""
    cast = make_cast()
    campaign = open_for(cast, items=1, systems=("sys-a",), overlap=1)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    assert shown is not None
    original = timezone.now
    monkeypatch.setattr("django.utils.timezone.now", lambda: original() + timedelta(minutes=40))
    answers: list[Any] = []

    answer = {"user": cast.annotator, "public": shown.public, "submission": uuid4(), "answer": {"likert-quality": 3}}
    with transaction.atomic(), connection.cursor() as cursor:
        assert lock_member(cursor, campaign.pk, cast.annotator.pk) is not None
        tab = start_thread(lambda: submit_answer(**answer), answers)
        wait_until_another_transaction_waits(cursor)
        assert return_expired_slots() == 1
        other = get_next_assignment(user=cast.owner, campaign_id=campaign.pk).shown
        assert other is not None
        for version in range(2):
            draft = {"note": str(version)}
            assert not save_draft(user=cast.annotator, public=shown.public, version=version, draft=draft).holds
    tab.join()
    assert [one.extra for one in answers] == [True]
    submit_answer(user=cast.owner, public=other.public, submission=uuid4(), answer={"likert-quality": 4})
    check_slots(campaign)
    assert Judgement.objects.filter(extra=False).count() == Rating.objects.count() == campaign.unit_count
