"""RUBER (Tao et al., AAAI 2018): an unreferenced network, a referenced cosine, and their blend.

s_U = sigmoid(MLP([q, q' M r, r])), q and r the largest values of recurrent readers' outputs. s_R = cosine of the
reply's and the reference's word vectors, largest and least value of each feature side by side; the words' vectors are
the input embeddings of the encoder, whatever a text's length. The blend combines both after bringing each to 0..1 over
the texts scored together, so that a blended score holds within its call only.

Explained in docs/explanation/evaluators/unreferenced.md#ruber.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from scoring.ml.base import Floats, Partial, Progress, get_references
from scoring.ml.encoders.loading import load_model
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.engine import deduplicate
from scoring.ml.evaluators.unreferenced.conversations import prepare
from scoring.ml.evaluators.unreferenced.frame import UnreferencedEvaluator
from scoring.ml.evaluators.unreferenced.network import TokenPairNetwork
from scoring.ml.signature import SignatureField
from scoring.ml.types import Record


class RuberNetwork(TokenPairNetwork):
    """Compares both vectors by a learned matrix."""

    def build_parts(self, network: dict[str, Any]) -> int:
        size = super().build_parts(network)
        self.match = nn.Parameter(torch.zeros(size, size))
        return 2 * size + 1

    def features(self, c: Tensor, h: Tensor) -> Tensor:
        fit = ((c @ self.match) * h).sum(dim=-1, keepdim=True)
        return torch.cat([c, fit, h], dim=-1)


class Ruber(UnreferencedEvaluator):
    """The evaluator; the option `form` says which of its three scores is given."""

    network_class = RuberNetwork

    @property
    def component_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The two parts of a blend as they are, before they are brought to 0..1."""
        return ("unreferenced", "referenced") if self.form == "blended" else ()

    @property
    def form(self) -> str:
        """unreferenced, referenced or blended."""
        return self.option_text("form")

    @property
    def depends_on_batch(self) -> bool:
        return self.form == "blended"

    def worst_component(self, component: str) -> float:
        return -1.0 if component == "referenced" else 0.0

    @property
    def worst(self) -> float:
        """A cosine may be -1."""
        return -1.0 if self.form == "referenced" else 0.0

    def own_fields(self) -> list[SignatureField]:
        """Also the form, and how a blend is made."""
        form = self.form if self.form != "blended" else f"blended-{self.option_text('blend')}"
        return [*super().own_fields(), SignatureField("form", "f", form)]

    def undefined(self, record: Record) -> str:
        if self.form != "unreferenced" and not get_references(record):
            return "no references"
        return super().undefined(record) if self.form != "referenced" else ""

    def identity(self, record: Record) -> Hashable:
        references = get_references(record) if self.form != "unreferenced" else ()
        return (super().identity(record), references)

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        if self.form == "unreferenced":
            return super().measure(records, progress)
        referenced = self.referenced(records)
        if self.form == "referenced":
            return Partial(referenced)
        result = super().measure(records, progress)
        parts = {"unreferenced": result.values, "referenced": referenced}
        return Partial(blend(result.values, referenced, self.option_text("blend")), result.truncated, parts)

    def blended(self, components: Mapping[str, Floats]) -> Floats | None:
        """The blend of both parts over all texts given; None for the other forms."""
        if self.form != "blended":
            return None
        return blend(components["unreferenced"], components["referenced"], self.option_text("blend"))

    def referenced(self, records: Sequence[Record]) -> Floats:
        """(n,) s_R, the best reference of each."""
        lower = bool(self.settings["lower_case"])
        sides = [[prepare(t, lower) for t in (record.text, *get_references(record))] for record in records]
        texts, places = deduplicate([text for side in sides for text in side])
        vectors = self._pooled_words(texts)[places]
        values = np.empty(len(sides))
        start = 0
        for number, side in enumerate(sides):
            reply, references = vectors[start], vectors[start + 1 : start + len(side)]
            values[number] = float((references @ reply).max())
            start += len(side)
        return values

    def _pooled_words(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """(texts, 2 width) unit vectors: largest and least value of each feature over a text's words."""
        source = self.source
        tokenizer = PairTokenizer(source)
        # No length limit: each word is looked up on its own.
        tokenizer.max_length = sys.maxsize
        result = tokenizer.texts(texts).encodings
        special = np.array(tokenizer.tokenizer.all_special_ids)
        embeddings = cast(nn.Embedding, load_model(source, layer=1).get_input_embeddings()).weight
        table = embeddings.detach().float().numpy()
        rows = np.zeros((len(texts), 2 * table.shape[1]))
        for number, (start, length) in enumerate(zip(result.starts, result.lengths, strict=True)):
            ids = result.ids[start : start + length]
            words = table[ids[~np.isin(ids, special)]]
            if len(words):
                rows[number] = np.concatenate([words.max(axis=0), words.min(axis=0)])
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def unit_range(values: Floats) -> Floats:
    """(values - least) / (largest - least); .5 where all are equal."""
    low, high = float(values.min()), float(values.max())
    return np.full_like(values, 0.5) if high <= low else (values - low) / (high - low)


def blend(unreferenced: Floats, referenced: Floats, how: str) -> Floats:
    """Return the blend of `unreferenced` and `referenced` scores (n,), each brought to 0..1 over the set (Tao et al.
    2018); `how` is min, max, arithmetic or geometric."""
    u, r = unit_range(unreferenced), unit_range(referenced)
    result = {
        "min": lambda: np.minimum(u, r),
        "max": lambda: np.maximum(u, r),
        "arithmetic": lambda: (u + r) / 2,
        "geometric": lambda: np.sqrt(u * r),
    }[how]()
    return cast(Floats, result)
