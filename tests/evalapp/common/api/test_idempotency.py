"""A request with an idempotency key is executed once, even if its answers are lost."""

from __future__ import annotations

import json
import threading
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from annotation.models import Upload
from evalapp.accounts.models import Membership
from evalapp.accounts.services import create_token
from evalapp.common import idempotency
from evalapp.common.api.parsers import HashedStream
from evalapp.common.models import IdempotencyKey, Run
from evalapp.common.runner import execute_run
from evalapp.common.tasks import reconcile
from tests.cast import make_cast
from tests.evalapp.common import run_jobs
from tests.evalapp.common.run_jobs import ask

RUNS, UPLOADS = "/api/v1/projects/alpha/runs/", "/api/v1/projects/alpha/uploads/"
REPLAYED = "Idempotency-Replayed"


@pytest.fixture(autouse=True)
def _askable(monkeypatch):
    run_jobs.put_asked_job(monkeypatch)


@pytest.fixture
def api(cast):
    client = APIClient()
    client.force_authenticate(cast.researcher)
    return client


def start(api, key, **wishes):
    body = {"kind": "test-asked", "steps": 1, "pause": 0, **wishes}
    return api.post(RUNS, body, format="json", headers={"Idempotency-Key": key})


def rows(api, key, *ids, address=f"{UPLOADS}?kind=items"):
    body = "".join(json.dumps({"id": id, "context": ["Hi."]}) + "\n" for id in ids)
    headers = {"Idempotency-Key": key}
    return api.generic("POST", address, body, content_type="application/x-ndjson", headers=headers)


def test_repeated_request_gets_the_first_answer_without_effect(api):
    first = start(api, "a")
    assert (first.status_code, REPLAYED in first.headers) == (202, False)
    execute_run(first.json()["id"])  # it has ended by now: without a key it would start again
    again = start(api, "a")
    assert (again.status_code, again.json(), again.headers["Location"]) == (202, first.json(), first["Location"])
    assert again.headers[REPLAYED] == "true"
    assert Run.objects.count() == 1
    assert start(api, "b").json()["id"] != first.json()["id"]
    assert start(api, "b", steps=1).headers[REPLAYED] == "true"


def test_key_belongs_to_one_request(api):
    start(api, "a")
    for answer in (start(api, "a", steps=2), rows(api, "a", "i1")):
        assert answer.status_code == 409
        body = answer.json()
        assert body["type"].endswith("#key-reused")
        assert f"POST {RUNS}" in body["detail"]
        assert "Use a new key" in body["detail"]
    assert Run.objects.count() == 1
    assert not Upload.objects.exists()


def test_streamed_rows_are_identified_by_their_hash(api):
    first = rows(api, "a", "i1", "i2")
    again = rows(api, "a", "i1", "i2")
    assert again.json() == first.json()
    assert rows(api, "a", "i1", "i3").json()["type"].endswith("#key-reused")
    assert rows(api, "a", "i1", "i2", address=f"{UPLOADS}?kind=items&replace=1").status_code == 409
    assert Upload.objects.count() == 1


def test_files_are_identified_by_content_not_boundary(api):
    def send(text: str, boundary: str):
        parts = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="items.jsonl"\r\n\r\n{text}'
        body = f"{parts}\r\n--{boundary}--\r\n"
        kind = f"multipart/form-data; boundary={boundary}"
        return api.generic("POST", UPLOADS, body, content_type=kind, headers={"Idempotency-Key": "a"})

    first = send('{"id": "i1"}\n', "one")
    assert first.status_code == 202, first.content
    assert send('{"id": "i1"}\n', "two").json() == first.json()
    assert send('{"id": "i2"}\n', "two").status_code == 409
    assert Upload.objects.count() == 1


def test_refusals_are_not_stored(api):
    sent = {"file": SimpleUploadedFile("notes.txt", b"x")}
    refused = api.post(UPLOADS, sent, format="multipart", headers={"Idempotency-Key": "a"})
    assert refused.status_code == 400
    assert not IdempotencyKey.objects.exists()
    assert start(api, "a").status_code == 202


def test_failures_are_not_stored(api, monkeypatch):
    api.raise_request_exception = False
    monkeypatch.setattr(run_jobs, "ask", lambda **_: 1 // 0)
    assert start(api, "a").status_code == 500
    monkeypatch.setattr(run_jobs, "ask", ask)
    assert start(api, "a").status_code == 202


@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * 256])
def test_invalid_key(api, key):
    answer = start(api, key)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "Idempotency-Key")


