"""Numbers in cells, with one decimal sign for a whole column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from annotation.parsers.cells import explain_two_signs
from evalapp.translation import gettext as _

from .values import WrongValue, is_empty, read_key

#: Digits, or groups of three digits with a space, an apostrophe or the other sign between them.
_FORM = (
    r"[-+]?(?:\d+(?:{sign}\d*)?|{sign}\d+|"
    r"[1-9]\d{{0,2}}(?:(?:{other}\d{{3}})+|(?:[ '’\u00a0\u202f]\d{{3}})+)(?:{sign}\d+)?)(?:[eE][-+]?\d+)?"
)
_POINT, _COMMA = (re.compile(_FORM.format(sign=sign, other=other)) for sign, other in ((r"\.", ","), (",", r"\.")))
_EITHER = re.compile(r"[-+]?[1-9]\d{0,2}[.,]\d{3}")
#: Begins of months as spreadsheet programs write them in several languages.
_MONTHS = (
    "jan|ene|gen|fe[bv]|fév|mar|mär|mrz|a[pvb]r|ma[iy]|mag|jui?n|giu|jui?l|lug|aug|ago|aoû|sep|set|o[cku]t|ott|nov|"
    "de[czs]|déc|dic"
)
#: A date or a range, as `5. May` and `1-2`.
_NO_RATING = re.compile(
    rf"\d{{1,4}}(?:\s?[-–]\s?\d|[-./]\d{{1,2}}[-./]\d|[-./ ]{{1,2}}(?:{_MONTHS})\w{{0,2}}\.?(?:[-./ ]\d{{2,4}})?\Z)",
    re.IGNORECASE,
)
_MARKS = str.maketrans("", "", " '’\u00a0\u202f")
_LONGEST = 400


def find_sign(text: str) -> str | None:
    """The decimal sign that a number shows: "." or ",", empty if it shows none, or "?" if its sign may separate
    decimals or thousands, as in `1.250`. None if the text is no number."""
    if len(text) > _LONGEST:
        return None
    if text[-4:-3] in (".", ",") and _EITHER.fullmatch(text):
        return "?"
    is_point = _POINT.fullmatch(text)
    if is_point and not _has_sign(text):
        return ""
    return "." if is_point else "," if _COMMA.fullmatch(text) else None


def _has_sign(text: str) -> bool:
    return "." in text or "," in text


def is_number(value: Any) -> bool:
    """Whether a cell is a number, as such or as text, with any decimal sign and maybe a percent sign."""
    if type(value) is str:
        return find_sign(_strip_percent(value)) is not None
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _strip_percent(text: str) -> str:
    text = text.strip()
    return text[:-1].rstrip() if text.endswith("%") else text


def parse_number(text: str, sign: str) -> float | int:
    """The number in a text with a known decimal sign."""
    plain = text.translate(_MARKS).replace("," if sign == "." else ".", "").replace(",", ".")
    number = float(plain)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


@dataclass(frozen=True)
class Signs:
    """The first cell (row, text) of a column with each decimal sign, and the first that may have either."""

    point: tuple[int, str] | None = None
    comma: tuple[int, str] | None = None
    either: tuple[int, str] | None = None


def find_signs(cells: Iterable[tuple[int, Any]]) -> Signs:
    """The decimal signs in the cells (row, value) of a column."""
    first: dict[str | None, tuple[int, str]] = {}
    for row, value in cells:
        if type(value) is str:
            text = value.strip()
            first.setdefault(find_sign(_strip_percent(text)), (row, text))
    return Signs(first.get("."), first.get(","), first.get("?"))


class ColumnNumbers:
    """Reads the numbers of a column. Its first cell that shows a decimal sign decides it for all others; if a cell that
    may have either comes before, `search` looks for that cell. `stated`: the sign if no cell shows one."""

    def __init__(
        self, known: dict[str, Any], stated: str = "", search: Callable[[], Iterable[Any]] = lambda: ()
    ) -> None:
        self.known, self.stated, self.search = known, stated, search
        #: The sign, and the cell that shows it.
        self.sign, self.shown_by = "", ""
        self.is_searched = False
        #: Whether numbers have a percent sign; None before the first one.
        self.has_percent: bool | None = None

    def read(self, value: Any) -> float | int | None:
        """The number in a cell; None if there is none. Raises `WrongValue`."""
        known = self.known
        is_plain = type(value) is str and not known and len(value) < 16 and value.isascii() and value.isdigit()
        if is_plain and not self.has_percent:  # most cells of a CSV file
            self.has_percent = False
            return int(value)
        text = read_key(value)
        if text in known:
            value = known[text]
        elif text.lower() in known:
            value = known[text.lower()]
        if is_empty(value) or (type(value) is str and not value.strip()):
            return None
        if type(value) in (int, float):
            return value if math.isfinite(value) else None
        if type(value) is str and (number := self._read_text(value.strip())) is not None:
            return number
        way_out = _('State its number under "values", or null to leave it out: {"value": {"%(text)s": 3}}.',
                    text=text[:80])  # fmt: skip
        raise WrongValue(_("“%(text)s” is not a number.", text=text[:80]), way_out)

    def _read_text(self, text: str) -> float | int | None:
        plain = _strip_percent(text)
        sign = find_sign(plain)
        if sign is None:
            return None
        self._check_percent(text, text.endswith("%"))
        if sign == "?":
            sign = self._decide(text)
        elif sign:
            self._settle(sign, text)
        return parse_number(plain, sign or ".")

    def _settle(self, sign: str, text: str) -> None:
        if not self.sign:
            self.sign, self.shown_by = sign, text
        elif self.sign != sign:
            point, comma = (self.shown_by, text) if sign == "," else (text, self.shown_by)
            raise WrongValue(*explain_two_signs(point, comma))

    def _decide(self, text: str) -> str:
        """The sign of a number such as `1.250`."""
        if not self.sign and not self.is_searched:
            self.is_searched = True
            for value in self.search():
                other = value.strip() if type(value) is str else ""
                if (sign := find_sign(_strip_percent(other))) in (".", ","):
                    self.sign, self.shown_by = sign, other
                    break
        if sign := self.sign or self.stated:
            return sign
        raise WrongValue(*describe_either(text))

    def _check_percent(self, text: str, has_percent: bool) -> None:
        if self.has_percent is None:
            self.has_percent = has_percent
        elif self.has_percent != has_percent:
            message = (
                _("“%(text)s” has a percent sign, other numbers of the column have none.", text=text[:40])
                if has_percent
                else _("“%(text)s” has no percent sign, other numbers of the column have one.", text=text[:40])
            )
            raise WrongValue(message, _("Write all numbers of the column with it, or all without."))


def describe_either(text: str) -> tuple[str, str]:
    """(message, way out) about a number whose decimal sign nothing decides."""
    text = text[:40]
    points, commas = (f"{parse_number(_strip_percent(text), sign):g}" for sign in ".,")
    message = _("“%(text)s” may be %(first)s or %(second)s. No cell of the column shows which is its decimal sign.",
                text=text, first=points, second=commas)  # fmt: skip
    return message, _('State the decimal sign: "reading": {"decimal": "."}, or ",".')


def read_begin(word: str) -> float | int | None:
    """The number at the beginning of an answer, as in `5 (best)`; None if there is none. Dates, which spreadsheet
    programs make of numbers such as 1.5, and ranges have none."""
    match = re.match(r"[+-]?\d[\d.,]{0,30}", word.lstrip())
    text = match[0].rstrip(".,") if match else ""
    sign = None if _NO_RATING.match(word.lstrip()) else find_sign(text)
    return None if sign in (None, "?") else parse_number(text, sign or ".")
