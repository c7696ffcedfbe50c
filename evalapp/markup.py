"""Escapes text for LaTeX, Markdown, YAML, SVG and CSV. Does not import Django.

Names are data. A line break ends a comment, a pipe a cell, a quote a string; an invisible or unprintable character
breaks XML or makes two names look alike. Such characters are written as `<U+2028>`, so that names stay distinct and
can be looked up; characters with a meaning in the target language are escaped."""

import json
import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Any

from evalapp.names import find_hidden_places

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # After the end of a LaTeX row these would be read as its options.
    "[": "{[}",
    "*": "{*}",
}
#: Texts with such a beginning can be run as a formula by a spreadsheet (ASVS 1.2.10).
FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
#: Characters that end a cell, begin code or HTML, or make a link or picture of a name.
_MARKDOWN = {"\\": "\\\\", "`": "\\`", "|": "\\|", "<": "&lt;", "](": "]\\("}


def show_hidden(text: Any) -> str:
    r"""Return `text` with every control character, line break and hidden character written as `<U+000A>`.

    >>> show_hidden("good\nbad")
    'good<U+000A>bad'
    """
    text = str(text)
    if text.isprintable() and text.isascii():
        return text
    hidden = find_hidden_places(text)
    return "".join(
        f"<U+{ord(char):04X}>" if place in hidden or _is_no_character(char) else char for place, char in enumerate(text)
    )


def _is_no_character(char: str) -> bool:
    """Return whether text files cannot contain the code point."""
    return ord(char) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(char) <= 0xFDEF or unicodedata.category(char) == "Cs"


def one_line(text: Any) -> str:
    """Return the text on one line: line breaks and runs of blanks become one blank, the rest is as in `show_hidden`."""
    return show_hidden(" ".join(str(text).split()))


def escape_latex(text: Any) -> str:
    """Return LaTeX that prints `text`."""
    return "".join(_LATEX.get(char, char) for char in show_hidden(text))


def join_latex(lines: Iterable[str]) -> str:
    """Return lines of LaTeX as a file. Each stays one line whatever names it contains, so that comments end as
    intended."""
    return "\n".join(one_line(line) if line.startswith("%") else show_hidden(line) for line in lines)


def guard_formula(value: Any) -> Any:
    """Return a CSV cell that a spreadsheet will not run as a formula; None becomes an empty cell."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value


def escape_markdown(text: Any) -> str:
    """Return `text` as one line of Markdown, safe in table cells."""
    text = one_line(text)
    for part, escaped in _MARKDOWN.items():
        text = text.replace(part, escaped)
    return text


def code_markdown(text: Any) -> str:
    """Return `text` as a code span, safe in table cells: a pipe is escaped, and a backtick needs longer delimiters."""
    text = one_line(text).replace("|", "\\|")
    quotes = "`"
    while quotes in text:
        quotes += "`"
    blank = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{quotes}{blank}{text}{blank}{quotes}"


def quote_yaml(text: Any) -> str:
    """Return `text` as a quoted YAML string."""
    return json.dumps(show_hidden(text), ensure_ascii=False)


#: Characters of a cell and rows of a table in notebooks.
MAX_CELL, MAX_ROWS = 120, 20


def shorten(text: Any, length: int = MAX_CELL) -> str:
    """Return the text on one line, cut after `length` characters."""
    line = one_line(text)
    return line if len(line) <= length else line[: length - 1] + "…"


def write_html_table(head: Iterable[Any], rows: Iterable[Iterable[Any]], more: int = 0) -> str:
    """Return a table for notebooks, with escaped and shortened cells. `more` is the number of rows left out.

    >>> write_html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    titles = "".join(f"<th>{escape(shorten(title))}</th>" for title in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_write_value(value))}</td>" for value in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    return f"{table}<p>{more:,} more rows</p>" if more else table


def _write_value(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else shorten(value)
