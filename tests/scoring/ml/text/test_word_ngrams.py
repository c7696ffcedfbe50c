"""The n-gram model compared with its formula written with dictionaries, sums of probabilities, and saving."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.ml import ScoringError
from scoring.ml.text.word_ngrams import BEGIN, END, HEADER, KneserNey, WordNgrams

TEXTS = ["the cat sat on the mat", "the dog sat", "a cat ran", "The cat sat on a dog .", "the mat ran on"]
sequences = st.lists(
    st.lists(st.integers(2, 5), min_size=1, max_size=6).map(lambda inner: [BEGIN, *inner, END]), min_size=1, max_size=6
)


def by_dictionaries(training: list[list[int]], order: int, history: tuple[int, ...], token: int, base: float) -> float:
    """The formula of the module's docstring for one token."""
    raw = Counter(tuple(s[i : i + k]) for s in training for k in range(1, order + 2) for i in range(len(s) - k + 1))
    before: dict[tuple[int, ...], int] = defaultdict(int)
    for gram in raw:
        before[gram[1:]] += 1

    def count(gram: tuple[int, ...]) -> int:
        if gram == (BEGIN,):
            return 0
        return raw[gram] if len(gram) == order or gram[0] == BEGIN else before[gram]

    def probability(history: tuple[int, ...]) -> float:
        lower = base if not history else probability(history[1:])
        k = len(history) + 1
        counts = [count(gram) for gram in raw if len(gram) == k]
        ones, twos = counts.count(1), counts.count(2)
        discount = min(ones / (ones + 2 * twos), 0.9) if ones else 0.5
        of_history = [count(gram) for gram in raw if len(gram) == k and gram[:-1] == history]
        total = sum(of_history)
        if not total:
            return lower
        types = sum(c > 0 for c in of_history)
        seen = count((*history, token)) if (*history, token) in raw else 0
        return max(seen - discount, 0) / total + discount * types / total * lower

    return probability(history[-(order - 1) :] if order > 1 else ())


@given(training=sequences, asked=sequences, order=st.integers(1, 4))
@settings(max_examples=60)
def test_equals_the_formula(training, asked, order):
    model = KneserNey.fit(training, 6, order)
    base = np.full(sum(len(s) - 1 for s in asked), math.log(1 / 5))
    expected = [
        math.log(by_dictionaries(training, order, tuple(s[:i]), s[i], 1 / 5)) for s in asked for i in range(1, len(s))
    ]
    np.testing.assert_allclose(model.log_probabilities(asked, base), expected, rtol=0, atol=1e-12)


@given(training=sequences, history=st.lists(st.integers(2, 5), max_size=4), order=st.integers(1, 4))
@settings(max_examples=60)
def test_probabilities_after_any_history_sum_to_one(training, history, order):
    model = KneserNey.fit(training, 6, order)
    asked = [[BEGIN, *history, token] for token in (END, 2, 3, 4, 5)]
    found = model.log_probabilities(asked, np.full(5 * (len(history) + 1), math.log(1 / 5)))
    assert np.exp(found.reshape(5, -1)[:, -1]).sum() == pytest.approx(1, abs=1e-12)


def test_bigram_by_hand():
    # b a | b b, order 2. Bigrams <s>b 2, ba 1, a</s> 1, bb 1, b</s> 1: D = 4 / (4 + 2) = 2/3. Preceding words: a 1 (b),
    # b 2 (<s>, b), </s> 2 (a, b): D_1 = 1 / (1 + 4) = 1/5, total 5, 3 types. P(a) = .8/5 + .2*3/5 * 1/3 = .2. After b:
    # a 1, b 1, </s> 1: P(a | b) = (1 - 2/3)/3 + (2/3)(3/3) * .2 = 1/9 + 2/15.
    model = KneserNey.fit([[BEGIN, 3, 2, END], [BEGIN, 3, 3, END]], 4, 2)
    found = model.log_probabilities([[BEGIN, 3, 2]], np.full(2, math.log(1 / 3)))
    assert np.exp(found[1]) == pytest.approx(1 / 9 + 2 / 15, abs=1e-15)


def test_familiar_words_in_order_are_likelier_and_every_word_has_a_probability():
    model = WordNgrams.fit(TEXTS)
    asked = ["the cat sat on the mat", "mat the on sat cat the", "the zebra sat on the mat", "猫" * 300, "!"]
    values, tokens = model.log_likelihoods(asked)
    assert np.isfinite(values).all()
    assert tokens.tolist() == [7, 7, 7, 2, 2]
    assert values[0] > values[1]
    assert values[0] > values[2] > values[3]
    # Every unseen character costs more than a uniform guess over all.
    assert values[3] < -300 * math.log(0x110000)


def test_spelling_sums_to_one_over_short_words():
    # With one letter, the words are "", a, aa, ...: their probabilities sum to 1 except for the share of other letters.
    model = WordNgrams.fit(["a aa a", "a"])
    spelled = model._spell(["a" * n for n in range(60)])
    assert 0.9 < np.exp(spelled).sum() <= 1


def test_order_and_neighbours_do_not_matter():
    one, two = WordNgrams.fit(TEXTS), WordNgrams.fit(TEXTS[::-1])
    assert one.fingerprint == two.fingerprint
    asked = [*TEXTS, "a new text", ""]
    together, _ = one.log_likelihoods(asked)
    np.testing.assert_allclose([one.log_likelihoods([text])[0][0] for text in asked], together, rtol=0, atol=1e-12)
    assert WordNgrams.fit(TEXTS, order=2).fingerprint != one.fingerprint


def test_saved_and_loaded_again(tmp_path):
    model = WordNgrams.fit(TEXTS, order=2, lowercase=False)
    model.save(tmp_path)
    again = WordNgrams.load(tmp_path)
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(again.log_likelihoods(TEXTS)[0], model.log_likelihoods(TEXTS)[0])
    (tmp_path / HEADER).write_text("{}")
    with pytest.raises(ScoringError, match="n-gram model"):
        WordNgrams.load(tmp_path)


def test_training_texts_may_be_shorter_than_the_order():
    model = WordNgrams.fit(["c d"], order=5)
    assert np.isfinite(model.log_likelihoods(["a longer text with longer words", "c d"])[0]).all()
    assert model.log_likelihoods(["c d"])[0][0] > model.log_likelihoods(["d c"])[0][0]


def test_without_words_there_is_nothing_to_learn():
    with pytest.raises(ScoringError, match="no word"):
        WordNgrams.fit([" ", ""])
    assert WordNgrams.fit(["a"]).log_likelihoods([])[0].shape == (0,)
