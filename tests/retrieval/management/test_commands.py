"""`corpus` and `reindex`, and the lines of `doctor`."""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Dialogue
from retrieval.models import Corpus, OutboxRow
from retrieval.services import handles
from retrieval.services.doctoring import checks
from retrieval.services.places import index_path
from tests.retrieval.corpora import PAIRS, as_jsonl, make_corpus

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("corpora_dir")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(as_jsonl(PAIRS))
    return path


def command(*words: str) -> dict:
    out = StringIO()
    call_command(*words, "--json", stdout=out, stderr=StringIO(), verbosity=0)
    return json.loads(out.getvalue())


def said(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out, stderr=StringIO(), verbosity=0)
    return out.getvalue()


def test_add_list_reindex_delete(cast, file):
    added = command("corpus", "add", "talk", str(file), "--project", "alpha", "--licence", "CC0", "--here")
    assert (added["made"], added["pairs"], added["added"], added["state"]) == (True, 5, 5, "succeeded")
    assert file.exists()
    again = command("corpus", "add", "talk", str(file), "--project", "alpha", "--here")
    assert (again["made"], again["added"], again["pairs"]) == (False, 0, 5)
    with pytest.raises(CommandError, match="licence “CC0”"):
        command("corpus", "add", "talk", str(file), "--project", "alpha", "--licence", "MIT", "--here")
    Dialogue.objects.create(project=cast.project, key="d", turns=["Hi!", "Hello."])
    derived = said("corpus", "add", "talk", "--derive", "dialogues", "--project", "alpha", "--here")
    assert "1 pairs read, 1 new; 6 different pairs are indexed" in derived
    assert command("corpus", "list", "--project", "alpha")["corpora"][0]["count"] == 6
    assert "ready" in said("corpus", "list")
    assert command("reindex", "alpha", "--here")["corpora"][0]["pairs"] == 6
    assert command("corpus", "delete", "talk", "--project", "alpha")["deleted"]["name"] == "talk"
    assert "No corpus yet" in said("corpus", "list")


def test_without_a_project_it_is_shared_and_needs_no_run(cast, file):
    assert command("corpus", "add", "films", str(file))["pairs"] == 5
    corpus = Corpus.objects.get()
    assert (corpus.project, corpus.run, corpus.state) == (None, None, "ready")
    assert command("reindex", "-", "--corpus", "films")["corpora"][0]["pairs"] == 5
    assert command("corpus", "list", "--project", "alpha")["corpora"][0]["project"] is None


def test_every_invalid_row_is_reported_and_nothing_created(cast, file):
    file.write_bytes(as_jsonl(PAIRS) + b'{"query": "a"}\n{"response": "b"}\n')
    with pytest.raises(CommandError) as raised:
        command("corpus", "add", "talk", str(file), "--project", "alpha", "--here")
    assert "corpus.jsonl:6: response is missing." in str(raised.value)
    assert "corpus.jsonl:7: query is missing." in str(raised.value)
    assert not Corpus.objects.exists()
    with pytest.raises(CommandError, match=r"corpus.jsonl:6"):
        command("corpus", "add", "films", str(file))
    assert not Corpus.objects.exists()


@pytest.mark.parametrize(
    ("words", "why", "code"),
    [
        (["corpus", "add", "talk"], "Name a file", 2),
        (["corpus", "add"], "Name the corpus", 2),
        (["corpus", "add", "talk", "nothing.jsonl"], "not a readable file", 2),
        (["corpus", "add", "talk", "--derive", "items"], "needs --project", 2),
        (["corpus", "add", "No Name", __file__, "--project", "alpha"], "63 characters", 2),
        (["corpus", "list", "talk"], "list takes no NAME", 2),
        (["corpus", "delete", "talk", "corpus.jsonl"], "delete takes no FILE", 2),
        (["corpus", "delete", "talk"], "no shared corpus", 2),
        (["reindex", "alpha"], "no corpus with pairs", 1),
        (["reindex", "nowhere"], "no project", 2),
    ],
)
def test_wrong_usage_suggests_a_remedy(cast, words, why, code):
    with pytest.raises(CommandError, match=why) as raised:
        command(*words)
    assert raised.value.returncode == code


def test_doctor_reports_good_and_bad_parts(cast):
    assert checks()[0].state == "optional"
    corpus = make_corpus(cast.project)
    assert [(check.name, check.found) for check in checks()] == [("corpora", "1 of 1 ready, 5 pairs")]
    Corpus.objects.update(count=6)
    wrong = checks()[1]
    assert wrong.found == "5 pairs in the index, 6 expected"
    assert "reindex alpha --corpus talk" in wrong.way_out
    Corpus.objects.update(count=5)
    manifest = index_path(corpus.pk) / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "unicode": "1.1"}))
    with pytest.warns(UserWarning, match="build it again"):
        older = checks()[1]
    assert (older.state, "by Unicode 1.1" in older.found, older.way_out) == ("optional", True, wrong.way_out)
    shutil.rmtree(index_path(corpus.pk))
    handles.forget()
    assert "has no index" in checks()[1].found
    OutboxRow.objects.create(corpus=corpus.pk, action="load", name="x", error="refused")
    assert "1 changes are not sent to Elasticsearch yet: refused" in checks()[-1].found
