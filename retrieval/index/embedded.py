"""The embedded index: a folder of segments and a manifest that lists the valid ones.

New segments are written next to the old ones; then manifest.json is replaced atomically. Readers that have old
segments open can still use them after the files were removed. There is one writer at a time."""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import time
import unicodedata
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

from evalapp.ops import disk
from retrieval.index.errors import IndexFormatError, IndexUnavailable
from retrieval.index.hits import Hit, take
from retrieval.index.postings import RowScores
from retrieval.index.segment import FILES, Segment
from retrieval.index.source import Reader, Source
from retrieval.index.tokens import check_tokenizer, choose_tokenizer, explain_unicode, tokens
from retrieval.index.writer import Progress, SegmentReport, write_segment

FORMAT = 1
MANIFEST = "manifest.json"
#: A segment is merged with the next one unless it is at least this many times as large.
MERGE_BELOW = 4


@dataclass(frozen=True)
class BuildReport:
    """Result of a build: `count` rows in the index, `added` by this call, `duplicates` left out; rows
    `without_tokens` in the query are stored but cannot be found by their query."""

    count: int
    added: int
    duplicates: int
    without_tokens: int
    seconds: float
    version: str


def build(
    source: Source,
    folder: str | os.PathLike[str],
    *,
    language: str = "en",
    tokenizer: str | None = None,
    progress: Progress | None = None,
) -> BuildReport:
    """Build an index in a folder. An existing index is replaced atomically at the end.

    `source` is a JSONL or JSONL.gz file with rows {"query", "response", "meta"?}, or an iterable of such rows.
    `language` is a code such as `en` and determines the tokenizer unless `tokenizer` (`words` or `characters`) is
    given. `progress(done, total)` gets bytes of a file, or rows (total 0) of an iterable; an exception that it raises
    stops the work.

    Raises `CorpusError` with file and line, `IndexUnavailable` while another build or append works on the folder.

        report = build([{"query": "How are you?", "response": "Fine."}], "folder", language="en")
        report.count  # 1
    """
    tokenizer = check_tokenizer(tokenizer or choose_tokenizer(language))
    place, began = Path(folder), time.perf_counter()
    with _writing(place):
        entry, written = _new_segment(place, Reader(source), tokenizer, (), progress)
        manifest = _manifest(language, tokenizer, [entry] if entry else [])
        _swap(place, manifest)
    return _built(manifest, written, began)


def append(folder: str | os.PathLike[str], source: Source, *, progress: Progress | None = None) -> BuildReport:
    """Add the pairs of `source` that the index in `folder` does not have yet; `progress` and errors as in `build`.
    Small segments at the end are merged."""
    place, began = Path(folder), time.perf_counter()
    read_manifest(place)
    with _writing(place):
        manifest = read_manifest(place)
        segments = _open_all(place, manifest)
        try:
            entry, written = _new_segment(place, Reader(source), manifest["tokenizer"], segments, progress)
        finally:
            for segment in segments:
                segment.close()
        if entry:
            entries = _merged(place, [*manifest["segments"], entry], manifest["tokenizer"], progress)
            # A single segment was tokenised just now; among several the older ones keep their Unicode version.
            known = manifest.get("unicode", "") if len(entries) > 1 else unicodedata.unidata_version
            manifest = _manifest(manifest["language"], manifest["tokenizer"], entries, known)
            _swap(place, manifest)
    return _built(manifest, written, began)


def _built(manifest: dict[str, Any], written: SegmentReport, began: float) -> BuildReport:
    seconds = time.perf_counter() - began
    counts = (manifest["count"], written.rows, written.duplicates, written.without_tokens)
    return BuildReport(*counts, seconds, manifest["version"])


