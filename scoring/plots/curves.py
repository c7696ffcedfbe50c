"""Training curves as SVG, fast enough to be drawn every second."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

from evalapp.common.figures import Figure
from evalapp.plot_style import DASHES, PALETTE, get_colour, name_ticks, round_ticks

WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 68, 24, 34, 28
FOLD = re.compile(r"(fold \d+(?: of \d+)?)(?:, (.*))?")

Points = Sequence[tuple[float, float]]
#: A point in the plot, "x,y", of a step and a value.
Place = Callable[[float, float], str]


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
    title: str

    @property
    def figure(self) -> Figure:
        """The plot as a file of its own."""
        return Figure(self.title, self.svg, [(line.name, line.colour, line.dash) for line in self.series])


def draw(curves: Mapping[str, Points], *, title: str, axis: str, named: bool = True) -> Picture:
    """Draw a line for each series with finite points. Adjacent lines differ in colour and dash. `named`: the plot
    contains the name of the axis."""
    series = _find_series(curves)
    return Picture(axis, _svg(series, title, axis if named else "", _span(series)), series, title)


def draw_folds(curves: Mapping[str, Points], *, title: str, axis: str) -> list[Picture]:
    """Draw a plot for each fold, which has its own steps; all have the same values and looks. Without folds one plot
    has all lines; without points there is none."""
    parts: dict[str, dict[str, Points]] = {}
    for name, points in curves.items():
        match = FOLD.fullmatch(name)
        fold, line = match.groups() if match else ("", name)
        parts.setdefault(fold, {})[line or axis] = points
    names = list(dict.fromkeys(name for lines in parts.values() for name in lines))
    series = {fold: _find_series(lines, names) for fold, lines in parts.items()}
    span = _span([line for lines in series.values() for line in lines])
    pictures = []
    for fold, lines in series.items():
        name = f"{title}, {fold}" if fold else title
        if lines:
            pictures.append(Picture(fold or axis, _svg(lines, name, axis, span), lines, name))
    return pictures


def _find_series(curves: Mapping[str, Points], names: Sequence[str] = ()) -> list[Series]:
    """Return the lines with finite points; `names` have the order of looks."""
    finite = {name: [(x, y) for x, y in points if math.isfinite(y)] for name, points in curves.items()}
    drawn = [name for name, points in finite.items() if points]
    order = list(names) or drawn
    return [Series(name, get_colour(order.index(name)), _dash(order.index(name)), finite[name]) for name in drawn]


def _span(series: Sequence[Series]) -> tuple[float, float]:
    return (min(line.least for line in series), max(line.most for line in series)) if series else (0.0, 0.0)


def _dash(number: int) -> str:
    return DASHES[(number + number // len(PALETTE["light"])) % len(DASHES)]


def _svg(series: Sequence[Series], title: str, axis: str, span: tuple[float, float]) -> SafeString:
    if not series:
        return mark_safe("")
    xs = [x for line in series for x, _ in line.points]
    low, high = span
    # A single value is centred and the only tick, because values around it may be impossible.
    ticks = [low] if low == high else round_ticks(low, high, 5)
    low, high = (low - 0.5, high + 0.5) if low == high else (ticks[0], ticks[-1])
    first, last = min(xs), max(xs)
    across = (WIDTH - LEFT - RIGHT) / ((last - first) or 1)
    upwards = (HEIGHT - TOP - BOTTOM) / (high - low)

    def place(x: float, y: float) -> str:
        return f"{LEFT + (x - first) * across:.1f},{HEIGHT - BOTTOM - (y - low) * upwards:.1f}"

    words = "; ".join(f"{line.name}: {line.first:.3g} to {line.last:.3g}" for line in series)
    parts = [
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}: {escape(words)}">',
        *_axes(ticks, place, first, last, axis),
    ]
    for line in series:
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        look = f'fill="none" stroke="{line.colour}" stroke-width="1.75" stroke-linejoin="round"{dash}'
        if len(line.points) == 1:
            x, y = place(*line.points[0]).split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{line.colour}"/>')
        parts.append(f'<polyline {look} points="{" ".join(place(x, y) for x, y in line.points)}"/>')
    return mark_safe("".join([*parts, "</svg>"]))


def _axes(ticks: Sequence[float], place: Place, first: float, last: float, axis: str) -> list[str]:
    """Return grid lines and labels at round values and steps."""
    parts = [f'<text x="0" y="15">{escape(axis)}</text>'] if axis else []
    texts = name_ticks(ticks) if len(ticks) > 1 else [f"{ticks[0]:.4g}"]
    for value, text in zip(ticks, texts, strict=True):
        y = float(place(first, value).split(",")[1])
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'stroke-opacity=".18"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        )
    base = HEIGHT - 8
    if first == last:
        return [*parts, f'<text x="{LEFT}" y="{base}">step {first:,.0f}</text>']
    parts.append(f'<text x="0" y="{base}">step</text>')
    steps = [step for step in round_ticks(first, last, 8) if first <= step <= last and step == int(step)]
    for step in steps or [first, last]:
        x = place(step, ticks[0]).split(",")[0]
        parts.append(f'<text x="{x}" y="{base}" text-anchor="middle">{step:,.0f}</text>')
    return parts
