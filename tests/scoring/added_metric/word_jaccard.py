"""Jaccard similarity of word sets, the metric that `test_add_a_metric.py` adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evalapp.words import split_words
from scoring.ml.base import Floats, PairEvaluator, Query
from scoring.ml.catalogue import Entry
from scoring.ml.signature import SignatureField


class WordJaccard(PairEvaluator):
    """Best over references of |Y & R| / |Y | R| on sets of words, in 0..1. Source: Jaccard 1912."""

    def signature_fields(self) -> list[SignatureField]:
        return [SignatureField("nrefs", "#", "var"), SignatureField("tok", "tok", "words")]

    def pair_matrices(self, queries: Sequence[Query]) -> Iterator[Floats]:
        for hypotheses, references in queries:
            rows = [[self._similarity(text, reference) for reference in references] for text in hypotheses]
            yield np.array(rows).reshape(len(hypotheses), len(references))

    def _similarity(self, text: str, reference: str) -> float:
        one, two = set(split_words(text)), set(split_words(reference))
        return len(one & two) / len(one | two) if one | two else 0.0


ENTRIES = (
    Entry(
        name="word-jaccard",
        summary="Best Jaccard similarity of word sets over the references.",
        build=WordJaccard,
        scale=(0.0, 1.0),
        needs=("references",),
        citation="Jaccard 1912, The distribution of the flora in the alpine zone",
    ),
)
