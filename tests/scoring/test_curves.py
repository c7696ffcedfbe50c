"""Training curves as images."""

from __future__ import annotations

import re

from scoring.plots.curves import draw, draw_folds


def test_curves_are_drawn_from_finite_points():
    curves = {"a": [(1, 3.0), (2, float("nan")), (3, 1.0)], "b": [(1, float("inf"))], "<c>": [(2, 2.0)]}
    picture = draw(curves, title="T & t", axis="loss")
    assert picture.svg.count("<polyline") == 2
    assert "&lt;c&gt;" in picture.svg
    assert "T &amp; t: a: 3 to 1; " in picture.svg
    assert [(row.name, row.first, row.least, row.most, row.last, row.steps) for row in picture.series] == [
        ("a", 3.0, 1.0, 3.0, 1.0, 3),
        ("<c>", 2.0, 2.0, 2.0, 2.0, 2),
    ]


def test_single_point_is_visible_and_the_axis_shows_no_impossible_values():
    (row,) = (picture := draw({"a": [(5, 2.0)]}, title="T", axis="loss")).series
    assert picture.svg.count("<circle") == 1
    assert (row.colour, row.dash) == (draw({"b": [(1, 1.0)]}, title="T", axis="loss").series[0].colour, "")
    # Around an accuracy or an error, axis values may be impossible: -0.5, 1.5.
    assert [text in picture.svg for text in (">1.5<", ">2<", ">2.5<")] == [False, True, False]
    assert ">step 5<" in picture.svg


def test_table_shows_the_best_step_of_each_line():
    (row,) = draw({"a": [(10, 2.0), (20, 0.5), (30, 0.5), (40, 3.0)]}, title="T", axis="loss").series
    assert (row.least_at, row.most_at) == (20, 40)


def test_name_of_the_vertical_axis_is_at_its_top():
    svg = draw({"a": [(1, 2.0), (2, 3.0)]}, title="T", axis="loss").svg
    assert '<text x="0" y="15">loss</text>' in svg
    assert svg.count(">step<") == 1
    assert ">loss<" not in draw({"a": [(1, 2.0)]}, title="T", axis="loss", named=False).svg


def test_lines_differ_by_more_than_their_colour():
    few = {str(number): [(1, float(number)), (2, 0.0)] for number in range(4)}
    assert len({row.dash for row in draw(few, title="T", axis="loss").series}) == 4
    many = {str(number): [(1, float(number)), (2, 0.0)] for number in range(20)}
    looks = {(row.colour, row.dash) for row in draw(many, title="T", axis="loss").series}
    assert len(looks) == 20


def test_without_a_point_there_is_no_image():
    picture = draw({"a": [(1, float("nan"))]}, title="T", axis="loss")
    assert (picture.svg, picture.series) == ("", [])


def test_each_fold_has_its_own_steps_and_all_have_the_same_values():
    curves = {
        "fold 1 of 2, loss": [(1, 4.0), (50, 2.0)], "fold 1 of 2, dev loss": [(50, 2.5)],
        "fold 2 of 2, dev loss": [(20, 3.5)], "fold 2 of 2, loss": [(1, 3.0), (20, 1.0)],
    }  # fmt: skip
    one, two = draw_folds(curves, title="Loss", axis="loss")
    assert [one.axis, two.axis] == ["fold 1 of 2", "fold 2 of 2"]
    assert [row.steps for row in (*one.series, *two.series)] == [50, 50, 20, 20]
    looks = [{row.name: (row.colour, row.dash) for row in picture.series} for picture in (one, two)]
    assert looks[0] == looks[1]
    ticks = [re.findall(r'text-anchor="end">([\d.]+)<', picture.svg) for picture in (one, two)]
    assert ticks[0] == ticks[1] == ["1", "2", "3", "4"]
    assert 'aria-label="Loss, fold 2 of 2: ' in two.svg
    assert len(draw_folds({"a": [(1, 2.0)], "b": [(2, 1.0)]}, title="T", axis="loss")) == 1
    assert draw_folds({"fold 1, loss": [(1, float("nan"))]}, title="T", axis="loss") == []
