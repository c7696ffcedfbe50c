"""Corpora on PostgreSQL, which enforces foreign keys: one is created, extended, listed, and deleted with its
project."""

from __future__ import annotations

import pytest

from evalapp.common.deletion import delete_with_contents
from retrieval.models import Corpus, CorpusPart
from retrieval.selectors.corpora import list_corpora
from retrieval.services.candidates import find_like
from retrieval.services.corpora import add_file, delete_corpus
from tests.cast import make_cast
from tests.retrieval.corpora import as_jsonl, execute, incoming, make_corpus

pytestmark = pytest.mark.usefixtures("corpora_dir")


def test_corpora_on_postgres(postgres_db: str) -> None:
    cast = make_cast()
    own, shared = make_corpus(cast.project, "own"), make_corpus(cast.project, "shared", shared=True)
    make_corpus(cast.foreign, "foreign")
    add_file(corpus=own, user=cast.owner, file=incoming(as_jsonl([("Where to?", "Home.")])), send=False)
    assert execute(own).result["added"] == 1
    assert [corpus.name for corpus in list_corpora(cast.project)] == ["own", "shared"]
    assert find_like(own, "where to", 1)[0][0].response == "Home."
    assert Corpus.objects.visible_to(cast.viewer).count() == 2
    delete_with_contents(project=cast.project, actor=cast.owner)
    assert set(Corpus.objects.values_list("name", flat=True)) == {"shared", "foreign"}
    shared.refresh_from_db()
    assert (shared.home, shared.run) == (None, None)
    delete_corpus(corpus=shared, user=None)
    assert CorpusPart.objects.count() == 1
