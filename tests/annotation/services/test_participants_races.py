"""Withdrawals and bans of hired participants while their requests are under way, on PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction

from annotation.models import Assignment, CampaignMember, Judgement, Participant, Rating, Recruitment, Slot
from annotation.services.judging import submit_answer
from annotation.services.participant_answers import withdraw_participant
from annotation.services.participants import Applicant, Entry, join_study
from annotation.services.recruitments import ban_participant
from tests.annotation.hired import Study, Visitor
from tests.annotation.services.test_judging_rows import django_on
from tests.cast import Cast, make_cast

pytestmark = [pytest.mark.slow, pytest.mark.server("postgres")]


class Second:
    """A call in a thread with a connection of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.errors: list[BaseException] = []
        self.pid: int | None = None
        self.thread = threading.Thread(target=self._run, args=(call,))
        self.thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                self.pid = cursor.fetchone()[0]
            call()
        except BaseException as error:
            self.errors.append(error)
        finally:
            connection.close()

    def wait_until_blocked(self) -> None:
        for _ in range(200):
            with connection.cursor() as cursor:
                cursor.execute("SELECT cardinality(pg_blocking_pids(%s))", [self.pid or 0])
                if cursor.fetchone()[0]:
                    return
            time.sleep(0.05)
        raise AssertionError(f"the second call did not wait: {self.errors}")

    def join(self) -> None:
        self.thread.join(30)
        assert not self.thread.is_alive()
        assert self.errors == []


def make_study(**settings: Any) -> tuple[Study, Cast]:
    cast = make_cast()
    return Study(cast, **settings), cast


def test_an_answer_under_way_is_withdrawn_as_well(tmp_path: Path, migrated_url: str, django_db_blocker: Any) -> None:
    with django_on(migrated_url, tmp_path, django_db_blocker):
        study, cast = make_study()
        nora = Visitor(study, "id-1")
        nora.begin()
        row, text = nora.row, nora.get_open()
        assert text is not None
        with transaction.atomic():
            CampaignMember.objects.select_for_update().get(annotator=row.user)  # as every request of the judging page
            second = Second(lambda: withdraw_participant(participant=row, actor=cast.owner))
            second.wait_until_blocked()
            submit_answer(user=row.user, public=text.public, submission=uuid4(), answer={"naturalness": 4})
        second.join()
        row.refresh_from_db()
        assert row.state == "withdrawn"
        assert not Judgement.objects.exists()
        assert not Rating.objects.filter(judgement__isnull=False).exists()
        assert not Assignment.objects.exists()
        assert not Slot.objects.filter(state="taken").exists()


def test_who_joins_while_they_are_banned_is_stopped(tmp_path: Path, migrated_url: str, django_db_blocker: Any) -> None:
    with django_on(migrated_url, tmp_path, django_db_blocker):
        study, cast = make_study()
        with transaction.atomic():
            Recruitment.objects.select_for_update().get(pk=study.link.pk)  # as joining does first
            applicant = Applicant("id-1", {}, "key")
            person = join_study(recruitment=study.link, applicant=applicant, entry=Entry(1, {}))
            second = Second(lambda: ban_participant(project=cast.project, user=cast.owner, external_id="id-1"))
            second.wait_until_blocked()
        second.join()
        assert Participant.objects.get(pk=person.pk).state == "banned"
