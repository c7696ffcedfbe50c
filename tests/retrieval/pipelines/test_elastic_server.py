"""The complete path on a real Elasticsearch: corpus, outbox, load, search, loss, deletion."""

from __future__ import annotations

import pytest

from retrieval.index import IndexUnavailable
from retrieval.index.elastic_writer import state
from retrieval.models import OutboxRow
from retrieval.pipelines.elastic import catch_up
from retrieval.services import elastic
from retrieval.services.candidates import find_like, find_words
from retrieval.services.corpora import add_file, delete_corpus, start_indexing
from retrieval.services.doctoring import checks
from retrieval.services.handles import open_embedded
from tests.retrieval.corpora import PAIRS, as_jsonl, execute, incoming, make_corpus

pytestmark = [pytest.mark.django_db, pytest.mark.server("elasticsearch")]
TEXTS = ("where are you going", "Nice lake behind the station", "are they home", "?", "indeed")
#: Words of a query language, its JSON, scripts and fields: here all are ordinary text.
HOSTILE = (
    "response:* OR _exists_:query", "+where -station", '") OR ("', "wh?re* home~2", "/.*/", "[0 TO *]", "_id:1 row:0",
    '{"match_all": {}}', '"}}, "query": {"match_all": {}}, "x": {"y": "', "doc['row'].value + ${jndi:ldap://x}",
    "ctx._source.remove('query'); System.exit(0)", "../../_all/_delete_by_query?q=*", "where\\",
    "\u0000\r\n\r\nDELETE /", "where " * 5000, " ".join(f"w{number}" for number in range(1500)), "x" * 40_000,
)  # fmt: skip


@pytest.mark.promise("index")
def test_corpus_on_a_real_server(cast, corpora_dir, elasticsearch_url, settings):
    settings.ELASTICSEARCH_URL = elasticsearch_url
    corpus = make_corpus(cast.project, pairs=[*PAIRS, ("😀 where?", "东京"), PAIRS[0], (HOSTILE[0], HOSTILE[7])])
    try:
        assert (corpus.elastic_revision, OutboxRow.objects.count()) == (1, 0)
        add_file(corpus=corpus, user=None, file=incoming(as_jsonl([PAIRS[1], ("Where to?", "Home.")])), send=False)
        assert execute(corpus).error == ""
        assert [check.found for check in checks()] == ["1 of 1 ready, 8 pairs"]
        own = open_embedded(corpus)
        for text in (*TEXTS, *HOSTILE):
            hits, note = find_like(corpus, text, 9)
            assert note == ""
            assert hits == own.search(text, 9, distinct=True)
            assert find_words(corpus, text, 3)[0] == own.find(text, 3)
        assert find_like(corpus, HOSTILE[0], 1)[0][0].response == HOSTILE[7]
        assert elastic.read_state(corpus).count == 8  # no query changed anything
        own.close()
        elastic.drop(elastic.get_alias(corpus))
        with pytest.raises(IndexUnavailable):
            elastic.read_state(corpus)
        hits, note = find_like(corpus, TEXTS[0], 1)
        assert hits[0].response == "To the lake."
        assert "the built-in index answers" in note
        start_indexing(corpus=corpus, user=None, send=False)
        execute(corpus)
        assert elastic.read_state(corpus).count == 8
    finally:
        name = elastic.get_alias(corpus)
        delete_corpus(corpus=corpus, user=None)
        assert catch_up()["deletions"] == 1
    with pytest.raises(IndexUnavailable):
        state(elastic.address(name))
