"""Counts of n-grams shared by texts, for all pairs of a query at once.

The clipped count of a pair, sum over g of min(c_hyp(g), c_ref(g)), is the size of the intersection of two sets if the
k-th occurrence of an n-gram in a text counts as a separate element (g, k). Per query the elements of the hypotheses are
numbered, texts become 0/1 rows, and one sparse matrix product counts the intersections of multiple queries; its cost is
the number of matches. Clipping against the maximum over references is the intersection with the union of their sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.text.tokens import Ints, TokenTable

if TYPE_CHECKING:
    from scipy import sparse

Floats: TypeAlias = npt.NDArray[np.float64]
TextQuery: TypeAlias = tuple[Sequence[int], Sequence[int]]
# Tokens processed at a time: bounds memory and keeps the packed keys below 2**63.
CHUNK_TOKENS = 1 << 19


class Side(NamedTuple):
    """The tokens of all (query, text) instances, concatenated."""

    ids: Ints  # token number
    query: Ints  # query of the token
    text: Ints  # instance of the token
    left: Ints  # tokens from here to the end of the text, this one included


class QueryChunk(NamedTuple):
    """Several queries end to end. Pairs are ordered by query, hypothesis, reference."""

    hyps: Ints  # rows of the hypotheses in the table
    refs: Ints
    n_hyps: Ints  # hypotheses per query
    n_refs: Ints

    def refs_per_hyp(self) -> Ints:
        """(hypotheses,) number of references of each."""
        return np.repeat(self.n_refs, self.n_hyps)

    def first_pairs(self) -> Ints:
        """(hypotheses,) the first pair of each."""
        return _starts(self.refs_per_hyp())

    def pair_sides(self) -> tuple[Ints, Ints]:
        """(pairs,) places of the hypothesis and of the reference of each pair in `hyps` and `refs`."""
        counts = self.refs_per_hyp()
        hyp = np.repeat(np.arange(len(self.hyps)), counts)
        inside = np.arange(len(hyp)) - np.repeat(_starts(counts), counts)
        return hyp, np.repeat(_starts(self.n_refs), self.n_hyps)[hyp] + inside


class Elements(NamedTuple):
    """Occurrences of n-grams with the same order: text and column of each, sorted by text. Each query has its own
    columns."""

    text: Ints
    column: Ints


def index_queries(
    queries: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> tuple[list[str], list[tuple[list[int], list[int]]]]:
    """The distinct texts of all queries, and each query as places in that list."""
    number: dict[str, int] = {}
    rows = [
        (
            [number.setdefault(text, len(number)) for text in hypotheses],
            [number.setdefault(text, len(number)) for text in references],
        )
        for hypotheses, references in queries
    ]
    return list(number), rows


def pair_matches(table: TokenTable, queries: Sequence[TextQuery], order: int) -> Iterator[Floats]:
    """Yield for each of the `queries` an array (order, hypotheses, references) of clipped n-gram matches.

    A query is (rows of hypotheses, rows of references) of the `table`; `order` is the longest n-gram.
    """
    for chunk in chunk_queries(table, queries):
        sizes = chunk.n_hyps * chunk.n_refs
        blocks = np.split(count_pairs(table, chunk, order), np.cumsum(sizes)[:-1], axis=1)
        for block, n_hyps, n_refs in zip(blocks, chunk.n_hyps, chunk.n_refs, strict=True):
            yield block.reshape(order, int(n_hyps), int(n_refs))


def count_pairs(table: TokenTable, chunk: QueryChunk, order: int) -> Floats:
    """(order, pairs) clipped n-gram matches of all pairs of a `chunk` of queries over a `table`, up to n-grams of
    `order`."""
    if (chunk.n_refs == 1).all():
        return count_unions(table, chunk, order)  # the same, without a matrix product
    hyps, refs = _side(table, chunk.hyps, chunk.n_hyps), _side(table, chunk.refs, chunk.n_refs)
    # Pairs are ordered by query, then hypothesis: pair (i, j) is at first[i] + inside[j].
    first, inside = chunk.first_pairs(), _places(chunk.n_refs)[1]
    counts = np.zeros((order, int((chunk.n_hyps * chunk.n_refs).sum())))
    for n, (hyp, ref, width) in enumerate(_orders(hyps, refs, order, table.size)):
        if not len(ref.text):
            break  # without a common n-gram there is no longer one either
        left = _incidence(hyp.text, hyp.column, (len(first), width))
        right = _incidence(ref.column, ref.text, (width, len(inside)))
        product = left @ right
        rows = np.repeat(np.arange(len(first)), np.diff(product.indptr))
        counts[n, first[rows] + inside[product.indices]] = product.data
    return counts


def count_unions(table: TokenTable, chunk: QueryChunk, order: int) -> Floats:
    """(order, hypotheses) matches clipped against the maximum over all references of the query, for a `chunk` of
    queries over a `table`; `order` is the longest n-gram."""
    hyps, refs = _side(table, chunk.hyps, chunk.n_hyps), _side(table, chunk.refs, chunk.n_refs)
    counts = np.zeros((order, len(chunk.hyps)))
    for n, (hyp, ref, width) in enumerate(_orders(hyps, refs, order, table.size)):
        present = np.zeros(width, dtype=np.bool_)
        present[ref.column] = True
        counts[n] = np.bincount(hyp.text[present[hyp.column]], minlength=len(chunk.hyps))
    return counts


def totals(lengths: Ints, order: int) -> Floats:
    """(order, n) the number of n-grams in texts with such `lengths`, up to `order`."""
    return np.maximum(lengths[None, :] - np.arange(order)[:, None], 0).astype(np.float64)


def chunk_queries(table: TokenTable, queries: Sequence[TextQuery]) -> Iterator[QueryChunk]:
    """Yield the `queries` over a `table` in chunks of limited memory."""
    if not queries:
        return
    hyps, n_hyps = _flatten(query[0] for query in queries)
    refs, n_refs = _flatten(query[1] for query in queries)
    hyp_ends, ref_ends = np.cumsum(n_hyps), np.cumsum(n_refs)
    # Tokens up to the end of each query.
    tokens = _sums_to(table.lengths[hyps], hyp_ends) + _sums_to(table.lengths[refs], ref_ends)
    start = done = 0
    while start < len(queries):
        end = max(int(np.searchsorted(tokens, done + CHUNK_TOKENS, side="right")), start + 1)
        hyp, ref = (slice(ends[start - 1] if start else 0, ends[end - 1]) for ends in (hyp_ends, ref_ends))
        yield QueryChunk(hyps[hyp], refs[ref], n_hyps[start:end], n_refs[start:end])
        start, done = end, int(tokens[end - 1])


def _flatten(sides: Iterable[Sequence[int]]) -> tuple[Ints, Ints]:
    lists = list(sides)
    counts = np.fromiter(map(len, lists), np.int64, len(lists))
    return np.fromiter(chain.from_iterable(lists), np.int64, int(counts.sum())), counts


def _sums_to(values: Ints, ends: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(values)])[ends]


def _side(table: TokenTable, rows: Ints, counts: Ints) -> Side:
    lengths = table.lengths[rows]
    text = np.repeat(np.arange(len(rows)), lengths)
    inside = np.arange(len(text)) - np.repeat(_starts(lengths), lengths)
    query = np.repeat(np.arange(len(counts)), counts)[text]
    return Side(table.ids[table.starts[rows][text] + inside], query, text, lengths[text] - inside)


def _orders(hyps: Side, refs: Side, order: int, size: int) -> Iterator[tuple[Elements, Elements, int]]:
    """Order by order the occurrences on both sides, and how many columns they take.

    An n-gram is numbered by its prefix and last token. A reference position is followed only as long as its
    n-gram occurs in a hypothesis of the query.
    """
    hyp_at, hyp_gram = np.arange(len(hyps.ids)), hyps.query
    ref_at, ref_gram = np.arange(len(refs.ids)), refs.query
    for n in range(order):
        keep = hyps.left[hyp_at] > n
        hyp_at, hyp_gram = hyp_at[keep], hyp_gram[keep]
        keys, hyp_gram = np.unique(hyp_gram * size + hyps.ids[hyp_at + n], return_inverse=True)
        keep = refs.left[ref_at] > n
        ref_at, ref_gram = ref_at[keep], ref_gram[keep]
        ref_at, ref_gram = _found(keys, ref_gram * size + refs.ids[ref_at + n], ref_at)
        hyp = _occurrences(hyps.text[hyp_at], hyp_gram, len(keys))
        ref = _occurrences(refs.text[ref_at], ref_gram, len(keys))
        yield _columns(hyp, ref, len(keys))


def _found(keys: Ints, wanted: Ints, at: Ints) -> tuple[Ints, Ints]:
    """Positions whose key is among the sorted keys, and the key's number."""
    if not len(keys):
        return at[:0], at[:0]
    place = np.searchsorted(keys, wanted)
    place[place == len(keys)] = 0
    hit = keys[place] == wanted
    return at[hit], place[hit]


