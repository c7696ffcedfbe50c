"""Coincidences by counting: every method equals a plain loop over pairs, and steps aside where it does not apply."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalapp.stats.agreement import coincidences as module
from evalapp.stats.agreement.coincidences import count_coincidences, rows_per_unit

WAYS = ("_count_even_rows", "_count_packed", "_count_table")


def by_pairs(unit, value):
    """By definition: every ordered pair of ratings of a unit counts 1 / (m - 1)."""
    values = np.unique(value)
    table, n_units = np.zeros((len(values), len(values))), 0
    for one in np.unique(unit):
        own = np.searchsorted(values, value[unit == one])
        if len(own) < 2:
            continue
        n_units += 1
        pairs = np.zeros_like(table)
        for i, x in enumerate(own):
            for j, y in enumerate(own):
                pairs[x, y] += i != j
        table += pairs / (len(own) - 1)
    used = table.sum(axis=1) > 0
    return table[np.ix_(used, used)], values[used], n_units


def check(unit, value):
    found = count_coincidences(unit, value)
    table, values, n_units = by_pairs(unit, value)
    assert found is not None
    np.testing.assert_allclose(found.table, table, rtol=0, atol=1e-9)
    assert found.values.tolist() == values.tolist()
    assert found.n_units == n_units


@pytest.fixture
def used(monkeypatch):
    """The methods that gave an answer."""
    seen = []

    def watched(name, way):
        def called(*columns):
            found = way(*columns)
            if found is not None:
                seen.append(name)
            return found

        return called

    for name in WAYS:
        monkeypatch.setattr(module, name, watched(name, getattr(module, name)))
    return seen


def ratings(raters, units, values, seed, missing=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, values, units)
    data = np.clip(truth[:, None] + rng.integers(-2, 3, (units, raters)), 0, values - 1) - 1.0
    kept = rng.random(data.shape) >= missing
    return np.repeat(np.arange(units), raters)[kept.ravel()], data[kept]


@pytest.mark.parametrize("raters", [2, 3, 5])
def test_sorted_rows_with_equal_numbers_of_ratings(used, raters):
    unit, value = ratings(raters, 700, 5, raters)
    check(unit * 5 - 40, value)
    assert used == ["_count_even_rows"]


@pytest.mark.parametrize(("values", "raters", "missing"), [(5, 6, 0.3), (11, 4, 0.2), (3, 2, 0.0)])
def test_unsorted_rows_with_any_number(used, values, raters, missing):
    unit, value = ratings(raters, 900, values, values, missing)
    order = np.random.default_rng(1).permutation(len(unit))
    check(unit[order], value[order])
    check((unit[order] + 2**40).astype(np.uint64), value[order])
    assert used == ["_count_packed"] * 2


def test_many_rating_patterns_in_shared_slots(used, monkeypatch):
    monkeypatch.setattr(module, "_PLACE_BITS", 6)
    monkeypatch.setattr(module, "_PLACES", 64)
    unit, value = ratings(5, 500, 11, 3, 0.1)
    order = np.random.default_rng(2).permutation(len(unit))
    check(unit[order], value[order])
    assert used == ["_count_packed"]


@pytest.mark.parametrize("count", [4, 500])
def test_count_that_exceeds_its_bits_uses_a_table(used, count):
    """Most units have two or three ratings, which leaves two bits per count; one unit has many."""
    unit, value = ratings(3, 500, 5, 9, 0.2)
    order = np.random.default_rng(4).permutation(len(unit))
    for often in (-1.0, 1.0, 3.0):
        check(np.append(unit[order], np.full(count, 17)), np.append(value[order], np.full(count, often)))
    # All higher bits of the highest value are set.
    assert used == ["_count_table", "_count_table", "_count_packed"]


def test_more_values_than_bits_use_a_table(used):
    unit, value = ratings(5, 400, 30, 2)
    order = np.random.default_rng(5).permutation(len(unit))
    check(unit[order], value[order])
    assert used == ["_count_table"]


@settings(max_examples=30)
@given(seed=st.integers(0, 2**20), values=st.integers(1, 20), raters=st.integers(1, 5), shuffled=st.booleans())
def test_any_rows(seed, values, raters, shuffled):
    rng = np.random.default_rng(seed)
    unit, value = ratings(raters, 1000 // raters + 400, values, seed, rng.choice([0.0, 0.1]))
    order = rng.permutation(len(unit)) if shuffled else np.arange(len(unit))
    check(unit[order], value[order])


def test_uncountable_input_is_left_alone():
    unit, value = ratings(3, 500, 5, 1)
    for other in (value / 2, value + 0.25, np.append(value[1:], np.nan), np.append(value[1:], np.inf), value * 1e6):
        assert count_coincidences(unit, other) is None
        assert count_coincidences(unit[::-1], other) is None
    assert count_coincidences(unit.astype(str), value) is None
    assert count_coincidences(unit, value.astype(str)) is None
    assert count_coincidences(unit[:900], value[:900]) is None
    far = np.random.default_rng(0).permutation(unit * 10**9)
    assert count_coincidences(far, value) is None


def test_units_without_a_second_rating_do_not_count():
    found = count_coincidences(np.arange(1500), np.ones(1500))
    assert found is not None
    assert (found.n_units, len(found.values)) == (0, 0)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (np.repeat([1, 4, 9], 4), 4),
        (np.repeat([4, 1, 9], 4), 0),
        (np.repeat([1, 1, 9], 4), 0),
        (np.append(np.repeat([1, 4], 4), [5, 5, 5, 6]), 0),
        (np.array([1, 1, 2, 3, 4, 4]), 0),
        (np.arange(6), 0),
        (np.repeat([1, 2], 3)[:5], 0),
    ],
)
def test_rows_per_unit(unit, expected):
    assert rows_per_unit(unit) == expected
