"""A crowd of hired participants on the real databases: places are exact, nobody is doubled, no answer is lost.

`STUDY_PEOPLE=300 STUDY_SECONDS=120` is the full size; the suite runs a smaller one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from annotation.models import Assignment, Judgement, Participant, Rating, Slot
from tests.annotation.hired import Study, Visitor
from tests.annotation.services.test_judging_rows import django_on
from tests.cast import make_cast

ROOT = Path(__file__).resolve().parents[3]
CROWD = Path(__file__).with_name("participants_crowd.py")
PEOPLE, SECONDS = int(os.environ.get("STUDY_PEOPLE", "45")), float(os.environ.get("STUDY_SECONDS", "2"))
PLACES, UNITS, PROCESSES = PEOPLE * 2 // 3, 4, 3
THINK = 0.5 if PEOPLE > 100 else 0.05


def run_study(env: dict[str, str], record_property: Any, database: str) -> None:
    study = Study(
        make_cast(), items=PLACES, places=PLACES, plan={"overlap": 3, "max_per_annotator": UNITS},
        outcomes={"passed": {"code": "C-PASS"}, "full": {"code": "C-FULL"}},
    )  # fmt: skip
    connection.close()  # hold no connection while others are working
    options = {
        "secret": study.secret,
        "campaign": study.campaign.pk,
        "seconds": SECONDS,
        "think": THINK,
        "units": UNITS,
    }
    crowds = [
        subprocess.Popen(
            [sys.executable, str(CROWD), json.dumps({**options, "people": list(range(start, PEOPLE, PROCESSES))})],
            env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for start in range(PROCESSES)
    ]  # fmt: skip
    answers = []
    for process in crowds:
        out, err = process.communicate(timeout=900)
        assert process.returncode == 0, err[-3000:]
        answers.append(json.loads(out.splitlines()[-1]))
    assert [error for answer in answers for error in answer["errors"]] == []
    sent = [number for answer in answers for number in answer["sent"]]
    told = {name: words for answer in answers for name, words in answer["told"].items()}
    check(study, sent, told)
    later = fill_up(study)
    outcomes = Counter(words[-1] for words in told.values() if words)
    record_property(
        "figure",
        f"{PEOPLE} participants in {SECONDS:g} s on {database}, {PLACES} places: {dict(outcomes)}, then {later} later; "
        f"{len(sent)} answers, 0 lost, 0 doubled, {PLACES} passed; {max(a['seconds'] for a in answers):.0f} s",
    )


def check(study: Study, sent: list[str], told: dict[str, list[str]]) -> None:
    stored = [number.hex for number in Judgement.objects.values_list("submission", flat=True)]
    assert sorted(sent) == sorted(stored), "an acknowledged answer was lost, or one was stored twice"
    counted = Judgement.objects.filter(extra=False).count()
    assert Rating.objects.filter(judgement__isnull=False).count() == counted
    held = Assignment.objects.filter(slot__isnull=False, state__in=("open", "submitted"))
    slots = list(held.values_list("slot", flat=True))
    assert len(slots) == len(set(slots)) == Slot.objects.filter(state="taken").count()
    states = study.get_states()
    assert len(states) == Participant.objects.count(), "an id is doubled"
    passed = {name for name, state in states.items() if state == "passed"}
    assert passed == {name for name, words in told.items() if "passed" in words}
    assert len(passed) <= PLACES
    done = Counter(Judgement.objects.values_list("annotator__participant__external_id", flat=True))
    assert all(done[name] == UNITS for name in passed)
    assert not any(done[name] for name, words in told.items() if words == ["full"])


def fill_up(study: Study) -> int:
    """Places that were released are given to newcomers, until exactly all are used. Returns the number of newcomers."""
    Participant.objects.filter(state="working").update(lease_until="2020-01-01T00:00:00Z")
    newcomers = 0
    while study.get_states().get(f"new{newcomers - 1}", "passed") == "passed" and newcomers <= PEOPLE:
        page = Visitor(study, f"new{newcomers}").finish()
        if b"C-FULL" in page.content:
            break
        newcomers += 1
    passed = Participant.objects.filter(state="passed")
    assert passed.count() == PLACES
    assert sorted(passed.values_list("place", flat=True)) == list(range(1, PLACES + 1))
    return newcomers


@pytest.mark.slow
@pytest.mark.server("postgres")
def test_places_are_exact_on_postgres(
    tmp_path: Path, migrated_url: str, django_db_blocker: Any, record_property: Any
) -> None:
    with django_on(migrated_url, tmp_path, django_db_blocker) as env:
        run_study(env, record_property, "PostgreSQL")


@pytest.mark.slow
def test_places_are_exact_on_sqlite(
    tmp_path: Path, migrated_file: Path, django_db_blocker: Any, record_property: Any
) -> None:
    shutil.copy(migrated_file, tmp_path / "study.sqlite3")
    with django_on(f"sqlite:///{tmp_path / 'study.sqlite3'}", tmp_path, django_db_blocker) as env:
        run_study(env, record_property, "SQLite")
