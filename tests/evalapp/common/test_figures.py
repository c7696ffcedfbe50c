"""Plots of a page as files of their own: colours, legend, names in any script, and refused addresses."""

from xml.etree import ElementTree

import pytest
from django.test import RequestFactory

from evalapp.common.errors import BadInput, NotThere
from evalapp.common.figures import Figure, draw_file, send_figure
from evalapp.plot_style import PALETTE
from scoring.plots.curves import draw

NAMES = {"train & <test>": [(0, 1.0), (10, 0.5)], "评估": [(0, 0.9), (10, 0.7)]}
SVG = "{http://www.w3.org/2000/svg}"


def make_figure():
    return draw(NAMES, title="Loss of <mine>", axis="loss").figure


def test_file_needs_no_style_sheet():
    drawn = draw_file(make_figure())
    assert "var(" not in drawn
    assert "currentColor" not in drawn
    root = ElementTree.fromstring(drawn)
    lines = [line.get("stroke") for line in root.iter(f"{SVG}polyline")]
    assert lines == list(PALETTE["light"][:2])
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert [texts[0], *texts[-2:]] == ["Loss of <mine>", *NAMES], "title first, legend last"


def test_everything_is_inside_the_picture():
    root = ElementTree.fromstring(draw_file(make_figure()))
    _left, top, _width, height = map(float, root.get("viewBox").split())
    places = [float(text.get("y")) for text in root.iter(f"{SVG}text")]
    assert top < min(places)
    assert max(places) < top + height
    assert float(root.get("height")) == height


def test_pdf_is_drawn_from_the_same_picture():
    request = RequestFactory().get("/", {"figure": "Loss of <mine>", "file": "pdf"})
    answer = send_figure(request, [make_figure()])
    assert answer["Content-Type"] == "application/pdf"
    assert answer["Content-Disposition"] == 'attachment; filename="loss-of-mine.pdf"'
    assert answer.content.startswith(b"%PDF-")


def test_page_is_shown_if_no_plot_is_asked_for():
    assert send_figure(RequestFactory().get("/"), [make_figure()]) is None


def test_unknown_plots_and_kinds_are_refused():
    with pytest.raises(NotThere):
        send_figure(RequestFactory().get("/", {"figure": "another"}), [make_figure()])
    with pytest.raises(BadInput) as refused:
        send_figure(RequestFactory().get("/", {"figure": "Loss of <mine>", "file": "exe"}), [make_figure()])
    assert [fault.field for fault in refused.value.faults] == ["file"]


def test_a_plot_without_size_is_a_fault_of_the_program():
    with pytest.raises(ValueError, match="no size"):
        draw_file(Figure("broken", "<svg></svg>", []))
