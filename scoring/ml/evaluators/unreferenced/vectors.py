"""One vector per text by a frozen encoder, and turns padded as the released MAUDE does. Keeping vectors in files is in
`encoders.kept`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from scoring.ml.encoders.frozen import VectorEncoder
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encodings import Encodings, Ints, TokenizedTexts, ragged_places
from scoring.ml.layers.pooling import Pooling
from scoring.ml.options import encoder_arguments

if TYPE_CHECKING:
    from scoring.ml.trained import TrainedEvaluator
    from scoring.ml.training.job import FitJob

Tick: TypeAlias = Callable[[int, int], object]


class UtteranceEncoder(VectorEncoder):
    """A frozen encoder that makes one vector of a text; the other arguments are those of `FrozenEncoder`."""

    def __init__(self, source: EncoderSource, *, pooling: Pooling = "mean", **how: Any) -> None:
        super().__init__(source, **how)
        self.pooling = pooling

    @classmethod
    def for_training(cls, job: FitJob) -> UtteranceEncoder:
        """The encoder of a training; evaluators that read tokens have no option `pooling`."""
        pooling, device = cast(Pooling, job.options.get("pooling", "mean")), job.text("train_device")
        return cls(job.encoder, pooling=pooling, max_length=job.optional_integer("max_length"), device=device)

    @classmethod
    def for_scoring(cls, evaluator: TrainedEvaluator) -> UtteranceEncoder:
        """The same encoder with the options of scoring."""
        pooling = cast(Pooling, evaluator.settings.get("pooling", "mean"))
        how = encoder_arguments(evaluator.options)
        return cls(evaluator.source, pooling=pooling, max_length=evaluator.max_length, **how)

    @property
    def kept_as(self) -> str:
        return f"{self.pooling}:{self.dtype}"

    def tokenize(self, texts: Sequence[str], left: Sequence[bool] | None = None) -> TokenizedTexts:
        """Token numbers; long texts lose their end, or their beginning where `left`."""
        if left is None or not any(left):
            return self.tokenizing.texts(texts)
        return self.tokenizing.texts(texts, cut=["left" if from_left else "right" for from_left in left])

    def vectors(self, encodings: Encodings, tick: Tick = lambda done, total: None) -> npt.NDArray[np.float32]:
        """(texts, width) in the order of the inputs. `tick(done, total)` after each batch."""
        values = np.zeros((len(encodings), self.source.width), dtype=np.float32)
        done = 0
        for rows, vectors in self.batches(encodings):
            values[rows] = vectors
            done += len(rows)
            tick(done, len(encodings))
        return values


def pad_contexts(encodings: Encodings, rows: Ints, starts: Ints, lengths: Ints, pad_id: int) -> tuple[Encodings, Ints]:
    """Pad each turn to the longest of its context, as the released MAUDE does: padding counts as text.

    Context i owns `lengths[i]` of `rows` from `starts[i]`. Returns the distinct turns, padded with `pad_id`, after the
    given `encodings`; and for every turn of every context, end to end, its row in the result.
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
