"""A table for spreadsheets with a row per item, and columns for each system: its text, and its mean rating for each
aspect."""

import csv
from typing import Any

from annotation.parsers import guard_cell

from .base import ItemRows, Layout, Plan, Side, name_side

FIXED = ("id", "group", "source", "context")


class WideTable:
    """The columns of the table, and the cells of an item. Turns of a context are lines of a cell."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rated: list[tuple[Side, str]] = [
            (side, aspect["name"]) for side in plan.sides for aspect in plan.aspects if aspect["name"] in plan.rated
        ]
        references = ["reference" if n == 1 else f"reference {n}" for n in range(1, plan.n_references + 1)]
        names = [*FIXED, *references, *map(name_side, plan.sides)]
        names += [f"{name_side(side)}: {aspect}" for side, aspect in self.rated]
        self.columns = _make_distinct(names)
        self.n_turns_with_lines = 0

    def list_cells(self, rows: ItemRows) -> list[Any]:
        item, texts, means = rows.item, rows.texts(), rows.means()
        turns, references = item["context"] or [], item["references"]
        self.n_turns_with_lines += any("\n" in turn for turn in turns)
        return [
            item["id"], item["group"], item["source"], "\n".join(turns) if turns else None, *references,
            *[None] * (self.plan.n_references - len(references)), *(texts.get(side) for side in self.plan.sides),
            *(means[key]["mean"] if key in means else None for key in self.rated),
        ]  # fmt: skip

    def make_mapping(self) -> dict[str, Any]:
        """The mapping with which the table is imported again; the rater of mean ratings is `mean`."""
        n, sides = self.plan.n_references, [name_side(side) for side in self.plan.sides]
        references, texts = self.columns[len(FIXED) :][:n], self.columns[len(FIXED) + n :]
        document: dict[str, Any] = {
            "shape": "wide",
            "columns": {"item": "id", "group": "group", "source": "source", "context": "context"},
            "turns": {"context": {"rule": "split", "separator": "\n"}},
        }  # fmt: skip
        if references:
            document["columns"]["references"] = references
        if sides:
            document["outputs"] = [
                {"column": column, "system": system} for column, system in zip(texts, sides, strict=False)
            ]
        if self.rated:
            document["ratings"] = [
                {"column": column, "system": name_side(side), "aspect": aspect, "rater": "mean"}
                for column, (side, aspect) in zip(texts[len(sides) :], self.rated, strict=True)
            ]
        return document

    def list_notes(self) -> list[str]:
        notes = ["Ratings are means over raters."] if self.rated else []
        if self.n_turns_with_lines:
            notes.append(
                f"{self.n_turns_with_lines:,} items have turns with line breaks, so that the lines of `context` are "
                "not its turns."
            )
        return notes


class WideCsv(Layout):
    """`wide.safe.csv`: cells that a spreadsheet could read as formulas begin with an apostrophe, as in the format
    `safe-csv`."""

    title = "A row per item, columns for each system and its mean ratings"
    lost = "raters, comparisons, dialogues, and properties (`meta`)"
    NAME = "wide.safe.csv"

    def __init__(self, folder: Any, plan: Plan) -> None:
        super().__init__(folder, plan)
        self.table = WideTable(plan)
        self.file = self.open(self.NAME)
        self.file.write("\ufeff")  # Excel reads UTF-8 only with this mark.
        self.writer = csv.writer(self.file, lineterminator="\r\n")
        self.writer.writerow(map(guard_cell, self.table.columns))

    def take_item(self, rows: ItemRows) -> None:
        self.writer.writerow(map(guard_cell, self.table.list_cells(rows)))
        self.files[self.NAME] += 1

    def close(self) -> None:
        self.file.close()
        self.add_mapping("wide", self.table.make_mapping())
        self.notes += [
            f"`load {self.NAME} --map wide.mapping.json` imports items, outputs and mean ratings.",
            *self.table.list_notes(),
        ]  # fmt: skip

    def abort(self) -> None:
        self.file.close()


def _make_distinct(names: list[str]) -> list[str]:
    taken: set[str] = set()
    result = []
    for name in names:
        number, distinct = 1, name
        while distinct in taken:
            number += 1
            distinct = f"{name} ({number})"
        taken.add(distinct)
        result.append(distinct)
    return result
