"""Tokenised inputs in arrays behave like a list and can be indexed, joined and compared."""

from __future__ import annotations

import numpy as np

from scoring.ml.encodings import Encoding, Encodings, ragged_places

ROWS = [Encoding((5, 6, 7), (0, 0, 1)), Encoding((8,), (1,)), Encoding((5, 6, 7), (0, 1, 1)), Encoding((8,), (1,))]


def test_behaves_like_a_list():
    found = Encodings.of(ROWS)
    assert list(found) == ROWS
    assert found[-1] == ROWS[-1]
    assert list(found[1:3]) == ROWS[1:3]
    assert found == ROWS
    assert found != ROWS[:2]
    assert (len(found), found.n_tokens) == (4, 8)
    assert found.lengths.tolist() == [3, 1, 3, 1]
    assert Encodings.of(found) is found


def test_take_and_join():
    found = Encodings.of(ROWS)
    assert list(found.take([2, 0])) == [ROWS[2], ROWS[0]]
    assert list(Encodings.join([found[:1], found[1:]])) == ROWS
    assert len(Encodings.join([])) == 0
    assert len(Encodings.of([])) == 0


def test_distinct_distinguishes_token_types():
    unique, places = Encodings.of(ROWS).distinct()
    assert list(unique) == ROWS[:3]
    assert places.tolist() == [0, 1, 2, 1]
    plain = Encodings.of([Encoding((1, 2)), Encoding((1,)), Encoding((2,)), Encoding((1, 2))])
    unique, places = plain.distinct()
    assert [e.ids for e in unique] == [(1, 2), (1,), (2,)]
    assert places.tolist() == [0, 1, 2, 0]


def test_token_takes_five_bytes():
    found = Encodings.of(ROWS)
    assert (found.ids.itemsize, found.type_ids.itemsize) == (4, 1)


def test_ragged_places():
    assert ragged_places(np.array([7, 0, 3]), np.array([2, 0, 3])).tolist() == [7, 8, 3, 4, 5]
    assert ragged_places(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).tolist() == []
