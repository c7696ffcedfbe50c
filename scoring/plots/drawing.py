"""Plots as SVG or PDF, drawn on the server. The drawing library is imported by the first plot.

The total size of a plot depends only on its numbers of rows and columns (`size_...`), so that pages reserve its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import Any
from xml.sax.saxutils import escape

from evalapp.markup import show_hidden
from evalapp.names import natural_key
from evalapp.number_text import show_figure
from evalapp.plot_style import FONT, INK, NARROW, PALETTE, SHAPES, WIDE, Size, Theme, round_ticks
from evalapp.translation import gettext as _

ROW, TIGHT_ROW = 26, 15
#: Rows of a forest plot above which rows are tighter.
MOST_LOOSE = 40
MAX_POINTS = 1500
#: Part of the addresses of stored pictures: count it up when their look changes.
LOOK = 2
#: The space that a title in a PDF needs.
TITLE = 28


@dataclass(frozen=True)
class Picture:
    """A plot that is not drawn yet: its size by width of the screen, and what it shows in a sentence."""

    measure: Callable[[int], Size]
    paint: Callable[..., Plot]
    finding: str
    width: int = WIDE

    @property
    def wide(self) -> Size:
        return self.measure(self.width)

    @property
    def narrow(self) -> Size:
        return self.measure(NARROW)

    def draw(self, theme: Theme, width: int = WIDE) -> Plot:
        return self.paint(theme=theme, width=width)


@dataclass(frozen=True)
class Mark:
    """A vertical line of a forest plot, such as a noise ceiling, with its interval as a pale band. Without a text it
    is a plain reference line."""

    at: float
    text: str = ""
    low: float | None = None
    high: float | None = None


def plan_forest(rows: Sequence[Mapping[str, Any]], *, finding: str, **said: Any) -> Picture:
    """Return a forest plot to be drawn, described by the finding and the values of the rows."""
    n_drawn = sum(row["value"] is not None or row.get("rank") is not None for row in rows)
    description = f"{finding} {in_words(rows)[:2000]}".strip()
    return Picture(
        lambda width: size_forest(n_drawn, width), partial(draw_forest, rows, description=description, **said), finding
    )


def name_estimate(row: Mapping[str, Any], digits: int = 3) -> str:
    """Return a value with its interval as text."""
    text = show_figure(row["value"], digits)
    if row["low"] is None or row["high"] is None:
        return text
    return f"{text} [{show_figure(row['low'], digits)}, {show_figure(row['high'], digits)}]"


def size_forest(n_rows: int, width: int = WIDE) -> Size:
    return Size(width, 122 + max(n_rows, 1) * (ROW if n_rows <= MOST_LOOSE else TIGHT_ROW))


def draw_forest(
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str,
    description: str,
    axis: str,
    theme: Theme,
    zero: bool,
    width: int = WIDE,
    marks: Sequence[Mark] = (),
    digits: int = 3,
    main: str = "",
) -> Plot:
    """Draw a dot with its interval for each row `{"label", "value", "low", "high", "kind", "letters"}`, with letters of
    significance and values at the right. Rows of the `main` kind have the main colour, others are grey. A row with a
    rank but without a value (infinite rating) shows its rank as text."""
    alt = _load_altair()

    ink, soft, _grid = INK[theme]
    drawn = [
        {"kind": "", **row, "label": show_hidden(str(row["label"]))}
        for row in rows
        if row["value"] is not None or row.get("rank") is not None
    ]
    shown = [row for row in drawn if row["value"] is not None]
    order = [row["label"] for row in drawn]
    kinds = sorted(dict.fromkeys(row["kind"] for row in drawn), key=lambda kind: kind != main)
    legend = alt.Legend(title=None, orient="bottom", symbolOpacity=1, direction="horizontal")
    colours = alt.Scale(domain=kinds, range=[PALETTE[theme][0] if kind == main else soft for kind in kinds])
    key = legend if len(kinds) > 1 else None
    color = alt.Color("kind:N", scale=colours, legend=key)
    shape = alt.Shape("kind:N", scale=_shapes(kinds), legend=key)
    labels: Any = _colour_labels([row["label"] for row in drawn if row["kind"] != main], soft, ink)
    left = alt.Axis(
        orient="left", labelLimit=240 if width == WIDE else 120, ticks=False, domain=False, labelColor=labels,
        labelPadding=8, grid=False, labelExpr="datum.value" if width == WIDE else _break_labels(order),
        labelLineHeight=12,
    )  # fmt: skip
    domain = alt.Scale(domain=order)

    def y(axis: Any) -> Any:
        return alt.Y("label:N", sort=order, title=None, axis=axis, scale=domain)

    ends = [row[end] for row in shown for end in ("value", "low", "high") if row[end] is not None]
    ends += [end for mark in marks for end in (mark.at, mark.low, mark.high) if end is not None]
    span = _widen([*ends, 0.0] if zero or not ends else ends)
    x_scale = alt.Scale(domain=span, nice=False, zero=False)
    x = alt.X("value:Q", title=axis, scale=x_scale, axis=_bottom_axis(span, width))
    base = alt.Chart(_data(shown)).encode(color=color)
    # Rows without a finite value need a place as well.
    layers: Any = alt.Chart(_data(drawn)).mark_point(opacity=0).encode(y=y(left))
    for number, mark in enumerate([*([Mark(0.0)] if zero else []), *marks]):
        layers += _draw_mark(mark, number, x_scale, span, theme)
    layers += base.mark_rule(strokeWidth=2).encode(y=y(None), x=alt.X("low:Q", scale=x_scale), x2="high:Q")
    layers += base.mark_point(filled=True, size=72, opacity=1).encode(y=y(None), x=x, shape=shape)
    if endless := [{"label": row["label"], "words": unbounded(row)} for row in drawn if row["value"] is None]:
        words = alt.Chart(_data(endless)).mark_text(align="left", color=soft, fontSize=11)
        layers += words.encode(y=y(None), x=alt.value(8), text="words:N")
    letters = {row["label"]: row["letters"] for row in shown if row.get("letters")}
    offset = 0
    for texts, head in ((letters, _("letters")), (_name_values(shown, digits, width == WIDE), "")):
        if texts:
            right = _side_axis(texts, head, offset, ink)
            layers += alt.Chart(_data(drawn)).mark_point(opacity=0).encode(y=y(right))
            offset += 22 + 7 * max(len(head), *map(len, texts.values()))
    chart = layers.resolve_axis(y="independent")
    return _plot(chart, title, description, theme, size_forest(len(drawn), width))


def _colour_labels(grey: Sequence[str], soft: str, ink: str) -> dict[str, Any]:
    """Return the colour of labels: `soft` for those in `grey`, `ink` for others."""
    test = f"indexof({json.dumps(grey, ensure_ascii=False)}, datum.value) >= 0"
    return {"condition": {"test": test, "value": soft}, "value": ink}


def _break_labels(labels: Sequence[str]) -> str:
    """Return an expression that breaks long labels into two lines."""
    broken = {label: wrap(label, 18, break_on_hyphens=False) for label in labels}
    lines = {label: [*parts[:1], *filter(None, [" ".join(parts[1:])])] for label, parts in broken.items()}
    return f"({json.dumps(lines, ensure_ascii=False)})[datum.value]"


def _draw_mark(mark: Mark, number: int, scale: Any, span: Sequence[float], theme: Theme) -> Any:
    """Return the layers of a vertical line with its text above the plot."""
    alt = _load_altair()

    _ink, soft, _grid = INK[theme]
    data = _data([{"at": mark.at, "low": mark.low, "high": mark.high}])
    x = alt.X("at:Q", scale=scale)
    dash = [5, 3] if mark.text else [1, 0]
    layers: Any = alt.Chart(data).mark_rule(strokeDash=dash, color=soft, strokeWidth=1.25).encode(x=x)
    if mark.low is not None and mark.high is not None:
        band = alt.Chart(data).mark_rect(color=soft, opacity=0.12)
        layers = band.encode(x=alt.X("low:Q", scale=scale), x2="high:Q") + layers
    if mark.text:
        right = (mark.at - span[0]) > 0.6 * (span[1] - span[0])
        # Texts of neighbouring lines are on different heights.
        words = alt.Chart(data).mark_text(
            align="right" if right else "left", dx=4 if right else -4, baseline="bottom", fontSize=11, color=soft,
            text=show_hidden(mark.text),
        )  # fmt: skip
        layers += words.encode(x=x, y=alt.value(-4 - 14 * (number % 2)))
    return layers


def _side_axis(texts: Mapping[str, str], head: str, offset: int, color: str) -> Any:
    """Return an axis at the right with a text for each row."""
    alt = _load_altair()

    names = json.dumps(texts, ensure_ascii=False)
    return alt.Axis(
        orient="right", offset=offset, ticks=False, domain=False, grid=False, labelPadding=8, labelLimit=200,
        labelExpr=f"({names})[datum.value] || ''", labelColor=color, title=head or None,
        titleAngle=0, titleAlign="left", titleAnchor="start", titleX=8, titleY=-6, titleBaseline="bottom",
        titleFontSize=11,
    )  # fmt: skip


def _name_values(rows: Sequence[Mapping[str, Any]], digits: int, with_intervals: bool) -> dict[str, str]:
    if with_intervals:
        return {row["label"]: name_estimate(row, digits) for row in rows}
    return {row["label"]: show_figure(row["value"], digits) for row in rows}


def _widen(values: Sequence[float]) -> list[float]:
    """Return the range of values with a margin."""
    low, high = min(values), max(values)
    air = 0.04 * (high - low) or 0.05 * abs(high) or 0.5
    # An axis that begins or ends at 0 needs no margin there.
    return [low - air if low else low, high + air if high else high]


def _bottom_axis(span: Sequence[float], width: int) -> Any:
    """Return an axis with round values inside the range."""
    low, high = span
    values = [tick for tick in round_ticks(low, high, 9 if width == WIDE else 5) if low <= tick <= high]
    return _load_altair().Axis(values=values, labelFlush=False)


def unbounded(row: Mapping[str, Any]) -> str:
    """Return the text for a system with a rank but without a finite rating."""
    low, high = row["rank_low"], row["rank_high"]
    return _("rank %(rank)s, no finite rating") % {"rank": low if low == high else f"{low}–{high}"}


def in_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the figures of a forest plot as text."""
    return "; ".join(
        f"{row['label']} {row['value']:.3f}" if row["value"] is not None else f"{row['label']} {unbounded(row)}"
        for row in rows
        if row["value"] is not None or row.get("rank") is not None
    )


