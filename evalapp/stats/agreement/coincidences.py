"""Table of coincidences (values given to the same unit) by counting, from long columns of few whole numbers.

No row is sorted, coded or paired; `krippendorff` computes alpha from the table. Of three methods the fastest
applicable one is used: kinds of units, counts packed into one number per unit, a table of units by values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray

# Sorting shorter columns is fast enough.
_ROWS = 1000
# Largest number of ratings per unit that is detected in sorted rows.
_MOST_EVEN = 20
# Largest number of sequences of values that are counted.
_MOST_KINDS = 1 << 18
# Slots of the hash table for packed counts, and an odd factor that spreads them.
_PLACE_BITS = 16
_PLACES, _HASH_FACTOR = 1 << _PLACE_BITS, 0x1E3779B97F4A7C15
# Bits of a unit's packed counts; below 2^53 sums of float64 are exact.
_PACKED_BITS, _EXACT = 48, 2.0**53
# Unit numbers may spread over this multiple of the rows; a table has at most this many cells per row.
_SPAN_SHARE, _TABLE_SHARE = 2, 8
# Largest value: sums of values times kinds stay exact.
_LARGEST = 2.0**30
# Rows and cells of a table of units by values that fit the cache.
_CACHED_ROWS, _CACHED_CELLS = 1 << 15, 1 << 18
# 1.5 * 2^52: added to a whole number, it leaves that number in the lowest bits.
_SHIFTER = 1.5 * 2.0**52
_EXPONENT_OF_ONE = 1023


class Coincidences(NamedTuple):
    """`table` (v, v): sum over units of c_x (c_y - [x = y]) / (m - 1), c the counts of the unit's m ratings by
    value; its margins count the ratings. `values` (v,) ascending, all used; `n_units` counts units with at least two
    ratings."""

    table: FloatArray
    values: FloatArray
    n_units: int


def count_coincidences(unit: NDArray[Any], value: NDArray[Any]) -> Coincidences | None:
    """Return coincidences of ratings `value` (n,) of `unit` (n,) in O(n).

    None unless units are whole numbers in a small range, values (float64) few whole numbers in a small range without
    missing ones, and rows many."""
    if unit.dtype.kind not in "iu" or value.dtype != np.float64 or len(unit) < _ROWS:
        return None
    low, high = _find_range(value)
    # nan as the range makes every comparison false.
    if not (high - low < _TABLE_SHARE * len(unit) and low > -_LARGEST and high < _LARGEST):
        return None
    width = int(high - low) + 1
    counts = _count_even_rows(unit, value, low, width)
    if counts is None:
        counts = _count_packed(unit, value, low, width) or _count_table(unit, value, low, width)
    if counts is None:
        return None
    table, n_units = counts
    occur = np.flatnonzero(table.sum(axis=1) > 0)
    return Coincidences(table[np.ix_(occur, occur)], low + occur.astype(np.float64), n_units)


def rows_per_unit(unit: NDArray[Any]) -> int:
    """Return the number of rows per unit if units ascend along the rows and all have the same number, from 2 to 20;
    else 0."""
    m = int(np.argmax(unit[: _MOST_EVEN + 1] != unit[0]))
    if m < 2 or len(unit) % m:
        return 0
    step = _CACHED_ROWS // m * m
    for begin in range(0, len(unit), step):
        part = unit[begin : begin + step]
        ends = part.reshape(-1, m)
        if begin and not part[0] > unit[begin - 1]:
            return 0
        if not ((part[1:] >= part[:-1]).all() and (ends[:, 0] == ends[:, -1]).all()):
            return 0
        if not (ends[1:, 0] > ends[:-1, 0]).all():
            return 0
    return m


def _find_range(value: FloatArray) -> tuple[float, float]:
    """Return the lowest and the highest value; nan if one is missing or not whole."""
    low, high = math.inf, -math.inf
    rounded, same = np.empty(_CACHED_ROWS), np.empty(_CACHED_ROWS, dtype=np.bool_)
    for begin in range(0, len(value), _CACHED_ROWS):
        part = value[begin : begin + _CACHED_ROWS]
        n = len(part)
        if not np.equal(np.rint(part, out=rounded[:n]), part, out=same[:n]).all():
            return math.nan, math.nan
        low, high = min(low, float(part.min())), max(high, float(part.max()))
    return low, high


def _count_even_rows(unit: NDArray[Any], value: FloatArray, low: float, width: int) -> tuple[FloatArray, int] | None:
    """Read each unit's values as the digits of a single number, its kind, so that one bincount counts all kinds."""
    most = min(_MOST_KINDS, len(unit))
    if width**2 > most:
        return None
    m = rows_per_unit(unit)
    if not m or width**m > most:
        return None
    powers = float(width) ** np.arange(m - 1, -1, -1)
    kind = value.reshape(-1, m) @ powers
    kind -= low * powers.sum()
    kinds = np.bincount(kind.astype(np.int64), minlength=width**m).astype(np.float64)
    # Counts of the values in every sequence of 1, 2, ... m - 1 digits.
    counts = [np.eye(width)]
    for _ in range(m - 2):
        counts.append((counts[-1][:, None, :] + counts[0]).reshape(-1, width))
    table = np.zeros((width, width))
    for heads in reversed(counts):
        # The last digit with all digits before it, then without it.
        ends = kinds.reshape(-1, width)
        table += heads.T @ ends
        kinds = ends.sum(axis=1)
    return (table + table.T) / (m - 1), len(value) // m


