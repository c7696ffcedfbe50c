"""Elasticsearch is updated with the corpus, and later catches up; the embedded index answers meanwhile."""

from __future__ import annotations

import time
from datetime import timedelta
from html import unescape
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from evalapp.common.models import Run
from retrieval.index.hits import Hit
from retrieval.models import Corpus, OutboxRow
from retrieval.pipelines.elastic import catch_up, load
from retrieval.pipelines.work import CommandWork
from retrieval.services import handles
from retrieval.services.candidates import find_like, find_words
from retrieval.services.corpora import add_file, delete_corpus, start_indexing
from retrieval.services.doctoring import checks
from retrieval.tasks import catch_up_at_start
from tests.retrieval.corpora import as_jsonl, execute, incoming, make_corpus
from tests.retrieval.elastic_server import Server, quickly, start_server

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("corpora_dir")]
MORE = as_jsonl([("Where to?", "Home.")])


@pytest.fixture
def server(monkeypatch, settings, corpora_dir) -> Server:
    return start_server(monkeypatch, settings)


def add(corpus: Corpus, content: bytes = MORE) -> Run:
    add_file(corpus=corpus, user=None, file=incoming(content), send=False)
    return execute(corpus)


def held(server: Server) -> list[str]:
    return [row.response for rows in server.rows.values() for row in rows]


def test_the_server_follows_the_corpus(cast, server):
    corpus = make_corpus(cast.project)
    assert (corpus.elastic_revision, server.sent, OutboxRow.objects.count()) == (1, 5, 0)
    hits, note = find_like(corpus, "where are you going", 2)
    assert ([hit.response for hit in hits], note) == (["To the lake.", "To the hills behind the station."], "")
    add(corpus)
    assert (server.sent, held(server)[-1]) == (6, "Home.")  # only the new rows
    assert [check.name for check in checks()] == ["corpora"]
    server.unicode = "1.1"  # of a much older Python
    (older,) = checks()[1:]
    assert (older.state, older.found[:50]) == ("optional", "Elasticsearch: its rows were cut into words by Uni")
    assert "reindex alpha --corpus talk" in older.way_out
    start_indexing(corpus=corpus, user=None, send=False)
    execute(corpus)
    assert server.sent == 12
    delete_corpus(corpus=corpus, user=None)
    assert OutboxRow.objects.get().action == "delete"
    assert catch_up() == {"loads": 0, "deletions": 1, "waiting": 0}
    assert server.rows == {}


def test_outage_changes_no_answer_and_is_caught_up(cast, server):
    corpus = make_corpus(cast.project)
    server.down = True
    run = add(corpus)
    assert run.state == Run.State.SUCCEEDED
    assert run.result["elasticsearch"] == "will be updated later"
    assert (corpus.embedded_revision, corpus.elastic_revision) == (2, 1)
    row = OutboxRow.objects.get()
    assert (row.action, row.revision, row.attempts) == ("load", 2, 1)
    assert "Connection refused" in row.error
    hits, note = find_like(corpus, "where to", 1)
    assert hits[0].response == "Home."
    assert "does not have the newest pairs yet; the built-in index answers" in note
    assert "1 changes are not sent to Elasticsearch yet" in checks()[-1].found
    runs = Run.objects.count()
    assert catch_up()["waiting"] == 1  # tried a moment ago
    OutboxRow.objects.update(tried_at=row.tried_at - timedelta(minutes=1))
    assert catch_up()["waiting"] == 1  # still down, and no run was created that could only fail
    assert Run.objects.count() == runs
    server.down = False
    OutboxRow.objects.update(tried_at=None)
    assert catch_up()["loads"] == 1
    assert catch_up()["loads"] == 0  # the run is active
    assert execute(corpus).state == Run.State.SUCCEEDED
    assert (corpus.elastic_revision, OutboxRow.objects.count(), held(server)[-1]) == (2, 0, "Home.")
    assert find_like(corpus, "where to", 1)[1] == ""


def test_server_that_stops_midway_is_tried_occasionally(cast, server):
    corpus = make_corpus(cast.project)
    find_like(corpus, "where", 1)
    server.down = True
    began, asked = time.monotonic(), server.asked
    for _ in range(5):
        hits, note = find_like(corpus, "where are you going", 1)
        assert hits[0].response == "To the lake."
        assert note.startswith("nothing answers at")
    assert server.asked == asked + 1
    assert quickly(began)
    client = Client()
    client.force_login(cast.viewer)
    page = client.get(reverse("retrieval:corpus", args=["alpha", "talk"]) + "?q=where").content.decode()
    assert f'<p class="note">{note}</p>' in unescape(page)
    server.down = False
    handles.forget()
    assert find_like(corpus, "where are you going", 1)[1] == ""