class EmbeddedIndex:
    """An open index in a folder, see `retrieval.index.hits.Index`. Its content stays the same while open; threads
    may share it. If it was tokenised with another version of Unicode, searches work but emit a `UserWarning`."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        manifest, self._segments = _opened(self.folder)
        self.language: str = manifest["language"]
        self.tokenizer: str = manifest["tokenizer"]
        self.count: int = manifest["count"]
        self.version: str = manifest["version"]
        self._closed = False
        if note := explain_unicode(manifest.get("unicode", "")):
            warnings.warn(f"{self.folder}: {note}; build it again", stacklevel=2)

    def tokens(self, text: str) -> frozenset[str]:
        """Return the token set of `text`, by which texts are compared."""
        return tokens(text, self.tokenizer)

    def search(self, text: str, k: int = 100, *, distinct: bool = False, exclude: Collection[str] = ()) -> list[Hit]:
        """Return the best `k` rows by Jaccard similarity to `text`; `distinct` and `exclude` as in `hits.Index`."""
        wanted = self.tokens(text)
        if not wanted or k <= 0:
            return []
        first = 2 * k + len(exclude) if distinct or exclude else k
        return take(self._stream(wanted, first), k, distinct=distinct, exclude=exclude)

    def find(self, text: str, k: int = 20) -> list[Hit]:
        """Return the first `k` rows that contain every token of `text`; see `hits.Index`."""
        wanted = self.tokens(text)
        if not wanted or k <= 0:
            return []
        parts = [segment.containing(wanted, k) for segment in self._live()]
        return [self._hit(row, value) for row, value in _together(parts, k)]

    def rows(self, start: int = 0) -> Iterator[Hit]:
        """Yield every row from number `start` on, in order, with Jaccard 0, for loading another backend."""
        for segment in self._live():
            first = max(start - segment.base, 0)
            for row, record in enumerate(segment.records(first), segment.base + first):
                yield Hit(row, 0.0, *json.loads(record))

    def close(self) -> None:
        """Close the files."""
        if not self._closed:
            self._closed = True
            for segment in self._segments:
                segment.close()
            self._segments = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _live(self) -> list[Segment]:
        if self._closed:
            raise IndexUnavailable("The index was closed; open it again.")
        return self._segments

    def _stream(self, token_set: frozenset[str], first: int) -> Iterator[Hit]:
        """Yield all hits in order, searching `first` hits at a time, then four times as many: a search for n returns
        the beginning of a search for more."""
        size, given = first, 0
        while True:
            parts: list[RowScores] = []
            floor = 0.0
            for segment in self._live():
                rows, values = segment.best(token_set, size, floor)
                parts.append((rows, values))
                if len(values) >= size:
                    floor = max(floor, float(values[-1]))
            best = _together(parts, size)
            for row, value in best[given:]:
                yield self._hit(row, value)
            if len(best) < size:
                return
            size, given = 4 * size, len(best)

    def _hit(self, row: int, value: float) -> Hit:
        segment = next(part for part in reversed(self._live()) if part.base <= row)
        return segment.hit(row, value)


def _together(parts: Sequence[RowScores], k: int) -> list[tuple[int, float]]:
    """Return the best k of the hits of multiple segments."""
    if not parts:
        return []
    rows, values = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    order = np.lexsort((rows, -values))[:k]
    return list(zip(rows[order].tolist(), values[order].tolist(), strict=True))


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest of a folder: format, language, tokenizer, unicode, count, version, segments."""
    place = Path(folder)
    try:
        manifest = json.loads((place / MANIFEST).read_bytes())
    except FileNotFoundError as error:
        raise IndexFormatError(place, f"has no index ({MANIFEST} is missing); build one") from error
    except (OSError, ValueError) as error:
        raise IndexFormatError(place / MANIFEST, f"cannot be read ({error}); build the index again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        other = manifest.get("format") if isinstance(manifest, dict) else None
        raise IndexFormatError(place, f"is an index of format {other}, this program reads {FORMAT}; build it again")
    return manifest


def verify(folder: str | os.PathLike[str]) -> None:
    """Compare the checksum of every file in `folder`; raises `IndexFormatError` for the first that differs."""
    place = Path(folder)
    for entry in read_manifest(place)["segments"]:
        for name, facts in entry["files"].items():
            path = place / entry["name"] / name
            _check_size(path, facts)
            if _sha256(path) != facts["sha256"]:
                raise IndexFormatError(path, "does not have the content it was written with; build the index again")


def _opened(place: Path) -> tuple[dict[str, Any], list[Segment]]:
    """Open the segments; retry if a writer replaced them between reading the manifest and opening the files."""
    manifest = read_manifest(place)
    while True:
        try:
            return manifest, _open_all(place, manifest)
        except IndexFormatError:
            newer = read_manifest(place)
            if newer["version"] == manifest["version"] and newer["segments"] == manifest["segments"]:
                raise
            manifest = newer


def _open_all(place: Path, manifest: dict[str, Any]) -> list[Segment]:
    segments: list[Segment] = []
    base = 0
    try:
        for entry in manifest["segments"]:
            folder = place / entry["name"]
            for name, facts in entry["files"].items():
                _check_size(folder / name, facts)
            try:
                segments.append(Segment(folder, entry["rows"], base))
            except (OSError, ValueError) as error:
                raise IndexFormatError(folder, f"cannot be opened ({error}); build the index again") from error
            base += entry["rows"]
    except BaseException:
        for segment in segments:
            segment.close()
        raise
    return segments


def _check_size(path: Path, facts: dict[str, Any]) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise IndexFormatError(path, "is missing; build the index again") from error
    if size != facts["bytes"]:
        raise IndexFormatError(path, f"has {size:,} bytes instead of {facts['bytes']:,}; build the index again")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Hold the writer's lock, and afterwards remove files that the manifest does not name: replaced segments, or
    remains of a failed or killed writer."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise IndexUnavailable(f"Another build or append works on {place}; wait until it has ended.") from error
        try:
            yield
        finally:
            _tidy(place)


def _tidy(place: Path) -> None:
    named: set[str] = set()
    if (place / MANIFEST).exists():
        try:
            named = {entry["name"] for entry in read_manifest(place)["segments"]}
        except IndexFormatError:
            return  # It may belong to a newer version of the program.
    for folder in place.glob("segment-*"):
        if folder.name not in named:
            shutil.rmtree(folder, ignore_errors=True)


def _new_segment(
    place: Path, reader: Any, tokenizer: str, before: Sequence[Segment], progress: Progress | None
) -> tuple[dict[str, Any] | None, SegmentReport]:
    """Write a segment and return its entry of the manifest; None if it has no rows."""
    name = f"segment-{secrets.token_hex(8)}"
    written = write_segment(place / name, reader, tokenizer, before, progress)
    if not written.rows:
        return None, written
    files = {}
    for file in FILES:
        path = place / name / file
        with path.open("rb") as opened:
            os.fsync(opened.fileno())
        files[file] = {"bytes": path.stat().st_size, "sha256": _sha256(path)}
    disk.sync(place / name)
    return {"name": name, "rows": written.rows, "files": files}, written


def _merged(
    place: Path, entries: list[dict[str, Any]], tokenizer: str, progress: Progress | None
) -> list[dict[str, Any]]:
    """Return the entries with small segments at the end merged, so that there are at most about log4(rows)."""
    first, rows = len(entries) - 1, entries[-1]["rows"]
    while first and entries[first - 1]["rows"] < MERGE_BELOW * rows:
        first -= 1
        rows += entries[first]["rows"]
    if first == len(entries) - 1:
        return entries
    parts = _open_all(place, {"segments": entries[first:]})
    try:
        records = chain.from_iterable(part.records() for part in parts)
        entry, _ = _new_segment(place, records, tokenizer, (), progress)
    finally:
        for part in parts:
            part.close()
    return [*entries[:first], *([entry] if entry else [])]


def _manifest(
    language: str, tokenizer: str, segments: list[dict[str, Any]], known: str = unicodedata.unidata_version
) -> dict[str, Any]:
    """Return a manifest; `version` hashes the content: language, tokenizer and the checksums of all texts in order."""
    content = [language, tokenizer, *(entry["files"]["texts.jsonl"]["sha256"] for entry in segments)]
    return {
        "format": FORMAT,
        "language": language,
        "tokenizer": tokenizer,
        "unicode": known,
        "count": sum(entry["rows"] for entry in segments),
        "version": hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16],
        "segments": segments,
    }


def _swap(place: Path, manifest: dict[str, Any]) -> None:
    new = place / f"{MANIFEST}.new"
    with new.open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(place / MANIFEST)
    disk.sync(place)
