"""Tables of pages by their address: order, columns, intervals, values that all rows share."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalapp.names import natural_key
from scoring.boards.render.cells import find_usual_n
from scoring.boards.render.page import Column, Grid, arrange, sort_rows

NAMES = ["m1", "m2", "m10"]
COLUMNS = [
    Column("rank", "Rank", lambda row: row["rank"], is_ascending=True),
    Column("name", "Name", lambda row: row["name"], is_number=False, is_kept=True),
    Column("value", "Value", lambda row: row["value"]),
    Column("low", "from", lambda row: row["value"], is_detail=True),
    Column("n", "n", lambda row: row["n"], is_folded=True),
    Column("lines", "Lines", is_silent=True),
]
ROWS = [
    {"rank": 1, "name": "m10", "value": 0.5, "n": 7},
    {"rank": 2, "name": "m2", "value": None, "n": 7},
    {"rank": 3, "name": "m1", "value": float("nan"), "n": 7},
    {"rank": 4, "name": "m3", "value": 0.9, "n": 7},
    {"rank": 5, "name": "m2b", "value": 0.5, "n": 7},
]


def show(address: dict[str, list[str]], rows: Any = ROWS, **options: Any) -> Grid:
    return arrange(COLUMNS, rows, address, default="rank", has_intervals=True, **options)


def names_of(grid: Grid) -> list[str]:
    return [row["name"] for row in grid.rows]


def orders_of(grid: Grid) -> dict[str, str]:
    return {head.column.name: head.order for head in grid.heads if head.order}


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("", ["m10", "m2", "m1", "m3", "m2b"]),
        ("name", ["m1", "m2", "m2b", "m3", "m10"]),
        ("-name", ["m10", "m3", "m2b", "m2", "m1"]),
        # Equal values keep their order, and missing ones are last in both directions.
        ("value", ["m10", "m2b", "m3", "m2", "m1"]),
        ("-value", ["m3", "m10", "m2b", "m2", "m1"]),
        ("lines", ["m10", "m2", "m1", "m3", "m2b"]),
        ("nothing", ["m10", "m2", "m1", "m3", "m2b"]),
    ],
)
def test_rows_are_in_the_order_of_the_address(by, expected):
    assert names_of(show({"sort": [by]})) == expected


def test_headings_state_the_order_and_reverse_it():
    assert orders_of(show({})) == {"rank": "ascending"}
    grid = show({"sort": ["-value"], "aspect": ["a b"]})
    assert orders_of(grid) == {"value": "descending"}
    links = {head.column.name: dict(parse_qsl(head.href[1:])) for head in grid.heads}
    assert links["value"] == {"aspect": "a b", "sort": "value"}
    assert links["name"] == {"aspect": "a b", "sort": "name"}
    assert links["rank"]["sort"] == "rank"
    # From the order without a parameter, the first click on its column reverses it.
    assert next(head.href for head in show({}).heads if head.column.name == "rank") == "?sort=-rank"
    assert next(head.href for head in show({}).heads if head.column.name == "value") == "?sort=-value"


def test_intervals_are_shown_on_demand():
    assert not show({}).shown["low"]
    assert show({"intervals": ["1"]}).shown["low"]
    assert dict(parse_qsl(show({"sort": ["n"]}).toggle[1:])) == {"sort": "n", "intervals": "1"}
    assert dict(parse_qsl(show({"sort": ["n"], "intervals": ["1"]}).toggle[1:])) == {"sort": "n"}


def test_chosen_columns_are_shown_with_names_and_lines():
    grid = show({"columns": ["value", "n"]})
    assert [head.column.name for head in grid.heads] == ["name", "value", "n", "lines"]
    assert grid.reset == "?"
    # Ends of intervals have a switch of their own.
    assert [(column.name, ticked) for column, ticked in grid.choices] == [
        ("rank", False), ("value", True), ("n", True),
    ]  # fmt: skip
    # A form with no ticks still sends the names that are always shown.
    assert [head.column.name for head in show({"columns": grid.kept}).heads] == ["name", "lines"]
    assert show({"columns": ["nothing"]}).shown == show({}).shown


def test_a_value_of_all_rows_is_shown_once():
    grid = show({})
    assert not grid.shown["n"]
    assert [(column.name, value) for column, value in grid.same] == [("n", 7)]
    assert show({"columns": ["n"]}).same == []
    other = show({}, [*ROWS, {"rank": 6, "name": "m4", "value": 0.1, "n": 6}])
    assert other.shown["n"]
    assert other.same == []
    # A single row has nothing to repeat.
    assert show({}, ROWS[:1]).shown["n"]


def test_tables_of_one_page_do_not_share_parameters():
    grid = show({"sort": ["name"], "raters.sort": ["-name"]}, name="raters")
    assert names_of(grid) == ["m10", "m3", "m2b", "m2", "m1"]
    assert "sort=name" in grid.heads[0].href
    assert len({head.id for head in [*grid.heads, *show({}).heads]}) == len(grid.heads) + len(show({}).heads)


def test_a_form_sends_other_parameters_along():
    grid = show({"aspect": ["x"], "sort": ["n"], "columns": ["n", "low"], "intervals": ["1"]})
    assert grid.others == [("aspect", "x"), ("sort", "n"), ("intervals", "1")]
    assert grid.carried == [("sort", "n"), ("columns", "n"), ("columns", "low"), ("intervals", "1")]


@given(
    st.lists(st.one_of(st.none(), st.integers(-3, 3), st.floats(), st.sampled_from(["", "q2", "q10", "q1"]))),
    st.booleans(),
)
def test_every_list_sorts_stably_with_missing_values_last(values, descending):
    rows = list(enumerate(values))
    found = sort_rows(rows, lambda row: row[1], descending=descending)
    assert sorted(found) == sorted(rows)
    known = (
        [value for _place, value in found if value not in (None, "") and value == value and abs(value) != float("inf")]
        if all(not isinstance(value, str) for value in values)
        else []
    )
    assert known == sorted(known, reverse=descending)
    texts = [value for _place, value in found if isinstance(value, str) and value]
    assert texts == sorted(texts, key=natural_key, reverse=descending)
    missing = [value in (None, "") or (isinstance(value, float) and value - value != 0) for _place, value in found]
    assert missing == sorted(missing)
    for value in {one for one in values if isinstance(one, int)}:
        places = [place for place, one in found if one == value]
        assert places == sorted(places)


def test_usual_n_is_the_most_frequent_one():
    assert find_usual_n([{"n": 5}, None, {"n": 4}, {"n": 5}]) == 5
    assert find_usual_n([{"n": 5}, {"n": 8}]) == 8
    assert find_usual_n([None]) is None
