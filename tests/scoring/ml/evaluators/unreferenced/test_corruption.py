"""Corrupted replies: docs/explanation/evaluators/unreferenced.md#false-replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from scoring.ml.evaluators.unreferenced.corruption import (
    corrupt,
    drop_words,
    repeat_word,
    shuffle_words,
    split_words,
)

SIX = ["one", "two", "three", "four", "five", "six"]


class Fixed:
    """A generator with predefined draws."""

    def __init__(self, uniform: Sequence[float] = (), places: Sequence[int] = (), order: Sequence[int] = ()) -> None:
        self.uniform, self.places, self.order = list(uniform), list(places), list(order)

    def random(self, n: int) -> np.ndarray:
        return np.array([self.uniform.pop(0) for _ in range(n)])

    def integers(self, n: int) -> int:
        return min(self.places.pop(0), n - 1)

    def permutation(self, n: int) -> np.ndarray:
        return np.array(self.order[:n])


def test_words_are_dropped_with_probability_one_half() -> None:
    rng = Fixed(uniform=[0.49, 0.5, 0.2, 0.9, 0.1, 0.7])
    assert drop_words(SIX, rng) == ["two", "four", "six"]
    draws = np.random.default_rng(1)
    kept = sum(len(drop_words(SIX, draws)) for _ in range(4000)) / (4000 * 6)
    # All six are dropped once in 64 times; then all six are shuffled instead: .5 + 1/64.
    assert kept == pytest.approx(0.5 + 1 / 64, abs=0.01)


def test_fully_dropped_reply_is_shuffled_and_no_word_remains_word() -> None:
    assert drop_words(["a", "b", "c"], Fixed(uniform=[0.0, 0.1, 0.2], order=[2, 0, 1])) == ["c", "a", "b"]
    assert drop_words([], np.random.default_rng(1)) == ["word"]


def test_shuffling_keeps_the_words() -> None:
    assert shuffle_words(["a", "b", "c"], Fixed(order=[1, 2, 0])) == ["b", "c", "a"]
    assert Counter(shuffle_words(SIX, np.random.default_rng(2))) == Counter(SIX)


@pytest.mark.parametrize(("place", "expected"), [(0, "a a a a"), (1, "a b b b")])
def test_repeating_keeps_prefix_and_length(place: int, expected: str) -> None:
    assert " ".join(repeat_word(["a", "b", "c", "d"], Fixed(places=[place]))) == expected


def test_one_word_and_none() -> None:
    rng = np.random.default_rng(3)
    assert repeat_word(["yes"], rng) == ["yes"]
    assert repeat_word([], rng) == []
    assert shuffle_words([], rng) == []


@pytest.mark.parametrize("kind", ["word_drop", "word_order", "word_repeat"])
def test_corrupted_reply_never_equals_the_true_one_unless_requested(kind: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        assert corrupt("you like tea", kind, rng, keep_identical=False) not in ("you like tea", "")
    assert corrupt("yes", kind, rng, keep_identical=False) is None
    assert corrupt("yes", kind, rng, keep_identical=True) == "yes"
    assert any(corrupt("no tea", "word_order", rng, keep_identical=True) == "no tea" for _ in range(50))


def test_text_without_spaces_is_corrupted_by_character() -> None:
    assert split_words("你好吗") == (["你", "好", "吗"], "")
    assert split_words("hello") == (["hello"], " ")
    found = corrupt("我很喜欢喝茶", "word_order", np.random.default_rng(5), keep_identical=False)
    assert found is not None
    assert sorted(found) == sorted("我很喜欢喝茶")
