"""The look of all plots on screen, in SVG and in PDF: colours of both themes, shapes, dashes, sizes, ticks. The style
sheet has the same colours as `--plot-1` to `--plot-8`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from evalapp.number_text import MINUS

Theme = Literal["light", "dark"]

#: Derived from Okabe and Ito's colours: contrast of at least 3 on the page, distinct with protanopia and deuteranopia.
#: Shapes and dashes differ as well.
PALETTE: dict[Theme, tuple[str, ...]] = {
    "light": ("#0461a7", "#c77409", "#048c5d", "#d45892", "#a45604", "#4c8dc6", "#2c2161", "#5c5c5c"),
    "dark": ("#6fc5e6", "#f55e2f", "#66dcba", "#f8d9ef", "#fcb608", "#1170e6", "#a390e1", "#808693"),
}
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
#: Text, secondary text, grid lines.
INK: dict[Theme, tuple[str, str, str]] = {
    "light": ("#1a1f27", "#566070", "#e2e6eb"),
    "dark": ("#e7eaee", "#a5aebb", "#2c333d"),
}
#: The backgrounds that the contrasts are about.
PAPER: dict[Theme, str] = {"light": "#ffffff", "dark": "#14171c"}
#: Fonts of the same widths, with which the sizes of texts are computed.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
#: Widths of a plot: over the whole page, two side by side, on narrow screens.
WIDE, HALF, NARROW = 820, 560, 328


@dataclass(frozen=True)
class Size:
    """Size of a plot in pixels, known before it is drawn, so that pages reserve its place."""

    width: int
    height: int


def get_colour(number: int) -> str:
    """Return the colour of a line inside a page, which follows the theme."""
    return f"var(--plot-{number % len(PALETTE['light']) + 1})"


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return at most `most` round values (1, 2 or 5 times a power of 10, evenly spaced) that enclose the range."""
    if low == high:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    span = high - low
    power = 10.0 ** math.floor(math.log10(span))
    for step in (power * factor for factor in (0.1, 0.2, 0.5, 1, 2, 5, 10)):
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first + 1 <= most and last > first:
            digits = max(0, 1 - math.floor(math.log10(step)))
            return [round(number * step, digits) for number in range(first, last + 1)]
    return [low, high]


def name_ticks(ticks: Sequence[float]) -> list[str]:
    """Return the texts of ticks, all with the same number of digits and a true minus sign."""
    steps = [abs(b - a) for a, b in pairwise(ticks)] or [1.0]
    digits = max(0, -math.floor(math.log10(min(steps) or 1.0) + 1e-9))
    return [f"{tick:,.{digits}f}".replace("-", MINUS) for tick in ticks]
