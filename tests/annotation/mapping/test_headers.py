"""Titles above the names of columns, and names in two rows: found, noted, and part of the mapping."""

from __future__ import annotations

from pathlib import Path

import pytest

from annotation.mapping import Reading, open_table, propose_mapping
from tests.annotation.mapping.test_tables import write_xlsx

HEAD = ["id", "question", "gpt answer", "gpt score"]
BODY = [["q1", "Where is it?", "It is there.", 4], ["q2", "Who is it?", "It is me.", 2]]
GROUPS = [["id", "question", "GPT", None, "Llama", None], [None, None, "answer", "score", "answer", "score"]]
GROUPED = [["q1", "Where is it?", "It is there.", 4, "Here it is.", 1]]


@pytest.mark.parametrize(
    ("rows", "columns", "reading"),
    [
        ([HEAD, *BODY], HEAD, (0, 1)),
        ([["Results of May"], HEAD, *BODY], HEAD, (1, 1)),
        ([["Results of May"], ["by Olga"], HEAD, *BODY], HEAD, (2, 1)),
        ([*GROUPS, *GROUPED], ["id", "question", "GPT answer", "GPT score", "Llama answer", "Llama score"], (0, 2)),
        ([["May"], *GROUPS, *GROUPED], [*HEAD[:2], "GPT answer", "GPT score", "Llama answer", "Llama score"], (1, 2)),
        # No titles: a column without a name, a single column, texts under texts.
        ([[None, "text"], [0, "It is there."], [1, "It is me."]], ["column 1", "text"], (0, 1)),
        ([["text"], ["It is there."], ["It is me."]], ["text"], (0, 1)),
        ([["id", "answer"], ["a", "yes"], ["b", "yes"]], ["id", "answer"], (0, 1)),
    ],
)
def test_names_are_found(tmp_path, rows, columns, reading):
    write_xlsx(tmp_path / "a.xlsx", rows)
    write_csv(tmp_path / "a.csv", rows)
    for path in (tmp_path / "a.xlsx", tmp_path / "a.csv"):
        table = open_table(path)
        assert (table.columns, (table.reading.skip_above, table.reading.header_rows)) == (columns, reading)
        assert bool(table.notes) == (reading != (0, 1))
        # The next file is read in the same way, and rows have the numbers of the file.
        assert propose_mapping(table).mapping.reading == table.reading
        again = open_table(path, reading=table.reading)
        assert (again.columns, next(iter(again))[0]) == (columns, sum(reading) + 1)


def write_csv(path: Path, rows: list[list[object]]) -> None:
    width = max(map(len, rows))
    lines = [",".join("" if cell is None else str(cell) for cell in [*row, *[None] * (width - len(row))])
             for row in rows]  # fmt: skip
    path.write_text("\n".join(lines))


def test_a_stated_reading_is_not_changed(tmp_path):
    write_xlsx(tmp_path / "a.xlsx", [["Results of May", None], ["id", "text"], ["a", "b"]])
    assert open_table(tmp_path / "a.xlsx", reading=Reading()).columns == ["Results of May"]
