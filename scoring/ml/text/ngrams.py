"""Counts of n-grams that texts share, for all pairs of a query at once.

The clipped count of a pair, sum over g of min(c_hyp(g), c_ref(g)), is the size of the intersection of two sets
once the k-th occurrence of an n-gram in a text counts as an element (g, k) of its own. Per query those elements
are numbered (only what a hypothesis has can match), texts become 0/1 rows, and one matrix product counts all
intersections. Clipping against the maximum over references is the intersection with the union of their sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.text.tokens import Ints, TokenTable

Floats: TypeAlias = npt.NDArray[np.float64]
TextQuery: TypeAlias = tuple[Sequence[int], Sequence[int]]
# Texts of so many tokens are worked on together: bounds memory and keeps the packed keys below 2**63.
CHUNK_TOKENS = 1 << 19


class Side(NamedTuple):
    """The tokens of many (query, text) instances laid end to end."""

    ids: Ints  # token number
    query: Ints  # query of the token
    text: Ints  # instance of the token
    left: Ints  # tokens from here to the end of the text, this one included
    counts: Ints  # instances per query


@dataclass(frozen=True, slots=True)
class Elements:
    """Occurrences of one order: `text` and `column` of each, sorted by text; query q owns a range of both."""

    text: Ints
    column: Ints
    bounds: Ints


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
    """For each query an array (order, hypotheses, references) of clipped n-gram matches.

    A query is (rows of hypotheses, rows of references) of the table.
    """
    for chunk in _chunks(table, queries):
        hyps, refs = _side(table, [q[0] for q in chunk]), _side(table, [q[1] for q in chunk])
        orders = list(_orders(hyps, refs, order, table.size))
        hyp_starts, ref_starts = _starts(hyps.counts), _starts(refs.counts)
        for q in range(len(chunk)):
            result = np.zeros((order, int(hyps.counts[q]), int(refs.counts[q])))
            for n, (hyp, ref, columns) in enumerate(orders):
                low, width = int(columns[q]), int(columns[q + 1] - columns[q])
                if width == 0 or ref.bounds[q] == ref.bounds[q + 1]:
                    break  # without a common n-gram there is no longer one either
                left = _rows(hyp, q, hyp_starts[q], result.shape[1], low, width)
                right = _rows(ref, q, ref_starts[q], result.shape[2], low, width)
                result[n] = left @ right.T
            yield result


def union_matches(table: TokenTable, queries: Sequence[TextQuery], order: int) -> Iterator[Floats]:
    """For each query an array (order, hypotheses): matches clipped against the maximum over all references."""
    for chunk in _chunks(table, queries):
        hyps, refs = _side(table, [q[0] for q in chunk]), _side(table, [q[1] for q in chunk])
        n_texts = int(hyps.counts.sum())
        counts = np.zeros((order, n_texts))
        for n, (hyp, ref, columns) in enumerate(_orders(hyps, refs, order, table.size)):
            present = np.zeros(int(columns[-1]), dtype=np.bool_)
            present[ref.column] = True
            counts[n] = np.bincount(hyp.text[present[hyp.column]], minlength=n_texts)
        yield from np.split(counts, np.cumsum(hyps.counts)[:-1], axis=1)


def totals(lengths: Ints, order: int) -> Floats:
    """(order, n) how many n-grams texts of these lengths have."""
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


def _orders(hyps: Side, refs: Side, order: int, size: int) -> Iterator[tuple[Elements, Elements, Ints]]:
    """Order by order the occurrences on both sides, and where the columns of each query begin.

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
        gram_query = np.zeros(len(keys), dtype=np.int64)
        gram_query[hyp_gram] = hyps.query[hyp_at]
        yield _elements(hyps, hyp_at, hyp_gram, refs, ref_at, ref_gram, gram_query)


def _found(keys: Ints, wanted: Ints, at: Ints) -> tuple[Ints, Ints]:
    """Positions whose key is among the sorted keys, and the key's number."""
    if not len(keys):
        return at[:0], at[:0]
    place = np.searchsorted(keys, wanted)
    place[place == len(keys)] = 0
    hit = keys[place] == wanted
    return at[hit], place[hit]


def _elements(
    hyps: Side, hyp_at: Ints, hyp_gram: Ints, refs: Side, ref_at: Ints, ref_gram: Ints, gram_query: Ints
) -> tuple[Elements, Elements, Ints]:
    n_grams = len(gram_query)
    hyp_text, hyp_gram, hyp_turn = _occurrences(hyps.text[hyp_at], hyp_gram, n_grams)
    ref_text, ref_gram, ref_turn = _occurrences(refs.text[ref_at], ref_gram, n_grams)
    # Columns are handed out n-gram by n-gram, as many as the most repetitive hypothesis needs.
    needed = np.zeros(n_grams, dtype=np.int64)
    np.maximum.at(needed, hyp_gram, hyp_turn + 1)
    first = np.cumsum(needed) - needed
    n_queries = len(hyps.counts)
    columns = np.concatenate([[0], np.cumsum(np.bincount(gram_query, weights=needed, minlength=n_queries))])
    keep = ref_turn < needed[ref_gram]
    ref_text, ref_gram, ref_turn = ref_text[keep], ref_gram[keep], ref_turn[keep]
    hyp = Elements(hyp_text, first[hyp_gram] + hyp_turn, _bounds(hyp_text, hyps.counts))
    ref = Elements(ref_text, first[ref_gram] + ref_turn, _bounds(ref_text, refs.counts))
    return hyp, ref, columns.astype(np.int64)


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


def _starts(counts: Ints) -> Ints:
    return np.cumsum(counts) - counts


def _bounds(text: Ints, counts: Ints) -> Ints:
    """Where the elements of each query begin, and the end."""
    return np.searchsorted(text, np.concatenate([[0], np.cumsum(counts)]))


def _rows(
    elements: Elements, query: int, first_text: int, n_texts: int, first_column: int, width: int
) -> npt.NDArray[np.float32]:
    low, high = elements.bounds[query], elements.bounds[query + 1]
    rows = np.zeros((n_texts, width), dtype=np.float32)
    rows[elements.text[low:high] - first_text, elements.column[low:high] - first_column] = 1.0
    return rows
