"""A segment: consecutive rows of a corpus in a folder of their own, never changed once written.

texts.jsonl     ["query", "response"] or ["query", "response", {meta}], a line a row
offsets.npy     where each line begins, and the end
digests.npy     BLAKE2b-64 of each pair, ascending; digest_rows.npy the rows they belong to
token_hashes, token_numbers, token_ends .npy, tokens.bin    the vocabulary, found by hash
query.*.npy, pair.*.npy    postings of the query's token sets, and of query and response together
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from retrieval.index.hits import Hit
from retrieval.index.postings import NONE, PARTS, Postings, RowScores, load

KINDS = ("query", "pair")
ARRAYS = ("offsets", "digests", "digest_rows", "token_hashes", "token_numbers", "token_ends")
FILES = (
    "texts.jsonl",
    "tokens.bin",
    *(f"{name}.npy" for name in ARRAYS),
    *(f"{kind}.{part}.npy" for kind in KINDS for part in PARTS),
)


def compute_digests(parts: Iterable[bytes]) -> npt.NDArray[np.uint64]:
    """Return a hash of 64 bits for each of `parts`, shape (n,)."""
    blake = hashlib.blake2b
    return np.frombuffer(b"".join([blake(part, digest_size=8).digest() for part in parts]), "<u8")


def is_pair(record: bytes, pair: bytes) -> bool:
    """Return whether the stored line `record` has this `pair` (see `encode_pair`), with any meta."""
    return record == pair or record.startswith(pair[:-1] + b",")


class Offsets(Protocol):
    def __getitem__(self, row: int, /) -> Any: ...


class Texts:
    """Lines of texts.jsonl by row. They are read instead of mapped: a search touches pages all over the file, which
    would count as memory of the process. Positional reads move no cursor, so threads can share it."""

    def __init__(self, file: int, offsets: Offsets) -> None:
        self._file, self._offsets = file, offsets

    def record(self, row: int) -> bytes:
        start, end = int(self._offsets[row]), int(self._offsets[row + 1])
        return os.pread(self._file, end - start - 1, start)


class Segment:
    """An open segment. `base` is the number of rows before it."""

    def __init__(self, folder: Path, rows: int, base: int) -> None:
        self.folder, self.rows, self.base = folder, rows, base
        arrays = {name: load(folder / f"{name}.npy") for name in ARRAYS}
        self.digests, self.digest_rows = arrays["digests"], arrays["digest_rows"]
        self._hashes, self._numbers, self._ends = (arrays[name] for name in ARRAYS[3:])
        self._postings = {kind: Postings(folder, kind) for kind in KINDS}
        self._tokens = os.open(folder / "tokens.bin", os.O_RDONLY)
        self._file = os.open(folder / "texts.jsonl", os.O_RDONLY)
        self.texts = Texts(self._file, arrays["offsets"])

    def close(self) -> None:
        os.close(self._file)
        os.close(self._tokens)

    def best(self, tokens: frozenset[str], k: int, floor: float) -> RowScores:
        rows, values = self._postings["query"].best(self._known(tokens), len(tokens), k, floor)
        return rows + self.base, values

    def containing(self, tokens: frozenset[str], k: int) -> RowScores:
        known = self._known(tokens)
        if len(known) < len(tokens):
            return NONE
        rows, values = self._postings["pair"].containing(known, k)
        return rows + self.base, values

    def hit(self, row: int, value: float) -> Hit:
        return Hit(row, value, *json.loads(self.texts.record(row - self.base).decode()))

    def records(self, start: int = 0) -> Iterator[bytes]:
        """Yield the lines from row `start` of the segment on, without line ends; also after the files were removed."""
        return map(self.texts.record, range(start, self.rows))

    def _known(self, tokens: frozenset[str]) -> list[int]:
        """Return the numbers of the tokens that occur, ascending."""
        written = [token.encode() for token in tokens]
        hashes = compute_digests(written)
        known = []
        for token, digest, place in zip(written, hashes, np.searchsorted(self._hashes, hashes).tolist(), strict=True):
            while place < len(self._hashes) and self._hashes[place] == digest:
                number = int(self._numbers[place])
                start = int(self._ends[number - 1]) if number else 0
                if os.pread(self._tokens, int(self._ends[number]) - start, start) == token:
                    known.append(number)
                    break
                place += 1
        return sorted(known)


def write_vocabulary(folder: Path, tokens: Iterable[str]) -> None:
    """Write `tokens`, given in the order of their numbers, into `folder`."""
    written = [token.encode() for token in tokens]
    hashes = compute_digests(written)
    order = np.argsort(hashes, kind="stable")
    np.save(folder / "token_hashes.npy", hashes[order])
    np.save(folder / "token_numbers.npy", order.astype(np.uint32))
    np.save(folder / "token_ends.npy", np.cumsum([len(token) for token in written], dtype=np.uint64))
    (folder / "tokens.bin").write_bytes(b"".join(written))


def encode_pair(query: str, response: str) -> bytes:
    """Return the line of the pair `query`, `response` without meta. Raises UnicodeEncodeError for an unpaired
    surrogate."""
    quoted: Any = json.encoder.encode_basestring
    return f"[{quoted(query)},{quoted(response)}]".encode()
