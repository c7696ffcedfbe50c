"""Token F1: the overlap of two texts as bags of words.

Explained in docs/explanation/evaluators/lexical-overlap.md#token-f1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evalapp.words import split_words
from scoring.ml.base import Floats, PairEvaluator, Query
from scoring.ml.catalogue import Entry
from scoring.ml.signature import SignatureField
from scoring.ml.text.ngrams import index_queries, pair_matches
from scoring.ml.text.tokens import sequence_table


class TokenF1(PairEvaluator):
    """Best over references of F1 = 2 |y & r| / (|y| + |r|) on bags of word tokens, in 0..1.

    Words are those of `evalapp.words`, in every script, as in the trivial baseline `length`: `[a-z0-9']+` of a
    lower-cased ASCII text. A text without any (punctuation alone) gets 0.
    """

    def signature_fields(self) -> list[SignatureField]:
        return [SignatureField("nrefs", "#", "var"), SignatureField("tok", "tok", "words")]

    def pair_matrices(self, queries: Sequence[Query]) -> Iterator[Floats]:
        texts, rows = index_queries(queries)
        table = sequence_table([split_words(text) for text in texts])
        for (hyps, refs), matches in zip(rows, pair_matches(table, rows, 1), strict=True):
            sizes = table.lengths[hyps][:, None] + table.lengths[refs][None, :]
            yield 2.0 * matches[0] / np.maximum(sizes, 1)


ENTRIES = (
    Entry(
        name="token-f1",
        summary="Best F1 of word tokens over the references.",
        build=TokenF1,
        scale=(0.0, 1.0),
        needs=("references",),
        citation="Rajpurkar et al. 2016, SQuAD (F1 of bags of tokens)",
        papers=("rajpurkar-etal-2016-squad",),
    ),
)
