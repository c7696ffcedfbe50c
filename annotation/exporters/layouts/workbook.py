"""A workbook for spreadsheets: the wide table first, then a sheet for each table of the project."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from annotation.exporters.formats import COLUMNS
from annotation.parsers import encode_cell
from annotation.parsers.writer import GUARD
from evalapp.markup import FORMULA_STARTS

from .base import ItemRows, Layout, Plan, Row
from .wide import WideTable

#: The limits of xlsx.
MAX_ROWS, MAX_COLUMNS, MAX_TEXT = 1_048_576, 16_384, 32_767


class Sheet:
    """Rows of a table; those beyond the limit of a sheet continue in the next one, `ratings 2`."""

    def __init__(self, book: Any, name: str, columns: list[str], styles: dict[str, Any]) -> None:
        self.book, self.name, self.columns, self.styles = book, name, columns, styles
        self.sheets: list[Any] = []
        self.row = MAX_ROWS
        self.cut = 0

    def write(self, cells: list[Any]) -> None:
        if self.row == MAX_ROWS:
            self._begin()
        for column, value in enumerate(cells):
            self._write_cell(column, value, self.styles["text"])
        self.row += 1

    def _begin(self) -> None:
        number = len(self.sheets) + 1
        self.sheets.append(self.book.add_worksheet(self.name if number == 1 else f"{self.name} {number}"))
        self.row = 0
        for column, name in enumerate(self.columns):
            self._write_cell(column, name, self.styles["head"])
        self.sheets[-1].freeze_panes(1, 1)
        self.row = 1

    def _write_cell(self, column: int, value: Any, style: Any) -> None:
        sheet = self.sheets[-1]
        if value is None or value == "":
            return
        if isinstance(value, bool):
            sheet.write_boolean(self.row, column, value)
        elif isinstance(value, float) or (isinstance(value, int) and abs(value) <= 2**53):
            sheet.write_number(self.row, column, value)
        else:
            text = encode_cell(value)
            if len(text) > MAX_TEXT:
                text, self.cut = text[: MAX_TEXT - 1] + "…", self.cut + 1
            # The quote prefix is Excel's own apostrophe: the cell stays a text when it is edited.
            is_risky = text.startswith((*FORMULA_STARTS, GUARD))
            sheet.write_string(self.row, column, text, self.styles["quoted"] if is_risky else style)


class Workbook(Layout):
    """Every text is stored as text, never as formula or link."""

    title = "Workbook with the wide table and a sheet for each table"
    has_scores = True
    NAME = "project.xlsx"
    #: Sheets in this order, after the wide table.
    ORDER: ClassVar[tuple[str, ...]] = (
        "items", "outputs", "ratings", "comparisons", "dialogues", "systems", "references", "score_sets", "scores",
    )  # fmt: skip

    def __init__(self, folder: Path, plan: Plan) -> None:
        import xlsxwriter

        super().__init__(folder, plan)
        self.scratch = TemporaryDirectory(prefix="evalapp-xlsx-")
        self.book = xlsxwriter.Workbook(
            str(folder / self.NAME),
            {
                "constant_memory": True,
                "strings_to_formulas": False,
                "strings_to_urls": False,
                "tmpdir": self.scratch.name,
            },
        )
        head = self.book.add_format({"bold": True})
        self.styles = {"text": None, "head": head, "quoted": self.book.add_format({"quote_prefix": True})}
        self.table = WideTable(plan)
        self.sheets: dict[str, Sheet] = {}
        self.counts: Counter[str] = Counter()
        self.files[self.NAME] = 0
        self.is_wide = len(self.table.columns) <= MAX_COLUMNS

    def take_item(self, rows: ItemRows) -> None:
        if self.is_wide:
            self._get_sheet("wide", self.table.columns).write(self.table.list_cells(rows))

    def take_row(self, table: str, row: Row) -> None:
        if table in self.ORDER:
            columns = list(COLUMNS[table])
            self._get_sheet(table, columns).write([row.get(name) for name in columns])
            self.files[self.NAME] += 1

    def _get_sheet(self, table: str, columns: list[str]) -> Sheet:
        if table not in self.sheets:
            self.sheets[table] = Sheet(self.book, table, columns, self.styles)
        return self.sheets[table]

    def close(self) -> None:
        order = {name: place for place, name in enumerate(("wide", *self.ORDER))}
        if not self.sheets:
            self.book.add_worksheet("empty")
        else:
            # The order of creation follows the rows.
            places = {id(one): order[name] for name, made in self.sheets.items() for one in made.sheets}
            self.book.worksheets_objs.sort(key=lambda one: places[id(one)])
            for place, sheet in enumerate(self.book.worksheets_objs):
                sheet.index = place
            self.book.worksheets_objs[0].activate()
        self.book.close()
        self.scratch.cleanup()
        self.notes += self.table.list_notes()
        if not self.is_wide:
            self.notes.append(
                f"There is no sheet `wide`: it would have {len(self.table.columns):,} columns, more than the "
                f"{MAX_COLUMNS:,} of a workbook."
            )
        if cut := sum(sheet.cut for sheet in self.sheets.values()):
            self.notes.append(
                f"{cut:,} cells are cut after {MAX_TEXT:,} characters, the limit of a workbook, and end with “…”. "
                "The formats `jsonl` and `csv` have the whole texts."
            )

    def abort(self) -> None:
        self.book.fileclosed = True  # otherwise the workbook warns when it is collected
        for sheet in self.sheets.values():
            for one in sheet.sheets:
                one.row_data_fh.close()
        self.scratch.cleanup()
