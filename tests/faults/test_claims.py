"""People who do everything at once, in separate processes with jumping clocks, on both databases: every slot is used
once, every acknowledged answer is stored as intended, no person sees a database error.
tests/annotation/services/test_judging_rows.py measures concurrency without such disorder."""

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
from django.db import connection
from django.db.models import Count, Q
from django.utils import timezone

from annotation.models import Assignment, Campaign, Comparison, Judgement, Slot
from annotation.services import judging_acts, judging_later
from annotation.services.judging import next_assignment, return_expired_slots, submit_answer
from annotation.services.judging_acts import save_draft
from evalapp.accounts.models import User
from evalapp.ops.ports import wait_until
from tests.annotation.services.judging_helpers import open_for
from tests.cast import join, make_cast, person

from .claims_storm import verdict
from .stack import ROOT, Stack

#: `make soak`: multiplier of the number of acts.
TIMES = max(1, int(os.environ.get("SOAK", "0")) // 50)
STORM = Path(__file__).with_name("claims_storm.py")
OVERLAP, ITEMS, PEOPLE = 3, 40, 8


def storm(stack: Stack, campaign: Campaign, names: list[str], processes: int, acts: int) -> list[dict[str, Any]]:
    env = {**stack.env, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen(
            [sys.executable, str(STORM), str(campaign.pk), str(acts), str(seed), *names[seed::processes]],
            env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for seed in range(processes)
    ]  # fmt: skip
    found = []
    for process in running:
        out, err = process.communicate(timeout=120 + acts)
        assert process.returncode == 0, err[-3000:]
        found.append(json.loads(out.splitlines()[-1]))
    return found


def finish(campaign: Campaign, users: list[User], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Everybody judges the rest undisturbed, after every lease of the storm has expired."""
    sent, true = {}, timezone.now
    monkeypatch.setattr("django.utils.timezone.now", lambda: true() + timedelta(days=500))
    for user in users:
        shown = next_assignment(user=user, campaign_id=campaign.pk).shown
        while shown is not None:
            number = uuid4()
            sent[number.hex] = shown.public
            answer = {"pairwise-quality": verdict(shown)}
            done = submit_answer(user=user, public=shown.public, submission=number, answer=answer, then="next")
            shown = done.next
    return sent


def check_slots(campaign: Campaign) -> None:
    """A taken slot is assigned to exactly one person, and vice versa."""
    held = Assignment.objects.filter(campaign=campaign, slot__isnull=False)
    assert not held.exclude(state__in=["open", "submitted"]).exists()
    slots = list(held.values_list("slot", flat=True))
    assert len(slots) == len(set(slots))
    taken = set(Slot.objects.filter(campaign=campaign, state="taken").values_list("pk", flat=True))
    assert set(slots) == taken, "a slot was lost, or is held without being taken"


def check_answers(campaign: Campaign, sent: dict[str, str]) -> None:
    rows = Judgement.objects.filter(campaign=campaign).select_related("assignment")
    stored = {row.submission.hex: row.assignment.public for row in rows}
    assert stored == sent, "an acknowledged answer was lost, or an unacknowledged one was stored"
    versions: dict[int, list[int]] = {}
    for row in rows.order_by("version"):
        versions.setdefault(row.assignment_id, []).append(row.version)
    assert all(found == list(range(1, len(found) + 1)) for found in versions.values())
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
    turned = [row.pk for row in comparisons if (row.verdict == "a") != (row.output_a.text < row.output_b.text)]
    assert turned == [], "a verdict was stored with its sides exchanged"


def weather(stack: Stack, monkeypatch: pytest.MonkeyPatch, *, processes: int, acts: int) -> None:
    cast = make_cast()
    users = [person(f"judge{k:02d}") for k in range(PEOPLE)]
    for user in users:
        join(cast.project, user, "annotator")
    campaign = open_for(cast, "pairwise", items=ITEMS * TIMES, overlap=OVERLAP)
    found = storm(stack, campaign, [user.username for user in users], processes, acts * TIMES)
    assert [error for one in found for error in one["errors"]] == []
    slowest = max(one["slowest"] for one in found)
    print(f"slowest act: {slowest:.2f} s; acts:", dict(sum((Counter(one["seen"]) for one in found), Counter())))
    check_slots(campaign)
    sent = {number: public for one in found for number, public in one["sent"].items()}
    check_answers(campaign, sent)
    sent |= finish(campaign, users, monkeypatch)
    check_slots(campaign)
    check_answers(campaign, sent)
    check_overlap(campaign)


@pytest.mark.slow
@pytest.mark.server("postgres")
@pytest.mark.promise("overlap", "submission", "late", "draft")
def test_a_storm_on_postgres(postgres_stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    weather(postgres_stack, monkeypatch, processes=2, acts=300)


@pytest.mark.slow
@pytest.mark.promise("overlap", "submission", "late", "draft")
def test_a_storm_on_sqlite(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    weather(stack, monkeypatch, processes=3, acts=150)


# ---- two tabs of the same person, statement by statement ----------------------------------------------------


def wait_for_somebody_who_waits(cursor: Any) -> None:
    """Waits until another transaction in this database waits for a lock."""

    def waits() -> bool:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # otherwise one transaction keeps seeing the same state
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])

    assert wait_until(waits, 60)


@pytest.mark.promise("overlap", "late", "draft")
@pytest.mark.parametrize("meanwhile", ["answer", "next"])
def test_draft_and_another_act_after_the_lease_use_one_slot(
    postgres_db: str, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """A laptop wakes up: its page saves the draft and, at the same moment, sends the answer or requests the next
    unit."""
    cast = make_cast()
    campaign = open_for(cast, items=1, systems=("sys-a",), overlap=2)
    shown = next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    assert shown is not None
    true = timezone.now
    monkeypatch.setattr("django.utils.timezone.now", lambda: true() + timedelta(minutes=40))
    assert return_expired_slots() == 1
    answer = {"user": cast.annotator, "public": shown.public, "submission": uuid4(), "answer": {"likert-quality": 3}}
    acts: dict[str, Callable[[], Any]] = {
        "answer": lambda: submit_answer(**answer),
        "next": lambda: next_assignment(user=cast.annotator, campaign_id=campaign.pk),
    }
    found: list[Any] = []

    def other_tab() -> None:
        try:
            found.append(acts[meanwhile]())
        finally:
            connection.close()

    tab = threading.Thread(target=other_tab)
    take = judging_acts.take_free_slot

    def take_slowly(cursor: Any, unit: int) -> int | None:
        slot = take(cursor, unit)
        tab.start()
        tab.join(0.5)  # the other tab is in the middle of its act, or waits for this one
        return slot

    monkeypatch.setattr(judging_acts, "take_free_slot", take_slowly)
    assert save_draft(user=cast.annotator, public=shown.public, version=0, draft={"note": "x"}).holds
    tab.join()
    assert len(found) == 1
    check_slots(campaign)
    if meanwhile == "answer":
        assert (found[0].extra, Slot.objects.filter(state="taken").count()) == (False, 1)


@pytest.mark.server("postgres")
@pytest.mark.promise("overlap", "late")
def test_lease_that_ends_during_a_late_answer_frees_no_used_slot(
    postgres_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three at once: one tab's draft reclaims the slot, the other tab's answer - which had read the assignment while
    its lease was expired - keeps that slot, and a server with its clock ahead releases overdue slots."""
    cast = make_cast()
    campaign = open_for(cast, items=1, systems=("sys-a",), overlap=2)
    shown = next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    assert shown is not None
    true = timezone.now
    later = lambda minutes: lambda: true() + timedelta(minutes=minutes)  # noqa: E731
    monkeypatch.setattr("django.utils.timezone.now", later(40))
    assert return_expired_slots() == 1
    answers: list[Any] = []
    taken_back: list[int] = []

    def in_a_thread(act: Callable[[], Any], found: list[Any]) -> threading.Thread:
        def run() -> None:
            try:
                found.append(act())
            finally:
                connection.close()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    store = judging_later._store_late

    def store_slowly(*args: Any) -> Any:
        ahead = true() + timedelta(days=400)
        in_a_thread(lambda: return_expired_slots(now=ahead), taken_back).join()
        return store(*args)

    monkeypatch.setattr(judging_later, "_store_late", store_slowly)
    answer = {"user": cast.annotator, "public": shown.public, "submission": uuid4(), "answer": {"likert-quality": 3}}
    take = judging_acts.take_free_slot
    tabs: list[threading.Thread] = []

    def take_slowly(cursor: Any, unit: int) -> int | None:
        tabs.append(in_a_thread(lambda: submit_answer(**answer), answers))
        wait_for_somebody_who_waits(cursor)  # it has read the assignment, and waits for the member's row
        return take(cursor, unit)

    monkeypatch.setattr(judging_acts, "take_free_slot", take_slowly)
    assert save_draft(user=cast.annotator, public=shown.public, version=0, draft={"note": "x"}).holds
    tabs[0].join()
    check_slots(campaign)
    assert (len(answers), answers[0].extra, taken_back) == (1, False, [0])
