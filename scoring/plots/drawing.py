"""Plots as SVG or PDF, drawn on the server. The drawing library is imported by the first plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from xml.sax.saxutils import escape

from evalapp.markup import show_hidden
from evalapp.translation import gettext as _

Theme = Literal["light", "dark"]
WIDTH = 620
ROW = 26
MAX_POINTS = 1500

#: Okabe-Ito colours, readable on light and dark backgrounds; shapes differ as well.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6FBF", "#7F7F7F"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]
#: The colour of marks that do not differ by system, with enough contrast on both backgrounds.
MAIN = {"light": "#0072B2", "dark": "#56B4E9"}
INK = {"light": ("#1b1f24", "#5b6570", "#d8dce1"), "dark": ("#e8eaed", "#a3adb8", "#3a4149")}
FONT = "system-ui, sans-serif"


def draw_forest(
    rows: Sequence[Mapping[str, Any]], *, title: str, description: str, axis: str, theme: Theme, zero: bool
) -> Plot:
    """Draw a dot with its interval for each row `{"label", "value", "low", "high", "grey"}`. A row with a rank but
    without a value (infinite rating) shows its rank as text."""
    import altair as alt

    soft = INK[theme][1]
    drawn = [row for row in rows if row["value"] is not None or row.get("rank") is not None]
    shown = [dict(row, ink=soft if row.get("grey") else MAIN[theme]) for row in drawn if row["value"] is not None]
    data = _data(shown)
    order = [row["label"] for row in drawn]
    y = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=240, ticks=False, domain=False),
              scale=alt.Scale(domain=order))  # fmt: skip
    color = alt.Color("ink:N", scale=None)
    x = alt.X("value:Q", title=axis, scale=alt.Scale(zero=zero, nice=True))
    base = alt.Chart(data).encode(y=y, color=color)
    lines = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q"), x2="high:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x=x)
    layers: Any = lines + dots
    if zero:
        rule = alt.Chart(_data([{"at": 0}])).mark_rule(strokeDash=[2, 3], color=soft).encode(x="at:Q")
        layers = rule + lines + dots
    if endless := [{"label": row["label"], "words": unbounded(row)} for row in drawn if row["value"] is None]:
        words = alt.Chart(_data(endless)).mark_text(align="left", color=soft, fontSize=11)
        layers += words.encode(y=y, x=alt.value(8), text="words:N")
    chart = layers.properties(width=WIDTH - 260, height=max(ROW * len(drawn), ROW))
    return _plot(chart, title, description, theme)


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


def draw_scatter(
    points: Sequence[Mapping[str, Any]], *, title: str, description: str, axes: tuple[str, str], theme: Theme
) -> Plot:
    """Draw one mark per output or system, at most `MAX_POINTS`."""
    import altair as alt

    shown = thin(points)
    systems = sorted({str(point["system"]) for point in shown})
    few = len(systems) <= len(PALETTE)
    size = 70 if len(shown) <= 40 else 26
    encoding: dict[str, Any] = {
        "x": alt.X("metric:Q", title=axes[0], scale=alt.Scale(zero=False)),
        "y": alt.Y("people:Q", title=axes[1], scale=alt.Scale(zero=False)),
    }
    if few:
        legend = alt.Legend(title=None, labelLimit=180, symbolOpacity=1)
        encoding["color"] = alt.Color(
            "system:N", scale=alt.Scale(domain=systems, range=PALETTE[: len(systems)]), legend=legend
        )
        encoding["shape"] = alt.Shape(
            "system:N", scale=alt.Scale(domain=systems, range=SHAPES[: len(systems)]), legend=legend
        )
    style: dict[str, Any] = {"filled": True, "size": size, "opacity": 1.0 if len(shown) <= 40 else 0.55}
    if not few:
        style["color"] = MAIN[theme]
    mark: Any = alt.Chart(_data(shown)).mark_point(**style)
    return _plot(mark.encode(**encoding).properties(width=WIDTH - 240, height=320), title, description, theme)


def draw_distribution(
    rows: Sequence[Mapping[str, Any]], *, title: str, description: str, axis: str, theme: Theme
) -> Plot:
    """Draw a box plot by system with quartiles, median, and lines from the 5th to the 95th percentile; `rows` are
    `{"label", "p5", "p25", "p50", "p75", "p95"}`."""
    import altair as alt

    ink, _, _ = INK[theme]
    order = [row["label"] for row in rows]
    y = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=240, ticks=False, domain=False))
    base = alt.Chart(_data([dict(row) for row in rows])).encode(y=y)
    line = base.mark_rule(color=MAIN[theme]).encode(
        x=alt.X("p5:Q", title=axis, scale=alt.Scale(zero=False)), x2="p95:Q"
    )
    box = base.mark_bar(height=12, color=MAIN[theme], opacity=0.45).encode(x="p25:Q", x2="p75:Q")
    median = base.mark_tick(color=ink, thickness=2, height=16).encode(x="p50:Q")
    chart = (line + box + median).properties(width=WIDTH - 260, height=max(ROW * len(rows), ROW))
    return _plot(chart, title, description, theme)


def draw_lines(
    lines: Sequence[Mapping[str, Any]], *, title: str, description: str, axes: tuple[str, str], theme: Theme
) -> Plot:
    """Draw a line with a band for each `{"name", "points": [{"x", "value", "low", "high"}]}`."""
    import altair as alt

    names = [str(line["name"]) for line in lines]
    rows = [{"name": str(line["name"]), **point} for line in lines for point in line["points"]]
    scale = alt.Scale(domain=names, range=PALETTE[: len(names)])
    legend = alt.Legend(title=None, orient="bottom", labelLimit=300, columns=2)
    base = alt.Chart(_data(rows)).encode(
        x=alt.X("x:Q", title=axes[0], axis=alt.Axis(tickMinStep=1, format="d")),
        color=alt.Color("name:N", scale=scale, legend=legend),
    )
    y = alt.Y("value:Q", title=axes[1], scale=alt.Scale(zero=False))
    band = base.mark_area(opacity=0.14).encode(y=alt.Y("low:Q", title=axes[1]), y2="high:Q")
    line = base.mark_line(strokeWidth=1.75).encode(y=y)
    shapes = alt.Scale(domain=names, range=SHAPES[: len(names)])
    marks = base.mark_point(filled=True, size=46, opacity=1).encode(
        y=y, shape=alt.Shape("name:N", scale=shapes, legend=legend)
    )
    layers: Any = band + line + marks
    return _plot(layers.properties(width=WIDTH - 90, height=260), title, description, theme)


def draw_heat(
    cells: Sequence[Mapping[str, Any]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    description: str,
    axis: str,
    theme: Theme,
) -> Plot:
    """Draw a heat map of `{"row", "column", "value"}`, blue above 0 and orange below, with values as text."""
    import altair as alt

    ink, _, _ = INK[theme]
    shown = [dict(cell) for cell in cells if cell["value"] is not None]
    scale = alt.Scale(domain=[-1, 0, 1], range=[PALETTE[1], "#f4f4f4" if theme == "light" else "#22272e", PALETTE[0]])
    order = {"x": list(columns), "y": list(rows)}
    base = alt.Chart(_data(shown)).encode(
        x=alt.X("column:N", sort=order["x"], title=None, axis=alt.Axis(labelAngle=-40, labelLimit=160, orient="top")),
        y=alt.Y("row:N", sort=order["y"], title=None, axis=alt.Axis(labelLimit=200)),
    )
    field = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, title=axis))
    # Dark cells have light text on both backgrounds.
    light = alt.value("#ffffff")
    text = base.mark_text(fontSize=11).encode(
        text=alt.Text("value:Q", format=".2f"), color=alt.condition("abs(datum.value) > 0.8", light, alt.value(ink))
    )
    size = {"width": max(44 * len(columns), 60), "height": max(ROW * len(rows), ROW)}
    return _plot((field + text).properties(**size), title, description, theme)


def _data(values: list[dict[str, Any]]) -> Any:
    import altair as alt

    return alt.Data(values=values)  # type: ignore[no-untyped-call,unused-ignore]


def thin(points: Sequence[Mapping[str, Any]], most: int = MAX_POINTS) -> list[dict[str, Any]]:
    """Return at most `most` points, evenly spaced."""
    if len(points) <= most:
        return [dict(point) for point in points]
    return [dict(points[place * (len(points) - 1) // (most - 1)]) for place in range(most)]


def write_message(*lines: str, theme: Theme) -> str:
    """Return an SVG with lines of text, without the library, for a plot that failed."""
    text = "".join(
        f'<text x="{WIDTH // 2}" y="{30 + 22 * place}" text-anchor="middle">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    height = 36 + 22 * len(lines)
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
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

        titled = {**self.specification, "title": {"text": self.title, "fontSize": 13, "anchor": "start"}}
        return bytes(vl_convert.vegalite_to_pdf({**titled, "background": "white"}))


def _plot(chart: Any, title: str, description: str, theme: Theme) -> Plot:
    ink, soft, line = INK[theme]
    configured = chart.configure(
        background="transparent",
        # Generated labels of marks would contain axis titles with unescaped backslashes.
        aria=False,
        # The browser's font may be wider than the measured one.
        padding={"left": 18, "right": 18, "top": 6, "bottom": 6},
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
        axisX={"labelFlush": False, "tickCount": 6},
        legend={"labelColor": ink, "titleColor": ink, "labelFontSize": 12},
    )
    return Plot(_printable(configured.to_dict()), show_hidden(title), show_hidden(description))


def _printable(part: Any) -> Any:
    """Replace control characters, which crash the renderer, and U+2028, which is invalid in expressions."""
    if isinstance(part, str):
        return show_hidden(part)
    if isinstance(part, dict):
        return {name: _printable(value) for name, value in part.items()}
    return [_printable(value) for value in part] if isinstance(part, list) else part
