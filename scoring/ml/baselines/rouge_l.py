"""ROUGE-L: the longest common subsequence of tokens; English as in rouge-score, other languages in any script.

Explained in docs/explanation/evaluators/lexical-overlap.md#rouge-l.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from scoring.ml.base import Floats, PairEvaluator, Query, get_references
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.options import choice, number, text
from scoring.ml.signature import SignatureField
from scoring.ml.text.ngrams import index_queries
from scoring.ml.text.tokens import is_mostly, rouge_tokenizer_for, token_table
from scoring.ml.types import Record

_NOT_A_TO_Z = re.compile("[^a-z]")
_TOKEN = re.compile("[a-z0-9]")
_WAY_OUT = "set `lang` to the language of the texts, or tokenize=unicode"


class Subsequence:
    """Lengths of the longest common subsequence of a token sequence with others, bit-parallel.

    Bit i of the state is 0 if the i-th token closes one more match (Hyyro 2004); a step is three operations on integers
    of any length.
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

    `beta` 1 is the F1 of rouge-score; older papers use 1.2. For English the tokens are those of the rouge-score
    package without its stemmer, `[a-z0-9]+` of the lower-cased text; a text that would lose more than half of its
    letters is undefined. For any other `lang` tokens are words of every script and single symbols (`unicode`).
    """

    def __init__(self, entry: Entry, options: Mapping[str, OptionValue]) -> None:
        super().__init__(entry, options)
        asked = self.option_text("tokenize")
        self.tokenizer = rouge_tokenizer_for(self.option_text("lang")) if asked == "auto" else asked

    def undefined(self, record: Record) -> str:
        result = super().undefined(record)
        if result or self.tokenizer != "rouge-score":
            return result
        if _is_lost(record.text):
            return f"the tokens of rouge-score (a-z, 0-9) miss most of the text: {_WAY_OUT}"
        if all(map(_is_lost, get_references(record))):
            return f"the tokens of rouge-score (a-z, 0-9) miss most of every reference: {_WAY_OUT}"
        return ""

    def signature_fields(self) -> list[SignatureField]:
        return [
            SignatureField("nrefs", "#", "var"),
            SignatureField("tok", "tok", self.tokenizer),
            SignatureField("beta", "b", f"{self.option_float('beta'):g}"),
        ]

    def pair_matrices(self, queries: Sequence[Query]) -> Iterator[Floats]:
        texts, rows = index_queries(queries)
        table = token_table(texts, self.tokenizer, lowercase=True)
        tokens = [table.row(index).tolist() for index in range(len(texts))]
        weight = self.option_float("beta") ** 2
        for hyps, refs in rows:
            common = np.zeros((len(hyps), len(refs)))
            for row, hyp in enumerate(hyps):
                subsequence = Subsequence(tokens[hyp])
                common[row] = [subsequence.length(tokens[ref]) for ref in refs]
            # With P = LCS/h and R = LCS/r the F-score is (1 + b^2) LCS / (h + b^2 r).
            below = table.lengths[hyps][:, None] + weight * table.lengths[refs][None, :]
            yield (1 + weight) * common / np.where(below > 0, below, 1.0)


def _is_lost(text: str) -> bool:
    """Whether the tokens of rouge-score leave out all of a text that is not ASCII, or more than half of its letters."""
    if text.isascii():
        return False
    lower = text.lower()
    return _TOKEN.search(lower) is None or is_mostly(lower, _NOT_A_TO_Z)


ENTRIES = (
    Entry(
        name="rouge-l",
        summary="Longest common subsequence of tokens, best reference, any script.",
        build=RougeL,
        scale=(0.0, 1.0),
        needs=("references",),
        options=(
            choice(
                "tokenize",
                ("auto", "unicode", "rouge-score"),
                "rouge-score: that package's tokens; unicode: words of any script; auto: by `lang`.",
            ),
            text("lang", "en", "Language of the texts: auto takes the tokens of rouge-score for en."),
            number("beta", 1.0, "Weight of recall; 1.2 in older papers.", minimum=0),
        ),
        citation="Lin 2004, ROUGE: a package for automatic evaluation of summaries",
        papers=("lin-2004-rouge",),
    ),
)