def _columns(
    hyp: tuple[Ints, Ints, Ints], ref: tuple[Ints, Ints, Ints], n_grams: int
) -> tuple[Elements, Elements, int]:
    """Assign columns n-gram by n-gram, as many as the most repetitive hypothesis needs."""
    hyp_text, hyp_gram, hyp_turn = hyp
    ref_text, ref_gram, ref_turn = ref
    needed = np.zeros(n_grams, dtype=np.int64)
    np.maximum.at(needed, hyp_gram, hyp_turn + 1)
    first = _starts(needed)
    keep = ref_turn < needed[ref_gram]
    return (
        Elements(hyp_text, first[hyp_gram] + hyp_turn),
        Elements(ref_text[keep], first[ref_gram[keep]] + ref_turn[keep]),
        int(needed.sum()),
    )


def _occurrences(text: Ints, gram: Ints, n_grams: int) -> tuple[Ints, Ints, Ints]:
    """Text, n-gram and turn (0, 1, ... within the text) of every occurrence, sorted by text and n-gram."""
    keys = text * max(n_grams, 1) + gram
    keys.sort()
    places = np.arange(len(keys))
    fresh = np.ones(len(keys), dtype=np.bool_)
    fresh[1:] = keys[1:] != keys[:-1]
    turn = places - np.maximum.accumulate(np.where(fresh, places, 0))
    text, gram = np.divmod(keys, max(n_grams, 1))
    return text, gram, turn


def _incidence(rows: Ints, columns: Ints, shape: tuple[int, int]) -> sparse.csr_array:
    from scipy import sparse  # takes a tenth of a second, which reading the catalogue should not cost

    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _places(counts: Ints) -> tuple[Ints, Ints]:
    """The query of each instance, and its place within the query."""
    query = np.repeat(np.arange(len(counts)), counts)
    return query, np.arange(len(query)) - _starts(counts)[query]


def _starts(counts: Ints) -> Ints:
    return np.cumsum(counts) - counts
