"""The inline plots of reference writing: positions calculated by hand."""

from __future__ import annotations

import re

from annotation.views.writing_plots import Dot, Line, draw_growth, draw_rounds


def test_growth_has_a_point_for_each_round_with_a_value() -> None:
    svg = draw_growth([(0, 0.40), (1, 0.44), (2, None), (3, 0.50)])
    points = re.search(r'points="([^"]+)"', svg)
    assert points is not None
    # 240 wide with a margin of 8: three points at 8, 120, 232; 0.40 at the bottom (56), 0.50 at the top (8).
    assert points[1] == "8.0,56.0 120.0,36.8 232.0,8.0"
    assert 'aria-label="Growth: from 0.400 to 0.500 in 2 rounds"' in svg
    assert "style=" not in svg


def test_growth_of_one_point_and_of_no_point() -> None:
    svg = draw_growth([(0, 0.4)])
    assert "<polyline" not in svg
    assert 'cy="32.0"' in svg  # the middle of 64
    assert "0.400 at the start" in svg
    assert draw_growth([]) == ""
    assert draw_growth([(0, None), (1, float("nan"))]) == ""


def test_small_differences_do_not_fill_the_plot() -> None:
    svg = draw_growth([(0, 0.400), (1, 0.401)])
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', svg)]
    assert abs(heights[0] - heights[1]) < 2


def test_rounds_draw_a_line_and_intervals_per_arm() -> None:
    lines = [
        Line("with scores", (Dot(0, 0.40, 0.38, 0.42, 5), Dot(1, 0.45, 0.42, 0.48, 5))),
        Line("<b>without</b>", (Dot(0, 0.40), Dot(1, 0.41))),
    ]
    svg = draw_rounds(lines, title="Predicted reliability", axis="reliability")
    assert svg.count("<polyline") == 2
    assert svg.count('stroke-width="1.25"') == 2  # intervals only where they exist
    assert svg.count("<circle") == 4
    assert "<b>" not in svg
    assert "with scores: 0.400 to 0.450" in svg
    assert "style=" not in svg
    assert draw_rounds([Line("nobody", ())], title="t", axis="a") == ""
