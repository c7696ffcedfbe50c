"""The smallest overlap that reaches a threshold, against fractions; searches are tested in test_embedded.py."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index.hits import jaccard
from retrieval.index.postings import _needed


@given(st.integers(1, 60), st.data())
def test_required_overlap_is_the_smallest_that_reaches_the_threshold(size, data):
    """For every length, with a threshold that is itself a value of the index, where one step too far loses ties."""
    known = data.draw(st.integers(1, size))
    other = data.draw(st.integers(1, 80))
    common = data.draw(st.integers(0, min(size, other)))
    threshold = Fraction(common, size + other - common)
    lengths = np.arange(1, 90)
    found = _needed(size, known, lengths, jaccard(common, size, other))
    for length, needed in zip(lengths.tolist(), found.tolist(), strict=True):
        most = min(known, length)
        enough = [i for i in range(1, most + 1) if Fraction(i, size + length - i) >= threshold]
        assert needed == enough[0] if enough else needed > most
