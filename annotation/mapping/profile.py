"""What the columns of a table contain, from its first rows."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .names import MISSING, find_scale
from .numbers import is_number
from .tables import Table
from .values import CONTENT_NAMES, ROLE_NAMES, WrongCell, is_empty

MOST_LABELS, MOST_LABEL_WORDS = 12, 5
_DATE = re.compile(
    r"\A\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[T ,]{1,2}\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?"
    r"(?: ?[AaPp][Mm])?(?: ?(?:Z|[A-Z]{3,4})?(?:[+-]\d{1,2}(?::?\d{2})?)?)?\Z"
)


@dataclass
class Profile:
    """The cells of a column in the first rows: `kind` is empty, number, date, text, list (of texts), numbers, messages
    (of a chat), records (a list of other objects), or object; `others` are the texts in a column of numbers."""

    name: str
    kind: str = "empty"
    filled: int = 0
    rows: int = 0
    words: float = 0.0
    distinct: int = 0
    texts: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    #: Why the first cell that cannot be read cannot be; such cells are not counted.
    wrong: str = ""

    @property
    def is_unique(self) -> bool:
        return self.filled == self.distinct and self.filled > 1

    @property
    def is_prose(self) -> bool:
        """Longer texts that rarely repeat."""
        if self.kind in ("messages", "list"):
            return True
        return self.kind == "text" and self.words >= 2 and self.distinct > self.filled / 2

    @property
    def is_label(self) -> bool:
        """Few short texts that repeat, as the answers to a question with choices."""
        if self.kind != "text" or self.words > MOST_LABEL_WORDS:
            return False
        return self.distinct <= min(MOST_LABELS, self.filled / 2) or find_scale(self.list_labels()) is not None

    def list_words(self) -> list[str]:
        """The texts that are no numbers."""
        return list(self.texts if self.kind in ("text", "date") else self.others)

    def list_labels(self) -> list[str]:
        """The words that do not say that there is none."""
        return [text for text in self.list_words() if text.lower() not in MISSING]


def profile_columns(table: Table) -> dict[str, Profile]:
    """The profile of each column."""
    return {name: profile_column(table, name) for name in table.columns}


def profile_column(table: Table, name: str) -> Profile:
    return _profile(name, [row.get(name) for _number, row in table.sample])


def _profile(name: str, cells: list[Any]) -> Profile:
    wrong = next((value.message for value in cells if isinstance(value, WrongCell)), "")
    values = [
        value
        for value in cells
        if not is_empty(value) and not (isinstance(value, str) and (type(value) is WrongCell or not value.strip()))
    ]
    profile = Profile(name, filled=len(values), rows=len(cells), wrong=wrong)
    if not values:
        return profile
    kinds = Counter(_get_kind(value) for value in values)
    profile.kind = kinds.most_common(1)[0][0]
    if profile.kind in ("list", "numbers", "messages", "records", "object"):
        profile.distinct = len({repr(value) for value in values})
        return profile
    texts = [str(value).strip() for value in values]
    profile.texts = Counter(texts)
    profile.distinct = len(profile.texts)
    profile.words = sum(len(text.split()) for text in texts) / len(texts)
    numbers = kinds["number"]
    if numbers and numbers + sum(n for text, n in profile.texts.items() if text.lower() in MISSING) >= 0.8 * len(texts):
        profile.kind = "number"
        profile.others = Counter(text for text, value in zip(texts, values, strict=True) if _get_kind(value) == "text")
    elif kinds["text"]:
        profile.kind = "date" if all(_DATE.match(text) for text in profile.texts) else "text"
    return profile


def _get_kind(value: Any) -> str:
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        if not value or not isinstance(value[0], dict):
            return "numbers" if value and all(type(one) in (int, float) for one in value) else "list"
        return "messages" if ROLE_NAMES & value[0].keys() and CONTENT_NAMES & value[0].keys() else "records"
    return "number" if is_number(value) else "text"