def test_shared_corpus_without_a_project_also_catches_up(cast, server):
    corpus = make_corpus(cast.project, shared=True)
    server.down = True
    add(corpus)
    server.down = False
    Corpus.objects.update(home=None, run=None)
    OutboxRow.objects.update(tried_at=None)
    assert catch_up() == {"loads": 1, "deletions": 0, "waiting": 0}
    assert held(server)[-1] == "Home."


def test_rows_lost_by_the_server_are_sent_again(cast, server):
    corpus = make_corpus(cast.project)
    server.rows.clear()
    assert "no such index" in checks()[1].found
    add(corpus)
    assert len(held(server)) == 6


def test_pending_rebuild_happens_after_an_outage(cast, server):
    corpus = make_corpus(cast.project)
    server.rows.clear()
    server.down = True
    start_indexing(corpus=corpus, user=None, send=False)
    assert execute(corpus).result["elasticsearch"] == "will be updated later"
    server.down = False
    OutboxRow.objects.update(tried_at=None)
    assert catch_up()["loads"] == 1
    execute(corpus)
    assert (len(held(server)), OutboxRow.objects.count()) == (5, 0)
    sent = server.sent
    start_indexing(corpus=corpus, user=None, send=False, whole=False)
    execute(corpus)
    assert server.sent == sent  # once
    server.down = True
    assert not load(corpus, CommandWork(), again=True)  # like the command for a shared corpus, without a run
    assert OutboxRow.objects.get().attempts == 1


def test_gap_left_by_an_interrupted_addition_is_filled(cast, server):
    """Several requests are in transit at once: a later one may have arrived where an earlier one did not."""
    corpus = make_corpus(cast.project)
    server.down = True
    add(corpus, as_jsonl([("Where to?", "Home."), ("And then?", "To bed.")]))
    server.down = False
    (held_rows,) = server.rows.values()
    held_rows.append(Hit(6, 0.0, "And then?", "To bed."))
    OutboxRow.objects.update(tried_at=None)
    catch_up()
    execute(corpus)
    assert sorted(row.row for row in next(iter(server.rows.values()))) == list(range(7))
    assert (corpus.elastic_revision, find_like(corpus, "where to", 1)[0][0].response) == (2, "Home.")


def test_older_corpora_wait_for_reindex(cast, monkeypatch, settings):
    corpus = make_corpus(cast.project)
    server = start_server(monkeypatch, settings)
    assert "newest pairs" in find_words(corpus, "lake", 1)[1]
    start_indexing(corpus=corpus, user=None, send=False)
    execute(corpus)
    assert len(held(server)) == 5


def test_worker_starts_with_leftover_work(cast, server, monkeypatch):
    sent = []
    monkeypatch.setattr("retrieval.tasks.app.send_task", lambda name, **named: sent.append((name, named["queue"])))

    def worker(*queues: str) -> SimpleNamespace:
        return SimpleNamespace(app=SimpleNamespace(amqp=SimpleNamespace(queues=SimpleNamespace(consume_from=queues))))

    assert catch_up_at_start(sender=worker("cpu", "gpu"))
    assert not catch_up_at_start(sender=worker("live"))
    assert sent == [("retrieval.catch_up", "cpu")]


@pytest.mark.promise("index")
def test_dead_address_costs_a_line_and_no_time(cast, settings):
    """The real client, with an address where nothing listens."""
    settings.ELASTICSEARCH_URL = "http://127.0.0.1:9"
    corpus = make_corpus(cast.project)
    assert corpus.run.result["elasticsearch"] == "will be updated later"
    assert "127.0.0.1:9" in OutboxRow.objects.get().error
    Corpus.objects.update(elastic_revision=1)
    corpus.refresh_from_db()
    began = time.monotonic()
    hits, note = find_like(corpus, "where are you going", 1)
    assert hits[0].response == "To the lake."
    assert "nothing answers at http://127.0.0.1:9" in note
    assert quickly(began, 5.0)
    assert "built-in index answers" in checks()[1].way_out
    OutboxRow.objects.update(tried_at=None)
    assert catch_up()["waiting"] == 1
