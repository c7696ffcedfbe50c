"""Writes a segment in bounded memory: removes duplicate pairs, counts tokens, writes the files."""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from retrieval.index.inversion import Forward, invert
from retrieval.index.segment import KINDS, Segment, Texts, compute_digests, encode_pair, is_pair, write_vocabulary
from retrieval.index.source import Reader
from retrieval.index.tokens import END, tokens_in_order

#: Maximum rows and characters of a batch.
BATCH_ROWS, BATCH_CHARACTERS = 1 << 15, 1 << 23
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class SegmentReport:
    """Counts of a written segment."""

    rows: int
    duplicates: int
    without_tokens: int


class SegmentWriter:
    """Writes a segment: `add` pairs, then `finish`. Duplicates of pairs in `before` (earlier segments) or in this
    one are left out."""

    def __init__(self, folder: Path, tokenizer: str, before: Sequence[Segment] = ()) -> None:
        self._folder, self._tokenizer = folder, tokenizer
        self._texts = (folder / "texts.jsonl").open("w+b")
        self._offsets = array("Q", [0])
        self._forward = {kind: Forward(folder / f"{kind}.forward") for kind in KINDS}
        self._vocabulary: defaultdict[str, int] = defaultdict()
        self._vocabulary.default_factory = self._vocabulary.__len__
        self._runs = [_Run(part.digests, part.digest_rows, part.texts) for part in before]
        self._own: list[_Run] = []
        self._duplicates = self._without = 0
        self._batch: dict[bytes, tuple[str, str, bytes]] = {}
        self._characters = 0

    def add(self, query: str, response: str, meta: dict[str, Any] | None) -> None:
        """Add a pair. Raises ValueError or TypeError for values that JSON or UTF-8 cannot represent."""
        pair = encode_pair(query, response)
        if pair in self._batch:
            self._duplicates += 1
            return
        record = pair
        if meta:
            record = pair[:-1] + b"," + json.dumps(meta, ensure_ascii=False, separators=(",", ":")).encode() + b"]"
        self._batch[pair] = (query, response, record)
        self._characters += len(pair)

    @property
    def is_full(self) -> bool:
        return len(self._batch) >= BATCH_ROWS or self._characters >= BATCH_CHARACTERS

    def flush(self) -> None:
        """Process the batch."""
        if not self._batch:
            return
        pairs = list(self._batch)
        digests = compute_digests(pairs)
        self._texts.flush()
        old = np.zeros(len(pairs), bool)
        for run in (*self._runs, *self._own):
            run.mark(digests, pairs, old)
        rows = [row for row, seen in zip(self._batch.values(), old.tolist(), strict=True) if not seen]
        self._duplicates += len(pairs) - len(rows)
        first = len(self._offsets) - 1
        self._remember(digests[~old], first)
        end = self._offsets[-1]
        for _, _, record in rows:
            end += len(record) + 1
            self._offsets.append(end)
        self._texts.write(b"".join([record + b"\n" for _, _, record in rows]))
        self._count([query for query, _, _ in rows], [response for _, response, _ in rows])
        self._batch, self._characters = {}, 0

    def _remember(self, digests: npt.NDArray[np.uint64], first: int) -> None:
        order = np.argsort(digests, kind="stable")
        texts = Texts(self._texts.fileno(), self._offsets)
        self._own.append(_Run(digests[order], (order + first).astype(np.uint32), texts))
        # Runs of similar size are merged, so that there are few of them and each row moves rarely.
        while len(self._own) > 1 and len(self._own[-2].digests) < 2 * len(self._own[-1].digests):
            last = self._own.pop()
            self._own[-1] = self._own[-1].joined(last)

    def _count(self, queries: list[str], responses: list[str]) -> None:
        query_keys, pair_keys = self._keys(queries), self._keys(responses)
        pair_keys = _distinct(np.concatenate((query_keys, pair_keys)))
        for kind, keys in zip(KINDS, (query_keys, pair_keys), strict=True):
            sizes = np.bincount((keys >> 32).astype(np.int64), minlength=len(queries))
            self._forward[kind].add(keys.astype(np.uint32), sizes)
            if kind == "query":
                self._without += int(np.count_nonzero(sizes == 0))

    def _keys(self, texts: list[str]) -> npt.NDArray[np.uint64]:
        """Return row << 32 | token number of the distinct tokens of each text, ascending."""
        in_order = tokens_in_order(texts, self._tokenizer)
        numbers = np.fromiter(map(self._vocabulary.__getitem__, in_order), np.int64, len(in_order))
        end = self._vocabulary[END]
        ends = numbers == end
        rows = np.cumsum(ends)
        keys = (rows.astype(np.uint64) << np.uint64(32)) | numbers.astype(np.uint64)
        return _distinct(keys[~ends])

    def finish(self, tick: Callable[[], None]) -> SegmentReport:
        self.flush()
        self._texts.close()
        rows = len(self._offsets) - 1
        np.save(self._folder / "offsets.npy", np.asarray(self._offsets, np.uint64))
        while len(self._own) > 1:
            last = self._own.pop()
            self._own[-1] = self._own[-1].joined(last)
        empty = np.empty(0, np.uint64)
        np.save(self._folder / "digests.npy", self._own[0].digests if self._own else empty)
        np.save(self._folder / "digest_rows.npy", self._own[0].rows if self._own else empty.astype(np.uint32))
        self._own, self._runs = [], []
        write_vocabulary(self._folder, self._vocabulary)
        size = len(self._vocabulary)
        self._vocabulary.clear()
        for kind, forward in self._forward.items():
            invert(self._folder, kind, *forward.close(), size, tick)
            forward.path.unlink()
        return SegmentReport(rows, self._duplicates, self._without)

    def abandon(self) -> None:
        self._texts.close()
        for forward in self._forward.values():
            forward.abandon()


