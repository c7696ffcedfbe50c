"""The BLEU family: sentence BLEU-1 to 4, their average and corpus BLEU, all multi-reference; and BLEU*, the best
single-reference sentence BLEU over the references.

Except in BLEU*, matches are clipped against the largest count in any reference, and the brevity penalty uses the
reference length closest to the text's (the shorter one of two equally close).

Explained in docs/explanation/evaluators/lexical-overlap.md#bleu.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from scoring.ml.base import Floats, PairEvaluator, Partial, Progress, Query, group_by_references
from scoring.ml.baselines.bleu_statistics import SMOOTHING, Smoothing, bleu, orders_needed
from scoring.ml.baselines.words import TOKEN_OPTIONS, WordMetric
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.options import choice, flag, number
from scoring.ml.signature import SignatureField, yes_no
from scoring.ml.text.ngrams import QueryChunk, chunk_queries, count_unions, index_queries, pair_matches, totals
from scoring.ml.text.tokens import Ints, token_table
from scoring.ml.types import Record

SMOOTH_OPTIONS = (
    choice(
        "smooth",
        SMOOTHING,
        "Smoothing of orders without a match: sacrebleu's exp, floor, add-k, none; NLTK's method0 to 5, method7.",
        default="exp",
    ),
    number("smooth_value", None, "Floor (.1), added count (1) or epsilon of method1 (.1).", minimum=0),
    flag("effective_order", True, "Stop at the longest n-gram the text has (sacrebleu's smoothings)."),
)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sufficient statistics of sentences, one column each; corpora add them up."""

    matches: Floats  # (order, n)
    totals: Floats  # (order, n)
    hyp_len: Floats  # (n,)
    ref_len: Floats  # (n,)


def get_smoothing(options: Mapping[str, OptionValue]) -> Smoothing:
    """The smoothing that the `options` `smooth` and `smooth_value` select."""
    value = options["smooth_value"]
    return Smoothing(str(options["smooth"]), None if value is None else float(value))


def bleu_scale(options: dict[str, OptionValue]) -> tuple[float | None, float | None]:
    """Return the range of BLEU with these `options`: 0 to 100, open above for smoothings that may give a precision
    above 1 (NLTK's methods 5 and 7, values above 1)."""
    value = options["smooth_value"]
    exceeds = options["smooth"] in ("method5", "method7") or (value is not None and float(value) > 1)
    return 0.0, None if exceeds else 100.0


def bleu_fields(options: dict[str, OptionValue], tokenizer: str) -> list[SignatureField]:
    """Return the fields of a signature in sacrebleu's terms, for these `options` and the name of the `tokenizer`."""
    smooth, value = str(options["smooth"]), options["smooth_value"]
    if value is not None:
        smooth = f"{smooth}[{value:g}]"
    lower, effective = bool(options["lowercase"]), bool(options["effective_order"])
    return [
        SignatureField("nrefs", "#", "var"),
        SignatureField("case", "c", ("lc" if lower else "mixed")),
        SignatureField("eff", "e", yes_no(effective)),
        SignatureField("tok", "tok", tokenizer),
        SignatureField("smooth", "s", smooth),
    ]


def sentence_statistics(records: Sequence[Record], order: int, tokenizer: str, lowercase: bool) -> Statistics:
    """Return the matches of each of the `records` against all its references together, up to n-grams of `order`.

    `tokenizer` is a key of `text.tokens.SPLITTERS`; `lowercase` ignores case.
    """
    queries, places = group_by_references(records)
    texts, rows = index_queries(queries)
    table = token_table(texts, tokenizer, lowercase)
    n = len(records)
    stats = Statistics(np.zeros((order, n)), np.zeros((order, n)), np.zeros(n), np.zeros(n))
    flat = np.fromiter(chain.from_iterable(places), np.int64, n)
    done = 0
    for chunk in chunk_queries(table, rows):
        at = flat[done : done + len(chunk.hyps)]
        lengths = table.lengths[chunk.hyps]
        stats.matches[:, at] = count_unions(table, chunk, order)
        stats.totals[:, at] = totals(lengths, order)
        stats.hyp_len[at] = lengths
        stats.ref_len[at] = _closest_lengths(chunk, lengths, table.lengths[chunk.refs])
        done += len(at)
    return stats


def _closest_lengths(chunk: QueryChunk, lengths: Ints, ref_lengths: Ints) -> Ints:
    """(hypotheses,) the reference length closest to each of their `lengths`, the shorter of two equally close ones."""
    hyp, ref = chunk.pair_sides()
    # One number orders by distance, then by length.
    base = int(ref_lengths.max(initial=0)) + 1
    keys = np.abs(ref_lengths[ref] - lengths[hyp]) * base + ref_lengths[ref]
    return np.asarray(np.minimum.reduceat(keys, chunk.first_pairs()) % base)


class BleuMetric(WordMetric):
    """Base of the family, with `TOKEN_OPTIONS` and `SMOOTH_OPTIONS`."""

    @property
    def scale(self) -> tuple[float | None, float | None]:
        return bleu_scale(self.options)

    def signature_fields(self) -> list[SignatureField]:
        return bleu_fields(self.options, self.tokenizer)


