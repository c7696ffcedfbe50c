"""ROUGE-L: the longest common subsequence of tokens, safe for every script."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scoring.ml.base import Floats, PairEvaluator, Progress, Query
from scoring.ml.catalogue import Entry, Option
from scoring.ml.signature import SignatureField
from scoring.ml.text.ngrams import index_queries
from scoring.ml.text.tokens import token_table


class Subsequence:
    """Lengths of longest common subsequences of one token sequence with others, bit-parallel.

    Bit i of the state is 0 where the i-th token closes one more match (Hyyro 2004); a step is three operations
    on whole integers, whatever the length.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self.full = (1 << len(tokens)) - 1
        self.places: dict[int, int] = {}
        for place, token in enumerate(tokens):
            self.places[token] = self.places.get(token, 0) | (1 << place)

    def length(self, other: Sequence[int]) -> int:
        """The length of the longest common subsequence with `other`."""
        state, find = self.full, self.places.get
        for token in other:
            matched = state & find(token, 0)
            if matched:
                state = ((state + matched) | (state - matched)) & self.full
        return (state ^ self.full).bit_count()


class RougeL(PairEvaluator):
    """Best over references of F = (1 + b^2) P R / (R + b^2 P), P = LCS/|y|, R = LCS/|r|, in 0..1.

    `beta` 1 is the F1 of rouge-score; older papers use 1.2. `tokenize="rouge-score"` gives that package's
    tokens (only `[a-z0-9]`, so texts in other scripts get 0); the default knows all scripts.
    """

    def signature_fields(self) -> list[SignatureField]:
        return [
            SignatureField("nrefs", "#", "var"),
            SignatureField("tok", "tok", self.option_text("tokenize")),
            SignatureField("beta", "b", f"{self.option_float('beta'):g}"),
        ]

    def all_pairs(self, queries: Sequence[Query], *, progress: Progress | None = None) -> list[Floats]:
        """ROUGE-L of every hypothesis against every reference of its query: matrices (H, R)."""
        texts, rows = index_queries(queries)
        table = token_table(texts, self.option_text("tokenize"), lowercase=True)
        tokens = [table.row(index).tolist() for index in range(len(texts))]
        weight = self.option_float("beta") ** 2
        matrices = []
        for hyps, refs in rows:
            common = np.zeros((len(hyps), len(refs)))
            for row, hyp in enumerate(hyps):
                subsequence = Subsequence(tokens[hyp])
                common[row] = [subsequence.length(tokens[ref]) for ref in refs]
            # With P = LCS/h and R = LCS/r the F-score is (1 + b^2) LCS / (h + b^2 r).
            below = table.lengths[hyps][:, None] + weight * table.lengths[refs][None, :]
            matrices.append((1 + weight) * common / np.where(below > 0, below, 1.0))
            if progress is not None:
                progress(len(matrices), len(rows))
        return matrices


ENTRIES = (
    Entry(
        name="rouge-l",
        kind="baseline",
        summary="Longest common subsequence of tokens, best reference, any script.",
        build=RougeL,
        scale=(0.0, 1.0),
        needs=("references",),
        options=(
            Option(
                "tokenize",
                "str",
                "unicode",
                "unicode: words of any script; rouge-score: that package's tokens.",
                choices=("unicode", "rouge-score"),
            ),
            Option("beta", "float", 1.0, "Weight of recall; 1.2 in older papers.", minimum=0),
        ),
        citation="Lin 2004, ROUGE: a package for automatic evaluation of summaries",
    ),
)
