"""Columns: refused input, and how codes and ties are made."""

from __future__ import annotations

import numpy as np
import pytest

from evalapp.stats.core.coding import ColumnError, encode, encode_pair, float_column, is_constant, parents, snap


@pytest.mark.parametrize(
    ("values", "length", "problem"),
    [
        (["one", "two"], None, "numbers are needed"),
        ([[1.0], [2.0]], None, "one dimension"),
        ([1.0, 2.0], 3, "3 values are needed, there are 2"),
    ],
)
def test_mismatched_column_is_refused_by_name(values, length, problem):
    with pytest.raises(ColumnError, match=problem) as caught:
        float_column(values, "metric", length)
    assert caught.value.column == "metric"


def test_none_is_missing():
    assert np.isnan(float_column([1, None], "metric")[1])


def test_codes_map_back_to_the_labels():
    codes, labels = encode(["b", "a", "b"], "system")
    assert labels[codes].tolist() == ["b", "a", "b"]
    assert codes.dtype == np.int64


def test_missing_identifier_is_refused():
    with pytest.raises(ColumnError, match="missing"):
        encode([1.0, float("nan")], "item")


def test_pairs_get_codes_and_first_rows():
    codes, first = encode_pair(np.array([1, 0, 1]), np.array([0, 2, 0]), 3)
    assert codes.tolist() == [1, 0, 1]
    assert first.tolist() == [1, 0]


def test_item_in_two_clusters_is_refused():
    assert parents(np.array([0, 1, 0]), np.array([5, 6, 5]), 2, "cluster").tolist() == [5, 6]
    with pytest.raises(ColumnError, match="one cluster"):
        parents(np.array([0, 0]), np.array([5, 6]), 1, "cluster")


def test_rounding_neither_breaks_ties_nor_makes_constants_vary():
    noisy = np.array([0.1 + 0.2, 0.3, 0.3])
    assert len(np.unique(noisy)) == 2
    assert len(np.unique(snap(noisy))) == 1
    assert is_constant(noisy)
    assert not is_constant(np.array([0.3, 0.3 + 1e-9]))
    assert snap(np.array([])).size == 0


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint16, np.float64])
def test_long_integer_columns_are_coded_as_by_sorting(dtype):
    column = (np.random.default_rng(0).integers(3, 40, 5000) * 2).astype(dtype)
    codes, labels = encode(column, "unit")
    expected, places = np.unique(column, return_inverse=True)
    assert labels.dtype == column.dtype
    assert np.array_equal(labels, expected)
    assert np.array_equal(codes, places)
    halves = column.astype(np.float64) + 0.5
    assert np.array_equal(encode(halves, "unit")[1], np.unique(halves))
    far = np.append(column.astype(np.float64), 1e300)
    assert np.array_equal(encode(far, "unit")[1], np.unique(far))


def test_long_columns_of_strings_are_coded_like_short_ones():
    rng = np.random.default_rng(3)
    names = np.array(["ü", "system-10", "system-9", "", "zhang", "Z", "a\U0001f600"])
    column = names[rng.integers(len(names), size=5000)]
    codes, labels = encode(column, "system")
    theirs, places = np.unique(column, return_inverse=True)
    assert labels.tolist() == theirs.tolist()
    assert np.array_equal(codes, places)
