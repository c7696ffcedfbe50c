"""The document of a report, and its PDF in all scripts. No database."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pypdf
import pytest

from scoring.boards.render.page import Scale
from scoring.boards.render.pdf import write_pdf
from scoring.boards.render.report import Document, Grid, Line, Section
from scoring.boards.systems.columns import assign_letters

NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


def make_document(*names: str) -> Document:
    rows = tuple(
        Line((name, "0.341", "−0.220 to 0.455"), {"x": 90.0, "x_low": 40.0, "x_high": 120.0}) for name in names
    )
    grid = Grid(("System", "Mean", "95 %"), rows, scale=Scale(-1.0, 1.0, 0.0))
    return Document("A title", "dialogue", "As of today.", (Section("systems", "Systems", grid=grid),))


def read(data: bytes) -> str:
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)


@pytest.mark.parametrize(
    "name",
    ["gpt-α ≤ é", "модель", "模型一", "日本語モデル", "한국어", "ไทย", "→ ½"],
)
def test_names_in_any_script_are_in_the_pdf(name):
    assert name in read(write_pdf(make_document(name), NOW))


@pytest.mark.parametrize("name", ["نموذج", "מודל", "हिन्दी", "😀 ok"])
def test_joined_and_right_to_left_scripts_have_glyphs(name):
    """The order of extracted letters depends on the reader, so only code points for missing glyphs are excluded."""
    shown = read(write_pdf(make_document(name), NOW))
    assert "<U+" not in shown
    assert "0.341" in shown


def test_characters_without_a_font_are_spelt_out_and_explained():
    shown = read(write_pdf(make_document("gothic \U00010331", "line\nbreak"), NOW))
    assert "<U+10331>" in shown
    assert "<U+…>" in shown
    assert "line<U+000A>break" in shown


def test_the_same_document_gives_the_same_bytes():
    document = make_document("one", "two")
    assert write_pdf(document, NOW) == write_pdf(document, NOW)


def test_long_tables_repeat_their_head():
    shown = pypdf.PdfReader(io.BytesIO(write_pdf(make_document(*(f"system-{n}" for n in range(120))), NOW)))
    assert len(shown.pages) > 1
    assert all("95 %" in page.extract_text() for page in shown.pages)
    assert "system-119" in shown.pages[-1].extract_text()


@pytest.mark.parametrize(
    ("groups", "letters"),
    [
        ([], ["a", "b", "c", "d"]),
        ([["w", "x"], ["x", "y"]], ["a", "ab", "b", "c"]),
        ([["w", "x", "y", "z"]], ["a", "a", "a", "a"]),
        ([["y", "z"]], ["a", "b", "c", "c"]),
    ],
)
def test_letters_by_hand(groups, letters):
    rows = [{"label": label, "value": 1.0} for label in "wxyz"]
    assert list(assign_letters({"rows": rows, "groups": groups}).values()) == letters
    assert assign_letters({"rows": rows[:1], "groups": []}) == {}, "there is nothing to differ from"
    assert assign_letters({"rows": rows}) == {}, "nobody has tested whether they differ"
