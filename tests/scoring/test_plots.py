"""Plots are SVG without style attributes, with the title first, and reproducible."""

from __future__ import annotations

import inspect
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from evalapp.plot_style import HALF, NARROW, WIDE
from scoring.plots import drawing as plots
from scoring.plots.drawing import MAX_POINTS, draw_distribution, draw_forest, draw_scatter, thin
from tests.evalapp.test_markup import NASTY

SVG = "{http://www.w3.org/2000/svg}"


def read(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root[0].tag == f"{SVG}title"
    assert root[1].tag == f"{SVG}desc"
    assert not [element for element in root.iter() if element.get("style") or element.tag == f"{SVG}style"]
    return root


def test_forest_names_every_row_and_escapes_the_title():
    rows = [
        {"label": "a <b>", "value": 0.5, "low": 0.4, "high": 0.6},
        {"label": "sentinel", "value": 0.1, "low": 0.0, "high": 0.2, "kind": "trivial baseline"},
        {"label": "undefined", "value": None, "low": None, "high": None},
    ]
    root = read(draw_forest(rows, title="T & <u>", description="d", axis="r", theme="light", zero=True).as_svg())
    assert root[0].text == "T & <u>"
    texts = {element.text for element in root.iter(f"{SVG}text")}
    assert {"a <b>", "sentinel", "r", "0.500 [0.400, 0.600]"} <= texts
    assert "undefined" not in texts


ENDS = {"value": 0.5, "low": 0.4, "high": 0.6}
NAMES = [f"a rather long name {number}" for number in range(9)]
#: Each kind of plot with its rows and its size by width of the screen.
SIZED = {
    "forest": (
        lambda **look: plots.draw_forest(
            [{"label": name, "letters": "ab", "kind": "k", **ENDS} for name in NAMES], zero=True, axis="a", **look,
            marks=[plots.Mark(0.2, "first mark"), plots.Mark(0.99, "noise ceiling 0.99", 0.9, 1.0)],
        ),
        lambda width: plots.size_forest(len(NAMES), width),
    ),
    "groups": (
        lambda **look: plots.draw_groups(
            [{"name": name, "series": "s", **ENDS} for name in NAMES], names=NAMES, series=["s"], axis="a", **look
        ),
        lambda width: plots.size_groups(len(NAMES), 1, width),
    ),
    "scatter": (
        lambda **look: plots.draw_scatter(
            [{"metric": k, "people": k % 4, "system": name} for k, name in enumerate(NAMES[:8])], axes=("m", "p"),
            note="a note", **look,
        ),
        plots.size_scatter,
    ),
    "distribution": (
        lambda **look: plots.draw_distribution(
            [{"label": name, "p5": 1.0, "p25": 2.0, "p50": 3.0, "p75": 4.0, "p95": 5.0} for name in NAMES], axis="x",
            **look,
        ),
        lambda width: plots.size_distribution(len(NAMES), width),
    ),
    "lines": (
        lambda **look: plots.draw_lines(
            [{"name": name, "points": [{"x": x, **ENDS} for x in range(3)]} for name in NAMES[:5]], axes=("x", "y"),
            **look,
        ),
        lambda width: plots.size_lines(5, width),
    ),
    "heat": (
        lambda **look: plots.draw_heat(
            [{"row": a, "column": b, "value": 0.9} for a in NAMES for b in NAMES], rows=NAMES, columns=NAMES, axis="a",
            **look,
        ),
        lambda width: plots.size_heat(len(NAMES), len(NAMES), width),
    ),
}  # fmt: skip


@pytest.mark.parametrize("width", [WIDE, HALF, NARROW])
@pytest.mark.parametrize("kind", SIZED)
def test_plot_has_the_size_that_the_page_reserves(kind, width):
    draw, measure = SIZED[kind]
    root = read(draw(title="t", description="d", theme="light", width=width).as_svg())
    assert (root.get("width"), root.get("height")) == (str(measure(width).width), str(measure(width).height))


def test_forest_shows_letters_and_reference_lines():
    rows = [{"label": name, "letters": letters, **ENDS} for name, letters in (("one", "ab"), ("two", "b"))]
    marks = [plots.Mark(0.55, "noise ceiling 0.55", 0.5, 0.6)]
    root = read(draw_forest(rows, title="t", description="d", axis="a", theme="dark", zero=True, marks=marks).as_svg())
    assert {"ab", "b", "noise ceiling 0.55"} <= {element.text for element in root.iter(f"{SVG}text")}


def test_line_of_a_scatter_plot_is_that_of_least_squares():
    xs, ys = [1.0, 2.0, 4.0, 7.0], [1.5, 1.0, 3.0, 4.5]
    points = [{"metric": x, "people": y, "system": "s"} for x, y in zip(xs, ys, strict=True)]
    slope, intercept = np.polyfit(xs, ys, 1)
    ends = plots.fit_line(points)
    assert [end["metric"] for end in ends] == [1.0, 7.0]
    assert [end["people"] for end in ends] == pytest.approx([intercept + slope, intercept + 7 * slope])
    assert plots.fit_line([{**point, "metric": 3.0} for point in points]) == []
    assert plots.fit_line(points[:2]) == []


def test_scatter_of_many_systems_needs_no_legend():
    points = [{"metric": k / 9, "people": k % 5, "system": f"s{k}"} for k in range(12)]
    root = read(draw_scatter(points, title="t", description="d", axes=("m", "p"), theme="dark").as_svg())
    assert "s3" not in {element.text for element in root.iter(f"{SVG}text")}


def test_distribution():
    rows = [{"label": "one", "p5": 1.0, "p25": 2.0, "p50": 3.0, "p75": 4.0, "p95": 5.0}]
    first = draw_distribution(rows, title="t", description="d", axis="x", theme="light").as_svg()
    assert "one" in {element.text for element in read(first).iter(f"{SVG}text")}
    assert draw_distribution(rows, title="t", description="d", axis="x", theme="light").as_svg() == first


@pytest.mark.parametrize(("low", "high"), [(0.43, 0.52), (-0.1, 0.9), (1000.0, 99_000.0)])
def test_axis_labels_do_not_overlap(low, high):
    row = {"label": "one", **{f"p{p}": low + (high - low) * p / 100 for p in (5, 25, 50, 75, 95)}}
    root = read(draw_distribution([row], title="t", description="d", axis="x", theme="light").as_svg())
    figures = [element for element in root.iter(f"{SVG}text") if re.fullmatch(r"−?[\d.,]+", element.text or "")]
    places = [float(re.findall(r"translate\(([\d.-]+)", element.get("transform", ""))[0]) for element in figures]
    assert len(figures) >= 3
    assert {element.get("text-anchor") for element in figures} == {"middle"}
    # About 7 pixels per character at size 12.
    assert min(b - a for a, b in pairwise(places)) > 7 * max(len(f.text or "") for f in figures)


def test_thinning_keeps_the_ends_and_is_reproducible():
    points = [{"metric": k} for k in range(10 * MAX_POINTS)]
    kept = thin(points)
    assert len(kept) == MAX_POINTS
    assert (kept[0]["metric"], kept[-1]["metric"]) == (0, 10 * MAX_POINTS - 1)
    assert thin(points) == kept
    assert len(thin(points[:7])) == 7


def test_same_plot_as_pdf():
    plot = draw_forest([{"label": "a", "value": 1.0, "low": 0.5, "high": 1.5}], title="T", description="d", axis="x",
                       theme="light", zero=False)  # fmt: skip
    assert plot.as_pdf().startswith(b"%PDF-")


def _all_plots(names):
    """Every kind of plot with these names in each place that takes a text."""
    title = " ".join(names)
    said = {"title": title, "description": title, "theme": "light"}
    values = dict(zip(("p5", "p25", "p50", "p75", "p95"), range(5), strict=True))
    points = [{"x": 1, "value": 1.0, "low": 0.5, "high": 1.5}]
    cells = [{"row": a, "column": b, "value": 0.9} for a in names for b in names[:3]]
    ends = {"value": 1.0, "low": 0.5, "high": 1.5}
    return {
        "draw_forest": plots.draw_forest([{"label": name, **ends} for name in names], axis=title, zero=True, **said),
        "draw_scatter": plots.draw_scatter(
            [{"metric": 1.0, "people": 2.0, "system": name} for name in names[:8]], axes=(title, title), **said
        ),
        "draw_distribution": plots.draw_distribution([{"label": name, **values} for name in names], axis=title, **said),
        "draw_lines": plots.draw_lines(
            [{"name": name, "points": points} for name in names[:8]], axes=(title, title), **said
        ),
        "draw_groups": plots.draw_groups(
            [{"name": name, "series": names[0], **ends} for name in names],
            names=names,
            series=names[:1],
            axis=title,
            **said,
        ),
        "draw_heat": plots.draw_heat(cells, rows=names, columns=names[:3], axis=title, **said),
    }


@pytest.mark.parametrize("names", [NASTY[:8], NASTY[8:16], NASTY[16:]])
def test_no_name_breaks_a_plot(names):
    """FAULTS C3: U+2028 in a name was a syntax error in an expression; a control character crashed the process."""
    drawn = _all_plots(names)
    assert set(drawn) == {name for name, _ in inspect.getmembers(plots, inspect.isfunction) if name.startswith("draw_")}
    for name, plot in drawn.items():
        root = read(plot.as_svg())
        assert plot.as_pdf().startswith(b"%PDF"), name
        assert root[0].text == plots.show_hidden(" ".join(names))
    texts = {element.text for element in read(drawn["draw_forest"].as_svg()).iter(f"{SVG}text")}
    assert plots.show_hidden(names[0]) in texts
