"""Clipped n-gram matches against plain counting with dictionaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.ml.text import ngrams
from scoring.ml.text.ngrams import chunk_queries, count_unions, index_queries, pair_matches, totals
from scoring.ml.text.tokens import sequence_table

sentences = st.lists(st.lists(st.sampled_from("abc"), max_size=7).map(tuple), min_size=1, max_size=4)
queries = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=4)


def grams(tokens: tuple[str, ...], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tokens[i : i + n] for i in range(len(tokens) - n + 1))


def number(query_list):
    rows, flat = [], []
    for hyps, refs in query_list:
        rows.append(
            (range(len(flat), len(flat) + len(hyps)), range(len(flat) + len(hyps), len(flat) + len(hyps + refs)))
        )
        flat += [*hyps, *refs]
    return sequence_table(flat), rows


@given(query_list=queries, order=st.integers(1, 5))
@settings(max_examples=60)
def test_pair_matches_equal_counters(query_list, order):
    table, rows = number(query_list)
    for (hyps, refs), found in zip(query_list, pair_matches(table, rows, order), strict=True):
        expected = [[[(grams(h, n) & grams(r, n)).total() for r in refs] for h in hyps] for n in range(1, order + 1)]
        np.testing.assert_array_equal(found, expected)


@given(query_list=queries, order=st.integers(1, 4))
@settings(max_examples=60)
def test_union_matches_clip_against_the_largest_count(query_list, order):
    table, rows = number(query_list)
    (chunk,) = chunk_queries(table, rows)
    counts = np.split(count_unions(table, chunk, order), np.cumsum(chunk.n_hyps)[:-1], axis=1)
    for (hyps, refs), found in zip(query_list, counts, strict=True):
        for n in range(order):
            most: Counter[tuple[str, ...]] = Counter()
            for ref in refs:
                most |= grams(ref, n + 1)
            np.testing.assert_array_equal(found[n], [(grams(h, n + 1) & most).total() for h in hyps])


def test_chunks_do_not_change_the_counts(monkeypatch):
    rng = np.random.default_rng(3)
    draw = [(["".join(rng.choice(list("abc"), 5)) for _ in range(3)], ["abcab", "cba"]) for _ in range(9)]
    table, rows = number([([tuple(h) for h in hyps], [tuple(r) for r in refs]) for hyps, refs in draw])
    whole = list(pair_matches(table, rows, 3))
    monkeypatch.setattr(ngrams, "CHUNK_TOKENS", 25)
    for one, two in zip(whole, pair_matches(table, rows, 3), strict=True):
        np.testing.assert_array_equal(one, two)


def test_index_queries_numbers_each_text_once():
    texts, rows = index_queries([(["a", "b"], ["c"]), (["b"], ["a"])])
    assert texts == ["a", "b", "c"]
    assert rows == [([0, 1], [2]), ([1], [0])]


@pytest.mark.parametrize(("length", "expected"), [(0, [0, 0, 0]), (2, [2, 1, 0]), (5, [5, 4, 3])])
def test_totals(length, expected):
    assert totals(np.array([length]), 3)[:, 0].tolist() == expected
