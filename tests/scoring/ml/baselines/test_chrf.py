"""chrF and chrF++ against sacrebleu, per text and per corpus."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from scoring.ml import Record, load
from scoring.ml.baselines.chrf import split_punctuation

texts = st.text(alphabet="ab c.!(é我\n", min_size=1, max_size=25).filter(str.strip)


@pytest.mark.parametrize("options", [{}, {"word_order": 2}, {"beta": 3, "char_order": 4}, {"lowercase": True}])
@given(hyp=texts, refs=st.lists(texts, min_size=1, max_size=3))
@settings(max_examples=60)
def test_equals_sacrebleu(options, hyp, refs):
    expected = CHRF(**options).sentence_score(hyp, refs).score
    assert load("chrf", **options).score([Record(hyp, tuple(refs))])[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("word_order", [0, 2])
def test_system_score_equals_sacrebleu_corpus(word_order):
    rng = random.Random(8)

    def text() -> str:
        return " ".join("".join(rng.choices("abcde", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 6)))

    rows = [Record(text(), tuple(text() for _ in range(3))) for _ in range(40)]
    references = [[row.references[n] for row in rows] for n in range(3)]
    expected = CHRF(word_order=word_order).corpus_score([row.text for row in rows], references).score
    assert load("chrf", word_order=word_order).system_score(rows) == pytest.approx(expected, abs=1e-9)


def test_by_hand():
    # "ab" against "ac" with one order: 1 of 2 characters on both sides.
    assert load("chrf", char_order=1).score([Record("ab", ("ac",))])[0] == pytest.approx(50)


def test_split_punctuation():
    assert split_punctuation("(hi) . a, 'b") == ["(hi", ")", ".", "a", ",", "'", "b"]


def test_all_pairs_shape():
    matrix = load("chrf").all_pairs([(["a b", "c"], ["a", "b", "c"])])[0]
    assert matrix.shape == (2, 3)
    assert np.isclose(matrix[1], [0, 0, 100]).all()
