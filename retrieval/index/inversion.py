"""Inverts token numbers of rows into the arrays of `retrieval.index.postings`, in bounded memory.

`Forward` writes the token numbers to a file; `invert` groups equal sets, numbers them by size and inverts the file,
a few million entries at a time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalapp.ops import disk

#: Entries inverted at once, and the share of sets above which a bitmap is smaller than a list.
AT_ONCE = 8 << 20
DENSE = 32

Numbers = npt.NDArray[np.uint32]


class Forward:
    """Token numbers of rows in a file, ascending within a row."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")
        self._sizes: list[Numbers] = []

    def add(self, numbers: Numbers, sizes: npt.NDArray[Any]) -> None:
        numbers.tofile(self._file)
        self._sizes.append(sizes.astype(np.uint32))

    def abandon(self) -> None:
        self._file.close()

    def close(self) -> tuple[Numbers, Numbers]:
        """Return all numbers (memory-mapped) and the size of each row."""
        self._file.close()
        sizes = np.concatenate(self._sizes) if self._sizes else np.empty(0, np.uint32)
        if not sizes.any():
            return np.empty(0, np.uint32), sizes
        return np.memmap(self.path, np.uint32, "r").view(np.ndarray), sizes


def invert(
    folder: Path, kind: str, numbers: Numbers, sizes: Numbers, vocabulary: int, tick: Callable[[], None]
) -> None:
    """Write the arrays of `kind` into `folder`, from the token `numbers` and the `sizes` of all rows and the size of
    the `vocabulary`. `tick` is called between steps and may stop the work by raising."""
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
    order, first = _grouped(numbers, starts, sizes)
    tick()
    members = order[first]  # of each set one row
    set_sizes = sizes[members]
    count, largest = len(members), int(set_sizes[-1]) if len(members) else 0
    np.save(folder / f"{kind}.sizes.npy", np.searchsorted(set_sizes, np.arange(largest + 2)).astype(np.uint32))
    np.save(folder / f"{kind}.rows.npy", order.astype(np.uint32))
    np.save(folder / f"{kind}.row_starts.npy", np.append(first, len(order)).astype(np.uint32))
    del order, first

    chunks = _chunks(set_sizes)
    holding = np.zeros(vocabulary, np.int64)
    for low, high in chunks:
        holding += np.bincount(_gathered(numbers, starts, sizes, members[low:high]), minlength=vocabulary)
        tick()
    is_dense = holding * DENSE > count
    dense = np.flatnonzero(is_dense)
    list_starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.where(is_dense, 0, holding))))
    np.save(folder / f"{kind}.dense.npy", dense.astype(np.uint32))
    np.save(folder / f"{kind}.starts.npy", list_starts.astype(np.uint64))
    lists = _new(folder / f"{kind}.lists.npy", np.uint32, (int(list_starts[-1]),))
    bitmaps = _new(folder / f"{kind}.bitmaps.npy", np.uint8, (len(dense), (count + 7) // 8))
    cursor = list_starts[:-1].copy()
    for low, high in chunks:
        _turn_round(numbers, starts, sizes, members, (low, high), is_dense, dense, cursor, lists, bitmaps)
        tick()
    for array in (lists, bitmaps):
        if isinstance(array, np.memmap):
            array.flush()
        else:
            np.save(folder / f"{kind}.{'lists' if array is lists else 'bitmaps'}.npy", array)


def _turn_round(
    numbers: Numbers, starts: npt.NDArray[Any], sizes: Numbers, members: npt.NDArray[Any], span: tuple[int, int],
    is_dense: npt.NDArray[np.bool_], dense: npt.NDArray[Any], cursor: npt.NDArray[Any], lists: npt.NDArray[Any],
    bitmaps: npt.NDArray[Any],
) -> None:  # fmt: skip
    """Write the sets of a span, which starts at a multiple of 8, into lists (from `cursor` on) and bitmaps."""
    from scipy.sparse import csr_array

    low, high = span
    mine = members[low:high]
    tokens = _gathered(numbers, starts, sizes, mine)
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes[mine], dtype=np.int64)))
    shape = (high - low, len(is_dense))
    # From rows to columns is a stable counting sort: the sets of a token come out in ascending order.
    columns = csr_array((np.ones(len(tokens), np.uint8), tokens.astype(np.int32), ends), shape=shape).tocsc()
    sets, edges = columns.indices, columns.indptr.astype(np.int64)
    each = np.diff(edges)
    for place, token in enumerate(dense.tolist()):
        flags = np.zeros(high - low, np.uint8)
        flags[sets[edges[token] : edges[token + 1]]] = 1
        bitmaps[place, low >> 3 : (high + 7) >> 3] = np.packbits(flags)
    listed = np.where(is_dense, 0, each)
    kept = np.repeat(~is_dense, each)
    shift = cursor - (np.cumsum(listed) - listed)
    lists[np.arange(int(listed.sum())) + np.repeat(shift, listed)] = sets[kept].astype(np.uint32) + np.uint32(low)
    cursor += listed


