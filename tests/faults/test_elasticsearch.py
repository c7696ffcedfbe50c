"""The search server is cut off, falls silent, returns, loses an index: candidates and writing continue at once with one
line about it, the outbox catches up, `reindex` and `doctor` repair the rest, and the answers are the same afterwards.

The suite's Elasticsearch is shared and takes half a minute to start, so these tests close and open the connection to
it. tests/retrieval/index/test_elastic_restart.py really stops and starts a server.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import WritingAttempt
from evalapp.common.models import Run
from retrieval.models import Corpus, OutboxRow
from retrieval.pipelines.elastic import catch_up
from retrieval.services import elastic, handles
from retrieval.services.corpora import add_file, delete_corpus
from retrieval.services.doctoring import checks, server_checks
from tests.faults.asking import BUSY, get_page, measure
from tests.retrieval.corpora import as_jsonl, execute, incoming, make_corpus
from tests.writing import CORPUS, Desk, fill_ports, open_desk, replace_hooks, send, start_writing

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.server("elasticsearch"),
    pytest.mark.slow,
    pytest.mark.promise("index"),
]
PAIRS = [("Hello there? Yes?", f"Reply {n}.") for n in range(40)] + [("Nobody asked.", "Silence.")]
MORE = [("Hello again? Yes?", "Another reply.")]
AT_ONCE = 3.0 + BUSY


class Way:
    """A relay to the server: `open`, `closed` (connections are refused), `silent` (accepted, never answered)."""

    def __init__(self, target: str) -> None:
        host, _, port = target.removeprefix("http://").partition(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.silent = False
        self.connections: list[socket.socket] = []
        self._serve()

    def _serve(self) -> None:
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                self.connections.append(near)
                if not self.silent:
                    far = socket.create_connection(self.target)
                    self.connections.append(far)
                    for source, sink in ((near, far), (far, near)):
                        threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self.silent:
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Refuses new connections and cuts open ones, in the middle of any transfer."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        while self.connections:
            connection = self.connections.pop()
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def open(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self._serve()


@pytest.fixture
def way(elasticsearch_url: str) -> Iterator[Way]:
    made = Way(elasticsearch_url)
    yield made
    made.close()


@pytest.fixture
def corpus(cast, way, monkeypatch, settings, tmp_path) -> Iterator[Corpus]:
    settings.CORPORA_DIR = tmp_path / "corpora"
    settings.ELASTICSEARCH_URL = way.url
    settings.ELASTICSEARCH_TIMEOUT = 30  # the test machine may be busy
    handles.forget()
    fill_ports(monkeypatch)
    replace_hooks(monkeypatch, candidates="retrieval.services.candidates:candidates_for")
    made = make_corpus(cast.project, CORPUS, PAIRS)
    assert made.elastic_revision == 1
    yield made
    way.silent = False
    way.close()
    way.open()
    handles.forget()
    delete_corpus(corpus=made, user=None)
    OutboxRow.objects.update(tried_at=None)
    assert catch_up()["deletions"] == 1
    handles.forget()


@pytest.fixture
def desk(cast, corpus) -> Desk:
    return open_desk(cast.annotator, start_writing(cast, items=1, options={"candidates": 10}))


def list_candidates(cast: Any, desk: Desk, *, away: bool = False) -> tuple[list[str], str]:
    """The texts of the candidate list, and its whole text; while the server is down, it comes at once."""
    answer = get_page(cast.annotator, reverse("retrieval:candidates", args=[desk.public]))
    assert (answer.status, not away or answer.seconds < AT_ONCE) == (200, True), answer.seconds
    return [f"Reply {n}." for n in range(40) if f"Reply {n}.<" in answer.text], answer.text


def doctor() -> str:
    """The report of `manage.py doctor` on corpora and the server; the full report needs tables made by migrations."""
    return "\n".join(f"{check.state} {check.found} -> {check.way_out}" for check in [*server_checks(), *checks()])


@pytest.mark.parametrize("how", ["closed", "silent"])
def test_writing_continues_without_the_server_and_it_catches_up(cast, corpus, desk, way, how, settings):
    before, text = list_candidates(cast, desk)
    assert len(before) == 10
    assert "the built-in index answers" not in text
    if how == "closed":
        way.close()
    else:
        way.silent = True
        settings.ELASTICSEARCH_TIMEOUT = 2  # as usual
        handles.forget()
    during, text = list_candidates(cast, desk, away=True)
    assert during == before  # the embedded index gives the same list
    assert text.count("the built-in index answers") == 1
    assert list_candidates(cast, desk, away=True)[0] == before
    client = Client()
    client.force_login(cast.annotator)
    began = time.monotonic()
    page = client.get(reverse("annotation:write-one", args=[desk.campaign.pk, desk.public]))
    assert (page.status_code, time.monotonic() - began < AT_ONCE) == (200, True)
    assert send(cast.annotator, desk, "A good reply of my own.") is not None
    assert WritingAttempt.objects.count() == 1
    found, seconds = measure(doctor)
    assert ("missing" in found, seconds < 2 * AT_ONCE) == (True, True), seconds
    add_file(corpus=corpus, user=None, file=incoming(as_jsonl(MORE)), send=False)
    if how == "silent":
        return  # loading waits a minute before it gives up; that delays a worker, not a person
    run = execute(corpus)
    assert (run.state, run.result["elasticsearch"]) == (Run.State.SUCCEEDED, "is told later")
    assert OutboxRow.objects.get().attempts == 1
    assert "1 changes Elasticsearch was not told" in doctor()
    way.open()
    OutboxRow.objects.update(tried_at=None)
    assert catch_up()["loads"] == 1
    assert execute(corpus).state == Run.State.SUCCEEDED
    assert (OutboxRow.objects.count(), corpus.elastic_revision, elastic.state_of(corpus).count) == (0, 2, 42)
    assert [check.name for check in checks()] == ["corpora"]
    after, text = list_candidates(cast, desk)
    assert after == before
    assert "the built-in index answers" not in text


def test_deleted_index_is_reported_and_rebuilt(cast, corpus, desk):
    before, _ = list_candidates(cast, desk)
    elastic.drop(elastic.name_of(corpus))
    during, text = list_candidates(cast, desk, away=True)
    assert during == before
    assert "the built-in index answers" in text
    report = doctor()
    assert f"reindex alpha --corpus {CORPUS}" in report
    call_command("reindex", "alpha", "--corpus", CORPUS, "--here", verbosity=0)
    handles.forget()
    assert elastic.state_of(corpus).count == 41
    assert [check.name for check in checks()] == ["corpora"]
    after, text = list_candidates(cast, desk)
    assert after == before
    assert "the built-in index answers" not in text
