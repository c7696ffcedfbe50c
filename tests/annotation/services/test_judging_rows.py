"""Concurrent claims on the real databases: no duplicates, no unit over its overlap, no answer lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotation.models import Assignment, Judgement, Rating, Slot
from annotation.services.judging import get_next_assignment, submit_answer
from annotation.services.statements import parse_moment, run_batch
from tests.annotation.services.judging_helpers import open_for
from tests.cast import join, make_cast, person
from tests.faults.backup_world import Installation

ROOT = Path(__file__).resolve().parents[3]
#: `make soak`: claims per thread (SOAK=2000); otherwise 0.
EACH = int(os.environ.get("SOAK", "0"))
CROWD = Path(__file__).with_name("judging_crowd.py")


@contextmanager
def django_on(url: str, folder: Path, blocker: Any) -> Iterator[dict[str, str]]:
    """Connects this process to the crowd's database; yields the environment for the crowd's processes."""
    with blocker.unblock(), Installation(folder, url).django():
        yield {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "evalapp.settings.test",
            "EVALAPP_DATA": str(folder),
            "DATABASE_URL": url,
            "PYTHONPATH": str(ROOT),
        }


def prepare(*, people: int, items: int, overlap: int) -> int:
    cast = make_cast()
    for k in range(people):
        join(cast.project, person(f"judge{k:02d}"), "annotator")
    campaign = open_for(cast, items=items, systems=("sys-a", "sys-b"), overlap=overlap)
    connection.close()  # hold no connection while others are working
    return campaign.pk


def crowd(env: dict[str, str], campaign: int, limit: int, names: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, str(CROWD), str(campaign), str(limit), *names]
    return subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check(answers: list[dict[str, Any]], overlap: int) -> None:
    assert [error for answer in answers for error in answer["errors"]] == []
    handed = [tuple(row) for answer in answers for row in answer["handed"]]
    assert len(handed) == len(set(handed)), "a unit was handed to one person twice"
    per_unit = Counter(unit for _, unit in handed)
    assert max(per_unit.values()) <= overlap, "a unit went over its overlap"
    held = Assignment.objects.filter(slot__isnull=False, state__in=("open", "submitted"))
    slots = list(held.values_list("slot", flat=True))
    assert len(slots) == len(set(slots)) == Slot.objects.filter(state="taken").count()
    sent = [number for answer in answers for number in answer["sent"]]
    assert len(sent) == len(set(sent))
    stored = [number.hex for number in Judgement.objects.values_list("submission", flat=True)]
    assert set(sent) == set(stored), "an acknowledged answer was lost, or one was stored twice"
    assert len(stored) == Rating.objects.count() == len(sent)
    assert not Judgement.objects.filter(extra=True).exists()


@pytest.mark.slow
@pytest.mark.server("postgres")
@pytest.mark.promise("overlap", "submission")
def test_32_threads_share_2000_claims_on_postgres(tmp_path, migrated_url, django_db_blocker, record_property):
    """With `make soak`, 2,000 claims for each thread instead of in total."""
    claims = 32 * EACH or 2000
    with django_on(migrated_url, tmp_path, django_db_blocker) as env:
        # Each item: 2 systems x overlap 3 = 6 slots; 2,400 for 2,000 claims.
        campaign = prepare(people=32, items=claims // 5, overlap=3)
        process = crowd(env, campaign, claims, [f"judge{k:02d}" for k in range(32)])
        out, err = process.communicate(timeout=300 + claims // 10)
        assert process.returncode == 0, err[-3000:]
        answer = json.loads(out.splitlines()[-1])
        assert len(answer["sent"]) == claims
        check([answer], overlap=3)
    record_property("figure", f"32 threads, {claims:,} claims on PostgreSQL, 0 lost, 0 doubled")


@pytest.mark.slow
@pytest.mark.server("postgres")
@pytest.mark.promise("overlap", "submission")
def test_threads_compete_for_the_last_slots_on_postgres(tmp_path, migrated_url, django_db_blocker):
    """More people than slots: every slot is used, and each person gets a correct answer."""
    with django_on(migrated_url, tmp_path, django_db_blocker) as env:
        campaign = prepare(people=16, items=10, overlap=4)
        process = crowd(env, campaign, 10_000, [f"judge{k:02d}" for k in range(16)])
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err[-3000:]
        answer = json.loads(out.splitlines()[-1])
        assert len(answer["sent"]) == 10 * 2 * 4
        check([answer], overlap=4)


@pytest.mark.slow
@pytest.mark.promise("overlap", "submission")
def test_processes_share_claims_on_sqlite(tmp_path, migrated_file, django_db_blocker, record_property):
    shutil.copy(migrated_file, tmp_path / "judging.sqlite3")
    items = max(30, 3 * EACH // 2)  # 2 systems x overlap 2 = 4 slots per item: EACH for each of six people
    with django_on(f"sqlite:///{tmp_path / 'judging.sqlite3'}", tmp_path, django_db_blocker) as env:
        campaign = prepare(people=6, items=items, overlap=2)
        names = [f"judge{k:02d}" for k in range(6)]
        processes = [crowd(env, campaign, 10**6, names[start::3]) for start in range(3)]
        answers = []
        for process in processes:
            out, err = process.communicate(timeout=300 + items)
            assert process.returncode == 0, err[-3000:]
            answers.append(json.loads(out.splitlines()[-1]))
        assert sum(len(answer["sent"]) for answer in answers) == items * 2 * 2
        check(answers, overlap=2)
    record_property("figure", f"3 processes, {items * 4:,} claims on SQLite, 0 lost, 0 doubled")


# ---- the rules of the database ----------------------------------------------------------------------------


@pytest.mark.promise("overlap")
def test_database_allows_one_holder_per_slot(cast):
    campaign = open_for(cast)
    mine = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    row = Assignment.objects.get(public=mine.public)
    other = campaign.units.exclude(pk=row.unit_id).first()
    common = {"campaign": campaign, "annotator": cast.researcher, "order_number": 1, "opened_at": timezone.now(),
              "lease_until": timezone.now(), "public": "other"}  # fmt: skip
    with pytest.raises(IntegrityError), transaction.atomic():
        Assignment.objects.create(unit=other, slot=row.slot, **common)
    with pytest.raises(IntegrityError), transaction.atomic():
        Assignment.objects.create(unit=row.unit, slot=None, **{**common, "annotator": cast.annotator})
    with pytest.raises(IntegrityError), transaction.atomic():
        Slot.objects.create(campaign=campaign, unit=row.unit, number=0, rank=1)


@pytest.mark.parametrize("pooler", [False, True])
def test_statements_run_in_order_and_the_last_returns_rows(cast, settings, pooler):
    settings.DATABASE_POOLER = pooler
    with connection.cursor() as cursor:
        for _ in range(2):  # prepared already the second time
            run_batch(
                cursor,
                [
                    ("UPDATE accounts_project SET name = %s WHERE id = %s", ["Renamed", cast.project.pk]),
                    ("SELECT name FROM accounts_project WHERE id = %s", [cast.project.pk]),
                ],
            )
            assert cursor.fetchall() == [("Renamed",)]


@pytest.mark.parametrize("pooler", [True, False])
def test_nothing_is_prepared_behind_a_pooler(postgres_db, settings, pooler):
    settings.DATABASE_POOLER = pooler
    cast = make_cast()
    campaign = open_for(cast)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    done = submit_answer(
        user=cast.annotator, public=shown.public, submission=uuid4(), answer={"likert-quality": 4}, then="next"
    )
    assert (done.version, done.next is None) == (1, False)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert (cursor.fetchone()[0] == 0) == pooler


def test_timestamps_are_aware_on_every_database():
    assert parse_moment("2026-11-21 11:00:00.5").isoformat() == "2026-11-21T11:00:00.500000+00:00"
    assert parse_moment("2026-11-21T11:00:00+01:00").utcoffset().total_seconds() == 3600
