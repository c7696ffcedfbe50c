"""The index in a real Elasticsearch: the same answers in the same order as the embedded one; writing; errors."""

from __future__ import annotations

import gzip
import http.server
import json
import random
import threading
import time
import unicodedata
import uuid
import warnings
from types import SimpleNamespace

import pytest

from retrieval.index import IndexUnavailable, build, elastic_layout, open_index
from retrieval.index.elastic_search import CLAUSES
from retrieval.index.elastic_server import Access, connect, health
from retrieval.index.elastic_writer import Row, append, drop, rebuild, state

STRANGE = [
    ("我喜歡你的貓", "我也是"),
    ("我喜欢猫 and dogs", "真的吗？"),
    ("こんにちは、世界", "はい"),
    ("สวัสดีครับ", "ครับ"),
    ("مرحبا كيف حالك", "بخير"),
    ("🎉🎉 party 🎂", "👍🏽"),
    ("🎉", "👍"),
    ("!!!", "no token in the query"),
    ("Straße", "STRASSE"),
    ("ﬁne ｆｉｎｅ", "fine"),
]


@pytest.fixture(scope="module")
def where(elasticsearch_url):
    """Creates addresses of indexes that are deleted at the end."""
    made = []

    def address(name: str) -> str:
        made.append(f"{elasticsearch_url}/{name}-{uuid.uuid4().hex[:8]}")
        return made[-1]

    yield address
    for one in made:
        drop(one)


def load(where: str, pairs, *, shards: int = 1, tokenizer: str = "words"):
    rows = [Row(number, query, response, meta) for number, (query, response, meta) in enumerate(pairs)]
    return rebuild(where, rows, language="en", tokenizer=tokenizer, shards=shards, access=Access(timeout=60))


def both(folder, where, pairs, *, shards: int = 1, language: str = "en"):
    """The same pairs in both backends, opened."""
    pairs = [(query, response, {"place": place}) for place, (query, response) in enumerate(dict.fromkeys(pairs))]
    build([{"query": q, "response": r, "meta": m} for q, r, m in pairs], folder, language=language)
    embedded = open_index(folder)
    load(where, pairs, shards=shards, tokenizer=embedded.tokenizer)
    return embedded, open_index(where, timeout=60)


