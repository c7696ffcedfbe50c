"""The base of BERTScore and the embedding metrics: encoder, options, signature, chunks of queries."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from scoring.ml.base import (
    Floats,
    PairEvaluator,
    Partial,
    Progress,
    Query,
    group_by_references,
    scatter_best,
)
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.encoders.frozen import TextEncoder, TokenVectors
from scoring.ml.encoders.matching import Side
from scoring.ml.encoders.source import EncoderSource, find_encoder
from scoring.ml.encoders.unknown import UnknownTokens
from scoring.ml.encodings import TokenizedTexts
from scoring.ml.options import ENCODER, SCORING, encoder_arguments, integer
from scoring.ml.signature import SignatureField
from scoring.ml.text.ngrams import index_queries
from scoring.ml.types import Record

ENCODER_OPTIONS = (
    ENCODER,
    integer("layer", None, "Layer whose vectors are used, 0 = embeddings; none is the metric's own.", minimum=0),
    integer("max_length", None, "Longest text in tokens; none is what the encoder reads.", minimum=3),
    *SCORING,
)
TextRows: TypeAlias = tuple[list[int], list[int]]
# Values of the vectors held at a time (256 MB); queries are processed in chunks of that size.
CHUNK_VALUES = 1 << 26


class EncoderPairEvaluator(PairEvaluator):
    """Base of measures between the token vectors of two texts. `matrices` is the measure itself."""

    def __init__(self, entry: Entry, options: Mapping[str, OptionValue]) -> None:
        super().__init__(entry, options)
        self.source = find_encoder(None if options["encoder"] is None else str(options["encoder"]))
        asked = options["layer"]
        self.layer = self.default_layer(self.source) if asked is None else int(asked)
        self.encoder = self.make_encoder()

    def make_encoder(self) -> TextEncoder:
        """The encoder with these options."""
        return TextEncoder(self.source, layer=self.layer, **encoder_arguments(self.options, "max_length"))

    @cached_property
    def unknown_tokens(self) -> UnknownTokens:
        """Finds words that the encoder does not know."""
        return UnknownTokens.from_tokenizer(self.source.short_name, self.encoder.tokenizer)

    def default_layer(self, source: EncoderSource) -> int:
        """The layer when none is asked for: the last."""
        return source.n_layers

    @abstractmethod
    def matrices(self, vectors: TokenVectors, query: TextRows, weights: Floats) -> tuple[Floats, ...]:
        """The value (H, R) of a query's pairs, then one such matrix per component; nan = no content to compare.

        `weights` are those of `token_weights`, to be passed to `side`.
        """

    def chunk_matrices(
        self, vectors: TokenVectors, queries: Sequence[TextRows], weights: Floats
    ) -> Iterator[tuple[Floats, ...]]:
        """`matrices` of multiple queries, for measures that are faster in bulk."""
        return (self.matrices(vectors, query, weights) for query in queries)

    def token_weights(self, tokenized: TokenizedTexts, rows: Sequence[TextRows]) -> Floats:
        """(vocabulary,) the weight of each token in this call."""
        return self.plain_weights()

    def plain_weights(self) -> Floats:
        """(vocabulary,) 1, and 0 for special tokens."""
        special = self.encoder.special_ids
        weights = np.ones(self.encoder.n_tokens)
        weights[special] = 0.0
        return weights

    def rarity_weights(self, tokenized: TokenizedTexts, documents: Collection[int]) -> Floats:
        """(vocabulary,) log((N + 1) / (df + 1)) of each token over these N documents; unseen tokens get log(N + 1)."""
        counts = Counter(token for document in documents for token in set(tokenized.encodings[document].ids))
        weights = np.full(self.encoder.n_tokens, math.log(len(documents) + 1))
        for token, count in counts.items():
            weights[token] = math.log((len(documents) + 1) / (count + 1))
        return weights

    def finish(self, vectors: TokenVectors) -> TokenVectors:
        """Transform all vectors of a chunk once; by default unchanged."""
        return vectors

    def signature_fields(self) -> list[SignatureField]:
        encoder = f"{self.source.short_name}@{self.source.weights[:8]}"
        return [
            SignatureField("nrefs", "#", "var"),
            SignatureField("enc", "enc", encoder),
            SignatureField("layer", "L", str(self.layer)),
            SignatureField("ml", "ml", str(self.encoder.max_length)),
            SignatureField("trunc", "tr", "right"),
            SignatureField("dt", "dt", self.encoder.dtype),
            SignatureField("attn", "at", self.source.attention),
        ]

    def pair_matrices(self, queries: Sequence[Query]) -> Iterator[Floats]:
        texts, rows = index_queries(queries)
        return (parts[0] for parts in self._stream(texts, rows, self.encoder.tokenize(texts)))

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        queries, places = group_by_references(records)
        texts, rows = index_queries(queries)
        tokenized = self.encoder.tokenize(texts)
        columns: list[list[Floats]] = [[] for _ in range(1 + len(self.component_names))]
        cut = np.zeros(len(records), dtype=np.bool_)
        streamed = enumerate(self._stream(texts, rows, tokenized), start=1)
        for (hyps, refs), at, (done, parts) in zip(rows, places, streamed, strict=True):
            progress(done, len(rows))
            cut[at] = tokenized.truncated[hyps] | tokenized.truncated[refs].any()
            for column, part in zip(columns, parts, strict=True):
                column.append(part)
        values, *components = [scatter_best(column, places, len(records)) for column in columns]
        return Partial(values, cut, dict(zip(self.component_names, components, strict=True)))

    def side(self, vectors: TokenVectors, texts: list[int], token_weights: Floats, *, content_only: bool) -> Side:
        """The tokens of the texts; special tokens are left out, or remain with weight 0."""
        rows = vectors.rows(texts)
        lengths = vectors.lengths[texts]
        weights = token_weights[vectors.ids[rows]]
        if content_only:
            # A text that has only special tokens keeps one, without weight.
            text = np.repeat(np.arange(len(texts)), lengths)
            keep = weights > 0
            bare = np.bincount(text, weights=keep, minlength=len(texts)) == 0
            keep[(np.cumsum(lengths) - lengths)[bare]] = True
            rows, weights, lengths = rows[keep], weights[keep], np.bincount(text[keep], minlength=len(texts))
        return Side(vectors.vectors[rows], weights, lengths.astype(np.int64))

    def _stream(
        self, texts: Sequence[str], rows: Sequence[TextRows], tokenized: TokenizedTexts
    ) -> Iterator[tuple[Floats, ...]]:
        """The matrices of each query; only the vectors of a single chunk of queries are in memory at a time."""
        weights = self.token_weights(tokenized, rows)
        worst = (self.worst, *(self.worst_component(name) for name in self.component_names))
        blank = np.array([not text.strip() for text in texts])
        for chunk in self._chunks(rows, tokenized):
            place: dict[int, int] = {}
            local = [
                ([place.setdefault(t, len(place)) for t in hyps], [place.setdefault(t, len(place)) for t in refs])
                for hyps, refs in chunk
            ]
            vectors = self.finish(self.encoder.encode(tokenized.encodings.take(list(place))))
            for (hyps, refs), parts in zip(chunk, self.chunk_matrices(vectors, local, weights), strict=True):
                for part, low in zip(parts, worst, strict=True):
                    part[np.isnan(part)] = low
                    part[blank[hyps]] = low
                    part[:, blank[refs]] = low
                yield parts

    def _chunks(self, rows: Sequence[TextRows], tokenized: TokenizedTexts) -> Iterator[list[TextRows]]:
        lengths = tokenized.encodings.lengths
        budget = max(1, CHUNK_VALUES // self.source.width)
        chunk: list[TextRows] = []
        held: set[int] = set()
        tokens = 0
        for query in rows:
            fresh = {*query[0], *query[1]} - held
            more = int(lengths[list(fresh)].sum())
            if chunk and tokens + more > budget:
                yield chunk
                chunk, held, tokens = [], set(), 0
                fresh = {*query[0], *query[1]}
                more = int(lengths[list(fresh)].sum())
            chunk.append(query)
            held |= fresh
            tokens += more
        if chunk:
            yield chunk


def unit_vectors(vectors: TokenVectors) -> TokenVectors:
    """The same vectors with length 1."""
    norms = vectors.vectors.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    return TokenVectors(vectors.vectors / norms, vectors.ids, vectors.starts, vectors.lengths)
