"""Pages of corpora: creating one by form, its page, the search box, adding, deleting."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.models import Dialogue
from evalapp.common.models import Run
from retrieval.models import Corpus
from retrieval.services.corpora import add_file
from tests.retrieval.corpora import PAIRS, as_jsonl, execute, incoming, make_corpus

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("corpora_dir")]


@pytest.fixture
def researcher(cast) -> Client:
    client = Client()
    client.force_login(cast.researcher)
    return client


def address(name: str, *parts: str) -> str:
    return reverse(f"retrieval:{name}", args=["alpha", *parts])


def text(response) -> str:
    return response.content.decode()


def test_corpus_is_created_and_searched(researcher, cast):
    assert "No corpus yet" in text(researcher.get(address("corpus-list")))
    assert 'name="source_kind"' in text(researcher.get(address("corpus-new")))
    form = {"name": "talk", "source_kind": "file", "language": "en", "licence": "CC0", "source": "tests"}
    response = researcher.post(
        address("corpus-new"), {**form, "file": SimpleUploadedFile("corpus.jsonl", as_jsonl([*PAIRS, PAIRS[0]]))}
    )
    assert response.status_code == 302, text(response)
    waiting = text(researcher.get(address("corpus", "talk")))
    assert "every 1s" in waiting
    assert "data-unserved=" in waiting
    execute(Corpus.objects.get())
    page = text(researcher.get(address("corpus", "talk")))
    assert "every 1s" not in page
    assert "CC0" in page
    assert "Duplicates skipped" in page
    found = text(researcher.get(address("corpus", "talk") + "?q=where+are+you+going"))
    assert "<mark>going</mark>" in found or "<mark>going?</mark>" in found
    assert found.index("To the lake.") < found.index("At home.")
    nothing = text(researcher.get(address("corpus", "talk") + "?q=%3F%21"))
    assert "data-no-words" in nothing
    assert "<mark>" not in nothing
    by_words = text(researcher.get(address("corpus", "talk") + "?q=hills&by=words"))
    assert "To the hills" in by_words
    assert "To the lake." not in by_words
    fragment = text(researcher.get(address("corpus", "talk"), headers={"HX-Request": "true"}))
    assert "<html" not in fragment
    assert "talk" in text(researcher.get(address("corpus-list")))


def test_errors_appear_at_their_fields(researcher, cast):
    empty = researcher.post(address("corpus-new"), {"name": "Talk!", "source_kind": "file", "language": "en"})
    assert empty.status_code == 422
    assert "Choose a file" in text(empty)
    make_corpus(cast.project)
    file = SimpleUploadedFile("corpus.jsonl", as_jsonl(PAIRS))
    taken = researcher.post(
        address("corpus-new"), {"name": "talk", "source_kind": "file", "language": "en", "file": file}
    )
    assert taken.status_code == 422
    assert "already" in text(taken)
    assert Corpus.objects.count() == 1


def test_sharing_needs_an_owner(researcher, cast):
    assert 'name="shared"' not in text(researcher.get(address("corpus-new")))
    owner = Client()
    owner.force_login(cast.owner)
    assert 'name="shared"' in text(owner.get(address("corpus-new")))
    file = SimpleUploadedFile("corpus.jsonl", as_jsonl(PAIRS))
    form = {"name": "talk", "source_kind": "file", "language": "en", "file": file, "shared": "on"}
    researcher.post(address("corpus-new"), form)
    assert Corpus.objects.get().project == cast.project
    file.seek(0)
    assert owner.post(address("corpus-new"), {**form, "name": "all"}).status_code == 302
    corpus = Corpus.objects.get(name="all")
    assert (corpus.project, corpus.home) == (None, cast.project)
    assert researcher.get(address("corpus", "all")).status_code == 200
    assert researcher.post(address("corpus-delete", "all")).status_code == 403


def test_refused_file_is_reported_row_by_row(researcher, cast):
    corpus = make_corpus(cast.project)
    bad = SimpleUploadedFile("more.jsonl", as_jsonl(PAIRS[:1]) + b'{"query": "<b>x"}\n')
    assert researcher.post(address("corpus-add", "talk"), {"source_kind": "file", "file": bad}).status_code == 302
    assert execute(corpus).state == Run.State.FAILED
    page = text(researcher.get(address("corpus", "talk")))
    assert 'id="corpus-error"' in page
    corpus.refresh_from_db()
    assert corpus.state == Corpus.State.READY, "the previous index is still used"
    assert "response is missing" in page
    assert "more.jsonl" in page


def test_project_rows_are_offered_where_they_exist(researcher, cast):
    corpus = make_corpus(cast.project)
    assert 'value="dialogues"' not in text(researcher.get(address("corpus-add", "talk")))
    Dialogue.objects.create(project=cast.project, key="d", turns=["Hi!", "Hello."])
    offered = text(researcher.get(address("corpus-add", "talk"))).partition('value="dialogues"')[2]
    assert re.search(r"\b1\b", offered.partition("</")[0])
    researcher.post(address("corpus-add", "talk"), {"source_kind": "dialogues"})
    assert execute(corpus).result["added"] == 1


def test_reindex_and_delete(researcher, cast):
    corpus = make_corpus(cast.project)
    assert researcher.post(address("corpus-index", "talk")).status_code == 302
    assert execute(corpus).state == Run.State.SUCCEEDED
    assert "cannot be undone" in text(researcher.get(address("corpus-delete", "talk")))
    assert researcher.post(address("corpus-delete", "talk"))["Location"] == address("corpus-list")
    assert not Corpus.objects.exists()


def test_pages_need_few_queries(researcher, cast, django_assert_max_num_queries):
    corpus = make_corpus(cast.project)
    for n in range(3):
        add_file(corpus=corpus, user=cast.researcher, file=incoming(as_jsonl([(f"a {n}", "b")])), send=False)
        execute(corpus)
    for page in (address("corpus", "talk") + "?q=a", address("corpus-list")):
        researcher.get(page)
        with django_assert_max_num_queries(15):
            researcher.get(page)
