"""The look of plots: contrast, colours for the colour-blind, round ticks, and the same colours in the style sheet."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from evalapp.plot_style import DASHES, PALETTE, PAPER, SHAPES, name_ticks, round_ticks

#: Linear RGB to cone responses, and the responses of two dichromats: Viénot, Brettel and Mollon (1999).
CONES = np.array([[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]])
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": np.array([[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]]),
    "deuteranopia": np.array([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]]),
}
#: Linear RGB to XYZ, as in the standard of sRGB.
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    x, y, z = np.cbrt(np.clip(XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1), 1e-4, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", PALETTE)
def test_colours_stand_out_and_differ_for_everybody(theme):
    colours = PALETTE[theme]
    assert min(contrast(colour, PAPER[theme]) for colour in colours) >= 3
    for name, sight in SIGHTS.items():
        seen = [lab(np.linalg.solve(CONES, sight @ CONES @ linear(colour))) for colour in colours]
        # A difference of about 2.3 can just be noticed.
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 10, name


def test_style_sheet_has_the_colours_of_plots():
    style = (Path(__file__).parents[2] / "static/evalapp.css").read_text()
    found = re.findall(r"--plot-(\d): light-dark\((#\w+), (#\w+)\);", style)
    pairs = zip(PALETTE["light"], PALETTE["dark"], strict=True)
    assert found == [(str(number), *pair) for number, pair in enumerate(pairs, 1)]
    assert re.search(r"--paper: light-dark\((#\w+), (#\w+)\);", style).groups() == tuple(PAPER.values())


def test_as_many_shapes_as_colours():
    assert len(set(SHAPES)) == len(PALETTE["light"]) == len(PALETTE["dark"])
    assert len(set(DASHES)) == 4


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-0.13, 0.9, ["−0.5", "0.0", "0.5", "1.0"]),
        (1010, 98_000, ["0", "20,000", "40,000", "60,000", "80,000", "100,000"]),
        (2e-5, 3e-5, ["0.000020", "0.000022", "0.000024", "0.000026", "0.000028", "0.000030"]),
    ],
)
def test_ticks_are_round_and_enclose_the_range(low, high, texts):
    assert name_ticks(round_ticks(low, high)) == texts


@pytest.mark.parametrize("value", [0.0, -3.0, 0.2, 1e9])
def test_ticks_of_a_single_value(value):
    ticks = round_ticks(value, value)
    assert ticks[0] <= value <= ticks[-1]
    assert all(a < b for a, b in pairwise(ticks))
