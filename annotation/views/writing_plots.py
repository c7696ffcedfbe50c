"""SVG plots of reference writing, without style attributes: the growth of a set on the writing page, and lines with
intervals on the progress page. Colours are paired with dashes, so that nothing depends on colour alone."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalapp.common.figures import Figure
from evalapp.plot_style import DASHES, get_colour, name_ticks, round_ticks
from evalapp.side_figures import side_figure

WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 30, 32
SPARK_WIDTH, SPARK_HEIGHT, SPARK_EDGE = 240, 64, 8
LEAST_SPAN = 0.05
#: The maximum number of lines in a plot; the table has all lines.
MOST_LINES = 8

#: (value on the x axis, shift in pixels) -> x, and value on the y axis -> y.
Across = Callable[[float, float], float]
Upwards = Callable[[float], float]


@dataclass(frozen=True)
class Dot:
    """A mean over `n` at round `x` with its interval (None: not defined)."""

    x: float
    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0


@dataclass(frozen=True)
class Line:
    """A line of a plot: an arm or an annotator."""

    name: str
    dots: tuple[Dot, ...]

    @property
    def last(self) -> Dot:
        return self.dots[-1]


def _defined(points: Sequence[tuple[float, float | None]]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if y is not None and math.isfinite(y)]


def draw_growth(points: Sequence[tuple[float, float | None]]) -> SafeString:
    """The growth of a set's reliability by round; empty without points."""
    shown = _defined(points)
    if not shown:
        return mark_safe("")
    ys = [y for _, y in shown]
    low, high = _span(ys)
    across = (SPARK_WIDTH - 2 * SPARK_EDGE) / max(1, len(shown) - 1)
    places = [
        (
            SPARK_EDGE + number * across,
            SPARK_HEIGHT - SPARK_EDGE - (y - low) / (high - low) * (SPARK_HEIGHT - 2 * SPARK_EDGE),
        )
        for number, (_, y) in enumerate(shown)
    ]
    if len(ys) == 1:
        words = _("Growth: %(value).3f at the start") % {"value": ys[0]}
    else:
        rounds = len(ys) - 1
        words = ngettext(
            "Growth: from %(first).3f to %(last).3f in %(n)d round",
            "Growth: from %(first).3f to %(last).3f in %(n)d rounds",
            rounds,
        ) % {"first": ys[0], "last": ys[-1], "n": rounds}
    parts = [
        f'<svg class="growth" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" role="img" aria-label="{escape(words)}">',
        f'<line x1="0" x2="{SPARK_WIDTH}" y1="{SPARK_HEIGHT - 1}" y2="{SPARK_HEIGHT - 1}" class="ground"/>',
    ]
    if len(places) > 1:
        parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
    for (x, y), (place, value) in zip(places, shown, strict=True):
        title = escape(_("round %(round)g: %(value).3f") % {"round": place, "value": value})
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{title}</title></circle>')
    return mark_safe("".join([*parts, "</svg>"]))


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The range of values, at least `LEAST_SPAN`, so that noise does not look like a trend."""
    low, high = min(values), max(values)
    if high - low < LEAST_SPAN:
        middle = (low + high) / 2
        low, high = middle - LEAST_SPAN / 2, middle + LEAST_SPAN / 2
    return low, high


def looks(lines: Sequence[Line]) -> list[tuple[Line, str, str]]:
    """Each line with its colour and dash pattern."""
    return [(line, get_colour(number), DASHES[number % len(DASHES)]) for number, line in enumerate(lines)]


def draw_rounds(lines: Sequence[Line], *, title: str, axis: str, across: str = "round") -> SafeString:
    """Means with intervals by round, one line per arm or annotator; empty without points."""
    shown = [line for line in lines if line.dots]
    if not shown:
        return mark_safe("")
    values = [
        value
        for line in shown
        for dot in line.dots
        for value in (dot.value, dot.low, dot.high)
        if value is not None and math.isfinite(value)
    ]
    ticks = round_ticks(*_span(values), 6)
    low, high = ticks[0], ticks[-1]
    xs = [dot.x for line in shown for dot in line.dots]
    first, last = min(xs), max(xs)
    wide = (WIDTH - LEFT - RIGHT - 24) / ((last - first) or 1)
    tall = (HEIGHT - TOP - BOTTOM) / (high - low)

    def at(x: float, shift: float) -> float:
        return LEFT + 12 + (x - first) * wide + shift

    def up(y: float) -> float:
        return HEIGHT - BOTTOM - (y - low) * tall

    template = _("%(line)s: %(first).3f to %(last).3f")
    words = "; ".join(
        template % {"line": line.name, "first": line.dots[0].value, "last": line.last.value} for line in shown
    )
    parts = [
        f'<svg class="curve rounds" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}. {escape(words)}">',
        *_grid(ticks, up, axis),
        *_ticks(first, last, at, across),
    ]
    for number, (line, colour, dash) in enumerate(looks(shown)):
        # Intervals of multiple lines are drawn side by side.
        shift = (number - (len(shown) - 1) / 2) * min(4.0, 16 / len(shown))
        parts += _one_line(line, colour, dash, shift, at, up)
    return mark_safe("".join([*parts, "</svg>"]))


def _one_line(line: Line, colour: str, dash: str, shift: float, at: Across, up: Upwards) -> list[str]:
    parts = []
    points = " ".join(f"{at(dot.x, shift):.1f},{up(dot.value):.1f}" for dot in line.dots)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.75"{dashes} points="{points}"/>')
    for dot in line.dots:
        x, y = at(dot.x, shift), up(dot.value)
        if dot.low is not None and dot.high is not None:
            ends = f'y1="{up(dot.low):.1f}" y2="{up(dot.high):.1f}"'
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" {ends} stroke="{colour}" stroke-width="1.25"/>')
        title = f"{line.name}, {dot.x:g}: {dot.value:.3f}"
        if dot.low is not None and dot.high is not None:
            title += " " + _("(%(low).3f to %(high).3f)") % {"low": dot.low, "high": dot.high}
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"><title>{escape(title)}</title></circle>'
        )
    return parts


def _grid(ticks: Sequence[float], up: Upwards, axis: str) -> list[str]:
    """Return lines at round values, and the name of the axis above it."""
    parts = [f'<text x="0" y="14">{escape(axis)}</text>']
    for value, text in zip(ticks, name_ticks(ticks), strict=True):
        y = up(value)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'stroke-opacity=".18"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        )
    return parts


def _ticks(first: float, last: float, at: Across, across: str) -> list[str]:
    """Whole, round numbers."""
    known = [x for x in round_ticks(first, last, 11) if first <= x <= last and x == int(x)]
    rounds = [round(x) for x in known or [first]]
    parts = [f'<text x="{at(x, 0):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{x:,}</text>' for x in rounds]
    parts.append(f'<text x="{LEFT + 4}" y="{HEIGHT - 4}">{escape(across)}</text>')
    return parts


def list_figures(plots: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Return the plots of a page as files of their own."""
    return [
        Figure(one["title"], one["svg"], [(line["name"], line["colour"], line["dash"]) for line in one["legend"]])
        for one in plots
    ]


def _lines(rows: Mapping[str, Sequence[Any]], names: Mapping[str, str]) -> list[Line]:
    lines = []
    for name, points in rows.items():
        dots = tuple(
            Dot(point.round, point.mean, point.low, point.high, point.n) for point in points if point.mean is not None
        )
        if dots:
            lines.append(Line(str(names.get(name, name)), dots))
    return lines


def plot(
    rows: Mapping[str, Sequence[Any]],
    names: Mapping[str, str],
    *,
    title: str,
    across: str,
    axis: str = "",
) -> dict[str, Any] | None:
    """A plot with legend and table; None if there are no points."""
    with side_figure(_("The plot %(title)s") % {"title": title}):
        lines = _lines(rows, names)
        if not lines:
            return None
        shown = lines[:MOST_LINES]
        return {
            "title": title,
            "svg": draw_rounds(shown, title=title, axis=axis or _("predicted reliability, 95 %"), across=across),
            "legend": [{"name": line.name, "colour": colour, "dash": dash} for line, colour, dash in looks(shown)],
            "lines": lines,
            "hidden": len(lines) - len(shown),
        }
    return None
