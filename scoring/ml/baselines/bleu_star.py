"""BLEU*: the best single-reference sentence BLEU over the references, and the matrix of all pairs.

Explained in docs/explanation/evaluators/lexical-overlap.md#bleu-star.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from scoring.ml.base import Floats, PairEvaluator, Query
from scoring.ml.baselines.bleu import SMOOTH_OPTIONS, BleuMetric, get_smoothing
from scoring.ml.baselines.bleu_statistics import bleu, orders_needed
from scoring.ml.baselines.words import TOKEN_OPTIONS
from scoring.ml.catalogue import Entry
from scoring.ml.text.ngrams import index_queries, pair_matches, totals


class BleuStar(BleuMetric, PairEvaluator):
    """m(y, R) = max over r of BLEU-4(y, r), in 0..100; by default sacrebleu's `sentence_score` with exp
    smoothing and effective order, equal to 1e-9."""

    def pair_matrices(self, queries: Sequence[Query]) -> Iterator[Floats]:
        smoothing = get_smoothing(self.options)
        order = orders_needed(4, smoothing.method)
        texts, rows = index_queries(queries)
        table = self.tokenize(texts)
        for (hyps, refs), matches in zip(rows, pair_matches(table, rows, order), strict=True):
            hyp_len = table.lengths[hyps]
            yield bleu(
                matches,
                totals(hyp_len, order)[:, :, None],
                hyp_len[:, None].astype(np.float64),
                table.lengths[refs][None, :].astype(np.float64),
                smoothing,
                effective_order=bool(self.options["effective_order"]),
            )


ENTRIES = (
    Entry(
        name="bleu-star",
        summary="Best sentence BLEU over single references.",
        build=BleuStar,
        scale=(0.0, 100.0),
        needs=("references",),
        options=(*TOKEN_OPTIONS, *SMOOTH_OPTIONS),
        citation="Gao et al. 2021, REAM#; Freitag et al. 2020, BLEU might be guilty but references are not innocent",
    ),
)
