"""chrF and chrF++: F-score of character n-grams, per text and for a whole system.

Explained in docs/explanation/evaluators/lexical-overlap.md#chrf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from scoring.ml.base import Floats, PairEvaluator, Partial, Progress, Query, group_by_references
from scoring.ml.catalogue import Entry
from scoring.ml.options import flag, integer, number
from scoring.ml.signature import SignatureField
from scoring.ml.sums import within
from scoring.ml.text.ngrams import QueryChunk, chunk_queries, count_pairs, index_queries, totals
from scoring.ml.text.tokens import Ints, character_table, sequence_table
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
        for chunk, counts in self._counts(queries):
            sizes = chunk.n_hyps * chunk.n_refs
            blocks = np.split(chrf_score(*counts, self.option_float("beta")), np.cumsum(sizes)[:-1])
            for block, n_hyps, n_refs in zip(blocks, chunk.n_hyps, chunk.n_refs, strict=True):
                yield block.reshape(int(n_hyps), int(n_refs))

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        queries, places = group_by_references(records)
        values = np.empty(len(records))
        order = np.fromiter(chain.from_iterable(places), np.int64, len(records))
        done = 0
        for chunk, counts in self._counts(queries):
            scores = chrf_score(*counts, self.option_float("beta"))
            at = order[done : done + len(chunk.hyps)]
            values[at] = np.maximum.reduceat(scores, chunk.first_pairs())
            done += len(at)
            progress(done, len(records))
        return Partial(values)

    def system_statistics(self, records: Sequence[Record]) -> Floats:
        """(n, 3 orders + 1): matches, n-grams of the text and of its best reference, by order; 1. Zeros without
        references. As in sacrebleu, the chrF of a system is that of the sums."""
        orders = self.option_int("char_order") + self.option_int("word_order")
        rows = np.zeros((len(records), 3 * orders + 1))
        defined = [place for place, record in enumerate(records) if not self.undefined(record)]
        queries, places = group_by_references([records[place] for place in defined])
        order = np.fromiter((defined[place] for place in chain.from_iterable(places)), np.int64, len(defined))
        done = 0
        for chunk, counts in self._counts(queries):
            best = _find_best_pairs(chunk, chrf_score(*counts, self.option_float("beta")))
            matches, texts, references = (part[:, best] for part in counts)
            # An order the reference does not have is no miss of the text.
            texts = np.where(references > 0, texts, 0)
            at = order[done : done + len(best)]
            rows[at] = np.concatenate([matches, texts, references, np.ones((1, len(best)))]).T
            done += len(at)
        return rows

    def from_sums(self, sums: Floats) -> Floats:
        matches, texts, references = np.split(np.moveaxis(sums[..., :-1], -1, 0), 3)
        result = chrf_score(matches, texts, references, self.option_float("beta"))
        return np.where(sums[..., -1] > 0, result, np.nan)

    def _counts(self, queries: Sequence[Query]) -> Iterator[tuple[QueryChunk, tuple[Floats, Floats, Floats]]]:
        """Chunks of queries, with matches and n-gram counts of text and reference of their pairs, (orders, pairs)."""
        lower = bool(self.options["lowercase"])
        texts, rows = index_queries(queries)
        texts = [text.lower() for text in texts] if lower else texts
        characters = character_table(texts)
        sources = [(characters, self.option_int("char_order"))]
        if self.option_int("word_order"):
            words = sequence_table([split_punctuation(text) for text in texts])
            sources.append((words, self.option_int("word_order")))
        for chunk in chunk_queries(characters, rows):
            hyp, ref = chunk.pair_sides()
            matches = np.concatenate([count_pairs(table, chunk, order) for table, order in sources])
            hyp_totals, ref_totals = (
                np.concatenate([totals(table.lengths[side], order) for table, order in sources])
                for side in (chunk.hyps[hyp], chunk.refs[ref])
            )
            yield chunk, (matches, hyp_totals, ref_totals)


def _find_best_pairs(chunk: QueryChunk, values: Floats) -> Ints:
    """(hypotheses,) the pair of each with the highest value; the first one of equal ones."""
    first = chunk.first_pairs()
    highest = np.repeat(np.maximum.reduceat(values, first), chunk.refs_per_hyp())
    candidates = np.flatnonzero(values == highest)
    return np.asarray(candidates[np.searchsorted(candidates, first)])


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
        papers=("popovic-2015-chrf",),
    ),
)
