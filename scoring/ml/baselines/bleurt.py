"""BLEURT: a text's score against a reference by a regression checkpoint from a folder.

Explained in docs/explanation/evaluators/embedding-similarity.md#bleurt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from evalapp.translation import gettext as _
from scoring.ml.base import Floats, PairEvaluator, Partial, Progress, Query, group_by_references, scatter_best
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.encoders.forward import sequence_logits
from scoring.ml.encoders.loading import load_pretrained
from scoring.ml.encoders.source import find_encoder
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.encoders.unknown import UnknownTokens
from scoring.ml.engine import Batch, Dtype, Engine
from scoring.ml.errors import EncoderError
from scoring.ml.options import SCORING, integer, text
from scoring.ml.signature import SignatureField
from scoring.ml.types import Record

if TYPE_CHECKING:
    import torch

EMPTY = -2.0
_HEAD = "ForSequenceClassification"
# Pairs are tokenised and scored in chunks of this size, which bounds memory.
_CHUNK_PAIRS = 1 << 16


class Bleurt(PairEvaluator):
    """The output of a sequence classifier for `[CLS] reference [SEP] text [SEP]`, best reference.

    The checkpoint is a folder in transformers format: config.json with one label, safetensors weights, tokenizer. There
    is no default: published checkpoints differ in scale, so their scores are not comparable. BLEURT-20 gives roughly 0
    to 1, older ones also less than 0. An empty text gets -2, below the range of all published checkpoints. A pair that
    is too long loses the reference's end first, then the text's, and counts as truncated. Source: Sellam et al. 2020.
    """

    def __init__(self, entry: Entry, options: Mapping[str, OptionValue]) -> None:
        super().__init__(entry, options)
        self.source = find_encoder(self.option_text("encoder"))
        architectures = self.source.config.get("architectures") or [""]
        if not str(architectures[0]).endswith(_HEAD):
            message = _("is no regression checkpoint but a %(architectures)s; take one *%(head)s")
            message %= {"architectures": architectures[0] or "model without a name", "head": _HEAD}
            raise EncoderError(self.source.name, message)
        n_labels = len(self.source.config.get("id2label") or ("0", "1"))
        if n_labels != 1:
            raise EncoderError(self.source.name, f"has {n_labels} labels; a regression checkpoint has 1")
        self.tokenizer = PairTokenizer(self.source, max_length=cast("int | None", options["max_length"]))
        self.dtype: Dtype = "bf16" if options["dtype"] == "bf16" else "fp32"

    @cached_property
    def unknown_tokens(self) -> UnknownTokens:
        """Finds words that the checkpoint's tokenizer does not know."""
        return UnknownTokens.from_tokenizer(self.source.short_name, self.tokenizer.tokenizer)

    @property
    def worst(self) -> float:
        return EMPTY

    def signature_fields(self) -> list[SignatureField]:
        return [
            SignatureField("nrefs", "#", "var"),
            SignatureField("enc", "enc", f"{self.source.short_name}@{self.source.weights[:8]}"),
            SignatureField("ml", "ml", str(self.tokenizer.max_length)),
            SignatureField("trunc", "tr", "reference-right"),
            SignatureField("dt", "dt", self.dtype),
            SignatureField("attn", "at", self.source.attention),
        ]

    def all_pairs(self, queries: Sequence[Query], *, progress: Progress | None = None) -> list[Floats]:
        """BLEURT of every hypothesis against every reference of its query: matrices (H, R)."""
        return [values for values, cut in self._score(queries, progress)]

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        queries, places = group_by_references(records)
        result = self._score(queries, progress)
        cut = np.zeros(len(records), dtype=np.bool_)
        for (_values, truncated), rows in zip(result, places, strict=True):
            cut[rows] = truncated.any(axis=1)
        return Partial(scatter_best([one[0] for one in result], places, len(records)), cut)

    @cached_property
    def engine(self) -> Engine:
        """The engine that runs all batches."""
        tokens = cast("int | None", self.options["batch_tokens"])
        return Engine(device=self.option_text("device"), batch_tokens=tokens, pad_id=self.tokenizer.pad_id)

    @cached_property
    def model(self) -> torch.nn.Module:
        """The checkpoint with its head, in evaluation mode on the engine's device."""
        model: torch.nn.Module = load_pretrained(self.source, "AutoModelForSequenceClassification", dtype=self.dtype)
        return model.to(self.engine.device)

    def forward(self, batch: Batch) -> torch.Tensor:
        """(rows,) the scores of a batch."""
        return sequence_logits(self.model, batch)[:, 0]

    def _score(self, queries: Sequence[Query], progress: Progress | None) -> list[tuple[Floats, npt.NDArray[np.bool_]]]:
        """Scores and what was cut, (H, R) each; a pair of two queries is scored once."""
        number: dict[tuple[str, str], int] = {}
        places = []
        for hypotheses, references in queries:
            pairs = [[(ref, hyp) for ref in references] for hyp in hypotheses]
            rows = [[number.setdefault(p, len(number)) if all(map(str.strip, p)) else -1 for p in row] for row in pairs]
            places.append(np.array(rows, dtype=np.int64).reshape(len(hypotheses), len(references)))
        distinct = list(number)
        # A further place at the end, for -1: a blank text or reference.
        values, cut = np.full(len(distinct) + 1, EMPTY), np.zeros(len(distinct) + 1, dtype=np.bool_)
        for start in range(0, len(distinct), _CHUNK_PAIRS):
            chunk = distinct[start : start + _CHUNK_PAIRS]
            result = self.tokenizer.pairs([ref for ref, _ in chunk], [hyp for _, hyp in chunk], cut="right")
            values[start : start + len(chunk)] = self.engine.map(result.encodings, self.forward).numpy()
            cut[start : start + len(chunk)] = result.truncated
            if progress is not None:
                progress(len(queries) * (start + len(chunk)) // len(distinct), len(queries))
        return [(values[rows], cut[rows]) for rows in places]


ENTRIES = (
    Entry(
        name="bleurt",
        summary="A regression checkpoint reads reference and text, best reference; the checkpoint must be given.",
        build=Bleurt,
        scale=(None, None),
        needs=("references", "encoder"),
        options=(
            text(
                "encoder",
                None,
                "Folder of a sequence classifier with one label; there is no default.",
                names_model=True,
                needed="must name a checkpoint, because there is no default: the folder of a BLEURT converted to "
                "transformers (a sequence classifier with one label, model.safetensors and tokenizer)",
            ),
            integer("max_length", None, "Longest pair in tokens; none is what the model reads.", minimum=5),
            *SCORING,
        ),
        citation="Sellam et al. 2020, BLEURT: learning robust metrics for text generation",
        papers=("sellam-etal-2020-bleurt",),
    ),
)
