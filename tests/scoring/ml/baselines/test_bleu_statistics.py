"""BLEU from statistics: by hand, against sacrebleu's and NLTK's smoothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu.metrics.bleu import BLEU

from scoring.ml.baselines.bleu_statistics import NLTK_SMOOTHING, SACREBLEU_SMOOTHING, Smoothing, bleu, orders_needed
from scoring.ml.text.ngrams import pair_matches, totals
from scoring.ml.text.tokens import sequence_table

sentence = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9)


def statistics(hyp: list[str], ref: list[str], order: int):
    table = sequence_table([hyp, ref])
    matches = next(pair_matches(table, [([0], [1])], order))[:, 0, 0]
    return matches, totals(table.lengths[:1], order)[:, 0], np.float64(len(hyp)), np.float64(len(ref))


def test_by_hand():
    # hyp "a b c d", ref "a b c e f": matches 3 2 1 0 of 4 3 2 1, BP = exp(1 - 5/4).
    matches, total = np.array([3.0, 2, 1, 0]), np.array([4.0, 3, 2, 1])
    value = bleu(matches, total, np.float64(4), np.float64(5), smoothing=Smoothing("exp"))
    assert value == pytest.approx(100 * math.exp(-0.25) * (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25, abs=1e-12)
    assert bleu(matches, total, np.float64(4), np.float64(5), smoothing=Smoothing("none")) == 0
    three = bleu(matches[:3], total[:3], np.float64(4), np.float64(4), order=3)
    assert three == pytest.approx(100 * 0.25 ** (1 / 3), abs=1e-12)


@pytest.mark.parametrize("effective", [True, False])
@pytest.mark.parametrize("smooth", SACREBLEU_SMOOTHING)
@given(hyp=sentence, ref=sentence, order=st.integers(1, 4))
@settings(max_examples=40)
def test_equals_sacrebleu(smooth, effective, hyp, ref, order):
    matches, total, hyp_len, ref_len = statistics(hyp, ref, order)
    expected = BLEU.compute_bleu(
        matches.tolist(), total.tolist(), len(hyp), len(ref),
        smooth_method=smooth, effective_order=effective, max_ngram_order=order,
    ).score  # fmt: skip
    value = bleu(matches, total, hyp_len, ref_len, order=order, smoothing=Smoothing(smooth), effective_order=effective)
    assert value == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("smooth", NLTK_SMOOTHING)
@given(hyp=sentence, ref=sentence, order=st.integers(2, 4))
@settings(max_examples=40)
def test_equals_nltk(smooth, hyp, ref, order):
    weights = (1 / order,) * order
    expected = sentence_bleu([ref], hyp, weights, smoothing_function=getattr(SmoothingFunction(), smooth))
    matches, total, hyp_len, ref_len = statistics(hyp, ref, orders_needed(order, smooth))
    value = bleu(matches, total, hyp_len, ref_len, order=order, smoothing=Smoothing(smooth))
    assert value == pytest.approx(100 * expected, abs=1e-9)


def test_empty_hypothesis_is_zero():
    zero = np.zeros(4)
    assert bleu(zero, zero, np.float64(0), np.float64(5)) == 0
