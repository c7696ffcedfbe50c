"""Sheets with an output per row whose columns have names of the user's own: systems, outputs, inputs and ratings are
found by how the values depend on each other, and nothing is found where they do not."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from annotation.mapping import Proposal, open_table, propose_mapping

ITEMS, SYSTEMS, RATERS = 6, ("Argmax Decoding", "New Human Generated", "Nucleus (p = 0.3)"), ("a0", "a1")
HEAD = (
    "Nr.", "Gesprächsverlauf", "Chatbot-Variante", "Was der Bot sagte", "Gold (human)", "Coder", "Lesezeit",
    "Q1 engaging?", "Q2 fun?", "Alter",
)  # fmt: skip


def make_rows() -> list[list[Any]]:
    rows: list[list[Any]] = []
    for item in range(ITEMS):
        for s, system in enumerate(SYSTEMS):
            for r, rater in enumerate(RATERS):
                talk, reply = f"We talk about town {item}.", f"I like {item} and {s} of it."
                seconds, age = 3.5 + len(rows), 30 + r
                ratings = [1 + (item + s + r) % 5, (item + r) % 2]
                rows.append([f"t{item}", talk, system, reply, f"Town {item} is old.", rater, seconds, *ratings, age])
    return rows


def propose(path: Path, head: tuple[str, ...], rows: list[list[Any]]) -> Proposal:
    with (path / "sheet.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    return propose_mapping(open_table(path / "sheet.csv"))


def test_roles_are_found_by_values(tmp_path: Path) -> None:
    proposal = propose(tmp_path, HEAD, make_rows())
    mapping = proposal.mapping
    assert mapping.shape == "long"
    assert mapping.columns == {
        "item": ("Nr.",), "context": ("Gesprächsverlauf",), "system": ("Chatbot-Variante",),
        "text": ("Was der Bot sagte",), "references": ("Gold (human)",), "rater": ("Coder",),
    }  # fmt: skip
    assert [(one.column, one.aspect) for one in mapping.ratings] == [("Q1 engaging?", "engaging"), ("Q2 fun?", "fun")]
    assert proposal.questions == []
    assert {one.column for one in proposal.left_out} == {"Lesezeit", "Alter"}


def test_rows_without_ids(tmp_path: Path) -> None:
    """The context is the item, and a scale is no part of the name of an aspect."""
    head = ("Dialogue so far", "Bot", "What the bot said", "Worker #", "natural (1-5)", "Did it engage you?")
    rows = [[row[1], row[2], row[3], row[5], row[7], row[8]] for row in make_rows()]
    proposal = propose(tmp_path, head, rows)
    assert proposal.mapping.ids.source == "hash"
    assert proposal.mapping.columns["rater"] == ("Worker #",)
    assert [one.aspect for one in proposal.mapping.ratings] == ["natural", "Did it engage you"]
    assert (proposal.questions, proposal.left_out) == ([], [])


def test_raters_without_a_usual_name(tmp_path: Path) -> None:
    head = (*HEAD[:5], "Who", *HEAD[6:])
    mapping = propose(tmp_path, head, make_rows()).mapping
    assert (mapping.columns["system"], mapping.columns["rater"]) == (("Chatbot-Variante",), ("Who",))
    assert [one.aspect for one in mapping.ratings] == ["engaging", "fun"]


def test_questions_are_no_systems(tmp_path: Path) -> None:
    """`Q1` in the names of ratings of different aspects is the number of a question."""
    head = (*HEAD[:2], "Antwort", "Q1 fluency", "Q2 clarity")
    rows = [[f"t{k}", f"What is {k}?", f"It is {k}.", 1 + k % 5, 1 + k % 3] for k in range(12)]
    mapping = propose(tmp_path, head, rows).mapping
    assert {(one.system, one.aspect) for one in mapping.ratings} == {("", "fluency"), ("", "clarity")}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        # Follows from the item, from the rater, or occurs several times per item and rater
        ("Split", lambda item, s, r: ("train", "test")[item % 2]),
        ("Gender", lambda item, s, r: ("f", "m")[r]),
        ("Batch", lambda item, s, r: ("first", "second")[(item + s) % 2]),
    ],
)
def test_other_labels_are_no_systems(tmp_path: Path, column: str, value: Any) -> None:
    rows = make_rows()
    for k, row in enumerate(rows):
        row[2] = value(k // 6, k // 2 % 3, k % 2)
    head = (*HEAD[:2], column, *HEAD[3:])
    assert "system" not in propose(tmp_path, head, rows).mapping.columns
