"""One frozen vector per text: computed once for all texts of a training and kept in a memory-mapped file.

The file grows by blocks of like length; a training that was cut off goes on with the block it had reached. A second
file in the same folder takes over what the first one has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from scoring.ml.encoders.forward import first_vectors, token_vectors
from scoring.ml.encoders.loading import load_model
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.encodings import Encodings, Ints, Tokenized, ragged_places
from scoring.ml.engine import Batch, Dtype, Engine
from scoring.ml.training.store import write_json

Pooling: TypeAlias = Literal["cls", "mean"]
Floats: TypeAlias = npt.NDArray[np.floating]
Tick: TypeAlias = Callable[[int, int], object]
#: Texts in a block of the file: what is lost at most when a training is cut off.
CPU_BLOCK, GPU_BLOCK = 512, 8192


class UtteranceEncoder:
    """A frozen encoder that makes one vector of a text: its class token's, or the mean over all of its tokens."""

    def __init__(
        self,
        source: EncoderSource,
        *,
        pooling: Pooling = "mean",
        max_length: int | None = None,
        dtype: Dtype = "fp32",
        device: str = "auto",
        batch_tokens: int | None = None,
    ) -> None:
        self.source, self.pooling, self.dtype = source, pooling, dtype
        self.tokenizing = PairTokenizer(source, max_length=max_length)
        self._device, self._batch_tokens = device, batch_tokens

    @cached_property
    def engine(self) -> Engine:
        """The engine all batches go through."""
        return Engine(device=self._device, batch_tokens=self._batch_tokens, pad_id=self.tokenizing.pad_id)

    @cached_property
    def model(self) -> torch.nn.Module:
        """The encoder on the engine's device."""
        model: torch.nn.Module = load_model(self.source, dtype=self.dtype)
        return model.to(self.engine.device)

    def tokenize(self, texts: Sequence[str], left: Sequence[bool] | None = None) -> Tokenized:
        """Token numbers; long texts lose their end, or their beginning where `left`."""
        if left is None or not any(left):
            return self.tokenizing.texts(texts)
        return self.tokenizing.texts(texts, cut=["left" if from_left else "right" for from_left in left])

    def vectors(self, encodings: Encodings, tick: Tick = lambda done, total: None) -> npt.NDArray[np.float32]:
        """(texts, width) in the order of the inputs. `tick(done, total)` after each batch."""
        found = np.zeros((len(encodings), self.source.width), dtype=np.float32)
        done = 0
        for rows, vectors in self.batches(encodings):
            found[rows] = vectors
            done += len(rows)
            tick(done, len(encodings))
        return found

    def batches(self, encodings: Encodings) -> Iterator[tuple[Ints, npt.NDArray[np.float32]]]:
        """Rows and vectors of each batch."""
        for rows, vectors in self.engine.batches(encodings, self._pooled):
            yield rows, vectors.float().cpu().numpy()

    def _pooled(self, batch: Batch) -> torch.Tensor:
        if self.pooling == "cls":
            return first_vectors(self.model, batch)
        hidden = token_vectors(self.model, batch)
        lengths = torch.from_numpy(batch.lengths).to(hidden.device)
        owner = torch.repeat_interleave(torch.arange(len(lengths), device=hidden.device), lengths)
        sums = torch.zeros((len(lengths), hidden.shape[1]), dtype=torch.float32, device=hidden.device)
        return sums.index_add_(0, owner, hidden.float()) / lengths[:, None]


def pad_contexts(encodings: Encodings, rows: Ints, starts: Ints, lengths: Ints, pad_id: int) -> tuple[Encodings, Ints]:
    """Turns padded to the longest of their context, as the released MAUDE feeds them: padding counts as text.

    Context i owns `lengths[i]` of `rows` from `starts[i]`. Returns the distinct padded turns behind the encodings
    given, and for every turn of every context, end to end, its row among them.
    """
    flat = rows[ragged_places(starts, lengths)]
    begins = np.cumsum(lengths) - lengths
    sizes = encodings.lengths[flat]
    target = np.repeat(np.maximum.reduceat(sizes, begins), lengths) if len(flat) else sizes
    scale = int(encodings.lengths.max()) + 1 if len(encodings) else 1
    distinct, places = np.unique(flat * scale + target, return_inverse=True)
    source, wanted = distinct // scale, distinct % scale
    chosen = encodings.take(source)
    ids = np.full(int(wanted.sum()), pad_id, dtype=np.int32)
    types = None if chosen.type_ids is None else np.zeros(len(ids), dtype=np.int8)
    filled = ragged_places(np.cumsum(wanted) - wanted, chosen.lengths)
    ids[filled] = chosen.ids
    if types is not None and chosen.type_ids is not None:
        types[filled] = chosen.type_ids
    return Encodings.join([encodings, Encodings(ids, wanted, types)]), places + len(encodings)


