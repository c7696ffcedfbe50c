"""Curves of a training as pictures."""

from __future__ import annotations

from scoring.curves import draw


def test_curves_are_drawn_from_finite_points():
    curves = {"a": [(1, 3.0), (2, float("nan")), (3, 1.0)], "b": [(1, float("inf"))], "<c>": [(2, 2.0)]}
    picture = draw(curves, title="T & t", axis="loss")
    assert picture.svg.count("<polyline") == 2
    assert "&lt;c&gt;" in picture.svg
    assert "T &amp; t: a: from 3 to 1; " in picture.svg
    assert [(row.name, row.first, row.least, row.most, row.last, row.steps) for row in picture.series] == [
        ("a", 3.0, 1.0, 3.0, 1.0, 3),
        ("<c>", 2.0, 2.0, 2.0, 2.0, 2),
    ]


def test_a_single_point_is_seen_and_equal_values_have_room_above_and_below():
    (row,) = (picture := draw({"a": [(5, 2.0)]}, title="T", axis="loss")).series
    assert picture.svg.count("<circle") == 1
    assert (row.colour, row.dash) == (draw({"b": [(1, 1.0)]}, title="T", axis="loss").series[0].colour, "")
    assert [text in picture.svg for text in (">1.5<", ">2<", ">2.5<")] == [True] * 3


def test_lines_beyond_the_palette_are_dashed():
    many = {str(number): [(1, float(number)), (2, 0.0)] for number in range(20)}
    looks = {(row.colour, row.dash) for row in draw(many, title="T", axis="loss").series}
    assert len(looks) == 20


def test_without_a_point_there_is_no_picture():
    picture = draw({"a": [(1, float("nan"))]}, title="T", axis="loss")
    assert (picture.svg, picture.series) == ("", [])
