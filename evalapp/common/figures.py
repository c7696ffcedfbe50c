"""Downloads of plots that are drawn inside a page: SVG and PDF with their own colours and legend."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from django.http import HttpRequest, HttpResponse
from django.utils.http import content_disposition_header
from django.utils.text import slugify
from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput, NotThere
from evalapp.plot_style import FONT, INK, PALETTE, PAPER

TYPES = {"svg": "image/svg+xml; charset=utf-8", "pdf": "application/pdf"}
#: Heights of the title and of a line of the legend, in pixels.
TITLE, ROW = 28, 18
_PLOT = re.compile(r'<svg [^>]*viewBox="0 0 (\d+) (\d+)"[^>]*>(.*)</svg>', re.DOTALL)
_COLOUR = re.compile(r"var\(--plot-(\d)\)")


@dataclass(frozen=True)
class Figure:
    """A plot of a page: the title, which names it in the address, the SVG, and name, colour and dash of each line."""

    title: str
    svg: str
    legend: Sequence[tuple[str, str, str]]


def draw_file(figure: Figure) -> str:
    """Return the plot as an SVG file: light, with the title above and the legend below it."""
    match = _PLOT.fullmatch(figure.svg)
    if match is None:
        raise ValueError(f"the plot “{figure.title}” has no size")
    width, height, content = int(match[1]), int(match[2]), match[3]
    lines = figure.legend if len(figure.legend) > 1 else ()
    parts = [
        f'<text x="0" y="-12" font-size="13" fill="{INK["light"][0]}">{escape(figure.title)}</text>',
        f'<g fill="{INK["light"][1]}">{content}</g>',
    ]
    for number, (name, colour, dash) in enumerate(lines):
        y = height + ROW * number + ROW // 2
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(
            f'<line x1="8" x2="36" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"{dashes}/>'
            f'<text x="44" y="{y + 4}" fill="{INK["light"][0]}">{escape(name)}</text>'
        )
    total = TITLE + height + ROW * len(lines) + (ROW // 2 if lines else 0)
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" '
        f'viewBox="0 {-TITLE} {width} {total}" font-family="{FONT}" font-size="11">'
        f"<title>{escape(figure.title)}</title>"
        f'<rect y="{-TITLE}" width="{width}" height="{total}" fill="{PAPER["light"]}"/>{"".join(parts)}</svg>'
    )
    drawn = _COLOUR.sub(lambda found: PALETTE["light"][int(found[1]) - 1], drawn)
    return drawn.replace("currentColor", INK["light"][1])


def send_figure(request: HttpRequest, figures: Iterable[Figure]) -> HttpResponse | None:
    """Return the file that the address asks for (`?figure=TITLE&file=pdf`); None if it asks for the page.

    Raises `NotThere` for a plot that the page does not have, `BadInput` for another kind of file."""
    title, ending = request.GET.get("figure"), request.GET.get("file", "svg")
    if title is None:
        return None
    figure = next((one for one in figures if one.title == title), None)
    if figure is None:
        raise NotThere(_("This page has no such plot."))
    if ending not in TYPES:
        raise BadInput.for_field("file", _("Plots are sent as svg or pdf."))
    drawn = draw_file(figure)
    content: str | bytes = drawn
    if ending == "pdf":
        import vl_convert

        content = bytes(vl_convert.svg_to_pdf(drawn))
    name = f"{slugify(figure.title) or 'plot'}.{ending}"
    headers = {"Content-Disposition": content_disposition_header(True, name) or "attachment"}
    return HttpResponse(content, content_type=TYPES[ending], headers=headers)
