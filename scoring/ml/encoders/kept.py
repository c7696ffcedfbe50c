"""Vectors of a frozen encoder, computed once for all texts of a training and kept in a memory-mapped file.

The file grows in blocks of texts of similar length; an interrupted training continues with the next block. A second
file in the same folder, for example of another fold, copies the vectors that the first one has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from evalapp.ops import disk
from scoring.ml.encoders.frozen import VectorEncoder
from scoring.ml.encodings import Encodings
from scoring.ml.training.store import write_json

Floats: TypeAlias = npt.NDArray[np.floating]
Tick: TypeAlias = Callable[[int, int], object]
#: Texts in a block of the file, the most that an interrupted training loses.
CPU_BLOCK, GPU_BLOCK = 512, 8192


def cached_vectors(
    encoder: VectorEncoder, encodings: Encodings, folder: Path, dtype: Literal["fp16", "fp32"], tick: Tick
) -> Floats:
    """Return (texts, width) vectors of the `encodings` as a read-only memory-mapped file in `folder`.

    Vectors that an earlier call computed are read again; others are computed by `encoder` and stored as `dtype`. The
    file name depends on token numbers, encoder, pooling and number format. A new file copies vectors of texts that are
    in a finished file with the same encoder, pooling and format. `tick(done, total)` counts texts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made_by = hashlib.sha256(f"{encoder.source.weights}:{encoder.kept_as}:{dtype}".encode())
    kind = made_by.hexdigest()[:12]
    made_by.update(encodings.ids.tobytes() + encodings.lengths.tobytes())
    if encodings.type_ids is not None and encodings.type_ids.any():
        made_by.update(encodings.type_ids.tobytes())
    path = folder / f"vectors-{kind}-{made_by.hexdigest()[:16]}.npy"
    state = path.with_suffix(".json")
    begun = path.is_file() and state.is_file()
    progress = json.loads(state.read_text(encoding="utf-8")) if begun else {"texts": 0, "finished": False}
    if progress["finished"]:
        return np.load(path, mmap_mode="r")
    shape = (len(encodings), encoder.source.width)
    number = np.dtype(np.float16 if dtype == "fp16" else np.float32)
    memmap = np.lib.format.open_memmap(path, mode="r+" if begun else "w+", dtype=number, shape=shape)
    disk.allocate(path)
    keys = _keys(encodings)
    # Decided once and stored: further files may be finished before this one is continued.
    kept = path.with_suffix(".keys.npy")
    if begun:
        known = np.load(kept)["known"]
    else:
        known = _take_over(memmap, keys, sorted(folder.glob(f"vectors-{kind}-*.json")), path)
        memmap.flush()
        _save_keys(kept, keys, known)
    block = CPU_BLOCK if encoder.engine.device == "cpu" else GPU_BLOCK
    order = np.argsort(-encodings.lengths, kind="stable")
    order = order[~known[order]]
    done = int(progress["texts"])
    while done < len(order):
        places = order[done : done + block]
        inside = 0
        for rows, vectors in encoder.batches(encodings.take(places)):
            memmap[places[rows]] = vectors
            inside += len(rows)
            tick(done + inside, len(order))
        memmap.flush()
        done += len(places)
        write_json(state, {"texts": done, "finished": False})
    write_json(state, {"texts": done, "finished": True})
    del memmap
    return np.load(path, mmap_mode="r")


_KEY = np.dtype([("key", "V16"), ("known", np.bool_)])


def _keys(encodings: Encodings) -> list[bytes]:
    """Keys that differ between texts: token numbers, and for pairs the side of each token."""
    ends = np.cumsum(encodings.lengths)
    ids = np.ascontiguousarray(encodings.ids)
    sides = encodings.type_ids
    bounds = zip((ends - encodings.lengths).tolist(), ends.tolist(), strict=True)
    result = []
    for start, end in bounds:
        key = hashlib.blake2b(ids[start:end].tobytes(), digest_size=16)
        if sides is not None and sides[start:end].any():
            key.update(sides[start:end].tobytes())
        result.append(key.digest())
    return result


def _save_keys(path: Path, keys: Sequence[bytes], known: npt.NDArray[np.bool_]) -> None:
    table = np.empty(len(keys), dtype=_KEY)
    table["key"], table["known"] = np.frombuffer(b"".join(keys), dtype="V16"), known
    np.save(path, table)


def _take_over(vectors: Floats, keys: Sequence[bytes], states: Sequence[Path], own: Path) -> npt.NDArray[np.bool_]:
    """Copy vectors from finished files; returns which ones."""
    known = np.zeros(len(keys), dtype=np.bool_)
    for state in states:
        path = state.with_suffix(".npy")
        if path == own or not json.loads(state.read_text(encoding="utf-8"))["finished"]:
            continue
        place = {key: row for row, key in enumerate(np.load(state.with_suffix(".keys.npy"))["key"].tolist())}
        rows = [(row, place[key]) for row, key in enumerate(keys) if not known[row] and key in place]
        if rows:
            here, there = np.array(rows).T
            vectors[here] = np.load(path, mmap_mode="r")[there]
            known[here] = True
    return known
