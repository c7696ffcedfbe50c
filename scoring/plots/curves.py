"""Training curves as SVG, fast enough to be drawn every second."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

from evalapp.plot_style import DASHES, PALETTE, get_colour

WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 68, 12, 34, 28

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Series:
    """A line with its finite points, its style, and the figures of the table below the plot."""

    name: str
    colour: str
    dash: str
    points: Points

    @property
    def first(self) -> float:
        return self.points[0][1]

    @property
    def least(self) -> float:
        return min(y for _, y in self.points)

    @property
    def least_at(self) -> int:
        """The first step with the minimum."""
        return int(next(x for x, y in self.points if y == self.least))

    @property
    def most(self) -> float:
        return max(y for _, y in self.points)

    @property
    def most_at(self) -> int:
        return int(next(x for x, y in self.points if y == self.most))

    @property
    def last(self) -> float:
        return self.points[-1][1]

    @property
    def steps(self) -> int:
        return int(self.points[-1][0])


@dataclass(frozen=True)
class Picture:
    """Lines on one axis with the rows of the table below them; the SVG is empty without points."""

    axis: str
    svg: SafeString
    series: Sequence[Series]


def draw(curves: Mapping[str, Points], *, title: str, axis: str, named: bool = True) -> Picture:
    """Draw a line for each series with finite points. Adjacent lines differ in colour and dash. `named`: the plot
    contains the name of the axis."""
    finite = ((name, [(x, y) for x, y in points if math.isfinite(y)]) for name, points in curves.items())
    series = [
        Series(name, get_colour(number), _dash(number), points)
        for number, (name, points) in enumerate((name, points) for name, points in finite if points)
    ]
    return Picture(axis, _svg(series, title, axis if named else ""), series)


def _dash(number: int) -> str:
    return DASHES[(number + number // len(PALETTE["light"])) % len(DASHES)]


def _svg(series: Sequence[Series], title: str, axis: str) -> SafeString:
    if not series:
        return mark_safe("")
    xs = [x for line in series for x, _ in line.points]
    low, high = min(line.least for line in series), max(line.most for line in series)
    # A single value is centred and the only tick, because values around it may be impossible.
    ticks = [low] if low == high else [low, (low + high) / 2, high]
    if low == high:
        low, high = low - 0.5, high + 0.5
    first, last = min(xs), max(xs)
    across = (WIDTH - LEFT - RIGHT) / ((last - first) or 1)
    upwards = (HEIGHT - TOP - BOTTOM) / (high - low)

    def place(x: float, y: float) -> str:
        return f"{LEFT + (x - first) * across:.1f},{HEIGHT - BOTTOM - (y - low) * upwards:.1f}"

    words = "; ".join(f"{line.name}: {line.first:.3g} to {line.last:.3g}" for line in series)
    parts = [
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}: {escape(words)}">',
        *_axes([(value, float(place(first, value).split(",")[1])) for value in ticks], first, last, axis),
    ]
    for line in series:
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        look = f'fill="none" stroke="{line.colour}" stroke-width="1.75" stroke-linejoin="round"{dash}'
        if len(line.points) == 1:
            x, y = place(*line.points[0]).split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{line.colour}"/>')
        parts.append(f'<polyline {look} points="{" ".join(place(x, y) for x, y in line.points)}"/>')
    return mark_safe("".join([*parts, "</svg>"]))


def _axes(ticks: Sequence[tuple[float, float]], first: float, last: float, axis: str) -> list[str]:
    """Return grid lines and labels; `ticks` are values with their heights."""
    parts = [f'<text x="0" y="15">{escape(axis)}</text>'] if axis else []
    for value, y in ticks:
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'stroke-opacity=".18"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>'
        )
    base = HEIGHT - 8
    if first == last:
        parts.append(f'<text x="{LEFT}" y="{base}">step {first:,.0f}</text>')
    else:
        parts.append(f'<text x="{LEFT}" y="{base}">{first:,.0f}</text>')
        parts.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{base}" text-anchor="middle">step</text>')
        parts.append(f'<text x="{WIDTH - RIGHT}" y="{base}" text-anchor="end">{last:,.0f}</text>')
    return parts
