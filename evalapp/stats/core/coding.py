"""Checks columns of long-form data and codes them as float vectors and small integers."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)

VERDICTS = ("a", "b", "tie", "both_bad", "cannot_decide")

# Two floats closer than this share of the larger one differ only by rounding.
ROUNDING = 1e-12

# Shorter columns are sorted: counting does not pay off.
_SORTED_ROWS = 1000
# An odd factor spreads the characters over the 64 bits.
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
# Whole numbers up to here are exact in float64.
_EXACT = 2.0**53


class ColumnError(ValueError):
    """Raised for a column that cannot be used; has `column` and `problem`."""

    def __init__(self, column: str, problem: str) -> None:
        self.column = column
        self.problem = problem
        super().__init__(f"column '{column}': {problem}")


def float_column(values: ArrayLike, name: str, length: int | None = None) -> FloatArray:
    """Return `values` as a float vector; None becomes nan.

    Raises `ColumnError` for another shape, length or type."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ColumnError(name, f"numbers are needed ({error})") from error
    return _shaped(column, name, length)


def identifiers(values: ArrayLike, name: str, length: int | None = None) -> NDArray[Any]:
    """Return `values` as a vector of integers or strings.

    Raises `ColumnError` for another shape or length."""
    return _shaped(np.asarray(values), name, length)


def encode(values: ArrayLike, name: str, length: int | None = None) -> tuple[IntArray, NDArray[Any]]:
    """Return codes 0..k-1 and the k sorted labels of a column of integers or strings; `labels[codes]` is the column."""
    column = identifiers(values, name, length)
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise ColumnError(name, "an identifier is missing (nan)")
    small = _small_integers(column)
    if small is not None:
        return small[0], small[1].astype(column.dtype, copy=False)
    hashed = _hashed_strings(column)
    if hashed is not None:
        return hashed
    labels, codes = np.unique(column, return_inverse=True)
    return codes.astype(np.int64, copy=False).reshape(-1), labels


def _small_integers(column: NDArray[Any]) -> tuple[IntArray, IntArray] | None:
    """`encode` by counting instead of sorting, for whole numbers in a small range; None for others."""
    if column.dtype.kind not in "iuf" or len(column) < _SORTED_ROWS:
        return None
    low, high = column.min(), column.max()
    if not (abs(float(low)) < _EXACT and abs(float(high)) < _EXACT and float(high) - float(low) <= 2 * len(column)):
        return None
    whole = column.astype(np.int64)
    if column.dtype.kind == "f" and not np.array_equal(whole, column):
        return None
    if low:
        whole = whole - int(low)
    counts = np.bincount(whole)
    result = np.flatnonzero(counts)
    if len(result) < len(counts):
        place = np.zeros(len(counts), dtype=np.int64)
        place[result] = np.arange(len(result))
        whole = place[whole]
    return whole, result + int(low)


def _hashed_strings(column: NDArray[Any]) -> tuple[IntArray, NDArray[Any]] | None:
    """`encode` by sorting a hash of each string instead of the strings; None for other types or on a collision."""
    if column.dtype.kind != "U" or len(column) < _SORTED_ROWS or not column.dtype.itemsize:
        return None
    characters = np.ascontiguousarray(column).view(np.uint32).reshape(len(column), -1)
    numbers = np.zeros(len(column), dtype=np.uint64)
    for place in range(characters.shape[1]):
        numbers *= _HASH_FACTOR
        numbers += characters[:, place]
    _, rows, codes = np.unique(numbers, return_index=True, return_inverse=True)
    labels = column[rows]
    order = np.argsort(labels, kind="stable")
    place_of = np.empty(len(order), dtype=np.int64)
    place_of[order] = np.arange(len(order))
    labels, result = labels[order], place_of[codes.reshape(-1)]
    return (result, labels) if np.array_equal(labels[result], column) else None


def verdict_codes(verdict: ArrayLike) -> IntArray:
    """Return positions in `VERDICTS` of a column of verdicts.

    Raises `ColumnError` naming an unknown verdict."""
    column = identifiers(verdict, "verdict")
    if len(column) == 0:
        return np.empty(0, dtype=np.int64)
    codes, labels = encode(column.astype(str), "verdict")
    unknown = [str(label) for label in labels if str(label) not in VERDICTS]
    if unknown:
        raise ColumnError("verdict", f"'{unknown[0]}' is none of {', '.join(VERDICTS)}")
    return np.array([VERDICTS.index(str(label)) for label in labels], dtype=np.int64)[codes]


def encode_pair(first: IntArray, second: IntArray, n_second: int) -> tuple[IntArray, IntArray]:
    """Return codes of the pairs (first, second), and for each code the row of its first occurrence.

    `first`, `second`: (n,) codes; `n_second`: number of codes of the second column."""
    _, rows, codes = np.unique(first * max(n_second, 1) + second, return_index=True, return_inverse=True)
    return codes.astype(np.int64, copy=False).reshape(-1), rows.astype(np.int64, copy=False)


def parents(child: IntArray, parent: IntArray, n_children: int, name: str) -> IntArray:
    """Return the parent code of every child.

    Raises `ColumnError` if a child has two parents (an item in two clusters)."""
    of = np.zeros(n_children, dtype=np.int64)
    of[child] = parent
    if not np.array_equal(of[child], parent):
        raise ColumnError(name, "one item has two values here; an item belongs to one cluster")
    return of


def is_constant(values: FloatArray) -> bool:
    """Return whether all values are equal up to rounding (1e-12 of the largest)."""
    low, high = float(values.min()), float(values.max())
    return low == high or high - low <= ROUNDING * max(abs(low), abs(high))


def snap(values: FloatArray) -> FloatArray:
    """Return `values` rounded at 1e-12 of the largest magnitude along the last axis, so that rounding breaks no
    ties."""
    if values.size == 0:
        return values
    scale = np.nanmax(np.abs(values), axis=-1, keepdims=True, initial=0.0)
    scale = np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
    return np.asarray(np.round(values / scale, 12) * scale, dtype=np.float64)


def _shaped(column: NDArray[T], name: str, length: int | None) -> NDArray[T]:
    if column.ndim != 1:
        raise ColumnError(name, f"one dimension is needed, there are {column.ndim}")
    if length is not None and len(column) != length:
        raise ColumnError(name, f"{length} values are needed, there are {len(column)}")
    return column
