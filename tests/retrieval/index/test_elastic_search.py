"""The search plan, tested with a few lines that answer its queries: exact for any order of the server."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.index import elastic_layout as layout
from retrieval.index import elastic_search
from retrieval.index.elastic_search import Search
from retrieval.index.hits import Hit, jaccard

WORDS = [*"abcdefghij"]


def cut(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Server:
    """Documents by row, and the part of the query language that a search uses, in single precision like Lucene. Rows
    with equal scores come in no particular order."""

    def __init__(self, texts: list[tuple[str, str]], seed: int = 0) -> None:
        self.documents = [layout.document(layout.Row(n, q, r), cut(q), cut(r)) for n, (q, r) in enumerate(texts)]
        self.shuffled = random.Random(seed).sample(self.documents, len(self.documents))
        self.clauses = self.asked = 0

    def ask(self, bodies):
        self.asked += 1
        return [self.one(body) for body in bodies]

    def one(self, body):
        self.clauses = max(self.clauses, str(body).count("'term'"))
        found = [(score, doc) for doc in self.shuffled if (score := self.score(body["query"], doc)) is not None]
        found = [(float(np.float32(score)), doc) for score, doc in found]
        found = [(score, doc) for score, doc in found if score >= body.get("min_score", 0)]
        ways = {"_score": "desc"}
        keys = [
            next(iter(sort.items())) if isinstance(sort, dict) else (sort, ways.get(sort, "asc"))
            for sort in body.get("sort", ["_score"])
        ]
        hits = [
            {
                "_id": str(doc["row"]),
                "_score": score,
                "_source": doc,
                "fields": {field: [doc[field]] for field in body.get("docvalue_fields", ())},
                "sort": [score if field == "_score" else doc[field] for field, _ in keys],
            }
            for score, doc in found
        ]
        hits.sort(
            key=lambda hit: [-at if way == "desc" else at for at, (_, way) in zip(hit["sort"], keys, strict=True)]
        )
        if "search_after" in body:
            places = [hit["sort"] for hit in hits]
            hits = hits[places.index(body["search_after"]) + 1 :]
        return hits[: body["size"]]

    def score(self, query, doc):
        ((kind, inside),) = query.items()
        if kind == "dis_max":
            return max((s for part in inside["queries"] if (s := self.score(part, doc)) is not None), default=None)
        if kind == "constant_score":
            return None if self.score(inside["filter"], doc) is None else float(np.float32(inside["boost"]))
        if kind in ("term", "terms"):
            ((field, value),) = inside.items()
            held = doc.get(field, ())
            held = set(held) if isinstance(held, list) else {held}
            return 1.0 if held & set(value if kind == "terms" else [value]) else None
        assert kind == "bool"
        if any(self.score(part, doc) is not None for part in inside.get("must_not", ())):
            return None
        if any(self.score(part, doc) is None for part in inside.get("filter", ())):
            return None
        must = [self.score(part, doc) for part in inside.get("must", ())]
        should = [s for part in inside.get("should", ()) if (s := self.score(part, doc)) is not None]
        least = inside.get("minimum_should_match", 1 if "should" in inside else 0)
        return None if None in must or len(should) < least else sum(must) + sum(should)

    def search(self, text: str) -> Search:
        longest = max((doc["length"] for doc in self.documents), default=0)
        return Search(self.ask, cut, lambda: longest, cut(text), len(self.documents), longest)


def scan(texts, text, k, barred=()):
    wanted = cut(text)
    found = [
        Hit(row, jaccard(len(wanted & cut(query)), len(wanted), len(cut(query))), query, response)
        for row, (query, response) in enumerate(texts)
        if wanted & cut(query) and layout.reply(response) not in barred
    ]
    return sorted(found, key=lambda hit: (-hit.jaccard, hit.row))[:k]


some_text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
some_rows = st.lists(st.tuples(some_text, st.sampled_from(["yes", "no", "well"])), min_size=1, max_size=40)


@settings(max_examples=120)
@given(some_rows, some_text, st.integers(1, 12), st.integers(0, 3), st.booleans())
def test_every_search_equals_a_scan(texts, text, k, seed, barring):
    barred = [layout.reply("yes")] if barring else []
    # A margin of zero and an estimate from a handful of rows: every path through the plan is taken.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elastic_search, "_SMALL", 5)
        patch.setattr(elastic_search, "_size", lambda k: k)
        assert Server(texts, seed).search(text).best(k, barred) == scan(texts, text, k, barred)


@pytest.mark.parametrize("clauses", [7, 60])
def test_few_clauses_and_long_rows(clauses, monkeypatch):
    monkeypatch.setattr(elastic_search, "CLAUSES", clauses)
    rng = random.Random(5)
    words = [f"w{n}" for n in range(80)]
    texts = [(" ".join(rng.choices(words, k=rng.choice([3, 9, 30, 70]))), "r") for _ in range(70)]
    server = Server(texts)
    for number in range(8):
        text = " ".join(rng.choices(words, k=(2, 6, 20, 55)[number % 4]))
        assert server.search(text).best(10) == scan(texts, text, 10), text
    # Sharing a word only in the response is not a hit, however many are requested.
    answered = [(f"{query} only{number}", " ".join(words[:3])) for number, (query, _) in enumerate(texts)]
    long = " ".join([*words[:8], *(f"rare{n}" for n in range(70))])
    assert Server(answered).search(long).best(200) == scan(answered, long, 200)
    # A part of a disjunction is not split: one text length is the smallest unit of a request.
    assert server.clauses <= clauses + 1


@pytest.mark.parametrize("text", ["a b c", "a", "j"])
def test_hundreds_of_equal_rows_are_ordered_by_number(text):
    texts = [("a b c", "r")] * 200 + [("a b", "r")] * 200 + [("a", "r")] * 200 + [("a b c d e f", "r")] * 200
    random.Random(1).shuffle(texts)
    for k in (1, 150, 250, 601):
        server = Server(texts, k)
        assert server.search(text).best(k) == scan(texts, text, k)
        assert server.asked <= 3  # to collect, to collect at the value found, to settle


def test_rows_of_equal_value_and_different_length_are_ordered_by_number():
    # A match of 1 in 1 word and a match of 2 in 6 are equally similar to four words, and the latter scores lower.
    texts = [("a b e f g h", "r")] * 300 + [("a", "r")] * 200
    for k in (20, 100, 240):
        server = Server(texts, k)
        assert server.search("a b c d").best(k) == scan(texts, "a b c d", k)
        assert server.asked <= 3
    # Here both kinds have the same score, up to single precision.
    ten = "a b c d e f g h i j"
    texts = [("a b c d e f " + " ".join(f"w{n}" for n in range(10)), "r"), ("g h i", "r")] * 150
    for k in (20, 75, 110):
        assert Server(texts, k).search(ten).best(k) == scan(texts, ten, k)


def test_overestimated_value_hides_nothing(monkeypatch):
    monkeypatch.setattr(elastic_search, "_SMALL", 5)
    monkeypatch.setattr(Search, "_estimate", lambda *_: Fraction(9, 10))
    # Nine of ten words and three others: .69, found on the way. Eight of the ten: .8, and too short to be examined.
    texts = [("a b c d e f g h i x y z", "r")] * 20 + [("a b c d e f g h", "r")] * 5
    ten = "a b c d e f g h i j"
    assert Server(texts).search(ten).best(10) == scan(texts, ten, 10)


def test_rows_deleted_between_two_searches_are_no_hits():
    # Matches of 1 in 1 word and of 2 in 6 are equally similar to four: a second search determines which come first.
    texts = [("a", "r"), ("a b e f g h", "r")] * 300
    server = Server(texts)
    asked = []

    def ask(bodies):
        asked.append(bodies)
        if len(asked) == 2:
            server.shuffled = [doc for doc in server.shuffled if doc["row"] < 3]
        return server.ask(bodies)

    search = Search(ask, cut, lambda: 6, cut("a b c d"), 600, 6)
    assert [hit.row for hit in search.best(20)] == [0, 1, 2]
    assert len(asked) > 2


def test_text_far_longer_than_every_row_sends_no_empty_request(monkeypatch):
    monkeypatch.setattr(elastic_search, "_SMALL", 5)
    texts = [("a b", "r"), ("b c", "r"), ("a c", "r")] * 4
    server = Server(texts)

    def ask(bodies):
        assert bodies  # the server refuses a request without a search
        return server.ask(bodies)

    text = " ".join(["a", *(f"w{n}" for n in range(30))])
    assert Search(ask, cut, lambda: 2, cut(text), len(texts), 2).best(3) == scan(texts, text, 3)


def test_buckets_contain_every_length_once():
    lengths = range(1, 3000)
    for length in lengths:
        (bucket,) = layout.buckets(length, length)
        assert bucket.first <= length <= bucket.last
        assert bucket.number == layout.find_bucket(length)
    together = layout.buckets(1, 3000)
    assert [one.last + 1 for one in together[:-1]] == [one.first for one in together[1:]]
    assert all(bucket.last <= bucket.first * 9 / 8 for bucket in together)
    assert layout.buckets(5, 4) == []


def test_sample_contains_a_sixteenth_of_the_rows():
    assert 0.9 < sum(map(layout.sampled, range(100_000))) * layout.SAMPLE / 100_000 < 1.1
