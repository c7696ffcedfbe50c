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


def count_units(text: str) -> int:
    """The length of a text as Excel counts it: emoji are two."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut_text(text: str, most: int) -> str:
    """The beginning of a text with at most so many units, and “…”."""
    return text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, most - 1)].decode("utf-16-le", "ignore") + "…"


def cut_cell(value: Any) -> str:
    """The text of a cell that is not too long. A list of texts stays one: its longest texts are cut."""
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        texts = list(value)
        while (excess := count_units(encode_cell(texts)) - MAX_TEXT) > 0:
            place = max(range(len(texts)), key=lambda k: count_units(texts[k]))
            if (length := count_units(texts[place])) < 2:
                break
            texts[place] = cut_text(texts[place], max(1, length - excess))
        else:
            return encode_cell(texts)
    return cut_text(encode_cell(value), MAX_TEXT)


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
            if count_units(text) > MAX_TEXT:
                text, self.cut = cut_cell(value), self.cut + 1
            # The quote prefix is Excel's own apostrophe: the cell stays a text when it is edited.
            is_risky = text.startswith((*FORMULA_STARTS, GUARD))
            sheet.write_string(self.row, column, text, self.styles["quoted"] if is_risky else style)


class Workbook(Layout):
    """Every text is stored as text, never as formula or link."""

    title = "Workbook with the wide table and a sheet for each table"
    lost = "empty texts, whose cells are empty"
    has_scores = has_simulated = has_dialogues = True
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
        #: Comparisons of checkpoints or with references, which a mapping cannot name.
        self.unnamed = 0

    def take_item(self, rows: ItemRows) -> None:
        if self.is_wide:
            self._get_sheet("wide", self.table.columns).write(self.table.list_cells(rows))

    def take_row(self, table: str, row: Row) -> None:
        if table in self.ORDER:
            columns = list(COLUMNS[table])
            self._get_sheet(table, columns).write([row.get(name) for name in columns])
            self.files[self.NAME] += 1
            if table == "comparisons":
                self.unnamed += not _is_plain(row)

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

        self._write_mappings()

    def _write_mappings(self) -> None:
        """The mappings with which the sheets are imported again."""
        lists = {"context": {"rule": "json"}, "references": {"rule": "json"}}
        sides = ("system_a", "system_b")
        documents: dict[str, Row] = {
            "items": {**_map_sheet("long", "item", "context", "source", "references", "group"), "turns": lists},
            "outputs": _map_sheet("long", "item", "system", "step", "text"),
            "ratings": _map_sheet("long", "item", "system", "step", "rater", "aspect", "value", "simulated"),
            "comparisons": _map_sheet("pairs", "item", *sides, "rater", "aspect", "verdict", "simulated"),
        }  # fmt: skip
        documents["items"]["columns"]["item"] = "id"
        documents["ratings"]["only"] = {"dialogue": [""]}
        if self.unnamed:
            systems = list(dict.fromkeys(system for system, _ in self.plan.sides))
            documents["comparisons"]["only"] = {"step_a": [""], "step_b": [""], "system_b": systems}
            self.notes.append(
                f"{self.unnamed:,} comparisons of checkpoints or with references are in the sheet, but not imported "
                "by its mapping."
            )
        for table, document in documents.items():
            if table not in self.sheets:
                continue
            for number in range(1, len(self.sheets[table].sheets) + 1):
                sheet, part = (table, table) if number == 1 else (f"{table} {number}", f"{table}-{number}")
                self.add_mapping(part, {**document, "reading": {"sheet": sheet}})
                self.notes.append(f"`load {self.NAME} --map {part}.mapping.json` imports the sheet `{sheet}`.")

    def abort(self) -> None:
        self.book.fileclosed = True  # otherwise the workbook warns when it is collected
        for sheet in self.sheets.values():
            for one in sheet.sheets:
                one.row_data_fh.close()
        self.scratch.cleanup()


def _map_sheet(shape: str, *names: str) -> Row:
    """A mapping of columns with the names of their fields."""
    return {"shape": shape, "columns": {name: name for name in names}}


def _is_plain(row: Row) -> bool:
    """Whether a comparison is between two systems without steps."""
    return isinstance(row["system_b"], str) and row.get("step_a") is None and row.get("step_b") is None
