"""chrF and chrF++: F-score of character n-grams, per text and for a whole system.

Explained in docs/explanation/evaluators/lexical-overlap.md#chrf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from scoring.ml.base import Floats, PairEvaluator, Query, group_by_references
from scoring.ml.catalogue import Entry
from scoring.ml.options import flag, integer, number
from scoring.ml.signature import SignatureField
from scoring.ml.sums import within
from scoring.ml.text.ngrams import index_queries, pair_matches, totals
from scoring.ml.text.tokens import character_table, sequence_table
from scoring.ml.types import Record

_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def chrf_score(matches: Floats, hyp_totals: Floats, ref_totals: Floats, beta: float) -> Floats:
    """Return chrF in 0..100 from n-gram counts by order, each (orders, ...).

    `matches` are the shared n-grams, `hyp_totals` and `ref_totals` those of text and reference. Precision and recall
    are averaged over the orders that both sides have, then F = (1 + b^2) P R / (b^2 P + R) with b = `beta`. Source:
    Popovic 2015; equal to sacrebleu 2.6.
    """
    both = (hyp_totals > 0) & (ref_totals > 0)
    n_orders = np.maximum(both.sum(axis=0), 1)
    precision = np.where(both, matches / np.maximum(hyp_totals, 1), 0.0).sum(axis=0) / n_orders
    recall = np.where(both, matches / np.maximum(ref_totals, 1), 0.0).sum(axis=0) / n_orders
    below = beta**2 * precision + recall
    return within(100.0 * (1 + beta**2) * precision * recall / np.where(below > 0, below, 1.0), (None, 100.0))


def split_punctuation(text: str) -> list[str]:
    """Return the words of a `text` as chrF++ counts them: one punctuation mark is split off the end of a word, or else
    off its beginning.

    >>> split_punctuation("Well, (yes)")
    ['Well', ',', '(yes', ')']
    """
    words: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in _PUNCTUATION:
            words += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in _PUNCTUATION:
            words += [word[0], word[1:]]
        else:
            words.append(word)
    return words


class Chrf(PairEvaluator):
    """Best over references of chrF (character n-grams up to 6, beta 2); `word_order=2` gives chrF++."""

    def signature_fields(self) -> list[SignatureField]:
        return [
            SignatureField("nrefs", "#", "var"),
            SignatureField("case", "c", "lc" if self.options["lowercase"] else "mixed"),
            SignatureField("eff", "e", "yes"),
            SignatureField("nc", "nc", str(self.options["char_order"])),
            SignatureField("nw", "nw", str(self.options["word_order"])),
            SignatureField("beta", "b", f"{self.option_float('beta'):g}"),
            SignatureField("space", "s", "no"),
        ]

    def pair_matrices(self, queries: Sequence[Query]) -> Iterator[Floats]:
        beta = self.option_float("beta")
        for matches, hyp_totals, ref_totals in self._counts(queries):
            yield chrf_score(matches, hyp_totals[:, :, None], ref_totals[:, None, :], beta)

    def system_statistics(self, records: Sequence[Record]) -> Floats:
        """(n, 3 orders + 1): matches, n-grams of the text and of its best reference, by order; 1. Zeros without
        references. As in sacrebleu, the chrF of a system is that of the sums."""
        orders = self.option_int("char_order") + self.option_int("word_order")
        rows = np.zeros((len(records), 3 * orders + 1))
        defined = [place for place, record in enumerate(records) if not self.undefined(record)]
        queries, places = group_by_references([records[place] for place in defined])
        beta = self.option_float("beta")
        for (matches, hyp_totals, ref_totals), of_query in zip(self._counts(queries), places, strict=True):
            values = chrf_score(matches, hyp_totals[:, :, None], ref_totals[:, None, :], beta)
            for row, best in enumerate(values.argmax(axis=1)):
                reference = ref_totals[:, best]
                # An order the reference does not have is no miss of the text.
                text = np.where(reference > 0, hyp_totals[:, row], 0)
                rows[defined[of_query[row]]] = [*matches[:, row, best], *text, *reference, 1]
        return rows

    def from_sums(self, sums: Floats) -> Floats:
        matches, texts, references = np.split(np.moveaxis(sums[..., :-1], -1, 0), 3)
        result = chrf_score(matches, texts, references, self.option_float("beta"))
        return np.where(sums[..., -1] > 0, result, np.nan)

    def _counts(self, queries: Sequence[Query]) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Per query matches (orders, H, R), n-gram counts (orders, H) and (orders, R)."""
        lower = bool(self.options["lowercase"])
        texts, rows = index_queries(queries)
        texts = [text.lower() for text in texts] if lower else texts
        sources = [(character_table(texts), self.option_int("char_order"))]
        if self.option_int("word_order"):
            words = sequence_table([split_punctuation(text) for text in texts])
            sources.append((words, self.option_int("word_order")))
        streams = [pair_matches(table, rows, order) for table, order in sources]
        for (hyps, refs), *matches in zip(rows, *streams, strict=True):
            yield (
                np.concatenate(matches),
                np.concatenate([totals(table.lengths[hyps], order) for table, order in sources]),
                np.concatenate([totals(table.lengths[refs], order) for table, order in sources]),
            )


ENTRIES = (
    Entry(
        name="chrf",
        summary="F-score of character n-grams, best reference.",
        build=Chrf,
        scale=(0.0, 100.0),
        needs=("references",),
        options=(
            integer("char_order", 6, "Longest character n-gram.", minimum=1),
            integer("word_order", 0, "Longest word n-gram; 2 gives chrF++.", minimum=0),
            number("beta", 2.0, "Weight of recall.", minimum=0),
            flag("lowercase", False, "Ignore case."),
        ),
        system_score="corpus",
        citation="Popovic 2015, chrF: character n-gram F-score for automatic MT evaluation",
    ),
)
