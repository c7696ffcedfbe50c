"""METEOR by hand, compared with nltk with and without WordNet, and its message when WordNet is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk.translate.meteor_score import meteor_score

from scoring.ml import InvalidOption, Query, Record, load, read_dataset
from scoring.ml.baselines import meteor
from scoring.ml.baselines.meteor import Words, align, count_chunks
from scoring.ml.text.tokens import tokenize
from tests.scoring.ml.wordnet import nltk_reader, write_wordnet

WORDS = [
    "the",
    "The",
    "dog",
    "dogs",
    "hound",
    "ran",
    "running",
    "runs",
    "sprint",
    "fast",
    "quick",
    "quickly",
    "goose",
    ",",
]
text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)


@pytest.fixture(scope="module")
def tiny_wordnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wordnet(tmp_path_factory.mktemp("nltk_data") / "corpora" / "wordnet")


class NoSynonyms:
    """An empty WordNet for nltk."""

    def synsets(self, word: str) -> list[object]:
        return []


@pytest.fixture(scope="module")
def nltk_wordnet(tiny_wordnet: Path) -> WordNetCorpusReader:
    return nltk_reader(tiny_wordnet)


@pytest.fixture
def no_wordnet(monkeypatch) -> None:
    monkeypatch.setattr(meteor, "find_wordnet", lambda: None)


def by_nltk(hyp: str, refs: tuple[str, ...], wordnet: object, **weights: float) -> float:
    return meteor_score([tokenize(ref, "13a") for ref in refs], tokenize(hyp, "13a"), wordnet=wordnet, **weights)


def test_by_hand():
    # m = 3 of 4 tokens in 2 chunks (the cat | mat) of a reference of 3: P = 3/4, R = 1, F = .75/(.9 * .75 + .1).
    record = Record("the cat on mat", ("the cat mat",))
    expected = 0.75 / (0.9 * 0.75 + 0.1) * (1 - 0.5 * (2 / 3) ** 3)
    assert load("meteor", synonyms="none").score([record])[0] == pytest.approx(expected, abs=1e-15)
    # The only value in nltk's own documentation.
    hyp = "It is a guide to action which ensures that the military always obeys the commands of the party"
    ref = "It is a guide to action that ensures that the military will forever heed Party commands"
    assert load("meteor", synonyms="none").score([Record(hyp, (ref,))])[0] == pytest.approx(0.6944, abs=5e-5)


def test_stages_and_their_order():
    stems = [0, 1, 0]  # words 0 and 2 share a stem

    def aligned(hyp: list[int], ref: list[int], synonyms=None) -> list[tuple[int, int]]:
        return align(Words.of(hyp, stems), Words.of(ref, stems), synonyms)

    assert aligned([0, 1, 2], [2, 1, 0]) == [(0, 2), (1, 1), (2, 0)]  # exact matches before stems
    assert aligned([0, 0], [2, 1, 2]) == [(0, 0), (1, 2)]
    assert aligned([0], [1, 1]) == []
    assert aligned([0], [1, 1], lambda stem: (1,)) == [(0, 1)]  # the last free position
    assert count_chunks([(0, 2), (1, 1), (2, 0)]) == 3
    assert count_chunks([(0, 0), (1, 1), (3, 2)]) == 2
    assert count_chunks([]) == 0


@given(hyp=text, refs=st.lists(text, min_size=1, max_size=3))
@settings(max_examples=150)
def test_equals_nltk_without_synonyms(hyp, refs):
    found = load("meteor", synonyms="none").score([Record(hyp, tuple(refs))])[0]
    assert found == pytest.approx(by_nltk(hyp, tuple(refs), NoSynonyms()), abs=1e-12)


@given(hyp=text, refs=st.lists(text, min_size=1, max_size=3))
@settings(max_examples=150)
def test_equals_nltk_with_wordnet(tiny_wordnet, nltk_wordnet, hyp, refs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WNSEARCHDIR", str(tiny_wordnet))
        evaluator = load("meteor", synonyms="wordnet", gamma=0.4)
    found = evaluator.score([Record(hyp, tuple(refs))])[0]
    assert found == pytest.approx(by_nltk(hyp, tuple(refs), nltk_wordnet, gamma=0.4), abs=1e-12)


def test_synonyms_count_and_are_in_the_signature(tiny_wordnet, monkeypatch):
    record = Record("the hound", ("the dog",))
    monkeypatch.setenv("WNSEARCHDIR", str(tiny_wordnet))
    with_them, without = load("meteor"), load("meteor", synonyms="none")
    assert with_them.score([record])[0] == 1 - 0.5 / 8  # two matches in one chunk
    assert without.score([record])[0] < 0.5
    assert "|syn:wordnet@" in with_them.signature
    assert "|syn:none|" in without.signature
    assert with_them.notes == without.notes == ()


def test_missing_wordnet_is_reported_or_refused(no_wordnet):
    evaluator = load("meteor")
    evaluator.score([Record("a cat", ("a cat",))])
    assert evaluator.signature == (
        "meteor|nrefs:var|case:lc|tok:13a|stem:porter|syn:none|alpha:0.9|beta:3|gamma:0.5|v:1"
    )
    assert evaluator.notes[0].startswith("without synonyms, because no WordNet was found")
    with pytest.raises(InvalidOption, match="nltk_data"):
        load("meteor", synonyms="wordnet")


def test_empty_texts_duplicates_and_order(no_wordnet):
    evaluator = load("meteor")
    records = [
        Record("a cat", ("a cat", "b")),
        Record(" ", ("a",)),
        Record("x", ()),
        Record("a cat", ("a cat", "b")),
        Record("!", ("a",)),
    ]
    found = evaluator.evaluate(records)
    np.testing.assert_array_equal(found.values, [1 - 0.5 / 8, 0.0, np.nan, 1 - 0.5 / 8, 0.0])
    assert (found.n_empty, found.n_duplicate, found.reasons[2]) == (1, 1, "no references")
    np.testing.assert_array_equal(evaluator.score(records[::-1]), found.values[::-1])
    matrix = evaluator.all_pairs([Query(["a cat", ""], ["b", "a cat", " "])])[0]
    np.testing.assert_array_equal(matrix, [[0, 1 - 0.5 / 8, 0], [0, 0, 0]])


def test_real_data_equals_nltk(shared_data: Path, no_wordnet):
    records = read_dataset(shared_data / "dailydialog_multiref").outputs_with_context()[:60]
    expected = [by_nltk(record.text, record.references, NoSynonyms()) for record in records]
    np.testing.assert_allclose(load("meteor").score(records), expected, rtol=0, atol=1e-12)


def test_identical_texts_are_one_chunk_in_any_script():
    """A single chunk of m tokens costs .5 / m^3: these texts have 7, 1, 1, 4 and 4 tokens."""
    lines = ["the cat sat on the mat .", "ฉันชอบกินข้าวผัด", "我喜欢喝茶。", "मुझे चाय पसंद है", "Ich trinke Tee!"]
    values = load("meteor").score([Record(line, (line, "other words here")) for line in lines])
    np.testing.assert_allclose(values, 1 - 0.5 / np.array([7, 1, 1, 4, 4]) ** 3, rtol=1e-12)
