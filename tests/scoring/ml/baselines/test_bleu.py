"""BLEU-1 to 4, average and corpus BLEU against sacrebleu and NLTK."""

from __future__ import annotations

import random

import numpy as np
import pytest
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu.metrics.bleu import BLEU

from scoring.ml import Record, load
from scoring.ml.text.tokens import tokenize

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    ",",
    "sat",
    "ran",
    ".",
    "on",
    "under",
    "mat",
    "tree",
    "it's",
    "$3.50",
    "very",
    "quickly",
    "(maybe)",
    "He",
    "said:",
    "yes!",
]


def make_records(n: int = 60, seed: int = 4) -> list[Record]:
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 12)))

    return [Record(text(), tuple(text() for _ in range(rng.randint(1, 4)))) for _ in range(n)]


RECORDS = make_records()


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("options", [{}, {"smooth": "floor"}, {"smooth": "add-k"}, {"lowercase": True}])
def test_sentence_bleu_equals_sacrebleu(order, options):
    peer = BLEU(
        max_ngram_order=order,
        effective_order=True,
        smooth_method=options.get("smooth", "exp"),
        lowercase=options.get("lowercase", False),
    )
    expected = [peer.sentence_score(r.text, list(r.references)).score for r in RECORDS]
    np.testing.assert_allclose(load(f"bleu-{order}", **options).score(RECORDS), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("smooth", ["method1", "method3", "method7"])
def test_sentence_bleu_equals_nltk(order, smooth):
    function, weights = getattr(SmoothingFunction(), smooth), (1 / order,) * order
    expected = [
        100 * sentence_bleu([tokenize(ref, "13a") for ref in r.references], tokenize(r.text, "13a"), weights, function)
        for r in RECORDS
    ]
    np.testing.assert_allclose(load(f"bleu-{order}", smooth=smooth).score(RECORDS), expected, rtol=0, atol=1e-9)


def test_average_is_the_mean_of_two_three_four():
    parts = [load(f"bleu-{n}").score(RECORDS) for n in (2, 3, 4)]
    np.testing.assert_allclose(load("bleu-avg").score(RECORDS), np.mean(parts, axis=0), atol=1e-12)


def test_corpus_bleu_equals_sacrebleu():
    most = max(len(r.references) for r in RECORDS)
    references = [[r.references[n] if n < len(r.references) else None for r in RECORDS] for n in range(most)]
    expected = BLEU(force=True).corpus_score([r.text for r in RECORDS], references).score
    assert load("bleu-corpus").system_score(RECORDS) == pytest.approx(expected, abs=1e-9)


def test_corpus_bleu_of_one_text_is_its_sentence_bleu():
    np.testing.assert_array_equal(load("bleu-corpus").score(RECORDS), load("bleu-4").score(RECORDS))


def test_closest_reference_length_prefers_the_shorter():
    # Text of 4 tokens, references of 3 and 5: equally close, 3 is used, so there is no brevity penalty.
    record = Record("a b c d", ("a b c", "a b c d e"))
    assert load("bleu-4").score([record])[0] == pytest.approx(100, abs=1e-12)
    assert load("bleu-4").score([Record("a b c d", ("a b c d e",))])[0] == pytest.approx(100 * np.exp(-0.25), abs=1e-9)


def test_matches_are_clipped_by_the_largest_count():
    # Papineni et al. 2002: seven "the" against references with two and one: 2/7.
    record = Record("the the the the the the the", ("the cat is on the mat", "there is a cat on the mat"))
    assert load("bleu-1").score([record])[0] == pytest.approx(100 * 2 / 7, abs=1e-12)
