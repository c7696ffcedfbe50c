"""BLEU* and the matrix of all pairs against sacrebleu and NLTK, pair by pair."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu.metrics.bleu import BLEU

from scoring.ml import Query, Record, load
from scoring.ml.text.tokens import tokenize

english = st.lists(
    st.sampled_from(["the", "cat", "sat", ".", "on", "3.5", "it's", "mat", ",", "-2", "&amp;", "He"]), max_size=9
).map(" ".join)
chinese = st.text(alphabet="我你喜欢茶。a 1", max_size=9)


def matrix(peer: BLEU, query: Query) -> list[list[float]]:
    return [[peer.sentence_score(h, [r]).score for r in query.references] for h in query.hypotheses]


@given(st.lists(st.builds(Query, *[st.lists(english, min_size=1, max_size=4)] * 2), min_size=1, max_size=3))
@settings(max_examples=60)
def test_all_pairs_equal_sacrebleu(queries):
    peer = BLEU(effective_order=True)
    for query, found in zip(queries, load("bleu-star").all_pairs(queries), strict=True):
        np.testing.assert_allclose(found, matrix(peer, query), rtol=0, atol=1e-9)


@pytest.mark.parametrize("tokenizer", ["zh", "char"])
@given(hyps=st.lists(chinese, min_size=1, max_size=3), refs=st.lists(chinese, min_size=1, max_size=3))
@settings(max_examples=40)
def test_all_pairs_equal_sacrebleu_without_word_spaces(tokenizer, hyps, refs):
    query = Query(hyps, refs)
    expected = matrix(BLEU(effective_order=True, tokenize=tokenizer), query)
    np.testing.assert_allclose(load("bleu-star", tokenize=tokenizer).all_pairs([query])[0], expected, atol=1e-9)


def test_score_is_the_best_reference():
    rng = random.Random(2)
    words = ["a", "b", "c", "d", "e", "."]
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 8))) for _ in range(40)]
    records = [Record(texts[n], tuple(texts[n + 1 : n + 4]), item=str(n)) for n in range(30)]
    peer = BLEU(effective_order=True, force=True)
    expected = [max(peer.sentence_score(r.text, [ref]).score for ref in r.references) for r in records]
    np.testing.assert_allclose(load("bleu-star").score(records), expected, rtol=0, atol=1e-9)


def test_method1_equals_nltk():
    query = Query(["the cat sat on a mat .", "no"], ["a cat sat on the mat .", "no way", "the mat"])
    found = load("bleu-star", smooth="method1").all_pairs([query])[0]
    function = SmoothingFunction().method1
    for row, hyp in enumerate(query.hypotheses):
        for column, ref in enumerate(query.references):
            expected = sentence_bleu([tokenize(ref, "13a")], tokenize(hyp, "13a"), smoothing_function=function)
            assert found[row, column] == pytest.approx(100 * expected, abs=1e-9)


def test_plain_tuples_and_progress():
    seen = []
    load("bleu-star").all_pairs([(["a"], ["a", "b"])], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 1)]
