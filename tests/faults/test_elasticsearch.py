"""The search server is disconnected, stops responding, returns, or loses an index: candidates and writing continue
without delay and with a one-line notice, the outbox catches up, `doctor` reports the rest and `reindex` repairs it, and
the candidates are the same afterwards.

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
from retrieval.services.doctoring import check_server, checks
from tests.faults.timed_requests import BUSY_MACHINE_SECONDS, get_page, time_call
from tests.retrieval.corpora import as_jsonl, execute, incoming, make_corpus
from tests.writing import CORPUS, TaskView, fill_ports, open_task_view, replace_hooks, send, start_writing

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.server("elasticsearch"),
    pytest.mark.slow,
    pytest.mark.promise("index"),
]
PAIRS = [("Hello there? Yes?", f"Reply {n}.") for n in range(40)] + [("No question.", "Silence.")]
MORE = [("Hello again? Yes?", "Another reply.")]
WITHOUT_DELAY = 3.0 + BUSY_MACHINE_SECONDS


class Relay:
    """A relay to the server. `close` refuses connections; `silent`: connections are accepted, but never answered."""

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
        """Refuse new connections and cut open ones, even during a transfer."""
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
def relay(elasticsearch_url: str) -> Iterator[Relay]:
    relay = Relay(elasticsearch_url)
    yield relay
    relay.close()


@pytest.fixture
def corpus(cast, relay, monkeypatch, settings, tmp_path) -> Iterator[Corpus]:
    settings.CORPORA_DIR = tmp_path / "corpora"
    settings.ELASTICSEARCH_URL = relay.url
    settings.ELASTICSEARCH_TIMEOUT = 30  # the test machine may be busy
    handles.forget()
    fill_ports(monkeypatch)
    replace_hooks(monkeypatch, find_candidates="retrieval.services.candidates:find_candidates")
    corpus = make_corpus(cast.project, CORPUS, PAIRS)
    assert corpus.elastic_revision == 1
    yield corpus
    relay.silent = False
    relay.close()
    relay.open()
    handles.forget()
    delete_corpus(corpus=corpus, user=None)
    OutboxRow.objects.update(tried_at=None)
    assert catch_up()["deletions"] == 1
    handles.forget()


@pytest.fixture
def desk(cast, corpus) -> TaskView:
    return open_task_view(cast.annotator, start_writing(cast, items=1, options={"candidates": 10}))


def list_candidates(cast: Any, desk: TaskView, *, server_is_down: bool = False) -> tuple[list[str], str]:
    """Return the candidates and the text of the page, which appears without delay while the server is down."""
    page = get_page(cast.annotator, reverse("retrieval:candidates", args=[desk.public]))
    assert (page.status, not server_is_down or page.seconds < WITHOUT_DELAY) == (200, True), page.seconds
    return [f"Reply {n}." for n in range(40) if f"Reply {n}.<" in page.text], page.text


def run_doctor() -> str:
    """Return the report of `manage.py doctor` on corpora and the server; the full report needs migrated tables."""
    return "\n".join(f"{check.state} {check.found} -> {check.way_out}" for check in [*check_server(), *checks()])


@pytest.mark.parametrize("state", ["closed", "silent"])
def test_writing_continues_without_the_server_and_it_catches_up(cast, corpus, desk, relay, state, settings):
    before, text = list_candidates(cast, desk)
    assert len(before) == 10
    assert "built-in index" not in text
    if state == "closed":
        relay.close()
    else:
        relay.silent = True
        settings.ELASTICSEARCH_TIMEOUT = 2  # as usual
        handles.forget()
    during, text = list_candidates(cast, desk, server_is_down=True)
    assert during == before  # the built-in index gives the same list
    assert text.count("built-in index") == 1
    assert list_candidates(cast, desk, server_is_down=True)[0] == before
    client = Client()
    client.force_login(cast.annotator)
    started = time.monotonic()
    page = client.get(reverse("annotation:write-one", args=[desk.campaign.pk, desk.public]))
    assert (page.status_code, time.monotonic() - started < WITHOUT_DELAY) == (200, True)
    assert send(cast.annotator, desk, "A good reply of my own.") is not None
    assert WritingAttempt.objects.count() == 1
    report, seconds = time_call(run_doctor)
    assert ("missing" in report, seconds < 2 * WITHOUT_DELAY) == (True, True), seconds
    add_file(corpus=corpus, user=None, file=incoming(as_jsonl(MORE)), send=False)
    if state == "silent":
        return  # loading waits for a minute, which delays only a worker
    run = execute(corpus)
    assert (run.state, run.result["elasticsearch"]) == (Run.State.SUCCEEDED, "will be updated later")
    assert OutboxRow.objects.get().attempts == 1
    assert "1 changes are not sent" in run_doctor()
    relay.open()
    OutboxRow.objects.update(tried_at=None)
    assert catch_up()["loads"] == 1
    assert execute(corpus).state == Run.State.SUCCEEDED
    assert (OutboxRow.objects.count(), corpus.elastic_revision, elastic.read_state(corpus).count) == (0, 2, 42)
    assert [check.name for check in checks()] == ["corpora"]
    after, text = list_candidates(cast, desk)
    assert after == before
    assert "built-in index" not in text


def test_deleted_index_is_reported_and_rebuilt(cast, corpus, desk):
    before, _ = list_candidates(cast, desk)
    elastic.drop(elastic.get_alias(corpus))
    during, text = list_candidates(cast, desk, server_is_down=True)
    assert during == before
    assert "built-in index" in text
    report = run_doctor()
    assert f"reindex alpha --corpus {CORPUS}" in report
    call_command("reindex", "alpha", "--corpus", CORPUS, "--here", verbosity=0)
    handles.forget()
    assert elastic.read_state(corpus).count == 41
    assert [check.name for check in checks()] == ["corpora"]
    after, text = list_candidates(cast, desk)
    assert after == before
    assert "built-in index" not in text