def _count_packed(unit: NDArray[Any], value: FloatArray, low: float, width: int) -> tuple[FloatArray, int] | None:
    """Add a power of two per rating to its unit's sum, whose bits then hold the counts of all values.

    A count that overflows its bits carries into the next one, which makes the total too small: then None."""
    first, last = _ends(unit)
    span = last - first + 1
    bits = (len(unit) // span + 1).bit_length()
    if span > _SPAN_SHARE * len(unit) or bits * width > _PACKED_BITS or abs(first) >= _EXACT:
        return None
    weights = _exponentiate(value, low, bits)
    packed = np.bincount(_from_zero(unit, first), weights=weights, minlength=span)
    highest = float(packed.max())
    if highest >= _EXACT:
        return None
    numbers, times = _alike(packed.astype(np.int64), highest)
    return _summed(_unpacked(numbers, times, bits, width), width, len(unit))


def _count_table(unit: NDArray[Any], value: FloatArray, low: float, width: int) -> tuple[FloatArray, int] | None:
    """Count with a table of units by values."""
    first, last = _ends(unit)
    span = last - first + 1
    if span * width > _TABLE_SHARE * len(unit) or abs(first) >= _EXACT:
        return None
    key = _from_zero(unit, first) * width
    key += (value - low).astype(np.int64)
    table = np.bincount(key, minlength=span * width).reshape(-1, width)
    step = max(_CACHED_CELLS // width, 1)
    ones = np.ones(step)
    parts = (table[begin : begin + step].T.astype(np.float64) for begin in range(0, span, step))
    return _summed(((part, ones[: part.shape[1]]) for part in parts), width, len(unit))


def _ends(unit: NDArray[Any]) -> tuple[int, int]:
    parts = [unit[begin : begin + _CACHED_ROWS] for begin in range(0, len(unit), _CACHED_ROWS)]
    ends = [(int(part.min()), int(part.max())) for part in parts]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _from_zero(unit: NDArray[Any], first: int) -> IntArray:
    whole = unit.astype(np.int64, copy=False)
    return whole - first if first else whole


def _exponentiate(value: FloatArray, low: float, bits: int) -> FloatArray:
    """Return 2^(bits (value - low)), written into the exponents."""
    result = np.empty_like(value)
    for begin in range(0, len(value), _CACHED_ROWS):
        part = result[begin : begin + _CACHED_ROWS]
        np.multiply(value[begin : begin + _CACHED_ROWS], bits, out=part)
        # The lowest bits are now those of the exponent, and the shift leaves nothing else.
        part += _SHIFTER + _EXPONENT_OF_ONE - bits * low
        exponent = part.view(np.int64)
        exponent <<= 52
    return result


def _alike(packed: IntArray, highest: float) -> tuple[IntArray, FloatArray]:
    """Return distinct numbers and the number of units with each. Numbers are hashed to slots; on a collision units
    are listed one by one, so a number may occur more than once."""
    if highest < _PLACES:
        counts = np.bincount(packed)
        numbers = np.flatnonzero(counts)
        return numbers, counts[numbers].astype(np.float64)
    place = ((packed * _HASH_FACTOR).view(np.uint64) >> np.uint64(64 - _PLACE_BITS)).view(np.int64)
    holder = np.zeros(_PLACES, dtype=np.int64)
    holder[place] = packed
    held = holder[place] == packed
    counts = np.bincount(place[held], minlength=_PLACES)
    taken = np.flatnonzero(counts)
    others = packed[~held]
    return np.concatenate([holder[taken], others]), np.concatenate([counts[taken], np.ones(len(others))])


def _unpacked(packed: IntArray, times: FloatArray, bits: int, width: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield counts (values, units) from their bits, and the number of identical units, block by block."""
    step = max(_CACHED_CELLS // width, 1)
    mask = (1 << bits) - 1
    for begin in range(0, len(packed), step):
        left = packed[begin : begin + step].copy()
        counts = np.empty((width, len(left)))
        # The last value takes the remaining bits, so that none is lost.
        for place in range(width - 1):
            counts[place] = left & mask
            left >>= bits
        counts[width - 1] = left
        yield counts, times[begin : begin + step]


def _summed(blocks: Iterator[tuple[FloatArray, FloatArray]], width: int, rows: int) -> tuple[FloatArray, int] | None:
    """Return coincidences of counts (values, units) in blocks, and the units with two ratings; None if rows are
    missing."""
    table, n_units, seen = np.zeros((width, width)), 0.0, 0.0
    diagonal = np.arange(width)
    for counts, times in blocks:
        size = counts.sum(axis=0)
        seen += float(size @ times)
        paired: BoolArray = size >= 2
        n_units += float(paired @ times)
        share = np.divide(times, size - 1, out=np.zeros(len(size)), where=paired)
        shared = counts * share
        table += shared @ counts.T
        table[diagonal, diagonal] -= shared.sum(axis=1)
    return (table, round(n_units)) if seen == rows else None
