"""Ordering by floats equals ordering by fractions, and the traversal to k distinct responses."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index.hits import Hit, jaccard, make_response_key, take

SIZES = st.integers(1, 40) | st.integers(1, (1 << 25) - 1)


@st.composite
def overlaps(draw):
    one, other = draw(SIZES), draw(SIZES)
    return draw(st.integers(0, min(one, other))), one, other


@given(overlaps(), overlaps())
def test_floats_compare_like_the_fractions(first, second):
    exact = [Fraction(common, one + other - common) for common, one, other in (first, second)]
    floats = [jaccard(*first), jaccard(*second)]
    assert (floats[0] < floats[1], floats[0] == floats[1]) == (exact[0] < exact[1], exact[0] == exact[1])


@given(st.integers(1, 1 << 25), st.integers(1, 1 << 25))
def test_neighbouring_fractions_remain_distinct(common, more):
    """The closest pairs of fractions: a / b and (a + 1) / (b + 1) or a / (b + 1), with b near the bound."""
    union = min(common + more, (1 << 26) - 2)
    if common < union:
        assert common / (union + 1) < common / union < (common + 1) / (union + 1)


def test_empty_texts_have_no_similarity():
    assert jaccard(0, 0, 0) == 0.0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Yes.", "  yes. \n", True),
        ("STRASSE", "straße", True),
        ("ＯＫ", "ok", True),
        ("a  b", "a b", True),
        ("a", "b", False),
    ],
)
def test_when_two_responses_are_the_same(one, other, same):
    assert (make_response_key(one) == make_response_key(other)) is same


def test_stream_is_read_no_further_than_needed():
    read = []

    def stream():
        for row, response in enumerate(["a", "A", "b", "c", "d"]):
            read.append(row)
            yield Hit(row, 1.0, "q", response)

    assert [hit.row for hit in take(stream(), 2)] == [0, 1]
    assert [hit.row for hit in take(stream(), 2, distinct=True)] == [0, 2]
    assert read == [0, 1, 0, 1, 2]
    assert [hit.row for hit in take(stream(), 2, exclude=[" B "])] == [0, 1]
    assert [hit.row for hit in take(stream(), 9, distinct=True, exclude=["B", "x"])] == [0, 3, 4]
    assert take(stream(), 0) == take(stream(), -1) == take([], 5) == []
