"""Counts of n-grams shared by texts, for all pairs of a query at once.

The clipped count of a pair, sum over g of min(c_hyp(g), c_ref(g)), is the size of the intersection of two sets if the
k-th occurrence of an n-gram in a text counts as a separate element (g, k). Per query the elements of the hypotheses are
numbered, texts become 0/1 rows, and one sparse matrix product counts the intersections of multiple queries; its cost is
the number of matches. Clipping against the maximum over references is the intersection with the union of their sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    counts: Ints  # instances per query


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
    for chunk in _chunks(table, queries):
        hyps, refs = _side(table, [q[0] for q in chunk]), _side(table, [q[1] for q in chunk])
        # Pairs are ordered by query, then hypothesis: pair (i, j) is at first[i] + inside[j].
        sizes = hyps.counts * refs.counts
        hyp_query, hyp_inside = _places(hyps.counts)
        first = _starts(sizes)[hyp_query] + hyp_inside * refs.counts[hyp_query]
        inside = _places(refs.counts)[1]
        counts = np.zeros((order, int(sizes.sum())))
        for n, (hyp, ref, width) in enumerate(_orders(hyps, refs, order, table.size)):
            if not len(ref.text):
                break  # without a common n-gram there is no longer one either
            left = _incidence(hyp.text, hyp.column, (len(first), width))
            right = _incidence(ref.column, ref.text, (width, len(inside)))
            product = left @ right
            rows = np.repeat(np.arange(len(first)), np.diff(product.indptr))
            counts[n, first[rows] + inside[product.indices]] = product.data
        for q, block in enumerate(np.split(counts, np.cumsum(sizes)[:-1], axis=1)):
            yield block.reshape(order, int(hyps.counts[q]), int(refs.counts[q]))


def union_matches(table: TokenTable, queries: Sequence[TextQuery], order: int) -> Iterator[Floats]:
    """Yield for each of the `queries` of a `table` an array (order, hypotheses): matches clipped against the maximum
    over all references; `order` is the longest n-gram."""
    for chunk in _chunks(table, queries):
        hyps, refs = _side(table, [q[0] for q in chunk]), _side(table, [q[1] for q in chunk])
        n_texts = int(hyps.counts.sum())
        counts = np.zeros((order, n_texts))
        for n, (hyp, ref, width) in enumerate(_orders(hyps, refs, order, table.size)):
            present = np.zeros(width, dtype=np.bool_)
            present[ref.column] = True
            counts[n] = np.bincount(hyp.text[present[hyp.column]], minlength=n_texts)
        yield from np.split(counts, np.cumsum(hyps.counts)[:-1], axis=1)


def totals(lengths: Ints, order: int) -> Floats:
    """(order, n) the number of n-grams in texts with such `lengths`, up to `order`."""
    return np.maximum(lengths[None, :] - np.arange(order)[:, None], 0).astype(np.float64)


def _chunks(table: TokenTable, queries: Sequence[TextQuery]) -> Iterator[list[TextQuery]]:
    chunk: list[TextQuery] = []
    size = 0
    for query in queries:
        tokens = int(table.lengths[list(query[0])].sum() + table.lengths[list(query[1])].sum())
        if chunk and size + tokens > CHUNK_TOKENS:
            yield chunk
            chunk, size = [], 0
        chunk.append(query)
        size += tokens
    if chunk:
        yield chunk


def _side(table: TokenTable, rows_per_query: Sequence[Sequence[int]]) -> Side:
    counts = np.array([len(rows) for rows in rows_per_query], dtype=np.int64)
    rows = np.concatenate([np.asarray(rows, dtype=np.int64) for rows in rows_per_query])
    lengths = table.lengths[rows]
    text = np.repeat(np.arange(len(rows)), lengths)
    inside = np.arange(len(text)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    query = np.repeat(np.arange(len(counts)), counts)[text]
    return Side(table.ids[table.starts[rows][text] + inside], query, text, lengths[text] - inside, counts)


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
