"""Text put into files of another language: LaTeX, Markdown, YAML, SVG. PURE: every writer uses these functions.

Names are data. A line break in one ends a comment, a pipe a cell, a quote a string; a character that cannot be seen or
printed breaks XML, or makes two names look alike. Such characters are written as `<U+2028>`, so that names stay
different and can be looked up; what a language gives a meaning to is escaped."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
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
    # Behind the end of a row these would be its options.
    "[": "{[}",
    "*": "{*}",
}
#: A text that begins so can be taken for a formula by a spreadsheet (ASVS 1.2.10).
FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
#: What would end a cell, begin code or HTML, or make a link or picture of a name.
_MARKDOWN = {"\\": "\\\\", "`": "\\`", "|": "\\|", "<": "&lt;", "](": "]\\("}


def show_hidden(text: Any) -> str:
    """`text` with every control character, line break and character that no name may hold as `<U+000A>`.

    >>> show_hidden("good\\nbad")
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
    """Code points that no file of text may hold."""
    return ord(char) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(char) <= 0xFDEF or unicodedata.category(char) == "Cs"


def one_line(text: Any) -> str:
    """A sentence on one line: line breaks and rows of blanks become one blank, the rest as `show_hidden` has it."""
    return show_hidden(" ".join(str(text).split()))


def escape_latex(text: Any) -> str:
    """`text` as LaTeX that prints it."""
    return "".join(_LATEX.get(char, char) for char in show_hidden(text))


def join_latex(lines: Iterable[str]) -> str:
    """Lines of LaTeX as a file. Each stays one line whatever names it holds, so that a comment ends where it should."""
    return "\n".join(one_line(line) if line.startswith("%") else show_hidden(line) for line in lines)


def guard_formula(value: Any) -> Any:
    """A cell of a CSV file that a spreadsheet will not run as a formula; None as an empty cell."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value


def escape_markdown(text: Any) -> str:
    """`text` as one line of Markdown that shows it, in a cell of a table, too."""
    text = one_line(text)
    for part, escaped in _MARKDOWN.items():
        text = text.replace(part, escaped)
    return text


def code_markdown(text: Any) -> str:
    """`text` as a code span, in a cell of a table, too: a pipe there is escaped, and a backtick needs longer quotes."""
    text = one_line(text).replace("|", "\\|")
    quotes = "`"
    while quotes in text:
        quotes += "`"
    blank = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{quotes}{blank}{text}{blank}{quotes}"


def quote_yaml(text: Any) -> str:
    """`text` as a quoted string of YAML."""
    return json.dumps(show_hidden(text), ensure_ascii=False)
