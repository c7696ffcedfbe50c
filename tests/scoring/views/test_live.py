"""The score next to the editor: who gets one, and the message without one."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from annotation.selectors.writing import get_own_task
from annotation.services.hooks import Candidate
from annotation.services.writing_candidates import remember_candidates
from evalapp.common.errors import Unavailable
from scoring.live.asking import Place, Superseded
from scoring.services import desk as live_service
from tests.scoring.training import make_trained
from tests.writing import EVALUATOR, fill_ports, open_task_view, start_writing

ANSWER = {"signature": "ream|x", "now": 0.25, "with_text": 0.5, "candidates": [], "left": 0, "notes": []}


@pytest.fixture
def writing(cast, settings, tmp_path, monkeypatch):
    """Starts a campaign in which the annotator writes; returns the annotator's task."""
    settings.ARTEFACTS_DIR = tmp_path
    fill_ports(monkeypatch)
    make_trained(cast.project, EVALUATOR, "ream")

    def start(**options):
        campaign = start_writing(cast, references=2, options=options)
        return get_own_task(user=cast.annotator, public=open_task_view(cast.annotator, campaign).public)

    return start


@pytest.fixture
def worker(monkeypatch):
    """The requests sent to the worker; its answer or error can be changed."""

    class Worker:
        def __init__(self) -> None:
            self.asked: list = []
            self.answer: object = ANSWER

        def __call__(self, request, **rest):
            self.asked.append((request, rest))
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    found = Worker()
    monkeypatch.setattr(live_service, "ask_live", found)
    return found


def post(client, task, body):
    address = reverse("scoring:live-score", args=[task.public])
    data = body if isinstance(body, str) else json.dumps(body)
    return client.post(address, data, content_type="application/json")


def test_text_is_rated_with_the_current_set(cast, client, writing, worker, django_assert_max_num_queries):
    task = writing(arms=["scores"])
    client.force_login(cast.annotator)
    with django_assert_max_num_queries(7):
        answer = post(client, task, {"ticket": 17, "text": "A new reply."})
    assert answer.status_code == 200
    assert answer.json() == {
        "ticket": 17, "now": 0.25, "with_text": 0.5, "candidates": {}, "left": 0, "signature": "ream|x", "note": "",
    }  # fmt: skip
    request, rest = worker.asked[0]
    original = task.unit.item.references.filter(set__name="original").order_by("position")
    assert request["references"] == [row.text for row in original]
    assert request["item"]["key"] == task.unit.item.key
    assert request["text"] == "A new reply."
    assert rest == {"place": Place(f"{cast.annotator.pk}:{task.public}:text", 17)}


def test_candidates_are_requested_by_id_in_their_own_lane(cast, client, writing, worker):
    task = writing(arms=["scores"])
    client.force_login(cast.annotator)
    rows = [Candidate(f"Reply {n}.", "Question?", 0.5, {"corpus": "replies", "row": n}) for n in range(3)]
    ids = remember_candidates(task=task, rows=rows)
    worker.answer = {**ANSWER, "candidates": [0.125, None], "left": 1, "notes": ["a note", "another"]}
    answer = post(client, task, {"ticket": 1, "candidates": [ids[2], "of somebody else", ids[0], ids[2]]}).json()
    request, rest = worker.asked[0]
    assert sorted(request["candidates"]) == ["Reply 0.", "Reply 2."]
    assert rest["place"].lane.endswith(":list")
    assert list(answer["candidates"].values()) == [0.125]
    assert (answer["left"], answer["note"]) == (1, "a note; another")


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (Unavailable("No score within 2 s: the worker is busy."), "Score not available: no score within 2 s"),
        (Superseded(), "superseded"),
    ],
)
def test_writing_continues_without_an_answer_in_time(cast, client, writing, worker, error, note):
    task = writing(arms=["scores"])
    client.force_login(cast.annotator)
    worker.answer = error
    answer = post(client, task, {"ticket": 2, "text": "x"})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["ticket"], body["now"], body["with_text"], body["candidates"]) == (2, None, None, {})
    assert body["note"].startswith(note)


@pytest.mark.parametrize("arm", ["control", "candidates"])
def test_other_arms_get_no_score(cast, client, writing, worker, arm):
    task = writing(arms=[arm])
    client.force_login(cast.annotator)
    answer = post(client, task, {"ticket": 1, "text": "x"})
    assert (answer.status_code, answer["Content-Type"]) == (403, "application/problem+json")
    assert answer.json()["status"] == 403
    assert worker.asked == []


def test_task_belongs_to_its_writer_and_needs_the_page_token(cast, client, writing, worker):
    from django.test import Client

    task = writing(arms=["scores"])
    address = reverse("scoring:live-score", args=[task.public])
    assert post(client, task, {}).status_code == 302
    client.force_login(cast.researcher)
    assert post(client, task, {}).status_code == 404
    client.force_login(cast.annotator)
    assert client.get(address).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(cast.annotator)
    assert strict.post(address, "{}", content_type="application/json").status_code == 403
    assert worker.asked == []


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("{", 400, "JSON object"),
        ("[1]", 400, "JSON object"),
        ({"ticket": "1"}, 400, "ticket "),
        ({"ticket": -1}, 400, "ticket "),
        ({"ticket": 1, "text": ["x"]}, 400, "text "),
        ({"ticket": 1, "candidates": "x"}, 400, "candidates "),
        ({"ticket": 1, "candidates": ["x"] * 101}, 400, "at most 100"),
        ({"ticket": 1, "text": "x" * 100_001}, 413, "100,001"),
    ],
)
def test_invalid_request_is_refused_with_its_error(cast, client, writing, worker, body, status, words):
    task = writing(arms=["scores"])
    client.force_login(cast.annotator)
    answer = post(client, task, body)
    assert answer.status_code == status
    assert words in answer.json()["detail"]
