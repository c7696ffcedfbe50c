"""ROUGE-L against rouge-score, plain dynamic programming, and scripts that the package cannot read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from scoring.ml import Record, load
from scoring.ml.baselines.rouge_l import Subsequence

text = st.lists(
    st.sampled_from(["The", "cat", "sat,", "on", "a", "mat", "it's", "naïve", "3.5", "-"]), min_size=1, max_size=9
).map(" ".join)
tokens = st.lists(st.integers(0, 3), max_size=70)


def longest(one: list[int], two: list[int]) -> int:
    row = [0] * (len(two) + 1)
    for a in one:
        diagonal = 0
        for j, b in enumerate(two, start=1):
            diagonal, row[j] = row[j], diagonal + 1 if a == b else max(row[j], row[j - 1])
    return row[-1]


@given(one=tokens, two=tokens)
@settings(max_examples=200)
def test_subsequence_equals_dynamic_programming(one, two):
    assert Subsequence(one).length(two) == longest(one, two)


@given(hyp=text, refs=st.lists(text, min_size=1, max_size=3))
@settings(max_examples=100)
def test_equals_rouge_score(hyp, refs):
    expected = RougeScorer(["rougeL"]).score_multi(refs, hyp)["rougeL"].fmeasure
    evaluator = load("rouge-l")
    found = evaluator.score([Record(hyp, tuple(refs))])[0]
    if np.isnan(found):
        assert "miss most of" in evaluator.details.reasons[0]
    else:
        assert found == pytest.approx(expected, abs=1e-12)


def test_default_is_english_with_the_tokens_of_rouge_score():
    """rouge-score 0.1.2 ignores symbols: $5 is 5, and "+" is no token. Before version 0.2 they counted as words."""
    hyp, ref = "It costs $5 + tax.", "It costs 5 and tax"
    expected = RougeScorer(["rougeL"]).score(ref, hyp)["rougeL"].fmeasure
    english = load("rouge-l")
    assert english.score([Record(hyp, (ref,))])[0] == pytest.approx(expected, abs=1e-12) == 2 * 4 / (4 + 5)
    assert "|tok:rouge-score|" in english.signature
    assert "|tok:unicode|" in load("rouge-l", lang="de").signature
    # Six tokens, including "$" and "+"; four are shared with five.
    assert load("rouge-l", lang="de").score([Record(hyp, (ref,))])[0] == pytest.approx(2 * 4 / (6 + 5))


def test_by_hand_with_beta():
    # LCS("a b c d", "b x d") = 2: P = 2/4, R = 2/3.
    record = Record("a b c d", ("b x d",))
    assert load("rouge-l").score([record])[0] == pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3))
    weight = 1.2**2
    expected = (1 + weight) * 0.5 * (2 / 3) / (2 / 3 + weight * 0.5)
    assert load("rouge-l", beta=1.2).score([record])[0] == pytest.approx(expected)


@pytest.mark.parametrize("line", ["ฉันชอบกินข้าวผัด", "我喜欢喝茶。", "お茶が好き", "مرحبا بالعالم", "😀"])
def test_identical_text_in_any_script_is_one(line):
    assert load("rouge-l", lang="und").score([Record(line, (line,))])[0] == 1.0
    # English tokenization would drop it, which differs from a text that shares nothing with the reference.
    english = load("rouge-l")
    assert np.isnan(english.score([Record(line, (line,)), Record("tea", (line,))])).all()
    reasons = english.details.reasons
    assert ["reference" in reason for reason in reasons] == [False, True]
    assert all(way_out in reason for reason in reasons for way_out in ("`lang`", "tokenize=unicode"))


def test_different_thai_text_is_below_one():
    assert 0 < load("rouge-l", lang="th").score([Record("ฉันชอบชา", ("ฉันชอบกาแฟ",))])[0] < 1
