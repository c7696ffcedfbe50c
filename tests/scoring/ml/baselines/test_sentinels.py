"""Length, overlap and random."""

from __future__ import annotations

import numpy as np

from scoring.ml import Record, load


def test_length_counts_words_of_every_script():
    """Expected by hand; before version 0.2 only a-z, 0-9 and ' formed words, so Thai had 0."""
    texts = ["Don't stop, 3.5!", "...", "ไทย", "Übergrößenträger", "Привет, мир", "今天很好"]
    assert load("length").score([Record(text) for text in texts]).tolist() == [4, 0, 3, 1, 2, 4]


def test_overlap_with_context_and_source():
    rows = [
        Record("the red cat", context=("A cat", "red?")),
        Record("the red cat", source="name[The Cat]"),
        Record("!!!", context=("a",)),
        Record("alone"),
    ]
    evaluator = load("overlap")
    np.testing.assert_array_equal(evaluator.score(rows), [2 / 3, 2 / 3, 0.0, np.nan])
    assert evaluator.notes == ("1 of 4 undefined: no context or source",)


def test_random_depends_only_on_the_scored_input():
    rows = [Record("text", item=str(n), system="s") for n in range(2000)]
    values = load("random").score(rows)
    assert len(set(values)) == 2000
    assert 0 <= values.min() < values.max() < 1
    assert abs(values.mean() - 0.5) < 0.03
    np.testing.assert_array_equal(load("random").score(rows[::-1])[::-1], values)
    assert not np.array_equal(load("random", seed=14).score(rows), values)


def test_random_known_value():
    # First 53 bits of sha256("13 US i US s US None US text"), US = 0x1f, computed with coreutils' sha256sum.
    assert load("random").score([Record("text", item="i", system="s")])[0] == 0.019170831401663313
