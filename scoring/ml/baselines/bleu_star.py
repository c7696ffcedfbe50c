"""BLEU*: the best single-reference sentence BLEU over the references, and the matrix of all pairs.

Explained in docs/explanation/evaluators/lexical-overlap.md#bleu-star.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scoring.ml.base import Floats, PairEvaluator, Progress, Query
from scoring.ml.baselines.bleu import (
    SMOOTH_OPTIONS,
    TOKEN_OPTIONS,
    bleu_fields,
    bleu_scale,
    resolve_tokenizer,
)
from scoring.ml.baselines.bleu_statistics import Smoothing, bleu, orders_needed
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.signature import SignatureField
from scoring.ml.text.ngrams import index_queries, pair_matches, totals
from scoring.ml.text.tokens import token_table, unspaced_remark
from scoring.ml.types import Record


class BleuStar(PairEvaluator):
    """m(y, R) = max over r of BLEU-4(y, r), in 0..100; by default sacrebleu's `sentence_score` with exp
    smoothing and effective order, equal to 1e-9."""

    def __init__(self, entry: Entry, options: dict[str, OptionValue]) -> None:
        super().__init__(entry, options)
        self.tokenizer = resolve_tokenizer(self.options)

    @property
    def scale(self) -> tuple[float | None, float | None]:
        return bleu_scale(self.options)

    def remarks_on(self, records: Sequence[Record]) -> tuple[str, ...]:
        return unspaced_remark((record.text for record in records), self.tokenizer)

    def signature_fields(self) -> list[SignatureField]:
        return bleu_fields(self.options, self.tokenizer)

    def all_pairs(self, queries: Sequence[Query], *, progress: Progress | None = None) -> list[Floats]:
        """Sentence BLEU of every hypothesis against every reference of its query: matrices (H, R)."""
        smooth, value = self.option_text("smooth"), self.options["smooth_value"]
        order = orders_needed(4, smooth)
        texts, rows = index_queries(queries)
        table = token_table(texts, self.tokenizer, bool(self.options["lowercase"]))
        matrices = []
        for (hyps, refs), matches in zip(rows, pair_matches(table, rows, order), strict=True):
            hyp_len = table.lengths[hyps]
            matrix = bleu(
                matches,
                totals(hyp_len, order)[:, :, None],
                hyp_len[:, None].astype(np.float64),
                table.lengths[refs][None, :].astype(np.float64),
                Smoothing(smooth, None if value is None else float(value)),
                effective_order=bool(self.options["effective_order"]),
            )
            matrices.append(matrix)
            if progress is not None:
                progress(len(matrices), len(rows))
        return matrices


ENTRIES = (
    Entry(
        name="bleu-star",
        kind="baseline",
        summary="Best sentence BLEU over single references.",
        build=BleuStar,
        scale=(0.0, 100.0),
        needs=("references",),
        options=(*TOKEN_OPTIONS, *SMOOTH_OPTIONS),
        citation="Gao et al. 2021, REAM#; Freitag et al. 2020, BLEU might be guilty but references are not innocent",
    ),
)
