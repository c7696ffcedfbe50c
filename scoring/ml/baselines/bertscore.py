"""BERTScore: greedy matching of contextual token vectors; precision, recall and F1.

Explained in docs/explanation/evaluators/embedding-similarity.md#bertscore.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from evalapp.translation import gettext as _
from scoring.ml.base import Floats
from scoring.ml.baselines.encoder_pairs import (
    ENCODER_OPTIONS,
    EncoderPairEvaluator,
    TextRows,
    unit_vectors,
)
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.encoders.frozen import TokenVectors
from scoring.ml.encoders.matching import Side, greedy_match
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encodings import TokenizedTexts
from scoring.ml.errors import InvalidOption
from scoring.ml.options import choice, flag
from scoring.ml.signature import SignatureField, yes_no

COMPONENTS = ("precision", "recall", "f1")


@cache
def presets() -> Mapping[str, Any]:
    """Layers and rescaling constants published with bert-score 0.3.13."""
    text = files("scoring.ml.baselines").joinpath("bertscore_presets.json").read_text(encoding="utf-8")
    return json.loads(text)


class BertScore(EncoderPairEvaluator):
    """P = mean over tokens of y of the best cosine in r, R likewise from r, F1 = 2 P R / (P + R).

    Class and separator tokens have weight 0 but may be matched, as in bert-score; equal to that package at batch size 1
    to 1e-5 (at larger ones its padding enters its scores). Several references: each component takes its own best. `idf`
    weights tokens by log((N + 1) / (df + 1)) over the distinct references of the call, without those of empty texts.
    With one reference all weights would be 0, and so would those of a text whose words are in every reference: their
    tokens count equally. `rescale` gives (x - b) / (1 - b) with the published b. An empty text gets 0 before rescaling,
    and so does a negative cosine.
    """

    component_names = COMPONENTS

    def __init__(self, entry: Entry, options: Mapping[str, OptionValue]) -> None:
        super().__init__(entry, options)
        self.baselines = dict.fromkeys(COMPONENTS, 0.0)
        if self.options["rescale"]:
            self.baselines = self._published_baselines()

    @property
    def depends_on_batch(self) -> bool:
        return bool(self.options["idf"])

    @property
    def scale(self) -> tuple[float | None, float | None]:
        return self.worst, 1.0

    @property
    def worst(self) -> float:
        return self.worst_component(self.option_text("component"))

    def worst_component(self, component: str) -> float:
        low = self.baselines[component]
        return (0.0 - low) / (1.0 - low)

    def default_layer(self, source: EncoderSource) -> int:
        """The published layer of a known encoder; otherwise three quarters up, which is where those lie."""
        return int(presets()["layers"].get(source.short_name, math.ceil(0.75 * source.n_layers)))

    def signature_fields(self) -> list[SignatureField]:
        component = self.option_text("component")
        return [
            *super().signature_fields(),
            SignatureField("idf", "idf", yes_no(bool(self.options["idf"]))),
            SignatureField("rescale", "rs", yes_no(bool(self.options["rescale"]))),
            SignatureField("of", "of", component),
        ]

    def token_weights(self, tokenized: TokenizedTexts, rows: Sequence[TextRows]) -> Floats:
        """With `idf` its weights, from the distinct references of the call's texts that are not empty; unseen
        tokens get log(N + 1)."""
        documents = {ref for _, refs in rows for ref in refs}
        if not self.options["idf"] or len(documents) < 2:
            return self.plain_weights()
        return self.rarity_weights(tokenized, documents)

    def finish(self, vectors: TokenVectors) -> TokenVectors:
        return unit_vectors(vectors)

    def matrices(self, vectors: TokenVectors, query: TextRows, weights: Floats) -> tuple[Floats, ...]:
        hyps, refs = (self._weighted_side(vectors, texts, weights) for texts in query)
        precision, recall = (np.maximum(part, 0.0) for part in greedy_match(hyps, refs))
        # A text of nothing but special tokens has no content to compare.
        bare = np.isnan(precision) | np.isnan(recall)
        precision[bare] = recall[bare] = np.nan
        total = precision + recall
        f1 = np.minimum(2 * precision * recall / np.where(total == 0, 1.0, total), 1.0)
        parts = dict(zip(COMPONENTS, (precision, recall, f1), strict=True))
        for name, low in self.baselines.items():
            parts[name] = (parts[name] - low) / (1.0 - low)
        return (parts[self.option_text("component")].copy(), *parts.values())

    def _weighted_side(self, vectors: TokenVectors, texts: list[int], weights: Floats) -> Side:
        """The tokens of the texts; if all tokens of a text have idf 0, they get equal weights."""
        side = self.side(vectors, texts, weights, content_only=False)
        text = np.repeat(np.arange(len(texts)), side.lengths)
        weightless = (np.bincount(text, weights=side.weights, minlength=len(texts)) == 0)[text]
        if not weightless.any():
            return side
        alike = self.side(vectors, texts, self.plain_weights(), content_only=False).weights
        return side._replace(weights=np.where(weightless, alike, side.weights))

    def _published_baselines(self) -> dict[str, float]:
        result = presets()["baselines"].get(self.source.short_name)
        if result is None or result[0] != self.layer:
            known = ", ".join(f"{name} layer {row[0]}" for name, row in presets()["baselines"].items())
            text = _("has published constants only for %(known)s; leave it out or use one of the named encoders")
            raise InvalidOption(self.name, "rescale", text, known=known)
        return dict(zip(COMPONENTS, result[1:], strict=True))


ENTRIES = (
    Entry(
        name="bertscore",
        summary="Greedy matching of contextual token vectors, best reference.",
        build=BertScore,
        scale=(0.0, 1.0),
        needs=("references", "encoder"),
        options=(
            *ENCODER_OPTIONS,
            choice("component", COMPONENTS, "Which of the three is the score.", default="f1"),
            flag("idf", False, "Weight tokens by rarity among the references of the call."),
            flag("rescale", False, "Rescale with the encoder's published constants."),
        ),
        citation="Zhang et al. 2020, BERTScore: evaluating text generation with BERT",
        papers=("zhang-etal-2020-bertscore",),
    ),
)
