"""Plots are SVG without style attributes, with the title first, and reproducible."""

from __future__ import annotations

import inspect
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

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
        {"label": "sentinel", "value": 0.1, "low": 0.0, "high": 0.2, "grey": True},
        {"label": "undefined", "value": None, "low": None, "high": None},
    ]
    root = read(draw_forest(rows, title="T & <u>", description="d", axis="r", theme="light", zero=True).as_svg())
    assert root[0].text == "T & <u>"
    texts = {element.text for element in root.iter(f"{SVG}text")}
    assert {"a <b>", "sentinel", "r"} <= texts
    assert "undefined" not in texts


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