def size_groups(n_rows: int, n_series: int, width: int = WIDE) -> Size:
    return Size(width, 96 + max(n_rows, 1) * (10 + 14 * max(n_series, 1)))


def draw_groups(
    rows: Sequence[Mapping[str, Any]],
    *,
    names: Sequence[str],
    series: Sequence[str],
    title: str,
    description: str,
    axis: str,
    theme: Theme,
    width: int = WIDE,
) -> Plot:
    """Draw for each name a dot with its interval for each series, below each other; `rows` are `{"name", "series",
    "value", "low", "high"}`."""
    alt = _load_altair()

    _ink, soft, _grid = INK[theme]
    shown = [dict(row) for row in rows if row["value"] is not None]
    ends = [row[end] for row in shown for end in ("value", "low", "high") if row[end] is not None]
    span = _widen([*ends, 0.0])
    scale = alt.Scale(domain=span, nice=False, zero=False)
    legend = alt.Legend(title=None, orient="bottom", symbolOpacity=1, columns=3 if width == WIDE else 1)
    left = alt.Axis(labelLimit=240 if width == WIDE else 110, ticks=False, domain=False, grid=True)
    base = alt.Chart(_data(shown)).encode(
        y=alt.Y(
            "name:N", sort=list(names), title=None, axis=left, scale=alt.Scale(domain=list(names), paddingInner=0.2)
        ),
        yOffset=alt.YOffset("series:N", sort=list(series), scale=alt.Scale(domain=list(series), paddingOuter=0.6)),
        color=alt.Color("series:N", scale=_colours(series, theme), legend=legend),
    )
    zero = alt.Chart(_data([{"at": 0}])).mark_rule(color=soft, strokeWidth=1.25).encode(x=alt.X("at:Q", scale=scale))
    lines = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("value:Q", title=axis, scale=scale, axis=_bottom_axis(span, width)),
        shape=alt.Shape("series:N", scale=_shapes(series), legend=legend),
    )
    return _plot(zero + lines + dots, title, description, theme, size_groups(len(names), len(series), width))


