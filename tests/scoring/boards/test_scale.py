"""The axis of a column of intervals: places in per cent, round ticks, and one reference line."""

import pytest

from scoring.boards.render.page import Scale, place_rows, scale_around_zero, scale_shares, scale_values


def estimate(value, low=None, high=None):
    return {"value": value, "low": low, "high": high, "rank": 1, "rank_low": 1, "rank_high": 1}


def test_places_are_proportional_and_inside():
    scale = Scale(-1.0, 1.0, 0.0)
    assert [scale.place(value) for value in (-1.0, 0.0, 1.0)] == [4.0, 50.0, 96.0]
    assert [scale.place(value) for value in (-9.0, 9.0)] == [4.0, 96.0], "what lies outside stays at the edge"
    assert scale.place(None) is None
    assert scale.line == scale.place(0.0)


def test_ticks_are_round_and_where_the_dots_of_their_values_are():
    scale = scale_around_zero([{"r": estimate(0.369, 0.314, 0.425)}, {"r": estimate(-0.009, -0.063, 0.043)}], "r")
    ticks = {tick["text"]: tick["x"] for tick in scale.ticks}
    assert ticks["0.0"] == scale.line
    for text, x in ticks.items():
        assert x == scale.place(float(text.replace("−", "-")))


@pytest.mark.parametrize("values", [(0.2, 0.3), (0.7, 0.9)])
def test_the_reference_is_on_the_axis_of_shares(values):
    rows = [{"share": estimate(value, value - 0.05, value + 0.05)} for value in values]
    scale = scale_shares(rows, "share", reference=0.5)
    assert scale.low < 0.5 < scale.high
    for row in place_rows(rows, scale, "share"):
        assert 4 <= row["drawn"]["x_low"] < row["drawn"]["x"] < row["drawn"]["x_high"] <= 96


def test_values_of_ratings_need_no_reference():
    scale = scale_values([estimate(3.5, 3.3, 3.7), estimate(2.4, 2.3, 2.5)], [1.0, 5.0])
    assert (scale.reference, scale.line) == (None, None)
    assert scale_values([], [None, None]) == Scale(0.0, 1.0)
