"""The job `index`: import, invalid input, repeated, adding, cancelled, killed midway, deleted meanwhile."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.utils import timezone

from annotation.models import CorpusPair, Dialogue
from evalapp.common.models import Run
from evalapp.common.queue import MAX_ATTEMPTS, cancel_run, claim_run, reconcile_runs
from evalapp.common.runner import RunCancelled, RunContext
from retrieval.models import Corpus
from retrieval.pipelines import index as pipeline
from retrieval.services.candidates import find_like, find_words
from retrieval.services.corpora import add_file, add_rows, create_corpus, delete_corpus, start_indexing
from retrieval.services.places import get_folder
from tests.factories import make_items
from tests.retrieval.corpora import PAIRS, as_jsonl, execute, incoming, make_corpus

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("corpora_dir")]
ROOT = Path(__file__).resolve().parents[3]


def add(corpus: Corpus, content: bytes, name: str = "corpus.jsonl") -> Run:
    add_file(corpus=corpus, user=None, file=incoming(content, name), send=False)
    return execute(corpus)


def responses(corpus: Corpus, text: str = "where are you going") -> list[str]:
    return [hit.response for hit in find_like(corpus, text, 10)[0]]


def test_file_becomes_an_index(cast):
    corpus = make_corpus(cast.project, pairs=[*PAIRS, PAIRS[0]])
    assert (corpus.state, corpus.count, corpus.duplicates, corpus.revision) == ("ready", 5, 1, 1)
    assert corpus.bytes > 0
    part = corpus.parts.get()
    assert (part.state, part.rows, part.added) == ("stored", 6, 5)
    hits, note = find_like(corpus, "Where are you going?", 3)
    assert note == ""
    assert [(hit.response, round(hit.jaccard, 3), hit.row) for hit in hits] == [
        ("To the lake.", 1.0, 0),
        ("To the hills behind the station.", 1.0, 4),
        ("At home.", 0.6, 1),
    ]
    assert sorted(path.name for path in get_folder(corpus.pk).iterdir()) == [".lock", "index", f"part-{part.pk}.jsonl"]


def test_running_twice_gives_the_same(cast):
    corpus = make_corpus(cast.project)
    before = Corpus.objects.values().get()
    run = corpus.run
    context = RunContext(run)
    again = pipeline.run(context, **run.params)
    assert again["pairs"] == 5
    assert Corpus.objects.values().get() == before
    start_indexing(corpus=corpus, user=None, send=False)
    assert execute(corpus).state == Run.State.SUCCEEDED
    assert (corpus.count, corpus.version) == (before["count"], before["version"])


def test_additions_extend_the_index(cast):
    corpus = make_corpus(cast.project)
    assert add(corpus, as_jsonl([PAIRS[0], ("Where to?", "Home.")])).result["added"] == 1
    assert (corpus.count, corpus.duplicates) == (6, 1)
    assert find_words(corpus, "home where", 5)[0][0].response == "Home."
    version = corpus.version
    assert add(corpus, as_jsonl([PAIRS[0]])).result["added"] == 0
    assert corpus.version == version
    whole = create_corpus(project=cast.project, user=None, name="whole")
    add(whole, as_jsonl([*PAIRS, ("Where to?", "Home.")]))
    assert responses(whole, "where to home") == responses(corpus, "where to home")


@pytest.mark.parametrize(
    ("content", "name", "line", "words"),
    [
        (b"", "corpus.jsonl", None, "empty"),
        (b"\n\n", "corpus.jsonl", None, "blank lines"),
        (as_jsonl([PAIRS[0], ("Where?", " ")]), "corpus.jsonl", 2, "response is empty"),
        (as_jsonl(PAIRS[:2]) + b'{"query": "x"}\n', "corpus.jsonl", 3, "response is missing"),
        (as_jsonl(PAIRS[:1]) + b"{oops\n", "corpus.jsonl", 2, "not JSON"),
        (b'{"query": "\xff", "response": "b"}\n', "corpus.jsonl", 1, "Not UTF-8"),
        (as_jsonl(PAIRS)[:90], "corpus.jsonl.gz", None, "not gzip"),
        (gzip.compress(as_jsonl(PAIRS) * 99)[:60], "corpus.jsonl.gz", None, "ends in the middle"),
        (b'{"query": "' + b"a " * 600_000 + b'", "response": "b"}\n', "corpus.jsonl", 1, "longer than"),
        (b"query,answer\na,b\n", "corpus.csv", 2, "response is missing"),
    ],
    ids=["nothing", "blank", "no response", "half", "json", "latin", "gz", "cut", "long", "columns"],
)
def test_invalid_row_refuses_the_whole_file(cast, content, name, line, words):
    corpus = make_corpus(cast.project)
    run = add(corpus, content, name)
    assert run.state == Run.State.FAILED
    fault = run.faults[0]
    assert (fault["file"], fault.get("line")) == (name, line)
    assert words in fault["message"]
    part = corpus.parts.latest("pk")
    assert (part.state, part.fault_count >= 1) == ("refused", True)
    assert (corpus.state, corpus.count, corpus.revision) == ("ready", 5, 1)
    assert len(list(get_folder(corpus.pk).glob("*"))) == 3  # nothing of the refused file remains
    assert responses(corpus)


def test_unusual_texts_are_stored_unchanged(cast):
    long = " ".join(f"word{n}" for n in range(10_000))
    pairs = [
        ("😀 🎉", "🥳"),
        ("مرحبا، كيف حالك؟", "بخير، شكرا"),
        ("I like 東京 and Ω", "mixed"),
        ("one long answer", long),
        ("a " * 400_000, "a line of almost a megabyte"),
        ("?!", "only marks"),
    ]
    corpus = make_corpus(cast.project, pairs=pairs)
    assert corpus.count == 6
    assert responses(corpus, "🎉") == ["🥳"]
    assert responses(corpus, "كيف حالك") == ["بخير، شكرا"]
    assert responses(corpus, "one long answer")[0] == long
    assert responses(corpus, "?!") == []
    assert "1 queries have no words to compare" in "".join(corpus.run.log.values_list("text", flat=True))
    chinese = make_corpus(cast.project, "zh", [("你想去哪里", "去湖边")], language="zh")
    assert chinese.tokenizer == "characters"
    assert responses(chinese, "去哪") == ["去湖边"]


def test_csv_and_gzip_keep_additional_columns(cast):
    corpus = create_corpus(project=cast.project, user=None, name="table")
    content = gzip.compress(b"query,response,licence\nwhere,here,CC0\n")
    assert add(corpus, content, f"{'pairs' * 50}.csv.gz").state == Run.State.SUCCEEDED
    assert find_like(corpus, "where", 1)[0][0].meta == {"licence": "CC0"}


def test_project_rows_become_pairs(cast):
    project = cast.project
    Dialogue.objects.create(project=project, key="d1", turns=["Hi!", "Hello.", "", "How are you?", "Fine."])
    CorpusPair.objects.create(project=project, position=0, query="Hi!", response="Hello.", meta={"source": "film"})
    make_items(project, 2)
    corpus = create_corpus(project=project, user=None, name="own")
    found = {}
    for kind in ("dialogues", "corpus", "items"):
        add_rows(corpus=corpus, user=None, project=project, kind=kind, send=False)
        found[kind] = execute(corpus).result
    assert found["dialogues"]["read"] == 2
    assert found["dialogues"]["left_out"] == 2
    assert found["corpus"]["added"] == 0  # one of the dialogues
    assert found["items"]["read"] == 4
    assert [hit.response for hit in find_like(corpus, "Yes?", 9)[0]] == [
        "Answer 0 to i000.", "Answer 1 to i000.", "Answer 0 to i001.", "Answer 1 to i001.",
    ]  # fmt: skip


def test_cancelled_run_is_reported_and_can_be_retried(cast, monkeypatch):
    corpus = create_corpus(project=cast.project, user=None, name="talk")
    add_file(corpus=corpus, user=None, file=incoming(as_jsonl(PAIRS)), send=False)

    def stop(*_, **__):
        raise RunCancelled

    with monkeypatch.context() as patched:
        patched.setattr(RunContext, "progress", stop)
        assert execute(corpus).state == Run.State.CANCELLED
    assert corpus.state == Corpus.State.FAILED
    assert "cancelled" in corpus.error
    Run.objects.update(state=Run.State.QUEUED)
    assert execute(corpus).state == Run.State.SUCCEEDED
    assert (corpus.state, corpus.error, corpus.count) == ("ready", "", 5)


@pytest.mark.parametrize("end", ["cancelled while it waited", "no memory", "lost too often"])
def test_corpus_without_an_index_gives_the_reason(cast, monkeypatch, end):
    """Once, it stayed “being built” forever."""
    corpus = create_corpus(project=cast.project, user=None, name="talk")
    add_file(corpus=corpus, user=None, file=incoming(as_jsonl(PAIRS)), send=False)
    corpus.refresh_from_db()
    if end == "no memory":
        with monkeypatch.context() as patched:
            patched.setattr(RunContext, "progress", Mock(side_effect=MemoryError))
            assert execute(corpus).state == Run.State.FAILED
    elif end == "lost too often":
        long_ago = timezone.now() - timedelta(minutes=2)
        Run.objects.update(state=Run.State.RUNNING, attempt=MAX_ATTEMPTS, worker="elsewhere:1", heartbeat=long_ago)
        assert reconcile_runs()["failed"] == 1
    else:
        cancel_run(run=corpus.run)
    corpus.refresh_from_db()
    assert corpus.state == Corpus.State.FAILED
    assert {"no memory": "out of memory", "lost too often": "lost 3 times"}.get(end, "was cancelled") in corpus.error
    again = add_file(corpus=corpus, user=None, file=incoming(as_jsonl(PAIRS)), send=False)
    assert execute(corpus).state == Run.State.SUCCEEDED
    assert (corpus.state, corpus.error, again.corpus_id) == ("ready", "", corpus.pk)


def test_corpus_deleted_meanwhile_leaves_no_files(cast):
    corpus = create_corpus(project=cast.project, user=None, name="talk")
    add_file(corpus=corpus, user=None, file=incoming(as_jsonl(PAIRS)), send=False)
    folder = get_folder(corpus.pk)
    run = claim_run(corpus.run_id)

    class Deleting(RunContext):
        def progress(self, *given, **named):
            if Corpus.objects.exists():
                delete_corpus(corpus=Corpus.objects.get(), user=None)
            super().progress(*given, **named)

    with pytest.raises(Exception, match="has been deleted"):
        pipeline.run(Deleting(run), **run.params)
    assert not folder.exists()


KILLED = """
import os, signal
import django
from django.conf import settings
django.setup()
settings.MIGRATION_MODULES = {app.split(".")[-1]: None for app in settings.INSTALLED_APPS}
from django.core.management import call_command
from django.db import connection
call_command("migrate", run_syncdb=True, verbosity=0)
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from retrieval.index import embedded
from retrieval.models import Corpus
from retrieval.pipelines import index
from retrieval.services.candidates import find_like
from tests.retrieval.corpora import add_file, as_jsonl, incoming, make_corpus

