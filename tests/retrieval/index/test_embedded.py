"""The embedded index compared with a scan of all rows by Python sets, and its life on disk."""

from __future__ import annotations

import gzip
import itertools
import json
import random
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.index import CorpusError, IndexFormatError, IndexUnavailable, append, build, open_index
from retrieval.index.embedded import read_manifest, verify
from retrieval.index.hits import make_response_key
from retrieval.index.tokens import tokens

ALPHABET = "abcdefghijklmnopqrstuvwxyzäöüßéèêабвгдежзийклмνξοπρσ"


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk():
    """Hundreds of small indexes are written here; syncing each file to disk would take most of the time."""
    with mock.patch("os.fsync"):
        yield


def make_rows(pairs):
    return [{"query": query, "response": response} for query, response in pairs]


def scan(sets, wanted, k):
    """(row, Jaccard) of the best k, by definition."""
    found = [(len(wanted & one) / len(wanted | one), row) for row, one in enumerate(sets) if wanted & one]
    return [(row, value) for value, row in sorted(found, key=lambda pair: (-pair[0], pair[1]))[:k]]


def scan_all(sets, wanted, k):
    found = [(len(one), row) for row, one in enumerate(sets) if wanted and wanted <= one]
    return [(row, len(wanted) / size) for size, row in sorted(found)[:k]]


def places(hits):
    return [(hit.row, hit.jaccard) for hit in hits]


