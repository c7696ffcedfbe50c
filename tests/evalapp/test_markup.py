"""Names in LaTeX, Markdown, YAML and CSV are never interpreted, whatever they contain."""

from __future__ import annotations

import ast
import csv
import io
from pathlib import Path

import pytest
import yaml

from evalapp.markup import (
    code_markdown,
    escape_latex,
    escape_markdown,
    guard_formula,
    join_latex,
    one_line,
    quote_yaml,
    show_hidden,
)
from evalapp.names import explain_breaking

ROOT = Path(__file__).resolve().parents[2]
#: FAULTS D4 and C3; `\x0b` once crashed the process that drew a plot.
NASTY = [
    "good\n\\input{/etc/passwd}%", "a\rb", "a\x0bb", "a\x1b[31mb", "a\x85b", "a\u2028b", "a\u2029b", "a\u202eb",
    "a\u200bb", "a\ufeffb", "a\ufffeb", 'a"b', "a'b", "a\\b", "a%b", "a|b", "[2cm]", "*", "`code`", "<b>", "a$b_c^d~e#",
    "![x](http://host/p.png)", "=cmd()", "---", ": x",
]  # fmt: skip


@pytest.mark.parametrize("name", NASTY)
def test_every_writer_preserves_names(name):
    lines = join_latex([f"% {name}: signature", rf"{escape_latex(name)} & 1 \\"]).split("\n")
    assert len(lines) == 2
    assert lines[0].startswith("% ")
    assert len(f"{lines[0]}|{lines[1]}".splitlines()) == 1
    assert "\\input" not in lines[1]
    # A row that begins with a bracket or a star would be read as an option of the previous row's end.
    assert lines[1][0] not in "[*"
    assert yaml.safe_load(f"name: {quote_yaml(name)}") == {"name": show_hidden(name)}
    for written in (escape_markdown(name), code_markdown(name), one_line(name)):
        assert len(written.splitlines()) == 1
        assert show_hidden(written) == written
    for cell in (escape_markdown(name), code_markdown(name)):
        assert "|" not in cell.replace("\\\\", "").replace("\\|", "")
    assert "<b" not in escape_markdown(name)
    assert "](" not in escape_markdown(name)
    buffer = io.StringIO()
    csv.writer(buffer).writerow([guard_formula(name), "x"])
    assert list(csv.reader(io.StringIO(buffer.getvalue(), newline=""))) == [[guard_formula(name), "x"]]
    assert not str(guard_formula(name)).startswith(("=", "-"))


def test_values_worked_by_hand():
    assert escape_latex("a\nb%[x]") == r"a<U+000A>b\%{[}x]"
    assert join_latex(["% a\n\\input{x}", "b\nc"]) == "% a \\input{x}\nb<U+000A>c"
    assert code_markdown("a`b|c") == "``a`b\\|c``"
    assert escape_markdown("a\\|b") == "a\\\\\\|b"
    assert show_hidden("王小明 e\u0301 😀") == "王小明 e\u0301 😀"
    assert guard_formula(None) == ""


def test_names_referred_to_by_rows():
    assert explain_breaking("a\nb") == (
        "a line break, a control character or a change of direction (U+000A LINE FEED). Remove it."
    )
    assert "U+2028" in explain_breaking("a\u2028b")
    assert "U+202E" in explain_breaking("a\u202eb")
    # Joiners are part of the spelling in Persian and Hindi.
    assert explain_breaking("نمی\u200cخواهم") == explain_breaking("क्\u200dष") == ""


def test_every_latex_file_uses_the_one_function():
    """Boards write LaTeX lines; only the renderer joins them, by `join_latex`, which keeps comments on one line."""
    writers, callers = set(), set()
    for path in [p for room in ("annotation", "evalapp", "retrieval", "scoring") for p in (ROOT / room).rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(ROOT).as_posix()
        if "begin{{tabular}}" in text or "begin{tabular}" in text:
            writers.add(place)
        if '"write_latex")(' in text:
            callers.add(place)
    assert writers == {"scoring/boards/render/latex.py", "scoring/ml/score_files/rendering.py"}
    assert callers == {"scoring/boards/render/latex.py"}
    tree = ast.parse((ROOT / "scoring/boards/render/latex.py").read_text(encoding="utf-8"))
    calling = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and "'write_latex')(" in ast.unparse(node)
    ]
    assert calling
    assert all("return join_latex(" in body for body in calling)
    assert "return join_latex(" in (ROOT / "scoring/ml/score_files/rendering.py").read_text(encoding="utf-8")


def test_every_csv_writer_uses_the_guard():
    """Tables for people guard their cells; the name and docstring of an export's exact CSV say that it does not."""
    exact = {"annotation/exporters/formats.py"}
    for path in [p for room in ("annotation", "evalapp", "retrieval", "scoring") for p in (ROOT / room).rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        if "csv.writer(" in text or "csv.DictWriter(" in text:
            name = str(path.relative_to(ROOT))
            assert name in exact or "guard_formula(" in text or "map(guard_cell, " in text, name