make_corpus(Project.objects.create(slug="p", name="P"))


def show(state):
    corpus = Corpus.objects.get()
    print(state, corpus.count, corpus.revision, [hit.response for hit in find_like(corpus, "where to", 1)[0]])


for number, (place, name) in enumerate([(index, "build_embedded"), (embedded, "_swap"), (index, "publish")]):
    corpus = Corpus.objects.get()
    add_file(corpus=corpus, user=None, file=incoming(as_jsonl([("Where to?", f"Home {number}.")])), send=False)
    run = Corpus.objects.get().run_id
    connection.close()
    child = os.fork()
    if not child:
        setattr(place, name, lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL))
        execute_run(run)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    show(-os.WTERMSIG(status))
    Run.objects.filter(state="running").update(state="queued")
    show(execute_run(run).state)
"""


def test_worker_killed_midway_changes_nothing_and_the_next_finishes(tmp_path):
    """In a separate process and database, so that the kills are real: before the index is touched, before the new one
    replaces it, and before the row records it."""
    env = {**os.environ, "EVALAPP_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "evalapp.settings.test"}
    env.pop("DATABASE_URL", None)
    command = [sys.executable, "-c", KILLED]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert first == f"{-signal.SIGKILL} 5 2 ['To the lake.']"
    assert others == [
        "succeeded 6 2 ['Home 0.']",
        f"{-signal.SIGKILL} 6 3 ['Home 0.']",
        "succeeded 7 3 ['Home 0.']",
        f"{-signal.SIGKILL} 7 4 ['Home 0.']",
        "succeeded 8 4 ['Home 0.']",
    ]


def test_another_run_waits_for_its_turn_and_can_be_cancelled(cast):
    corpus = make_corpus(cast.project)
    from retrieval.services.places import lock_index

    def stop() -> None:
        raise RunCancelled

    with lock_index(corpus.pk, stop), pytest.raises(RunCancelled), lock_index(corpus.pk, stop):
        pass
