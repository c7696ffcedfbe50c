"""Picks the columns of known tools by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .sources import Row

Columns = Sequence[str]
Rows = Sequence[Row]

#: Names of columns, in lower case, for the fields of flat rows that keep the tool's own columns.
WORDS = {
    "item": ("item", "item_id", "id", "prompt_id", "question_id", "instance_id", "segment_id", "doc_id"),
    "context": ("prompt", "context", "instruction", "question", "dialogue", "history", "input", "query"),
    "source": ("source", "source_text", "src", "document", "article"),
    "system": ("system", "model", "generator", "model_id", "model_name", "system_id", "system_name"),
    "text": ("response", "output", "answer", "text", "completion", "generation", "reply", "hypothesis", "summary",
             "displayed_text"),
    "references": ("references", "reference", "ref"),
    "group": ("group", "group_id"),
    "rater": ("rater", "annotator", "worker", "workerid", "user", "username", "email", "annotator_id"),
}  # fmt: skip
_PAIR_ENDS = (("1", "2"), ("a", "b"), ("left", "right"))


def pick_column(columns: Iterable[str], field: str) -> str | None:
    """The column for a field by its name, without a part before a dot; None if there is none, or several."""
    named = {column: column.rsplit(".", 1)[-1].strip().lower().replace(" ", "_") for column in columns}
    for word in WORDS[field]:
        found = [column for column, name in named.items() if name == word]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def pick_pair(columns: Iterable[str], words: Sequence[str]) -> tuple[str, str] | None:
    """Two columns for the two sides, such as `data.text1` and `data.text2`."""
    named = {re.sub(r"[\s_-]", "", column.rsplit(".", 1)[-1]).lower(): column for column in columns}
    for word in words:
        for first, second in _PAIR_ENDS:
            for one, two in ((word + first, word + second), (first + word, second + word)):
                if one in named and two in named:
                    return named[one], named[two]
    return None


def pick_columns(columns: Columns, *fields: str) -> dict[str, str]:
    """The column for each field that has one."""
    picked = {field: pick_column(columns, field) for field in fields}
    return {field: column for field, column in picked.items() if column is not None}


def pick_sides(columns: Columns) -> dict[str, str]:
    """The columns with the texts and the systems of the two sides."""
    picked: dict[str, str] = {}
    for names, words in ((("text_a", "text_b"), WORDS["text"]), (("system_a", "system_b"), WORDS["system"])):
        if pair := pick_pair(columns, words):
            picked.update(zip(names, pair, strict=True))
    return picked