def test_key_belongs_to_its_token(cast):
    found = []
    for user in (cast.researcher, cast.researcher, cast.owner):
        secret = create_token(user=user, name="t", scopes=["read", "write"], days=1)[1]
        api = APIClient(headers={"Authorization": f"Bearer {secret}"})
        found.append(start(api, "a", steps=len(found)).status_code)
        assert start(api, "a", steps=len(found) - 1).headers[REPLAYED] == "true"
    assert found == [202, 202, 202]


def test_user_without_write_access_gets_no_stored_answer(api, cast):
    start(api, "a")
    Membership.objects.filter(project=cast.project, user=cast.researcher).delete()
    assert start(api, "a").status_code == 404


def test_concurrent_second_request_must_wait(api, monkeypatch):
    seen = []

    def slow(**given):
        seen.append(start(api, "a"))
        return ask(**given)

    monkeypatch.setattr(run_jobs, "ask", slow)
    assert start(api, "a").status_code == 202
    (second,) = seen
    assert (second.status_code, second.headers["Retry-After"]) == (409, "5")
    assert second.json()["type"].endswith("#in-progress")
    assert start(api, "a").headers[REPLAYED] == "true"


def test_dead_process_holds_no_key(api, cast):
    row = idempotency.begin_request(user=cast.researcher, token=0, key="a", request=f"POST {RUNS}")
    assert start(api, "a").status_code == 409
    IdempotencyKey.objects.filter(pk=row.pk).update(
        worker=row.worker.rpartition(":")[0] + ":1"
    )  # started at another time
    assert start(api, "a").status_code == 202
    idempotency.keep_answer(row, body="", status=202, answer="{}", location="")  # it was taken over: too late
    assert start(api, "a").json()["kind"] == "test-asked"


def test_remote_process_is_trusted_for_an_hour(api, cast):
    row = idempotency.begin_request(user=cast.researcher, token=0, key="a", request=f"POST {RUNS}")
    IdempotencyKey.objects.filter(pk=row.pk).update(worker="elsewhere:1:2")
    assert start(api, "a").status_code == 409
    IdempotencyKey.objects.filter(pk=row.pk).update(begun_at=timezone.now() - timedelta(minutes=61))
    assert start(api, "a").status_code == 202


def test_key_expires_after_a_day_and_is_deleted(api):
    first = start(api, "a")
    execute_run(first.json()["id"])
    late = timezone.now() - timedelta(hours=25)
    IdempotencyKey.objects.update(begun_at=late)
    assert start(api, "a").json()["id"] != first.json()["id"]
    start(api, "b")
    IdempotencyKey.objects.filter(key="a").update(begun_at=late)
    reconcile()
    assert [row.key for row in IdempotencyKey.objects.all()] == ["b"]


def test_streamed_body_is_hashed_only_on_request():
    import hashlib
    import io

    plain = HashedStream(io.BytesIO(b"abc"))
    assert plain.read(2) == b"ab"
    watched = HashedStream(io.BytesIO(b"abc")).start_hash()
    assert watched.read(1) == b"a"
    assert watched.finish_hash() == hashlib.sha256(b"abc").hexdigest()


def at_the_same_moment(monkeypatch, count: int) -> list:
    """Sends one request from several threads at once; the work takes a while."""
    cast, barrier = make_cast(), threading.Barrier(count)
    worked, answers = [], []

    def work(**given):
        worked.append(threading.get_ident())
        threading.Event().wait(0.3)
        return ask(**given)

    def send():
        try:
            api = APIClient()
            api.force_authenticate(cast.researcher)
            barrier.wait(20)
            answers.append(start(api, "a"))
        finally:
            connection.close()

    monkeypatch.setattr(run_jobs, "ask", work)
    threads = [threading.Thread(target=send) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(worked) == 1
    assert Run.objects.count() == 1
    return sorted(answer.status_code for answer in answers)


def test_one_of_several_concurrent_requests_does_the_work(file_database, monkeypatch):
    assert at_the_same_moment(monkeypatch, 4) == [202, 409, 409, 409]


def test_one_of_several_concurrent_requests_does_the_work_on_postgres(postgres_db, monkeypatch):
    assert at_the_same_moment(monkeypatch, 4) == [202, 409, 409, 409]