def _grouped(
    numbers: Numbers, starts: npt.NDArray[Any], sizes: Numbers
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return rows with tokens, ordered by set, and the start of each set: sets by ascending size, rows ascending
    within.

    Equal sets are found by a sum of random numbers per token and then compared. If two different sets ever have the
    same sum, other random numbers are drawn."""
    for salt in range(1, 100):
        sums = _sums(numbers, starts, salt)
        order = np.lexsort((sums, sizes)).astype(np.int64)
        order = order[int(np.count_nonzero(sizes == 0)) :]
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(sizes[order].astype(np.int64)) != 0) | (sums[order][1:] != sums[order][:-1])
        same = np.flatnonzero(~new)
        if _all_equal(numbers, starts, sizes, order[same - 1], order[same]):
            return order, np.flatnonzero(new)
    raise AssertionError("different sets had equal sums under 99 independent hash functions")


def _sums(numbers: Numbers, starts: npt.NDArray[Any], salt: int) -> npt.NDArray[np.uint64]:
    """Return for each row the sum, modulo 2**64, of the splitmix64 values of its numbers."""
    sums = np.zeros(len(starts) - 1, np.uint64)
    for low, high in _chunks(np.diff(starts)):
        part = numbers[starts[low] : starts[high]].astype(np.uint64)
        mixed = part * np.uint64(0x9E3779B97F4A7C15) + np.uint64((salt * 0xD1342543DE82EF95) % (1 << 64))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        whole = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)))
        edges = starts[low : high + 1] - starts[low]
        sums[low:high] = whole[edges[1:]] - whole[edges[:-1]]
    return sums


def _all_equal(
    numbers: Numbers, starts: npt.NDArray[Any], sizes: Numbers, one: npt.NDArray[Any], other: npt.NDArray[Any]
) -> bool:
    return all(
        np.array_equal(
            _gathered(numbers, starts, sizes, one[low:high]), _gathered(numbers, starts, sizes, other[low:high])
        )
        for low, high in _chunks(sizes[one])
    )


def _gathered(numbers: Numbers, starts: npt.NDArray[Any], sizes: Numbers, rows: npt.NDArray[Any]) -> Numbers:
    """Return the numbers of the rows, concatenated."""
    each = sizes[rows].astype(np.int64)
    return numbers[np.arange(int(each.sum())) + np.repeat(starts[rows] - (np.cumsum(each) - each), each)]


def _chunks(sizes: npt.NDArray[Any]) -> list[tuple[int, int]]:
    """Yield spans of rows of at most AT_ONCE entries (or one row), each starting at a multiple of 8."""
    ends = np.cumsum(sizes, dtype=np.int64)
    spans, low = [], 0
    while low < len(ends):
        before = int(ends[low - 1]) if low else 0
        high = int(np.searchsorted(ends, before + AT_ONCE, side="right"))
        high = len(ends) if high == len(ends) else max(high & ~7, low + 8)
        spans.append((low, min(high, len(ends))))
        low = high
    return spans


def _new(path: Path, kind: type[np.generic], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return a new memory-mapped array; an empty one cannot be mapped and is saved by the caller."""
    if 0 in shape:
        return np.zeros(shape, kind)
    made = np.lib.format.open_memmap(path, "w+", kind, shape)
    disk.allocate(path)
    return made
