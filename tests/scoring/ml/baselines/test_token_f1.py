"""Token F1 by hand and against plain counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from evalapp.words import split_words
from scoring.ml import Query, Record, load


def test_by_hand():
    # "the the cat" against "the cat sat": 2 common tokens of 3 and 3.
    assert load("token-f1").score([Record("the the cat", ("x", "the cat sat"))])[0] == pytest.approx(2 / 3)


def test_case_and_punctuation_are_ignored():
    assert load("token-f1").score([Record("The CAT!", ("the cat",))])[0] == 1.0


def test_texts_without_word_tokens_get_zero():
    assert load("token-f1").score([Record("!!!", ("!!!",)), Record("ok", ("...",))]).tolist() == [0.0, 0.0]


def test_no_letter_is_lost():
    """Before version 0.2, "café" was the word "caf", and a Russian text had no word."""
    rows = [Record("café", ("caf",)), Record("Привет, мир", ("привет мир!",)), Record("добрый день", ("добрый вечер",))]
    assert load("token-f1").score(rows).tolist() == [0.0, 1.0, 0.5]


def test_all_pairs_equal_counters():
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(list("abc"), rng.integers(1, 6))) for _ in range(12)]
    query = Query(texts[:5], texts[5:])
    expected = np.zeros((5, 7))
    for row, hyp in enumerate(query.hypotheses):
        for column, ref in enumerate(query.references):
            one, two = Counter(split_words(hyp)), Counter(split_words(ref))
            expected[row, column] = 2 * (one & two).total() / (one.total() + two.total())
    np.testing.assert_allclose(load("token-f1").all_pairs([query])[0], expected, atol=1e-15)