@st.composite
def corpora(draw):
    """Parts of a corpus of few words, so that sets, pairs and values often coincide; and query texts."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    letters = ALPHABET[: draw(st.sampled_from([2, 6, 45]))]

    def text():
        return " ".join(rng.choices(letters, k=rng.randint(0, 7))) or "!"

    pairs = [(text(), text()) for _ in range(draw(st.sampled_from([1, 4, 40, 200])))]
    cuts = sorted(rng.choices(range(len(pairs) + 1), k=draw(st.sampled_from([0, 1, 3]))))
    parts = [pairs[low:high] for low, high in itertools.pairwise([0, *cuts, len(pairs)])]
    return parts, [text() + rng.choice(["", " unheard-of"]) for _ in range(6)]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    corpora(), st.sampled_from([8, 16, 1 << 18]), st.sampled_from([1, 40, 1 << 20]), st.sampled_from([1, 7, 1 << 15])
)
def test_search_and_find_equal_a_scan_of_all_rows(tmp_path, corpus, block, at_once, batch):
    """Including ties, over appended and merged segments, with minimal block and batch sizes."""
    (first, *more), texts = corpus
    pairs = list(dict.fromkeys(itertools.chain(first, *more)))
    queries = [tokens(query) for query, _ in pairs]
    unions = [tokens(query) | tokens(response) for query, response in pairs]
    with (
        mock.patch("retrieval.index.postings.BLOCK", block),
        mock.patch("retrieval.index.inversion.AT_ONCE", at_once),
        mock.patch("retrieval.index.writer.BATCH_ROWS", batch),
    ):
        built = build(make_rows(first), tmp_path / "index")
        for part in more:
            built = append(tmp_path / "index", make_rows(part))
        assert built.count == len(pairs)
        with open_index(tmp_path / "index") as index:
            for text, k in itertools.product(texts, (1, 5, 1000)):
                wanted = tokens(text)
                hits = index.search(text, k)
                assert places(hits) == scan(queries, wanted, k)
                assert [(hit.query, hit.response) for hit in hits] == [pairs[hit.row] for hit in hits]
                assert places(index.find(text, k)) == scan_all(unions, wanted, k)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpora(), st.integers(1, 12))
def test_distinct_continues_until_there_are_k_responses(tmp_path, corpus, k):
    parts, texts = corpus
    pairs = list(dict.fromkeys(itertools.chain(*parts)))
    queries = [tokens(query) for query, _ in pairs]
    build(make_rows(pairs), tmp_path / "index")
    excluded = [pairs[0][1].upper(), "  " + pairs[-1][1]]
    with open_index(tmp_path / "index") as index:
        for text in texts:
            expected, seen = [], {make_response_key(response) for response in excluded}
            for row, value in scan(queries, tokens(text), len(pairs)):
                key = make_response_key(pairs[row][1])
                if key not in seen:
                    seen.add(key)
                    expected.append((row, value))
            assert places(index.search(text, k, distinct=True, exclude=excluded)) == expected[:k]


def test_a_thousand_real_queries_equal_a_scan(shared_data, tmp_path):
    """Both directions: every 60th query of the corpus, and last turns of another data set."""
    from scipy import sparse

    file = shared_data / "text_dailydialog_decontaminated" / "corpus.jsonl.gz"
    built = build(file, tmp_path / "index")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = list(dict.fromkeys((row["query"], row["response"]) for row in map(json.loads, lines)))
    assert (built.count, built.without_tokens) == (len(rows), sum(not tokens(query) for query, _ in rows))
    sets = [tokens(query) for query, _ in rows]
    numbers = {token: number for number, token in enumerate(sorted(set().union(*sets)))}
    ends = [0, *itertools.accumulate(len(one) for one in sets)]
    flat = [numbers[token] for one in sets for token in one]
    matrix = sparse.csr_array((np.ones(len(flat), np.int32), flat, ends), shape=(len(sets), len(numbers)))
    with gzip.open(shared_data / "text_self_dialogue" / "dialogues.jsonl.gz", "rt", encoding="utf-8") as lines:
        others = [json.loads(line)["turns"][3] for line in itertools.islice(lines, 60, 560)]
    texts = [query for query, _ in rows[::60]][:500] + others
    assert len(texts) == 1000
    sizes = matrix.sum(axis=1)
    with open_index(tmp_path / "index") as index:
        for text in texts:
            wanted = tokens(text)
            vector = np.zeros(len(numbers), np.int32)
            vector[[numbers[token] for token in wanted if token in numbers]] = 1
            common = matrix @ vector
            values = common / (len(wanted) + sizes - common)
            hundredth = max(np.partition(values, -100)[-100], 1e-9)
            found = np.flatnonzero(values >= hundredth)
            order = found[np.lexsort((found, -values[found]))][:100]
            assert places(index.search(text)) == list(zip(order.tolist(), values[order].tolist(), strict=True))


def test_many_responses_of_one_query_share_an_entry(tmp_path):
    pairs = [("hello there" if row % 2 else "There, HELLO!", f"answer {row}") for row in range(500)]
    build(make_rows(pairs), tmp_path / "index")
    with open_index(tmp_path / "index") as index:
        assert places(index.search("hello there", 300)) == [(row, 1.0) for row in range(300)]
    name = read_manifest(tmp_path / "index")["segments"][0]["name"]
    assert len(np.load(tmp_path / "index" / name / "query.row_starts.npy")) == 2  # one set, and the end


def test_queries_without_hits(tmp_path):
    build(make_rows([("hello you", "hi"), ("😂 😂", "what is funny"), ("...", "say something")]), tmp_path / "index")
    with open_index(tmp_path / "index") as index:
        for text in ("", "?!", "unheard-of words"):
            assert index.search(text) == []
            assert index.find(text) == []
        assert index.search("hello", 0) == index.search("hello", -1) == index.find("hello", 0) == []
        assert [hit.row for hit in index.search("hello", 10**9)] == [0]
        assert [hit.row for hit in index.search("😂")] == [1]
        assert [hit.row for hit in index.find("SOMETHING")] == [2]
        assert index.search("hello you", exclude=["HI "]) == []


def test_long_texts(tmp_path):
    """A query of 10,000 words, a text of 10,000 words, a line of 1 MB and a count above 255."""
    words = [f"w{number}" for number in range(10_000)]
    pairs = [(" ".join(words), "all"), (" ".join(words[:300]), "some"), ("w1", "x" * 1_000_000)]
    build(make_rows(pairs), tmp_path / "index")
    with open_index(tmp_path / "index") as index:
        assert places(index.search(" ".join(words))) == [(0, 1.0), (1, 0.03), (2, 0.0001)]
        assert places(index.search(" ".join(words[:300]))) == [(1, 1.0), (0, 0.03), (2, 1 / 300)]
        assert len(index.search("w1")[0].response) == 1_000_000


def test_empty_corpus(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n  \n")
    built = build(tmp_path / "empty.jsonl", tmp_path / "index")
    assert (built.count, built.added) == (0, 0)
    with open_index(tmp_path / "index") as index:
        assert (index.count, index.search("a"), index.find("a")) == (0, [], [])
    assert append(tmp_path / "index", make_rows([("a", "b")])).count == 1


def test_meta_flags_and_duplicates(tmp_path):
    lines = [
        '\ufeff{"query": "é", "response": "\\u2028 a\\n", "meta": {"id": 7}, "other": 1}',
        '{"response": "\\u2028 a\\n", "query": "\\u00e9"}',
        '{"query": "é", "response": "\\u2028 a"}',
    ]
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress("\r\n".join(lines).encode()))
    built = build(tmp_path / "c.jsonl.gz", tmp_path / "index", language="zh")
    assert (built.count, built.duplicates) == (2, 1)
    again = append(tmp_path / "index", tmp_path / "c.jsonl.gz")
    assert (again.count, again.added, again.duplicates, again.version) == (2, 0, 3, built.version)
    with open_index(tmp_path / "index") as index:
        assert (index.language, index.tokenizer) == ("zh", "characters")
        assert [tuple(hit) for hit in index.search("É")] == [
            (0, 1.0, "é", "\u2028 a\n", {"id": 7}),
            (1, 1.0, "é", "\u2028 a", None),
        ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{broken", r"c\.jsonl:2: is not JSON"),
        (b'{"query": "a", "response": "b"} {}', r"c\.jsonl:2: is not JSON"),
        (b"[1]", r"c\.jsonl:2: is not an object"),
        (b'{"query": "a"}', r'c\.jsonl:2: "response" is missing'),
        (b'{"query": " ", "response": "b"}', r'c\.jsonl:2: "query" is empty'),
        (b'{"query": 3, "response": "b"}', r'c\.jsonl:2: "query" is not a text'),
        (b'{"query": "a", "response": "b", "meta": 3}', r'c\.jsonl:2: "meta" is not an object'),
        (b'{"query": "\\ud800", "response": "b"}', r"c\.jsonl:2: holds half of a surrogate pair"),
        (b'{"query": "\xff", "response": "b"}', r"c\.jsonl:2: is not UTF-8"),
    ],
)
def test_broken_line_is_named_and_nothing_changes(tmp_path, line, message):
    build(make_rows([("old", "row")]), tmp_path / "index")
    before = sorted(path.name for path in (tmp_path / "index").iterdir())
    (tmp_path / "c.jsonl").write_bytes(b'{"query": "a", "response": "b"}\n' + line + b"\n")
    for work in (
        lambda: build(tmp_path / "c.jsonl", tmp_path / "index"),
        lambda: append(tmp_path / "index", tmp_path / "c.jsonl"),
    ):
        with pytest.raises(CorpusError, match=message):
            work()
    assert sorted(path.name for path in (tmp_path / "index").iterdir()) == before
    with open_index(tmp_path / "index") as index:
        assert [hit.response for hit in index.search("old")] == ["row"]


def test_errors_in_whole_files_and_in_given_rows(tmp_path):
    with pytest.raises(CorpusError, match="check the path"):
        build(tmp_path / "none.jsonl", tmp_path / "index")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"query": "a", "response": "b"}\n' * 99)[:-12])
    with pytest.raises(CorpusError, match="ends in the middle"):
        build(tmp_path / "cut.jsonl.gz", tmp_path / "index")
    with pytest.raises(CorpusError, match=r'rows:2: "meta" .*JSON') as caught:
        build([*make_rows([("a", "b")]), {"query": "c", "response": "d", "meta": {"x": {1}}}], tmp_path / "index")
    assert (caught.value.file, caught.value.line) == ("rows", 2)
    (tmp_path / "long.jsonl").write_text('{"query": "a", "response": "b"}')
    with mock.patch("retrieval.index.source.LONGEST_LINE", 20), pytest.raises(CorpusError, match="than 20 bytes"):
        build(tmp_path / "long.jsonl", tmp_path / "index")


def test_readers_keep_their_version_and_old_files_are_deleted(tmp_path):
    folder = tmp_path / "index"
    build(make_rows([(f"old {row}", "first") for row in range(40)]), folder)
    old = open_index(folder)
    built = build(make_rows([("new words", "second")]), folder)
    assert len(list(folder.glob("segment-*"))) == 1
    assert [len(old.search("old 7")), old.search("new")] == [40, []]
    with open_index(folder) as new:
        assert new.version == built.version != old.version
        assert [hit.response for hit in new.search("new")] == ["second"]
    old.close()
    old.close()
    with pytest.raises(IndexUnavailable, match="open it again"):
        old.search("old")


def test_index_of_another_unicode_version_reports_it_until_rebuilt(tmp_path):
    folder = tmp_path / "index"
    for rows, left in ((2, False), (100, True)):  # two rows are merged with a third, which tokenises them again
        build(make_rows([(f"q{row}", "r") for row in range(rows)]), folder)
        open_index(folder).close()
        written = read_manifest(folder)
        (folder / "manifest.json").write_text(json.dumps({**written, "unicode": "1.1"}))
        with pytest.warns(UserWarning, match=r"cut into words by Unicode 1\.1, queries are by .*; build it again"):
            open_index(folder).close()
        append(folder, make_rows([("new", "r")]))
        assert (read_manifest(folder)["unicode"] == "1.1") is left


def test_small_segments_are_merged(tmp_path):
    folder = tmp_path / "index"
    build(make_rows([(f"q{row}", "r") for row in range(100)]), folder)
    counts = []
    for row in range(100, 124):
        append(folder, make_rows([(f"q{row}", "r"), ("q0", "r")]))
        counts.append([entry["rows"] for entry in read_manifest(folder)["segments"]])
    assert counts[0] == [100, 1]
    assert counts[1] == [100, 2]
    assert max(map(len, counts)) <= 4
    assert sum(counts[-1]) == 124
    assert len(list(folder.glob("segment-*"))) == len(counts[-1])
    verify(folder)
    with open_index(folder) as index:
        build(make_rows([("others", "now")]), folder)
        for start in (0, 101, 124, 999):
            assert [(hit.row, hit.query) for hit in index.rows(start)] == [
                (row, f"q{row}") for row in range(start, 124)
            ]
        assert [index.search(f"q{row}")[0].row for row in (0, 99, 100, 123)] == [0, 99, 100, 123]


def test_progress_callback_may_stop_the_work(tmp_path):
    """An exception at any step leaves no partial work and is passed on."""
    file = tmp_path / "c.jsonl"
    file.write_text("".join(json.dumps({"query": f"q{row}", "response": "r"}) + "\n" for row in range(9)))
    seen = []
    with mock.patch("retrieval.index.writer.BATCH_ROWS", 4):
        build(file, tmp_path / "whole", progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (file.stat().st_size, file.stat().st_size)
        for last in range(1, len(seen) + 1):
            report = mock.Mock(side_effect=[None] * (last - 1) + [KeyboardInterrupt])
            with pytest.raises(KeyboardInterrupt):
                build(file, tmp_path / "index", progress=report)
            assert report.call_count == last
            assert [path.name for path in (tmp_path / "index").iterdir()] == [".lock"]
    seen.clear()
    build(make_rows([("a", "b")]), tmp_path / "index", progress=lambda done, total: seen.append((done, total)))
    assert set(seen) == {(1, 0)}


def test_one_writer_at_a_time(tmp_path):
    def slow():
        with pytest.raises(IndexUnavailable, match="wait until it has ended"):
            build(make_rows([("a", "b")]), tmp_path / "index")
        yield {"query": "c", "response": "d"}

    assert build(slow(), tmp_path / "index").count == 1


def test_damage_is_named(tmp_path):
    folder = tmp_path / "index"
    with pytest.raises(IndexFormatError, match="has no index"):
        open_index(folder)
    with pytest.raises(IndexFormatError, match="has no index"):
        append(folder, [])
    build(make_rows([("a b", "c"), ("d", "e")]), folder)
    verify(folder)
    manifest = folder / "manifest.json"
    texts = folder / read_manifest(folder)["segments"][0]["name"] / "texts.jsonl"
    whole = texts.read_bytes()

    texts.write_bytes(whole.replace(b'"c"', b'"x"'))
    open_index(folder).close()  # the size is right; only `verify` reads everything
    with pytest.raises(IndexFormatError, match=r"texts\.jsonl: .*content"):
        verify(folder)
    texts.write_bytes(whole[:-1])
    with pytest.raises(IndexFormatError, match=f"has {len(whole) - 1} bytes instead of {len(whole)}"):
        open_index(folder)
    texts.unlink()
    with pytest.raises(IndexFormatError, match=r"texts\.jsonl: is missing"):
        open_index(folder)

    written = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**written, "format": 2}))
    with pytest.raises(IndexFormatError, match=r"format 2, .* 1; "):
        append(folder, make_rows([("a", "b")]))
    assert texts.parent.is_dir()  # possibly from a newer version: left alone
    manifest.write_text("{")
    with pytest.raises(IndexFormatError, match="cannot be read"):
        open_index(folder)
    assert build(make_rows([("a", "b")]), folder).count == 1
    assert not texts.parent.exists()


def test_reader_follows_a_swap_between_manifest_and_files(tmp_path, monkeypatch):
    """After the reader has read the manifest, a writer swaps and cleans up: the reader reads the new manifest."""
    from retrieval.index import embedded

    folder = tmp_path / "index"
    build(make_rows([("old", "a")]), folder)
    stale = [read_manifest(folder)]
    build(make_rows([("new", "b")]), folder)
    real = embedded.read_manifest
    monkeypatch.setattr(embedded, "read_manifest", lambda place: stale.pop() if stale else real(place))
    with open_index(folder) as index:
        assert [hit.response for hit in index.search("new")] == ["b"]


def test_different_sets_with_one_hash_sum_are_distinguished(tmp_path):
    """Sets are looked up by a sum of hashes; if all sums were equal, the tokens themselves would decide, with another
    salt."""
    from retrieval.index import inversion

    real = inversion._sums

    def weak(numbers, starts, salt):
        return real(numbers, starts, salt) * (salt > 1)

    def equal_digests(parts):
        return np.zeros(len(list(parts)), np.uint64)

    pairs = [("a b", "1"), ("c d", "2"), ("a b", "3"), ("a b", "1")]
    with (
        mock.patch.object(inversion, "_sums", weak),
        mock.patch("retrieval.index.writer.compute_digests", equal_digests),
    ):
        build(make_rows(pairs[:2]), tmp_path / "index")
        built = append(tmp_path / "index", make_rows(pairs))
    assert (built.count, built.duplicates) == (3, 3)
    with open_index(tmp_path / "index") as index:
        assert [hit.row for hit in index.search("b a")] == [0, 2]
        assert [hit.row for hit in index.search("c")] == [1]


def test_opening_loads_no_django_and_the_package_no_numpy():
    import subprocess
    import sys

    code = "import sys, retrieval.index; sys.exit('numpy' in sys.modules or 'django' in sys.modules)"
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=300).returncode == 0