def cached_vectors(
    encoder: UtteranceEncoder, encodings: Encodings, folder: Path, dtype: Literal["fp16", "fp32"], tick: Tick
) -> Floats:
    """(texts, width) as a memory-mapped file of `folder`, read-only; what another run computed there is kept.

    The file's name says what it depends on: token numbers, encoder, pooling, number format. A new file takes the
    vectors of texts that stand in a finished one of the same encoder, pooling and format.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made_by = hashlib.sha256(f"{encoder.source.weights}:{encoder.pooling}:{encoder.dtype}:{dtype}".encode())
    kind = made_by.hexdigest()[:12]
    made_by.update(encodings.ids.tobytes() + encodings.lengths.tobytes())
    path = folder / f"vectors-{kind}-{made_by.hexdigest()[:16]}.npy"
    state = path.with_suffix(".json")
    begun = path.is_file() and state.is_file()
    progress = json.loads(state.read_text(encoding="utf-8")) if begun else {"texts": 0, "finished": False}
    if progress["finished"]:
        return np.load(path, mmap_mode="r")
    shape = (len(encodings), encoder.source.width)
    number = np.dtype(np.float16 if dtype == "fp16" else np.float32)
    found = np.lib.format.open_memmap(path, mode="r+" if begun else "w+", dtype=number, shape=shape)
    keys = _keys(encodings)
    # What is taken over is settled here once: others may be finished before this one is continued.
    kept = path.with_suffix(".keys.npy")
    if begun:
        known = np.load(kept)["known"]
    else:
        known = _take_over(found, keys, sorted(folder.glob(f"vectors-{kind}-*.json")), path)
        found.flush()
        _save_keys(kept, keys, known)
    block = CPU_BLOCK if encoder.engine.device == "cpu" else GPU_BLOCK
    order = np.argsort(-encodings.lengths, kind="stable")
    order = order[~known[order]]
    done = int(progress["texts"])
    while done < len(order):
        places = order[done : done + block]
        inside = 0
        for rows, vectors in encoder.batches(encodings.take(places)):
            found[places[rows]] = vectors
            inside += len(rows)
            tick(done + inside, len(order))
        found.flush()
        done += len(places)
        write_json(state, {"texts": done, "finished": False})
    write_json(state, {"texts": done, "finished": True})
    del found
    return np.load(path, mmap_mode="r")


_KEY = np.dtype([("key", "V16"), ("known", np.bool_)])


def _keys(encodings: Encodings) -> list[bytes]:
    """What tells two texts apart: their token numbers."""
    ends = np.cumsum(encodings.lengths)
    ids = np.ascontiguousarray(encodings.ids)
    bounds = zip((ends - encodings.lengths).tolist(), ends.tolist(), strict=True)
    return [hashlib.blake2b(ids[start:end].tobytes(), digest_size=16).digest() for start, end in bounds]


def _save_keys(path: Path, keys: Sequence[bytes], known: npt.NDArray[np.bool_]) -> None:
    table = np.empty(len(keys), dtype=_KEY)
    table["key"], table["known"] = np.frombuffer(b"".join(keys), dtype="V16"), known
    np.save(path, table)


def _take_over(found: Floats, keys: Sequence[bytes], states: Sequence[Path], own: Path) -> npt.NDArray[np.bool_]:
    """Copies the vectors that finished files have; which those are."""
    known = np.zeros(len(keys), dtype=np.bool_)
    for state in states:
        path = state.with_suffix(".npy")
        if path == own or not json.loads(state.read_text(encoding="utf-8"))["finished"]:
            continue
        place = {key: row for row, key in enumerate(np.load(state.with_suffix(".keys.npy"))["key"].tolist())}
        rows = [(row, place[key]) for row, key in enumerate(keys) if not known[row] and key in place]
        if rows:
            here, there = np.array(rows).T
            found[here] = np.load(path, mmap_mode="r")[there]
            known[here] = True
    return known
