"""MoverScore: the least work of moving a text's contextual word vectors onto a reference's.

Explained in docs/explanation/evaluators/embedding-similarity.md#moverscore.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from evalapp.translation import gettext as _
from scoring.ml.base import Floats
from scoring.ml.baselines.encoder_pairs import ENCODER_OPTIONS, EncoderPairEvaluator, TextRows
from scoring.ml.baselines.transport import Problem, transport_costs
from scoring.ml.catalogue import Entry
from scoring.ml.encoders.frozen import TextEncoder, TokenVectors
from scoring.ml.encodings import TokenizedTexts
from scoring.ml.engine import Batch
from scoring.ml.errors import EncoderError
from scoring.ml.options import choice, encoder_arguments, flag, integer, text
from scoring.ml.signature import SignatureField, text_hash, yes_no

if TYPE_CHECKING:
    import torch

# Pairs that are collected before solving, so that the solver gets large blocks.
_PAIRS_AT_A_TIME = 256
# How tokenizers mark the beginning of a word (or, for "##", its continuation).
_CONTINUES, _BEGINS = "##", ("\u0120", "\u2581")


class Bag(NamedTuple):
    """The n-grams of a text: positive masses (k,) with sum 1, and unit vectors (k, width)."""

    masses: Floats
    vectors: Floats


class PowerMeanEncoder(TextEncoder):
    """Minimum, mean and maximum of the last `n_layers` unit hidden states up to `layer`, end to end."""

    n_layers = 1

    def forward(self, batch: Batch) -> torch.Tensor:
        """(tokens, 3 * width), input after input."""
        import torch

        output = self.model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, output_hidden_states=True)
        chosen = output.hidden_states[self.layer - self.n_layers + 1 : self.layer + 1]
        states = torch.nn.functional.normalize(torch.stack(chosen).float(), dim=-1)
        mixed = torch.cat([states.amin(dim=0), states.mean(dim=0), states.amax(dim=0)], dim=-1)
        return mixed[batch.attention_mask.bool()]


class MoverScore(EncoderPairEvaluator):
    """1 / (1 + D), D = min over plans F of sum F_ij |x_i - y_j|: earth mover's distance of two bags of n-grams.

    An n-gram's mass is the sum of its tokens' idf, scaled to sum 1 in each text; its vector is their idf-weighted
    mean, scaled to length 1. Special tokens, punctuation, continuations of words and `stop_words` are left out
    before n-grams are made. idf(w) = log((N + 1) / (df + 1)) over the distinct texts of the call, references and
    hypotheses apart, empty hypotheses and their references left out; where all tokens of a text have idf 0 they count
    alike. Several references: the best.

    By default the last layer and the Euclidean distance, as the authors' faster version with DistilBERT. Their first
    one is `layers=5, cost="squared", form="linear"` with BERT fine-tuned on MNLI: minimum, mean and maximum of five
    layers, and 1 - D. As in theirs, class and separator tokens have an idf of 0. A text without any word gets the worst
    value. Source: Zhao et al. 2019.
    """

    def make_encoder(self) -> TextEncoder:
        self.layers = self.option_int("layers")
        if self.layers == 1:
            return super().make_encoder()
        if self.layers > self.layer:
            text = _("has %(layer)s layers up to the one asked for: it cannot take %(layers)s")
            raise EncoderError(self.source.name, text % {"layer": self.layer, "layers": self.layers})
        encoder = PowerMeanEncoder(self.source, layer=self.layer, **encoder_arguments(self.options, "max_length"))
        encoder.n_layers = self.layers
        return encoder

    @property
    def depends_on_batch(self) -> bool:
        return bool(self.options["idf"])

    @property
    def scale(self) -> tuple[float | None, float | None]:
        return self.worst, 1.0

    @property
    def worst(self) -> float:
        if self.options["form"] == "inverse":
            return 0.0
        return -3.0 if self.options["cost"] == "squared" else -1.0  # unit vectors are at most 2 apart

    def signature_fields(self) -> list[SignatureField]:
        stop_words = sorted(set(self.option_text("stop_words").lower().split()))
        return [
            *super().signature_fields(),
            SignatureField("layers", "Ls", str(self.layers)),
            SignatureField("n", "n", str(self.options["n_gram"])),
            SignatureField("idf", "idf", yes_no(bool(self.options["idf"]))),
            SignatureField("sub", "sub", "first" if self.options["remove_subwords"] else "all"),
            SignatureField("stop", "st", text_hash(stop_words) if stop_words else "none"),
            SignatureField("cost", "co", self.option_text("cost")),
            SignatureField("form", "f", self.option_text("form")),
        ]

    def token_weights(self, tokenized: TokenizedTexts, rows: Sequence[TextRows]) -> Floats:
        """(2, vocabulary) masses of tokens in hypotheses and in references."""
        if not self.options["idf"]:
            return np.ones((2, self.encoder.n_tokens))
        sides = ({text for row in rows for text in row[side]} for side in (0, 1))
        return np.stack([self.rarity_weights(tokenized, documents) for documents in sides])

    def matrices(self, vectors: TokenVectors, query: TextRows, weights: Floats) -> tuple[Floats, ...]:
        return next(self.chunk_matrices(vectors, [query], weights))

    def chunk_matrices(
        self, vectors: TokenVectors, queries: Sequence[TextRows], weights: Floats
    ) -> Iterator[tuple[Floats, ...]]:
        """As `matrices` for many queries, whose transport problems are solved together."""
        start = 0
        while start < len(queries):
            end, pairs = start, 0
            while end < len(queries) and pairs < _PAIRS_AT_A_TIME:
                pairs += len(queries[end][0]) * len(queries[end][1])
                end += 1
            distances = self._distances(vectors, queries[start:end], weights)
            for hyps, refs in queries[start:end]:
                size = len(hyps) * len(refs)
                matrix, distances = distances[:size].reshape(len(hyps), len(refs)), distances[size:]
                yield (1.0 / (1.0 + matrix) if self.options["form"] == "inverse" else 1.0 - matrix,)
            start = end

    def _distances(self, vectors: TokenVectors, queries: Sequence[TextRows], weights: Floats) -> Floats:
        """The distance of every pair, query by query, row by row; nan where a text has no word."""
        bags = [
            {text: self._bag(vectors, text, weights[side]) for text in {t for query in queries for t in query[side]}}
            for side in (0, 1)
        ]
        pairs = [(bags[0][hyp], bags[1][ref]) for hyps, refs in queries for hyp in hyps for ref in refs]
        distances = np.full(len(pairs), np.nan)
        problems: list[Problem] = []
        places = []
        for place, (hyp, ref) in enumerate(pairs):
            if hyp is not None and ref is not None:
                squares = np.maximum(2.0 - 2.0 * (hyp.vectors @ ref.vectors.T), 0.0)
                cost = squares if self.options["cost"] == "squared" else np.sqrt(squares)
                problems.append(Problem(hyp.masses, ref.masses, cost))
                places.append(place)
        distances[places] = np.maximum(transport_costs(problems), 0.0)
        return distances

    def _bag(self, vectors: TokenVectors, text: int, weights: Floats) -> Bag | None:
        start = int(vectors.starts[text])
        ids = vectors.ids[start : start + int(vectors.lengths[text])]
        content = np.flatnonzero(self._is_content[ids])
        pieces = ids[content]
        out = self._is_dropped[pieces]
        if self.options["remove_subwords"] and len(pieces):
            # The first piece begins a word, and so does a piece after a mark that is a token of its own.
            begins = np.concatenate([[True], self._is_mark[pieces[:-1]]])
            out = out | (self._continues[pieces] & ~begins)
        kept = content[~out]
        if not len(kept):
            return None
        masses = weights[ids[kept]]
        if not masses.any():
            masses = np.ones(len(kept))
        rows = vectors.vectors[start + kept].double().cpu().numpy()
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        masses, rows = _n_grams(masses, rows, self.option_int("n_gram"))
        present = masses > 0
        return Bag(masses[present] / masses.sum(), rows[present])

    @cached_property
    def _names(self) -> list[str]:
        names = self.encoder.tokenizer.convert_ids_to_tokens(list(range(self.encoder.n_tokens)))
        return [name or "" for name in names]

    @cached_property
    def _is_content(self) -> npt.NDArray[np.bool_]:
        content = np.ones(self.encoder.n_tokens, dtype=np.bool_)
        content[self.encoder.special_ids] = False
        return content

    @cached_property
    def _is_dropped(self) -> npt.NDArray[np.bool_]:
        """Punctuation, stop-words, and word-beginning marks that are tokens of their own."""
        stop_words = set(self.option_text("stop_words").lower().split())
        bare = [_bare(name) for name in self._names]
        dropped = [_is_punctuation(name) or name.lower() in stop_words for name in bare]
        return _padded(dropped, len(self._is_content)) | self._is_mark

    @cached_property
    def _is_mark(self) -> npt.NDArray[np.bool_]:
        return _padded([name in _BEGINS for name in self._names], len(self._is_content))

    @cached_property
    def _continues(self) -> npt.NDArray[np.bool_]:
        """Tokens that continue a word."""
        return _padded(_continuations(self._names), len(self._is_content))


def _n_grams(masses: Floats, vectors: Floats, n: int) -> tuple[Floats, Floats]:
    """Masses and unit vectors of all windows of n tokens; of the whole text where it has fewer."""
    n = min(n, len(masses))
    if n == 1:
        return masses, vectors
    windows = np.lib.stride_tricks.sliding_window_view(masses, n)
    sums = windows.sum(axis=1)
    blocks = np.lib.stride_tricks.sliding_window_view(vectors, n, axis=0)  # (windows, width, n)
    mixed = np.einsum("kwn,kn->kw", blocks, windows)
    return sums, mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-12)


def _bare(name: str) -> str:
    """A token without the marks of its tokenizer."""
    if name.startswith(_CONTINUES) and len(name) > len(_CONTINUES):
        return name[len(_CONTINUES) :]
    return name[1:] if name.startswith(_BEGINS) and len(name) > 1 else name


def _is_punctuation(name: str) -> bool:
    return bool(name) and all(c in string.punctuation or unicodedata.category(c).startswith("P") for c in name)


def _continuations(names: Sequence[str]) -> list[bool]:
    """Whether each token continues a word, by the marks of this vocabulary; none if it uses no marks."""
    if any(name.startswith(_CONTINUES) and len(name) > len(_CONTINUES) for name in names):
        return [name.startswith(_CONTINUES) and len(name) > len(_CONTINUES) for name in names]
    if any(name.startswith(_BEGINS) and len(name) > 1 for name in names):
        return [not name.startswith(_BEGINS) for name in names]
    return [False] * len(names)


def _padded(values: Iterable[bool], size: int) -> npt.NDArray[np.bool_]:
    result = np.fromiter(values, np.bool_)
    return np.concatenate([result, np.zeros(size - len(result), dtype=np.bool_)])


ENTRIES = (
    Entry(
        name="moverscore",
        summary="Least work of moving contextual word vectors onto the reference's, best reference.",
        build=MoverScore,
        scale=(0.0, 1.0),
        needs=("references", "encoder"),
        options=(
            *ENCODER_OPTIONS,
            integer("n_gram", 1, "Words moved together: 1 or 2.", minimum=1),
            integer("layers", 1, "Last layers taken: 1, or 5 for minimum, mean and maximum of five.", minimum=1),
            flag("idf", True, "Weight tokens by rarity in the call, texts and references apart."),
            flag("remove_subwords", True, "Leave out continuations of words."),
            text("stop_words", "", "Words without mass, separated by spaces."),
            choice("cost", ("euclidean", "squared"), "Distance of two vectors, or its square."),
            choice("form", ("inverse", "linear"), "inverse: 1 / (1 + D); linear: 1 - D."),
        ),
        citation="Zhao et al. 2019, MoverScore: text generation evaluating with contextualized embeddings",
        papers=("zhao-etal-2019-moverscore",),
    ),
)