def _colours(names: Sequence[str], theme: Theme) -> Any:
    alt = _load_altair()

    colours = PALETTE[theme]
    return alt.Scale(domain=list(names), range=[colours[n % len(colours)] for n in range(len(names))])


def _shapes(names: Sequence[str]) -> Any:
    alt = _load_altair()

    # The second round of colours has other shapes.
    shapes = [SHAPES[(n + n // len(SHAPES)) % len(SHAPES)] for n in range(len(names))]
    return alt.Scale(domain=list(names), range=shapes)


def size_scatter(width: int = WIDE) -> Size:
    return Size(width, 480 if width == WIDE else 420)


def draw_scatter(
    points: Sequence[Mapping[str, Any]],
    *,
    title: str,
    description: str,
    axes: tuple[str, str],
    theme: Theme,
    width: int = WIDE,
    note: str = "",
) -> Plot:
    """Draw one mark per output or system, at most `MAX_POINTS`, and the least squares line of all. `note`: a text above
    the plot."""
    alt = _load_altair()

    _ink, soft, _grid = INK[theme]
    shown = thin(points)
    systems = sorted({str(point["system"]) for point in shown}, key=natural_key)
    size, dense = (70, False) if len(shown) <= 40 else (30, True)
    x_scale, y_scale = (alt.Scale(zero=False, nice=True, padding=10) for _axis in axes)
    encoding: dict[str, Any] = {
        "x": alt.X("metric:Q", title=axes[0], scale=x_scale, axis=alt.Axis(tickCount=8 if width == WIDE else 4)),
        "y": alt.Y("people:Q", title=axes[1], scale=y_scale, axis=alt.Axis(tickCount=6)),
    }
    style: dict[str, Any] = {"filled": True, "size": size, "opacity": 0.55 if dense else 1.0}
    if len(systems) <= len(SHAPES):
        orient: Any = "right" if width == WIDE else "bottom"
        columns = 1 if width == WIDE else 2
        # Dots are pale where they overlap, but not in the legend.
        legend = alt.Legend(title=None, labelLimit=180, symbolOpacity=1, symbolSize=90, orient=orient, columns=columns)
        encoding["color"] = alt.Color("system:N", scale=_colours(systems, theme), legend=legend)
        encoding["shape"] = alt.Shape("system:N", scale=_shapes(systems), legend=legend)
    else:
        style["color"] = PALETTE[theme][0]
    layers: Any = alt.layer(alt.Chart(_data(shown)).mark_point(**style).encode(**encoding))
    if ends := fit_line(points):
        line = alt.Chart(_data(ends)).mark_line(color=INK[theme][0], strokeWidth=1.75, strokeDash=[7, 3])
        layers += line.encode(x="metric:Q", y="people:Q")
    if note:
        text = alt.Chart(_data([{"note": note}])).mark_text(align="left", baseline="bottom", color=soft, fontSize=12)
        layers += text.encode(x=alt.value(0), y=alt.value(-6), text="note:N")
    return _plot(layers, title, description, theme, size_scatter(width))


def fit_line(points: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """Return both ends of the least squares line of human scores on metric scores; [] if it is not defined."""
    n = len(points)
    if n < 3:
        return []
    xs, ys = ([float(point[name]) for point in points] for name in ("metric", "people"))
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    spread = sum((x - mean_x) ** 2 for x in xs)
    if not spread > 1e-12 * max(1.0, mean_x * mean_x):
        return []
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    return [{"metric": x, "people": mean_y + slope * (x - mean_x)} for x in (min(xs), max(xs))]


def size_distribution(n_rows: int, width: int = WIDE) -> Size:
    return Size(width, 62 + max(n_rows, 1) * (ROW if n_rows <= MOST_LOOSE else TIGHT_ROW))


def draw_distribution(
    rows: Sequence[Mapping[str, Any]], *, title: str, description: str, axis: str, theme: Theme, width: int = WIDE
) -> Plot:
    """Draw a box plot by system with quartiles, median, and lines from the 5th to the 95th percentile; `rows` are
    `{"label", "p5", "p25", "p50", "p75", "p95"}`."""
    alt = _load_altair()

    ink, main = INK[theme][0], PALETTE[theme][0]
    order = [row["label"] for row in rows]
    left = alt.Axis(labelLimit=240 if width == WIDE else 110, ticks=False, domain=False)
    base = alt.Chart(_data([dict(row) for row in rows])).encode(y=alt.Y("label:N", sort=order, title=None, axis=left))
    scale = alt.Scale(zero=False, nice=True, padding=6)
    ticks = alt.Axis(tickCount=8 if width == WIDE else 4, labelFlush=False)
    line = base.mark_rule(color=main, strokeWidth=1.5).encode(
        x=alt.X("p5:Q", title=axis, scale=scale, axis=ticks), x2="p95:Q"
    )
    box = base.mark_bar(height=12, color=main, opacity=0.45).encode(x="p25:Q", x2="p75:Q")
    median = base.mark_tick(color=ink, thickness=2, height=16).encode(x="p50:Q")
    return _plot(line + box + median, title, description, theme, size_distribution(len(rows), width))


def size_lines(n_lines: int, width: int = WIDE) -> Size:
    """The legend has two columns on wide screens and one on narrow ones."""
    return Size(width, 320 + 18 * -(-max(n_lines, 1) // (2 if width > NARROW else 1)))


def draw_lines(
    lines: Sequence[Mapping[str, Any]],
    *,
    title: str,
    description: str,
    axes: tuple[str, str],
    theme: Theme,
    width: int = WIDE,
) -> Plot:
    """Draw a line with a band for each `{"name", "points": [{"x", "value", "low", "high"}]}`."""
    alt = _load_altair()

    names = [str(line["name"]) for line in lines]
    rows = [{"name": str(line["name"]), **point} for line in lines for point in line["points"]]
    # Bands are pale, but not in the legend.
    columns = 2 if width > NARROW else 1
    legend = alt.Legend(
        title=None, orient="bottom", labelLimit=width // columns - 50, columns=columns, symbolOpacity=1, symbolSize=90
    )
    ticks = alt.Axis(tickMinStep=1, format=",d", tickCount=8 if width > NARROW else 4, labelFlush=False)
    x = alt.X("x:Q", title=axes[0], axis=ticks, scale=alt.Scale(zero=False, nice=False, padding=12))
    base = alt.Chart(_data(rows)).encode(x=x, color=alt.Color("name:N", scale=_colours(names, theme), legend=legend))
    scale = alt.Scale(zero=False, nice=True)
    y = alt.Y("value:Q", title=axes[1], scale=scale, axis=alt.Axis(tickCount=6))
    band = base.mark_area(opacity=0.14).encode(y=alt.Y("low:Q", title=axes[1], scale=scale), y2="high:Q")
    line = base.mark_line(strokeWidth=1.75).encode(y=y)
    marks = base.mark_point(filled=True, size=46, opacity=1).encode(
        y=y, shape=alt.Shape("name:N", scale=_shapes(names), legend=legend)
    )
    return _plot(band + line + marks, title, description, theme, size_lines(len(names), width))


def size_heat(n_rows: int, n_columns: int, width: int = WIDE) -> Size:
    """Cells have a least width, so that a plot of many columns is wider than the screen and scrolls."""
    beside = 320 if width == WIDE else 140
    widest = beside + 90 * n_columns
    return Size(max(beside + 40 * n_columns, min(width, widest)), 132 + ROW * max(n_rows, 1))


def draw_heat(
    cells: Sequence[Mapping[str, Any]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    description: str,
    axis: str,
    theme: Theme,
    width: int = WIDE,
) -> Plot:
    """Draw a heat map of `{"row", "column", "value"}`, blue above 0 and orange below, with values as text."""
    alt = _load_altair()

    shown = [dict(cell) for cell in cells if cell["value"] is not None]
    low, middle, high = HEAT[theme]
    scale = alt.Scale(domain=[-1, 0, 1], range=[low, middle, high])
    label = alt.Axis(labelAngle=-40, labelLimit=120, orient="top", ticks=False, domain=False)
    left = alt.Axis(labelLimit=200 if width == WIDE else 110, ticks=False, domain=False)
    base = alt.Chart(_data(shown)).encode(
        x=alt.X("column:N", sort=list(columns), title=None, axis=label, scale=alt.Scale(domain=list(columns))),
        y=alt.Y("row:N", sort=list(rows), title=None, axis=left, scale=alt.Scale(domain=list(rows))),
    )
    legend = alt.Legend(title=axis, gradientLength=100, tickCount=3) if width == WIDE else None
    field = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, legend=legend))
    # Saturated cells have white text on both backgrounds.
    ink = alt.value(INK[theme][0])
    text = base.mark_text(fontSize=11).encode(
        text=alt.Text("value:Q", format=".2f"),
        color=alt.condition("abs(datum.value) > 0.78", alt.value("#ffffff"), ink),
    )
    return _plot(field + text, title, description, theme, size_heat(len(rows), len(columns), width))


#: Colours of −1, 0 and 1.
HEAT: dict[Theme, tuple[str, str, str]] = {
    "light": ("#b34400", "#f4f4f4", "#0461a7"),
    "dark": ("#c24e0a", "#22272e", "#1170c4"),
}


def _load_altair() -> Any:
    """Return the drawing library. It looks for numpy among the loaded modules, where another thread may have left it
    half imported."""
    import altair
    import numpy  # noqa: F401

    return altair


def _data(values: list[dict[str, Any]]) -> Any:
    alt = _load_altair()

    return alt.Data(values=values)


def thin(points: Sequence[Mapping[str, Any]], most: int = MAX_POINTS) -> list[dict[str, Any]]:
    """Return at most `most` points, evenly spaced."""
    if len(points) <= most:
        return [dict(point) for point in points]
    return [dict(points[place * (len(points) - 1) // (most - 1)]) for place in range(most)]


def write_message(*lines: str, theme: Theme) -> str:
    """Return an SVG with lines of text, without the library, for a plot that failed."""
    text = "".join(
        f'<text x="{WIDE // 2}" y="{30 + 22 * place}" text-anchor="middle">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    height = 36 + 22 * len(lines)
    size = f'width="{WIDE}" height="{height}" viewBox="0 0 {WIDE} {height}"'
    look = f'font-family="{FONT}" font-size="13" fill="{INK[theme][1]}"'
    title = f"<title>{escape(' '.join(lines))}</title>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {look} role="img">{title}{text}</svg>'


@dataclass(frozen=True)
class Plot:
    """A Vega-Lite specification with title and description."""

    specification: dict[str, Any]
    title: str
    description: str

    def as_svg(self) -> str:
        """Return SVG with title and description for screen readers."""
        import vl_convert

        head, _, rest = str(vl_convert.vegalite_to_svg(self.specification)).partition(">")
        names = f'<title id="title">{escape(self.title)}</title><desc id="desc">{escape(self.description)}</desc>'
        return f'{head} role="img" aria-labelledby="title desc">{names}{rest}'

    def as_pdf(self) -> bytes:
        """Return PDF with the title."""
        import vl_convert

        spec = self.specification
        limit = spec["width"] - 40
        title = {"text": self.title, "fontSize": 13, "anchor": "start", "frame": "bounds", "limit": limit}
        titled = {**spec, "height": spec["height"] + TITLE, "title": title}
        return bytes(vl_convert.vegalite_to_pdf({**titled, "background": "white"}))


def _plot(chart: Any, title: str, description: str, theme: Theme, size: Size) -> Plot:
    """Return the plot of exactly this size, texts above the plot included."""
    alt = _load_altair()

    ink, soft, line = INK[theme]
    sized = chart.properties(
        width=size.width, height=size.height, autosize=alt.AutoSizeParams(type="fit", contains="padding")
    )
    configured = sized.configure(
        background="transparent",
        # Generated labels of marks would contain axis titles with unescaped backslashes.
        aria=False,
        # The browser's font may be wider than the measured one.
        padding={"left": 6, "right": 18, "top": 8, "bottom": 6},
        font=FONT,
        view={"stroke": None},
        axis={
            "labelColor": ink,
            "titleColor": soft,
            "gridColor": line,
            "domainColor": line,
            "tickColor": line,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        # Labels moved inwards at the ends would overlap.
        axisX={"labelFlush": False},
        legend={"labelColor": ink, "titleColor": soft, "labelFontSize": 12, "titleFontWeight": "normal"},
    )
    return Plot(_printable(configured.to_dict()), show_hidden(title), show_hidden(description))


def _printable(part: Any) -> Any:
    """Replace control characters, which crash the renderer, and U+2028, which is invalid in expressions."""
    if isinstance(part, str):
        return show_hidden(part)
    if isinstance(part, dict):
        return {name: _printable(value) for name, value in part.items()}
    return [_printable(value) for value in part] if isinstance(part, list) else part
