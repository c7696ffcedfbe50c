"""Writes the report of a project as PDF, without a browser or libraries of the system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from evalapp.translation import gettext as _
from scoring.boards.render.fonts import choose_fonts, spell_out
from scoring.boards.render.page import Scale
from scoring.boards.render.report import Document, Example, Grid, Line, Section

if TYPE_CHECKING:
    from fpdf import FPDF

#: Points of text, millimetres of everything else.
TITLE, HEADING, BODY, SMALL = 16, 11.5, 8.5, 7.5
LINE, MARGIN, GAP = 4.2, 16.0, 2.4
#: Widths of the picture of intervals, at most and at least, of a column of texts, and of the first column at least.
AXIS, LEAST_AXIS, TEXTS, NAMES = 42.0, 20.0, 26.0, 24.0
INK, GREY, RULE = (26, 31, 39), (86, 96, 112), (210, 214, 220)


def write_pdf(document: Document, created: datetime) -> bytes:
    """Return the document as PDF. The same document gives the same bytes. Characters that no font can show are written
    as code points, and a note says so."""
    return _Writer(document, created).write()


class _Writer:
    def __init__(self, document: Document, created: datetime) -> None:
        from fpdf import FPDF

        self.document, self.axis = document, AXIS
        fonts, self.missing = choose_fonts(_list_texts(document))
        self.pdf: FPDF = FPDF(format="A4")
        self.pdf.set_creation_date(created)
        self.pdf.set_title(document.title)
        self.pdf.set_creator("evalapp")
        self.pdf.set_lang("en")
        self.pdf.set_margin(MARGIN)
        self.pdf.set_auto_page_break(True, margin=MARGIN)
        for font in fonts:
            self.pdf.add_font(font.name, "", font.path, collection_font_number=font.number)
        self.pdf.set_fallback_fonts([font.name for font in fonts[1:]], exact_match=False)
        # Joins Arabic letters, orders Indic ones, and writes from right to left.
        self.pdf.set_text_shaping(True)
        self.pdf.set_draw_color(*RULE)

    def write(self) -> bytes:
        self.pdf.add_page()
        self._text(self.document.title, TITLE, line=7)
        self._text(self.document.subtitle, BODY, GREY)
        self._text(self.document.made, BODY, GREY)
        for section in self.document.sections:
            self._section(section)
        if self.missing:
            self.pdf.ln(GAP)
            text = _("No font has the characters written as <U+…>; the page of this report shows them.")
            self._text(text, SMALL, GREY)
        return bytes(self.pdf.output())

    def _text(self, text: str, size: float, colour: Sequence[int] = INK, *, line: float = LINE, x: float = 0) -> None:
        if not text:
            return
        self.pdf.set_font("noto", size=size)
        self.pdf.set_text_color(*colour)
        self.pdf.set_x(MARGIN + x)
        self.pdf.multi_cell(0, line, spell_out(text, self.missing), align="L", new_x="LMARGIN", new_y="NEXT")

    def _section(self, section: Section) -> None:
        self._keep(24)
        self.pdf.ln(GAP * 1.5)
        self._text(section.title, HEADING, line=6)
        self._text(" ".join(part for part in (section.lead, _as_sentence(section.simulated)) if part), BODY, GREY)
        self.pdf.ln(GAP / 2)
        for label, text in section.facts:
            self._fact(label, text)
        if section.grid is not None:
            self._grid(section.grid)
        for example in section.examples:
            self._example(example)
        for note in section.notes:
            self._text(note, SMALL, GREY, line=3.6)

    def _keep(self, height: float) -> None:
        """Begin a new page if less than `height` is left."""
        if self.pdf.get_y() + height > self.pdf.page_break_trigger:
            self.pdf.add_page()

    def _fact(self, label: str, text: str) -> None:
        wide = 46.0
        label, text = spell_out(label, self.missing), spell_out(text, self.missing)
        self.pdf.set_font("noto", size=SMALL)
        inner = self.pdf.epw - wide
        lines = max(self._count_lines(label, wide - 2), self._count_lines(text, inner))
        self._keep(lines * 3.8)
        top = self.pdf.get_y()
        self.pdf.set_text_color(*GREY)
        self.pdf.multi_cell(wide - 2, 3.8, label, align="L", new_x="RIGHT", new_y="TOP")
        self.pdf.set_text_color(*INK)
        self.pdf.set_xy(MARGIN + wide, top)
        self.pdf.multi_cell(inner, 3.8, text, align="L", new_x="LMARGIN", new_y="NEXT")
        self.pdf.set_y(top + lines * 3.8)

    def _count_lines(self, text: str, width: float) -> int:
        if not text:
            return 1
        lines: Any = self.pdf.multi_cell(width, 3.8, text, align="L", dry_run=True, output="LINES")
        return max(1, len(lines))

    # ---- tables -----------------------------------------------------------------------------------------------------

    def _grid(self, grid: Grid) -> None:
        widths = self._fit(grid)
        self._heads(grid, widths)
        for line in grid.rows:
            height = self._height(line.cells, widths)
            if self.pdf.get_y() + height > self.pdf.page_break_trigger:
                self.pdf.add_page()
                self._heads(grid, widths)
            self._row(grid, line, widths, height)
        self.pdf.ln(GAP / 2)

    def _fit(self, grid: Grid) -> list[float]:
        """Return the widths of the columns, and set that of the axis: figures are as wide as needed, the axis and the
        names take what is left."""
        self.pdf.set_font("noto", size=SMALL)
        rows = [grid.heads, *(line.cells for line in grid.rows)]
        needed = [
            max(self.pdf.get_string_width(spell_out(row[k], self.missing)) for row in rows) + GAP * 1.5
            for k in range(len(grid.heads))
        ]
        needed = [min(wide, TEXTS) if k and k in grid.texts else wide for k, wide in enumerate(needed)]
        room = self.pdf.epw - sum(needed[1:]) - GAP
        if grid.scale is None:
            return [min(needed[0], max(room, NAMES)), *needed[1:]]
        self.axis = max(LEAST_AXIS, min(AXIS, room - needed[0]))
        return [max(NAMES, min(needed[0], room - self.axis)), *needed[1:]]

    def _height(self, cells: Sequence[str], widths: Sequence[float]) -> float:
        self.pdf.set_font("noto", size=SMALL)
        shown = [spell_out(cell, self.missing) for cell in cells]
        return 3.8 * max(self._count_lines(cell, wide) for cell, wide in zip(shown, widths, strict=True)) + 0.8

    def _heads(self, grid: Grid, widths: Sequence[float]) -> None:
        height = self._height(grid.heads, widths)
        self._keep(height * 3)
        self._cells(grid, grid.heads, widths, height, GREY)
        if grid.scale is not None:
            top, left = self.pdf.get_y() - height, self._find_axis(grid, widths)
            for tick in grid.scale.ticks:
                text = tick["text"]
                self.pdf.set_xy(left + tick["x"] * self.axis / 100 - self.pdf.get_string_width(text) / 2, top + 0.4)
                self.pdf.cell(0, 3.8, text)
            self.pdf.set_xy(MARGIN, top + height)
        self._rule()

    def _row(self, grid: Grid, line: Line, widths: Sequence[float], height: float) -> None:
        colour = GREY if line.is_grey else INK
        self._cells(grid, line.cells, widths, height, colour)
        if grid.scale is not None and line.drawn is not None:
            self._interval(line, grid.scale, self._find_axis(grid, widths), self.pdf.get_y() - height + 2.3, colour)
        self._rule()

    def _cells(
        self, grid: Grid, cells: Sequence[str], widths: Sequence[float], height: float, colour: Sequence[int]
    ) -> None:
        top, x = self.pdf.get_y(), MARGIN
        self.pdf.set_font("noto", size=SMALL)
        self.pdf.set_text_color(*colour)
        for k, (cell, wide) in enumerate(zip(cells, widths, strict=True)):
            self.pdf.set_xy(x, top + 0.4)
            text = spell_out(cell, self.missing)
            self.pdf.multi_cell(wide, 3.8, text, align="L" if k in grid.texts else "R")
            x += wide + (self.axis + GAP if grid.scale is not None and k == grid.axis_after else 0)
        self.pdf.set_xy(MARGIN, top + height)

    def _find_axis(self, grid: Grid, widths: Sequence[float]) -> float:
        return MARGIN + sum(widths[: grid.axis_after + 1]) + GAP

    def _interval(self, line: Line, axis: Scale, left: float, y: float, colour: Sequence[int]) -> None:
        drawn, scale = line.drawn or {}, self.axis / 100
        if axis.line is not None:
            self.pdf.set_line_width(0.15)
            self.pdf.line(left + axis.line * scale, y - 2.3, left + axis.line * scale, y + 2.3)
        self.pdf.set_draw_color(*colour)
        low, high, at = drawn.get("x_low"), drawn.get("x_high"), drawn.get("x")
        if low is not None and high is not None:
            self.pdf.set_line_width(0.35)
            self.pdf.line(left + low * scale, y, left + high * scale, y)
        if at is not None:
            self.pdf.set_fill_color(*colour)
            self.pdf.circle(left + at * scale, y, 0.85, style="F")
        self.pdf.set_draw_color(*RULE)

    def _rule(self) -> None:
        self.pdf.set_line_width(0.1)
        y = self.pdf.get_y()
        self.pdf.line(MARGIN, y, MARGIN + self.pdf.epw, y)

    def _example(self, example: Example) -> None:
        self._keep(18)
        for text in example.context:
            self._text(text, BODY, GREY)
        for system, text in example.outputs:
            self._text(system, SMALL, GREY, x=4)
            self._text(text, BODY, x=4)
        self.pdf.ln(GAP)


def _as_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _list_texts(document: Document) -> Iterator[str]:
    yield from (document.title, document.subtitle, document.made)
    for section in document.sections:
        yield from (section.title, section.lead, section.simulated, *section.notes)
        yield from (text for fact in section.facts for text in fact)
        if section.grid is not None:
            yield from section.grid.heads
            yield from (cell for line in section.grid.rows for cell in line.cells)
        for example in section.examples:
            yield from example.context
            yield from (text for output in example.outputs for text in output)
