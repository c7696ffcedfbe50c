"""Embedding average, extrema and greedy matching on the token vectors of an encoder.

Explained in docs/explanation/evaluators/embedding-similarity.md#average-extrema-and-greedy-matching.
"""

from __future__ import annotations

from abc import abstractmethod

from scoring.ml.base import Floats
from scoring.ml.baselines.encoder_pairs import (
    ENCODER_OPTIONS,
    EncoderPairEvaluator,
    TextRows,
    unit_vectors,
)
from scoring.ml.catalogue import Entry
from scoring.ml.encoders.frozen import TokenVectors
from scoring.ml.encoders.matching import Side, cosines, extreme_vectors, greedy_match, mean_vectors


class EmbeddingMetric(EncoderPairEvaluator):
    """Base of the three metrics: a measure between the content tokens of two texts."""

    @abstractmethod
    def compare(self, hyps: Side, refs: Side) -> Floats:
        """(H, R) the measure of all pairs."""

    def matrices(self, vectors: TokenVectors, query: TextRows, weights: Floats) -> tuple[Floats, ...]:
        hyps, refs = (self.side(vectors, texts, weights, content_only=True) for texts in query)
        return (self.compare(hyps, refs),)


class EmbeddingAverage(EmbeddingMetric):
    """Cosine of the mean token vectors, special tokens left out; in -1..1. With the installed MiniLM and its last
    layer nearly the similarity it was trained for, whose mean includes the special tokens."""

    def compare(self, hyps: Side, refs: Side) -> Floats:
        return cosines(mean_vectors(hyps), mean_vectors(refs))


class EmbeddingExtrema(EmbeddingMetric):
    """Cosine of the vectors made of each dimension's value furthest from zero; in -1..1."""

    def compare(self, hyps: Side, refs: Side) -> Floats:
        return cosines(extreme_vectors(hyps), extreme_vectors(refs))


class EmbeddingGreedy(EmbeddingMetric):
    """Mean over tokens of the best cosine on the other side, averaged over both directions; in -1..1."""

    def finish(self, vectors: TokenVectors) -> TokenVectors:
        return unit_vectors(vectors)

    def compare(self, hyps: Side, refs: Side) -> Floats:
        forward, backward = greedy_match(hyps, refs)
        return (forward + backward) / 2


ENTRIES = tuple(
    Entry(
        name=f"embedding-{name}",
        summary=summary,
        build=build,
        scale=(-1.0, 1.0),
        needs=("references", "encoder"),
        options=ENCODER_OPTIONS,
        citation=citation,
        papers=papers,
    )
    for name, build, summary, citation, papers in (
        (
            "average",
            EmbeddingAverage,
            "Cosine of mean token vectors, best reference.",
            "Liu et al. 2016, How not to evaluate your dialogue system",
            ("liu-etal-2016-evaluate",),
        ),
        (
            "extrema",
            EmbeddingExtrema,
            "Cosine of the extreme values of token vectors, best reference.",
            "Forgues et al. 2014, Bootstrapping dialog systems with word embeddings",
            ("forgues-etal-2014-bootstrapping",),
        ),
        (
            "greedy",
            EmbeddingGreedy,
            "Greedy matching of token vectors in both directions, best reference.",
            "Rus and Lintean 2012, A comparison of greedy and optimal assessment",
            ("rus-lintean-2012-comparison",),
        ),
    )
)
