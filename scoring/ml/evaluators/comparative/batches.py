"""Ready batches of pairs, and the figures of held-out pairs. Imports torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from scoring.ml.encoders.separate import Inputs, TextRows, make_inputs, map_inputs
from scoring.ml.engine import Engine
from scoring.ml.evaluators.comparative.inputs import PairReader
from scoring.ml.evaluators.comparative.pairs import Pair, StrongPairs, WeakPairs
from scoring.ml.evaluators.comparative.verdicts import decide_signs
from scoring.ml.training.batches import read_features
from scoring.ml.training.head import HeadData
from scoring.ml.training.job import FitJob
from scoring.ml.training.record import record_groups

# At most this many batches are drawn, tokenised and sorted by length together: little padding, little memory. A short
# training has at least ten such chunks, so that its curriculum has as many stages.
_CHUNK, _STAGES = 16, 10
#: The head alone is fitted to at most this many pairs, a pair from both sides counted twice.
MOST_HEAD_PAIRS = 16_384


class Draw(Protocol):
    """The pairs from `start` to `end` of an epoch; the same call gives the same pairs. After `distinct` epochs the same
    pairs come again."""

    @property
    def distinct(self) -> int: ...

    def __call__(self, epoch: int, start: int, end: int) -> list[Pair]: ...


class SupervisedDraw:
    """Strong and weak pairs in equal number (or the only kind), drawn for every chunk of every epoch.

    `epochs` is the real number of passes, a fraction if a limit of steps ends the training sooner, so that the
    curriculum completes.
    """

    def __init__(
        self, strong: StrongPairs | None, weak: WeakPairs | None, *, n_pairs: int, epochs: float, job: FitJob
    ) -> None:
        self.strong, self.weak, self.n_pairs, self.epochs, self.job = strong, weak, n_pairs, epochs, job

    @property
    def distinct(self) -> int:
        """All epochs: each has new pairs."""
        return math.ceil(self.epochs)

    def __call__(self, epoch: int, start: int, end: int) -> list[Pair]:
        rng = self.job.rng(f"supervised:{epoch}:{start}")
        n = end - start
        if self.strong is None or self.weak is None:
            source = self.strong if self.strong is not None else self.weak
            assert source is not None
            return source.draw(rng, n, self._progress(epoch, start))
        pairs = self.strong.draw(rng, n - n // 2) + self.weak.draw(rng, n // 2, self._progress(epoch, start))
        return [pairs[place] for place in rng.permutation(n).tolist()]

    def _progress(self, epoch: int, start: int) -> float:
        """The progress of the training, from 0 to 1."""
        return min(1.0, (epoch + start / self.n_pairs) / self.epochs)


class JudgedDraw:
    """Every judged pair once per epoch, in an order and from a side drawn for the epoch."""

    distinct = 1

    def __init__(self, pairs: Sequence[Pair], job: FitJob) -> None:
        self.pairs, self.job = pairs, job

    def __call__(self, epoch: int, start: int, end: int) -> list[Pair]:
        rng = self.job.rng(f"human:{epoch}")
        order = rng.permutation(len(self.pairs))[start:end].tolist()
        turned = rng.random(len(self.pairs))[start:end] < 0.5
        chosen = [self.pairs[place] for place in order]
        return [pair.mirrored() if turn else pair for pair, turn in zip(chosen, turned, strict=True)]


class PairBatches:
    """One epoch of batches of `batch_size` pairs; chunks are sorted by length, their batches then shuffled. If texts
    are read alone, pairs of the same item are neighbours instead: what they have in common is read once."""

    def __init__(
        self,
        draw: Draw,
        n_pairs: int,
        batch_size: int,
        reader: PairReader,
        job: FitJob,
        *,
        epochs: float = 1,
        single: bool = False,
    ) -> None:
        self.draw, self.n_pairs, self.batch_size, self.reader, self.job = draw, n_pairs, batch_size, reader, job
        self.single = single
        self.chunk = max(1, min(_CHUNK, int(len(self) * epochs) // _STAGES))
        self.epoch = 0
        self._chunk: tuple[int, int] = (-1, -1)
        self._ready: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return -(-self.n_pairs // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Draw another epoch's pairs from now on."""
        self.epoch = epoch

    def list_head_pairs(self) -> list[Pair]:
        """The pairs that the head alone is fitted to: the first ones of the first epoch. If texts are read alone,
        further pairs of the same texts cost little: all distinct ones, evenly chosen if too many, from both sides."""
        if self.reader.texts < 2:
            return self.draw(0, 0, min(self.n_pairs, MOST_HEAD_PAIRS))
        size = self.chunk * self.batch_size
        pairs = [
            pair
            for epoch in range(self.draw.distinct)
            for start in range(0, self.n_pairs, size)
            for pair in self.draw(epoch, start, min(self.n_pairs, start + size))
        ]
        pairs = pairs[:: -(-2 * len(pairs) // MOST_HEAD_PAIRS)]
        return pairs if self.single else [*pairs, *(pair.mirrored() for pair in pairs)]

    def head_data(self, network: Any) -> HeadData:
        """Features and targets of `list_head_pairs`."""
        pairs = self.list_head_pairs()
        encodings, targets = encode_pairs(self.reader, pairs, single=self.single)
        features = read_features(network, encodings, self.reader.pad_id, self.job.report_phase("encoding"))
        groups = record_groups(pair.a for pair in pairs)
        return HeadData(features, {"targets": torch.from_numpy(targets)}, groups)

    def __getitem__(self, number: int) -> dict[str, Any]:
        if not 0 <= number < len(self):
            raise IndexError(number)
        chunk = number // self.chunk
        if self._chunk != (self.epoch, chunk):
            self._ready = self._make(chunk)
            self._chunk = (self.epoch, chunk)
        return self._ready[number % self.chunk]

    def _make(self, chunk: int) -> list[dict[str, Any]]:
        start = chunk * self.chunk * self.batch_size
        end = min(self.n_pairs, start + self.chunk * self.batch_size)
        pairs = self.draw(self.epoch, start, end)
        encodings, targets = encode_pairs(self.reader, pairs, single=self.single)
        rng = self.job.rng(f"batches:{self.epoch}:{chunk}")
        order = np.argsort(encodings.lengths, kind="stable")
        if isinstance(encodings, TextRows):
            items = np.unique([pair.a.item for pair in pairs], return_inverse=True)[1]
            order = np.argsort(rng.permutation(items.max() + 1)[items], kind="stable")
        n_batches = -(-len(pairs) // self.batch_size)
        # The incomplete batch must be last: lengths are sorted, so it holds the longest inputs.
        batches = [order[n * self.batch_size : (n + 1) * self.batch_size] for n in range(n_batches)]
        shuffled = rng.permutation(n_batches)
        return [make_batch(encodings.take(batches[n]), targets[batches[n]], self.reader.pad_id) for n in shuffled]


def encode_pairs(
    reader: PairReader, pairs: Sequence[Pair], *, single: bool = False
) -> tuple[Inputs, npt.NDArray[np.float32]]:
    """Return the tokens of `pairs` by `reader`, and their targets: (n, 3), or (n,) if `single`, where the first text of
    each pair is read alone."""
    if not single:
        encodings = reader.pairs([pair.a for pair in pairs], [pair.b for pair in pairs]).encodings
        return encodings, np.array([pair.target for pair in pairs], dtype=np.float32).reshape(-1, 3)
    encodings = reader.singles([pair.a for pair in pairs]).encodings
    return encodings, np.array([pair.target[2] for pair in pairs], dtype=np.float32)


def make_batch(encodings: Inputs, targets: npt.NDArray[np.float32], pad_id: int) -> dict[str, Any]:
    """Return the arguments of the network in training: the `encodings`, padded with `pad_id`, and their `targets`."""
    return {**make_inputs(encodings, pad_id), "targets": torch.from_numpy(np.ascontiguousarray(targets))}


class HeldOut:
    """Held-out pairs, and the metrics of a network on them, which choose the weights."""

    def __init__(self, pairs: Sequence[Pair], reader: PairReader, device: str, *, single: bool = False) -> None:
        encodings, self.targets = encode_pairs(reader, pairs, single=single)
        self.encodings, self.single = encodings, single
        # An even split of human verdicts is a tie, as in the evaluator.
        self.truth: npt.NDArray[np.int64] = (
            (self.targets > 0.5) if single else decide_signs(self.targets.astype(np.float64)) + 1
        ).astype(np.int64)
        self.engine = Engine(device=device, pad_id=reader.pad_id)

    def __len__(self) -> int:
        return len(self.encodings)

    def __call__(self, network: Any) -> dict[str, float]:
        """loss, accuracy and macro-F1."""
        read = map_inputs(self.engine, self.encodings, network.infer, network.read_texts, network.judge_features)
        logits = read.double().numpy()
        if self.single:
            result = (logits > 0).astype(int)
            loss = float(np.mean(np.logaddexp(0, logits) - self.targets * logits))
        else:
            result = logits.argmax(axis=1)
            shifted = logits - logits.max(axis=1, keepdims=True)
            logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
            loss = float(-(self.targets * logs).sum(axis=1).mean())
        accuracy = float((result == self.truth).mean())
        return {"loss": loss, "accuracy": accuracy, "macro_f1": macro_f1(self.truth, result)}

    @property
    def majority(self) -> float:
        """The accuracy of always giving the most frequent answer."""
        return float(np.bincount(self.truth).max() / len(self.truth)) if len(self.truth) else 0.0


def macro_f1(truth: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64]) -> float:
    """Return the mean over the classes in `truth` or `predicted` (n,) of 2 tp / (2 tp + fp + fn)."""
    scores = []
    for label in np.union1d(truth, predicted):
        hits = int(((truth == label) & (predicted == label)).sum())
        scores.append(2 * hits / (int((truth == label).sum()) + int((predicted == label).sum())))
    return float(np.mean(scores)) if scores else 0.0