class SentenceBleu(BleuMetric):
    """BLEU-1 ... BLEU-4 of each text: BP * exp(mean over i <= n of log p_i), in 0..100."""

    def __init__(self, entry: Entry, options: dict[str, OptionValue], *, orders: Sequence[int]) -> None:
        super().__init__(entry, options)
        self.orders = tuple(orders)

    def statistics(self, records: Sequence[Record]) -> Statistics:
        """The sufficient statistics of the records, all orders the smoothing needs."""
        order = orders_needed(max(self.orders), self.option_text("smooth"))
        return sentence_statistics(records, order, self.tokenizer, bool(self.options["lowercase"]))

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        stats = self.statistics(records)
        effective = bool(self.options.get("effective_order", True))
        values = np.mean([self.compute_bleu(stats, n, effective_order=effective) for n in self.orders], axis=0)
        progress(len(records), len(records))
        return Partial(values)

    def compute_bleu(self, stats: Statistics, order: int, *, effective_order: bool) -> Floats:
        """BLEU of each column of the statistics, smoothed as the options say."""
        return bleu(
            stats.matches,
            stats.totals,
            stats.hyp_len,
            stats.ref_len,
            get_smoothing(self.options),
            order=order,
            effective_order=effective_order,
        )


class CorpusBleu(SentenceBleu):
    """Corpus BLEU of a system: the statistics of its texts are added up before the precisions are taken.

    `score` is the sentence BLEU-4 of each text over the same statistics with effective order; `system_score` is the
    measure itself, equal to sacrebleu's `corpus_score` (hence `eff:no`).
    """

    def __init__(self, entry: Entry, options: dict[str, OptionValue]) -> None:
        super().__init__(entry, options, orders=(4,))

    def signature_fields(self) -> list[SignatureField]:
        return bleu_fields({**self.options, "effective_order": False}, self.tokenizer)

    def system_statistics(self, records: Sequence[Record]) -> Floats:
        """(n, 2 orders + 3): matches and totals by order, the lengths of text and reference, 1; zeros without
        references. Empty texts count with their missing length."""
        places = [place for place, record in enumerate(records) if not self.undefined(record)]
        stats = self.statistics([records[place] for place in places])
        rows = np.zeros((len(records), 2 * len(stats.matches) + 3))
        lengths = (stats.hyp_len, stats.ref_len, np.ones(len(places)))
        rows[places] = np.concatenate([stats.matches, stats.totals, np.stack(lengths)]).T
        return rows

    def from_sums(self, sums: Floats) -> Floats:
        columns = np.moveaxis(sums, -1, 0).reshape(sums.shape[-1], -1)
        matches, totals_ = np.split(columns[:-3], 2)
        result = self.compute_bleu(Statistics(matches, totals_, columns[-3], columns[-2]), 4, effective_order=False)
        return np.where(columns[-1] > 0, result, np.nan).reshape(sums.shape[:-1])


class BleuStar(BleuMetric, PairEvaluator):
    """m(y, R) = max over r of BLEU-4(y, r), in 0..100; by default sacrebleu's `sentence_score` with exp
    smoothing and effective order, equal to 1e-9 (docs/explanation/evaluators/lexical-overlap.md#bleu-star)."""

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


PAPINENI = "Papineni et al. 2002, BLEU: a method for automatic evaluation of machine translation"
PAPERS = ("papineni-etal-2002-bleu", "post-2018-call")
ENTRIES = (
    *(
        Entry(
            name=f"bleu-{order}",
            summary=f"Sentence BLEU up to {order}-grams, references taken together.",
            build=partial(SentenceBleu, orders=(order,)),
            scale=(0.0, 100.0),
            needs=("references",),
            options=(*TOKEN_OPTIONS, *SMOOTH_OPTIONS),
            citation=PAPINENI,
            papers=PAPERS,
        )
        for order in (1, 2, 3, 4)
    ),
    Entry(
        name="bleu-avg",
        summary="Mean of sentence BLEU-2, BLEU-3 and BLEU-4.",
        build=partial(SentenceBleu, orders=(2, 3, 4)),
        scale=(0.0, 100.0),
        needs=("references",),
        options=(*TOKEN_OPTIONS, *SMOOTH_OPTIONS),
        citation="Zhou and Xu 2020, Learning to compare for better training and evaluation of open domain NLG",
        papers=("zhou-xu-2020-learning", *PAPERS),
    ),
    Entry(
        name="bleu-corpus",
        summary="Corpus BLEU of a system, references taken together; per text its sentence BLEU-4.",
        build=CorpusBleu,
        scale=(0.0, 100.0),
        needs=("references",),
        options=(*TOKEN_OPTIONS, *(option for option in SMOOTH_OPTIONS if option.name != "effective_order")),
        level="system",
        system_score="corpus",
        citation=PAPINENI,
        papers=PAPERS,
    ),
    Entry(
        name="bleu-star",
        summary="Best sentence BLEU over single references.",
        build=BleuStar,
        scale=(0.0, 100.0),
        needs=("references",),
        options=(*TOKEN_OPTIONS, *SMOOTH_OPTIONS),
        citation="Gao et al. 2021, REAM#; Freitag et al. 2020, BLEU might be guilty but references are not innocent",
        papers=("gao-etal-2021-ream", "freitag-etal-2020-bleu", *PAPERS),
    ),
)
