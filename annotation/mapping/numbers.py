"""Numbers in cells, with one decimal sign for a whole column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from annotation.parsers.cells import explain_two_signs
from evalapp.translation import gettext as _

from .names import read_scale
from .sources import Row
from .values import WrongValue, get_value, is_empty, read_key

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
#: Numbers by which questionnaires and statistics programs say that an answer is missing.
CODES = frozenset([-1, -8, -9, -88, -99, -888, -999, -8888, -9999, 88, 99, 888, 999, 8888, 9999])
#: A scale is unlikely to end with a number so many times as high as all others.
_FAR = 8
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


class RatingLimits(NamedTuple):
    """The lowest and the highest rating of a column: by the scale that its name states, or those that occur."""

    low: float
    high: float
    is_stated: bool = False

    def is_code(self, number: float) -> bool:
        """Whether a number that is often a code is no rating. Of the ratings that occur, scales may be -1, 0, 1, or go
        from 0 to 100."""
        if self.is_stated:
            return not self.low <= number <= self.high
        if number < 0:
            return self.low >= 0 and (number < -1 or self.high > 1)
        return self.high * _FAR < number


class MissingCode(WrongValue):
    """A number that may say that there is no rating; `text` is its cell."""

    def __init__(self, text: str, message: str) -> None:
        super().__init__(message, _state_number(text))
        self.text = text


class ColumnNumbers:
    """Reads the numbers of a column. Its first cell that shows a decimal sign decides it for all others; if a cell that
    may have either comes before, `search` looks for that cell. `stated`: the sign if no cell shows one.
    `find_limits`: finds the limits of a column of ratings, by the function of this name."""

    def __init__(
        self,
        known: dict[str, Any],
        stated: str = "",
        search: Callable[[], Iterable[Any]] = lambda: (),
        find_limits: Callable[[], RatingLimits | None] = lambda: None,
    ) -> None:
        self.known, self.stated, self.search, self.find_limits = known, stated, search, find_limits
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
            return self._check_code(int(value), value)
        text = read_key(value)
        is_stated = True
        if text in known:
            value = known[text]
        elif text.lower() in known:
            value = known[text.lower()]
        else:
            is_stated = False
        if is_empty(value) or (type(value) is str and not value.strip()):
            return None
        if type(value) in (int, float):
            number = value if math.isfinite(value) else None
        else:
            number = self._read_text(value.strip()) if type(value) is str else None
            if number is None:
                raise _describe_word(text)
        return number if number is None or is_stated else self._check_code(number, text)

    def _check_code(self, number: float | int, text: str) -> float | int:
        """The number, unless it may say that there is no rating."""
        if number in CODES and (limits := self.find_limits()) is not None and limits.is_code(number):
            message = _("“%(text)s” may say that an answer is missing: ratings are from %(low)s to %(high)s.",
                        text=text[:80], low=f"{limits.low:g}", high=f"{limits.high:g}")  # fmt: skip
            raise MissingCode(text, message)
        return number

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


def _describe_word(text: str) -> WrongValue:
    return WrongValue(_("“%(text)s” is not a number.", text=text[:80]), _state_number(text))


def _state_number(text: str) -> str:
    return _('State its number under "values", or null to leave it out: {"value": {"%(text)s": 3}}.', text=text[:80])


def find_limits(columns: Collection[str], rows: Iterable[Row], known: dict[str, Any]) -> dict[str, RatingLimits]:
    """By column, the scale in its name, or the lowest and the highest number in it that is no usual code. Columns
    without such numbers are left out. `known`: texts whose numbers the mapping states."""
    scales = {name: scale for name in columns if (scale := read_scale(name))}
    limits = {name: RatingLimits(*scale, True) for name, scale in scales.items()}
    searched = [name for name in columns if name not in scales]
    for row in rows if searched else ():
        for name in searched:
            for number in _list_plain(row, name, known):
                before = limits.get(name) or RatingLimits(number, number)
                limits[name] = RatingLimits(min(before.low, number), max(before.high, number))
    return limits


def _list_plain(row: Row, column: str, known: dict[str, Any]) -> list[float | int]:
    """The numbers of a cell that show their decimal sign and are no usual codes."""
    try:
        value = get_value(row, column)
    except WrongValue:
        return []
    numbers = []
    for one in value if isinstance(value, list) else [value]:
        one = known.get(one, one) if type(one) is str else one
        if type(one) is str and (sign := find_sign(plain := _strip_percent(one))) in ("", ".", ","):
            numbers.append(parse_number(plain, sign or "."))
        elif type(one) in (int, float) and math.isfinite(one):
            numbers.append(one)
    return [number for number in numbers if number not in CODES]


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