def _distinct(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """np.unique by sorting: its hashing in NumPy 2.4 takes ten times as long."""
    keys.sort()
    new = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    return keys[new]


class _Run:
    """Sorted digests with their rows, and the texts that decide when digests are equal."""

    def __init__(self, digests: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32], texts: Texts) -> None:
        self.digests, self.rows, self.texts = digests, rows, texts

    def mark(self, digests: npt.NDArray[np.uint64], pairs: list[bytes], old: npt.NDArray[np.bool_]) -> None:
        """Set `old` for pairs that are in this run."""
        if not len(self.digests):
            return
        places = np.searchsorted(self.digests, digests)
        near = self.digests[np.minimum(places, len(self.digests) - 1)] == digests
        for number in np.flatnonzero(near & ~old).tolist():
            place = int(places[number])
            while place < len(self.digests) and self.digests[place] == digests[number]:
                if is_pair(self.texts.record(int(self.rows[place])), pairs[number]):
                    old[number] = True
                    break
                place += 1

    def joined(self, other: _Run) -> _Run:
        digests = np.concatenate((self.digests, other.digests))
        order = np.argsort(digests, kind="stable")
        return _Run(digests[order], np.concatenate((self.rows, other.rows))[order], self.texts)


def write_segment(
    folder: Path, pairs: Reader | Iterable[bytes], tokenizer: str, before: Sequence[Segment], progress: Progress | None
) -> SegmentReport:
    """Write a segment with the new `pairs` of a source, or of stored lines, into `folder`. `tokenizer` as in `tokens`;
    duplicates of pairs in the segments `before` are left out. An exception, also from `progress`, leaves no file
    open."""
    folder.mkdir(parents=True)
    writer = SegmentWriter(folder, tokenizer, before)
    done, total = 0, 0

    def tick() -> None:
        if progress is not None:
            progress(done, total)

    try:
        if isinstance(pairs, Reader):
            for place, query, response, meta in pairs:
                try:
                    writer.add(query, response, meta)
                except UnicodeEncodeError as error:
                    message = "holds half of a surrogate pair, which is no character; write the whole character"
                    raise pairs.fault(place, message) from error
                except (TypeError, ValueError) as error:
                    raise pairs.fault(place, f'"meta" cannot be written as JSON ({error})') from error
                if writer.is_full:
                    writer.flush()
                    done, total = pairs.done, pairs.total
                    tick()
            done, total = pairs.done, pairs.total
        else:
            for record in pairs:
                query, response, *rest = json.loads(record)
                writer.add(query, response, rest[0] if rest else None)
                if writer.is_full:
                    writer.flush()
                    tick()
        return writer.finish(tick)
    except BaseException:
        writer.abandon()
        raise