def invented(count: int, seed: int):
    """Few words and few lengths give hundreds of equal rows and equal similarities."""
    rng = random.Random(seed)
    words = [*"abcdefgh"] + [f"w{n}" for n in range(40)]
    weights = [40] * 8 + [1] * 40

    def text(longest: int) -> str:
        return " ".join(rng.choices(words, weights, k=rng.randint(1, longest)))

    pairs = [(text(9), text(2)) for _ in range(count)] + [(text(60), text(2)) for _ in range(count // 20)]
    pairs += [("a b c", f"answer {n}") for n in range(300)] + [("c d", "Yes.") for _ in range(3)]
    rng.shuffle(pairs)
    return pairs + STRANGE, [text(12) for _ in range(60)]


# ---- the same answers --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(tmp_path_factory, where):
    pairs, queries = invented(3000, 1)
    embedded, elastic = both(tmp_path_factory.mktemp("embedded"), where("invented"), pairs, shards=3)
    yield embedded, elastic, queries
    embedded.close()
    elastic.close()


def test_real_queries_have_the_same_answers_in_both(tmp_path, where, shared_data):
    with gzip.open(shared_data / "text_dailydialog_decontaminated" / "corpus.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for _, line in zip(range(26_000), file, strict=False)]
    pairs = [(row["query"], row["response"]) for row in rows]
    embedded, elastic = both(tmp_path, where("real"), pairs[:22_000], shards=2)
    assert elastic.count >= 20_000  # from this size on, a sample determines the starting point
    rng = random.Random(13)
    for number in range(1000):
        one, two = rng.choice(pairs)[0], rng.choice(pairs)[0]
        text = one if number % 2 else one[: len(one) // 2] + two[len(two) // 2 :]
        k = 100 if number % 10 == 0 else 10
        assert elastic.search(text, k) == embedded.search(text, k), text


@pytest.mark.parametrize("options", [{}, {"distinct": True}, {"exclude": ["YES", "a b", "answer 7"]}])
def test_ties_distinct_responses_and_exclusion(pair, options):
    embedded, elastic, queries = pair
    for number, text in enumerate([*queries[:20], "a b c", "c d", "h"]):
        k = (1, 7, 60, 150)[number % 4]
        assert elastic.search(text, k, **options) == embedded.search(text, k, **options), (text, k)


def test_ties_beyond_k_are_ordered_by_row(pair):
    embedded, elastic, _ = pair
    hits = elastic.search("a b c", 250)
    assert hits == embedded.search("a b c", 250)
    assert {hit.jaccard for hit in hits[:200]} == {1.0}
    assert [hit.row for hit in hits[:200]] == sorted(hit.row for hit in hits[:200])


def test_every_row_that_shares_a_token_is_found(pair):
    embedded, elastic, _ = pair
    assert elastic.search("w7 w8", 5000) == embedded.search("w7 w8", 5000)


@pytest.mark.parametrize("text", ["", "   ", "?!", "unheardof", *(query for query, _ in STRANGE)])
def test_unusual_texts(pair, text):
    embedded, elastic, _ = pair
    assert elastic.tokens(text) == embedded.tokens(text)
    assert elastic.search(text, 30) == embedded.search(text, 30)
    assert elastic.find(text, 30) == embedded.find(text, 30)


def test_zero_hits_requested(pair):
    assert pair[1].search("a", 0) == pair[1].find("a", -1) == []


def test_free_text_search(pair):
    embedded, elastic, queries = pair
    for text in ["a", "a b", "w3", "answer 12", *queries[:10]]:
        assert elastic.find(text, 25) == embedded.find(text, 25), text


def test_texts_beyond_the_servers_clause_limit(pair):
    embedded, elastic, _ = pair
    rng = random.Random(3)
    for size in (300, CLAUSES, 10_000):
        text = " ".join(["a", "b", "w1", "w2", "w3", *(f"x{rng.random()}" for _ in range(size))])
        assert elastic.search(text, 20) == embedded.search(text, 20), size
        assert elastic.find(text, 20) == embedded.find(text, 20)


def test_characters(tmp_path, where):
    texts = ["我喜歡你的貓", "你的貓很可愛", "我不喜歡狗", "貓和狗 and 3.5 🎉", "狗"]
    pairs = [(one, two) for one in texts for two in texts]
    embedded, elastic = both(tmp_path, where("zh"), pairs, language="zh")
    for text in [*texts, "貓", "🎉 狗"]:
        assert elastic.search(text, 8) == embedded.search(text, 8)
        assert elastic.find(text) == embedded.find(text)


# ---- writing -----------------------------------------------------------------------------------------------------

FEW = [(f"word number {n}", f"answer {n}", None) for n in range(50)]


def test_rows_are_added_and_replaced(where):
    place = where("changed")
    made = load(place, FEW)
    index = open_index(place)
    assert (made.count, index.count, index.version, index.language) == (50, 50, made.version, "en")

    more = [Row(50, "brand new", "yes", {"licence": "MIT"}), Row(3, "brand new too", "no")]
    assert append(place, more, version="second").count == 2
    assert append(place, more, version="second").count == 2  # repeating changes nothing
    assert [(hit.row, hit.meta) for hit in index.search("brand new")] == [(50, {"licence": "MIT"}), (3, None)]
    assert (state(place).count, state(place).version) == (51, "second")
    index.refresh()
    assert (index.count, index.version) == (51, "second")


def test_index_of_another_unicode_version_reports_it_until_rebuilt(where, monkeypatch):
    place = where("older")
    with monkeypatch.context() as patch:
        patch.setattr("retrieval.index.elastic_writer.unicodedata", SimpleNamespace(unidata_version="1.1"))
        load(place, FEW)
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"cut into words by Unicode 1\.1, queries are by .*`evalapp reindex`"):
            open_index(place).close()
        append(place, [Row(50, "brand new", "yes")], version="second")  # the others are unchanged
    assert state(place).unicode == "1.1"
    load(place, FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_index(place).close()
    assert state(place).unicode == unicodedata.unidata_version


def test_new_index_replaces_the_old_in_one_step(where, elasticsearch_url):
    place = where("swapped")
    load(place, FEW, shards=2)
    index = open_index(place)
    load(place, FEW[:7])
    assert len(index.search("word", 100)) == 7
    client = connect(elasticsearch_url, Access())
    behind = client.indices.get(index=place.rpartition("/")[2] + ".*").body
    assert len(behind) == 1
    (settings,) = (one["settings"]["index"] for one in behind.values())
    assert settings["number_of_shards"] == "1"
    assert settings["auto_expand_replicas"] == "0-1"
    assert "refresh_interval" not in settings
    drop(place)
    drop(place)
    with pytest.raises(IndexUnavailable, match="there is no index"):
        index.search("word")


def test_interrupted_load_leaves_the_old_index_serving(where, elasticsearch_url):
    place = where("cut")
    load(place, FEW)

    def rows():
        yield from (Row(number, "other", "other") for number in range(5000))
        raise RuntimeError("the source ended")

    with pytest.raises(RuntimeError, match="the source ended"):
        rebuild(place, rows(), language="en", tokenizer="words")
    assert len(open_index(place).search("word", 100)) == 50
    assert len(connect(elasticsearch_url, Access()).indices.get(index=place.rpartition("/")[2] + ".*").body) == 1


def test_empty_corpus_is_an_index_without_hits(where):
    place = where("empty")
    load(place, [])
    index = open_index(place)
    assert (index.count, index.search("word"), index.find("word")) == (0, [], [])


def test_unmapped_field_is_refused(where, monkeypatch):
    usual = elastic_layout.document
    monkeypatch.setattr(elastic_layout, "document", lambda *given: usual(*given) | {"stray": 1})
    with pytest.raises(IndexUnavailable, match="stray"):
        load(where("strict"), FEW)


# ---- servers that cannot answer ------------------------------------------------------------------------------------


def test_index_that_is_missing_incomplete_or_of_another_format(where, elasticsearch_url):
    place = where("absent")
    with pytest.raises(IndexUnavailable, match=r"absent-.*evalapp reindex"):
        open_index(place)
    client, name = connect(elasticsearch_url, Access()), place.rpartition("/")[2]
    client.indices.create(index=f"{name}.1", mappings=elastic_layout.mapping({"format": 0}))
    with pytest.raises(IndexUnavailable, match="is being built"):
        open_index(place)
    client.indices.put_alias(index=f"{name}.1", name=name)
    with pytest.raises(IndexUnavailable, match="another version of this program"):
        open_index(place)


def test_red_index_is_reported(where, elasticsearch_url, elasticsearch_alone):
    place = where("red")
    client, name = connect(elasticsearch_url, Access()), place.rpartition("/")[2]
    client.indices.create(
        index=f"{name}.1", aliases={name: {}}, wait_for_active_shards="0", timeout="1s",
        mappings=elastic_layout.mapping({"format": elastic_layout.FORMAT, "version": "1", "language": "en",
                                         "tokenizer": "words"}),
        settings={"index.routing.allocation.require._name": "nowhere", "number_of_replicas": 0},
    )  # fmt: skip
    try:
        with pytest.raises(IndexUnavailable, match="is red: 1 of its parts"):
            open_index(place)
        found = health(elasticsearch_url)
        assert (found.reachable, found.ok, found.status) == (True, False, "red")
        assert "part of the data is missing" in found.message
    finally:
        drop(place)


def test_health(elasticsearch_url):
    found = health(elasticsearch_url.replace("://", "://someone:secret@"))
    assert (found.reachable, found.ok, found.version[:2]) == (True, True, "8.")
    assert "Elasticsearch 8." in found.message
    assert "secret" not in found.message


def test_nothing_answers():
    began = time.monotonic()
    for url in ("http://127.0.0.1:1", "https://127.0.0.1:1"):
        with pytest.raises(IndexUnavailable, match=r"nothing answers at https?://127\.0\.0\.1:1"):
            open_index(f"{url}/corpus", username="a", password="b")
        assert not health(url).reachable
    with pytest.raises(IndexUnavailable, match="nothing answers"):
        rebuild("http://127.0.0.1:1/corpus", [], language="en", tokenizer="words")
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("where", ["http://127.0.0.1:1", "http://127.0.0.1:1/Corpus", "http://x:y@/a", "http://h/a b"])
def test_invalid_address(where):
    with pytest.raises(ValueError, match="is not the address of an index"):
        open_index(where)


def test_missing_certificate_file(tmp_path):
    with pytest.raises(IndexUnavailable, match=r"ca\.pem"):
        open_index("https://127.0.0.1:1/corpus", ca_certs=str(tmp_path / "ca.pem"))


class Pretender(http.server.BaseHTTPRequestHandler):
    """Answers every request as the test specifies."""

    status, body, product = 200, {}, "Elasticsearch"

    def do_GET(self) -> None:
        self.send_response(self.status)
        if self.product:
            self.send_header("X-Elastic-Product", self.product)
        self.send_header("Content-Type", "application/vnd.elasticsearch+json;compatible-with=8")
        self.end_headers()
        self.wfile.write(json.dumps(self.body).encode())

    do_HEAD = do_POST = do_PUT = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("status", "body", "product", "why"),
    [
        (200, {"nodes": {"n": {"version": "7.17.1"}}}, "Elasticsearch", r"is 7\.17\.1; version 8 is needed"),
        (200, {"nodes": {"n": {"version": "9.1.0"}}}, "Elasticsearch", r"is 9\.1\.0; version 8 is needed"),
        (200, {"nodes": {}}, "", "is not Elasticsearch 8"),
        (401, {"error": {"type": "security_exception", "reason": "no"}}, "Elasticsearch", "rejects this user"),
        (429, {"error": {"reason": "queue full"}}, "Elasticsearch", "is overloaded"),
        (503, {"error": {"reason": "no master"}}, "Elasticsearch", "cannot answer now: no master"),
        (
            400,
            {"error": {"type": "media_type_header_exception", "reason": "Invalid media-type value"}},
            "Elasticsearch",
            "has another version than 8",
        ),
    ],
)
def test_servers_that_are_not_elasticsearch(status, body, product, why):
    handler = type("Handler", (Pretender,), {"status": status, "body": body, "product": product})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            with pytest.raises(IndexUnavailable, match=why):
                open_index(f"{url}/corpus", api_key="key", timeout=5)
            found = health(url, Access(timeout=5))
            assert found.reachable
            assert not found.ok
        finally:
            server.shutdown()
