"""Curves of a training as SVG: plain values in, SVG text out. Light enough to be drawn anew every second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

from .plots import PALETTE

WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 10, 26
DASHES = ("", "6 3", "2 3", "8 3 2 3")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Series:
    """A line with the figures that stand in the table below it."""

    name: str
    colour: str
    dash: str
    first: float
    least: float
    most: float
    last: float
    steps: int


@dataclass(frozen=True)
class Picture:
    """Lines drawn on one axis, and the rows of the table below them; no SVG where there is no point."""

    axis: str
    svg: SafeString
    series: Sequence[Series]


def drawable(curves: Mapping[str, Points]) -> dict[str, list[tuple[float, float]]]:
    """Finite points only, and only series that have any."""
    found = {name: [(x, y) for x, y in points if math.isfinite(y)] for name, points in curves.items()}
    return {name: points for name, points in found.items() if points}


def describe_series(curves: Mapping[str, Points]) -> list[Series]:
    """One row for each line, in its order: colour, first, least, greatest and last value."""
    rows = []
    for number, (name, points) in enumerate(drawable(curves).items()):
        values = [y for _, y in points]
        dash = DASHES[number // len(PALETTE) % len(DASHES)]
        colour = PALETTE[number % len(PALETTE)]
        steps = int(points[-1][0])
        rows.append(Series(name, colour, dash, values[0], min(values), max(values), values[-1], steps))
    return rows


def draw(curves: Mapping[str, Points], *, title: str, axis: str) -> Picture:
    return Picture(axis, draw_curves(curves, title=title, axis=axis), describe_series(curves))


def draw_curves(curves: Mapping[str, Points], *, title: str, axis: str) -> SafeString:
    """An SVG with a line for each series over the steps; empty without any point. Text takes the colour of the page."""
    shown = drawable(curves)
    if not shown:
        return mark_safe("")
    xs = [x for points in shown.values() for x, _ in points]
    ys = [y for points in shown.values() for _, y in points]
    low, high = min(ys), max(ys)
    if low == high:
        low, high = low - 0.5, high + 0.5
    first, last = min(xs), max(xs)
    across = (WIDTH - LEFT - RIGHT) / ((last - first) or 1)
    upwards = (HEIGHT - TOP - BOTTOM) / (high - low)

    def place(x: float, y: float) -> str:
        return f"{LEFT + (x - first) * across:.1f},{HEIGHT - BOTTOM - (y - low) * upwards:.1f}"

    rows = describe_series(curves)
    words = "; ".join(f"{row.name}: from {row.first:.3g} to {row.last:.3g}" for row in rows)
    parts = [
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}: {escape(words)}">',
        *_axes(low, high, first, last, axis),
    ]
    for row, points in zip(rows, shown.values(), strict=True):
        dash = f' stroke-dasharray="{row.dash}"' if row.dash else ""
        look = f'fill="none" stroke="{row.colour}" stroke-width="1.75" stroke-linejoin="round"{dash}'
        if len(points) == 1:
            x, y = place(*points[0]).split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{row.colour}"/>')
        parts.append(f'<polyline {look} points="{" ".join(place(x, y) for x, y in points)}"/>')
    return mark_safe("".join([*parts, "</svg>"]))


def _axes(low: float, high: float, first: float, last: float, axis: str) -> list[str]:
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
        value = low + share * (high - low)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'stroke-opacity=".18"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>'
        )
    base = HEIGHT - 8
    parts.append(f'<text x="{LEFT}" y="{base}">step {first:,.0f}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{base}" text-anchor="end">{last:,.0f}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{base}" text-anchor="middle">{escape(axis)}</text>')
    return parts
