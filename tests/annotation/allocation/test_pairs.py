from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.allocation.pairs import choose_pairs, draw_sides, schedule_pairs


def gap(counts):
    return max(counts) - min(counts)


@pytest.mark.parametrize("systems", range(2, 31))
def test_every_prefix_is_balanced(systems):
    sequence = schedule_pairs(systems)
    assert sorted(sequence) == list(combinations(range(systems), 2))
    played = Counter(dict.fromkeys(range(systems), 0))
    for pair in sequence:
        played.update(pair)
        assert gap(played.values()) <= 1


def test_one_system_has_no_pair():
    assert schedule_pairs(1) == []
    assert choose_pairs([[0], [0]], 5, seed=1) == []


@settings(max_examples=60)
@given(st.integers(2, 9), st.integers(1, 12), st.data())
def test_complete_data_is_balanced_at_any_size(systems, items, data):
    total = items * systems * (systems - 1) // 2
    wanted = data.draw(st.integers(1, total))
    seed = data.draw(st.integers(0, 2**31))
    chosen = choose_pairs([range(systems)] * items, wanted, seed=seed)
    assert len(chosen) == len(set(chosen)) == wanted
    assert all(0 <= item < items and a < b for item, a, b in chosen)
    if wanted == total:
        return
    pairs = Counter(dict.fromkeys(combinations(range(systems), 2), 0))
    pairs.update((a, b) for _, a, b in chosen)
    played = Counter(dict.fromkeys(range(systems), 0))
    played.update(system for _, a, b in chosen for system in (a, b))
    used = Counter(dict.fromkeys(range(items), 0))
    used.update(item for item, _, _ in chosen)
    assert gap(pairs.values()) <= 1
    assert gap(played.values()) <= 1
    assert gap(used.values()) <= 1
    assert chosen == choose_pairs([range(systems)] * items, wanted, seed=seed)


@settings(max_examples=60)
@given(st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=12), st.data())
def test_missing_outputs_are_never_requested(rows, data):
    total = sum(len(row) * (len(row) - 1) // 2 for row in rows)
    wanted = data.draw(st.integers(0, total + 2))
    chosen = choose_pairs([sorted(row) for row in rows], wanted, seed=3)
    assert len(chosen) == len(set(chosen)) == min(wanted, total)
    assert all({a, b} <= rows[item] and a < b for item, a, b in chosen)


def test_with_missing_outputs_the_rest_stays_balanced():
    # Four systems on 20 items; the last system only on 10 items.
    rows = [[0, 1, 2, 3] if item < 10 else [0, 1, 2] for item in range(20)]
    chosen = choose_pairs(rows, 48, seed=5)
    assert gap(Counter((a, b) for _, a, b in chosen).values()) <= 1


def test_another_seed_chooses_other_pairs():
    rows = [range(4)] * 20
    assert choose_pairs(rows, 30, seed=1) != choose_pairs(rows, 30, seed=2)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 5), st.integers(0, 1000))
def test_sides_are_balanced_within_each_group_at_any_overlap(groups, overlap, seed):
    flips = draw_sides(groups, seed=seed)
    swapped = Counter(dict.fromkeys(groups, 0))
    total = Counter(groups)
    for group, flip in zip(groups, flips, strict=True):
        swapped[group] += sum(flip ^ (number % 2 == 1) for number in range(overlap))
    for group, units in total.items():
        assert abs(2 * swapped[group] - units * overlap) <= 1
