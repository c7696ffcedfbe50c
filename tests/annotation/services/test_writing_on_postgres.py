"""Writing at the same moment, on PostgreSQL: nobody overwrites anybody, the last place is given once, every text is
judged against the very set it came into."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation.models import Reference, WritingAttempt, WritingMember, WrittenReference
from annotation.selectors.writing import list_written
from annotation.selectors.writing_watch import watch
from annotation.services.writing import TaskClosed, next_confirmation
from annotation.services.writing_answers import Outcome
from evalapp.accounts.roles import Role
from tests.cast import Cast, join, make_cast, person
from tests.writing import desk_of, fill_ports, send, start_writing


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """What each call gave or raised, all begun together."""
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

    # All come at once: every one has a number of their own.
    desks = at_once([lambda user=user: desk_of(user, campaign) for user in people])
    assert sorted(WritingMember.objects.values_list("number", flat=True)) == list(range(6))

    # All add at once: nothing is overwritten, and each score is that of the set as it then stood.
    calls = [lambda user=user, desk=desk: send(user, desk, f"Good and good by {user}.".lower())
             for user, desk in zip(people, desks, strict=True)]  # fmt: skip
    outcomes = at_once(calls)
    assert [row.decision for row in outcomes if isinstance(row, Outcome)] == ["accept"] * 6
    rows = list(Reference.objects.filter(set=campaign.target_set).order_by("position"))
    assert [row.position for row in rows] == list(range(7))
    scores = [row.written.attempt.score_before for row in rows[1:]]
    assert scores == [0.125 * place for place in range(6)]

    # One place is left: it is given once, the others keep their text as a draft.
    calls = [lambda user=user, desk=desk: send(user, desk, f"Another good one by {user}.")
             for user, desk in zip(people, desks, strict=True)]  # fmt: skip
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
    desks = at_once([lambda: desk_of(cast.annotator, campaign)] * 4)
    assert len({desk.public for desk in desks}) == 1
    submission = uuid4()
    outcomes = at_once([lambda: send(cast.annotator, desks[0], "A good one.", submission=submission)] * 4)
    assert [row.decision for row in outcomes] == ["accept"] * 4
    assert sorted(row.repeated for row in outcomes) == [False, True, True, True]
    assert (WrittenReference.objects.count(), WritingAttempt.objects.count()) == (1, 1)
    assert next_confirmation(user=cast.annotator, campaign_id=campaign.pk).public == ""


def test_a_candidate_of_a_name_that_the_database_cannot_take_is_none(
    postgres_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_ports(monkeypatch)
    cast = make_cast()
    campaign = start_writing(cast, items=1)
    client = Client()
    client.force_login(cast.annotator)
    address = reverse("annotation:write-one", args=[campaign.pk, desk_of(cast.annotator, campaign).public])
    assert client.get(f"{address}?use=%00").status_code == 200
