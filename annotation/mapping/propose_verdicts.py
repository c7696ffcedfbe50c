"""Proposes which columns of a table say which of two outputs is better, and what their cells mean."""

from __future__ import annotations

from collections.abc import Sequence

from annotation.parsers.kinds import VERDICTS
from evalapp.translation import gettext as _

from .cell_names import read_judge_name
from .draft import Draft, Question
from .mapping import Cells, Mapping
from .names import read_option_name, read_verdict_word
from .numbers import is_number, read_begin
from .tables import Table
from .values import FLAGS, read_key

#: Numbers that mean the first output, the second one and a tie if 2 is among them.
_SIDE_NUMBERS = {"1", "2", "0", "1.5"}


def find_options(draft: Draft, systems: Sequence[str] = ()) -> dict[str, str]:
    """Column -> verdict, of columns such as `winner_a`, `winner_b` and `tie` if most rows have exactly one true."""
    found = {
        name: verdict
        for name, one in draft.profiles.items()
        if one.texts and all(text.lower() in FLAGS for text in one.texts)
        if (verdict := read_option_name(name, systems))
    }
    counts = [sum(FLAGS[read_key(row.get(name)).lower()] for name in found) for _number, row in draft.table.sample]
    is_whole = {"a", "b"} <= set(found.values()) and len(set(found.values())) == len(found)
    return found if is_whole and 2 * counts.count(1) > len(counts) else {}


def list_verdicts(draft: Draft) -> list[str]:
    """Columns that may say which output is better: by their names, or because their cells are names of systems, or
    usual words for it."""
    systems = {one.system for one in draft.outputs}
    found = draft.list_free("verdict")
    for name, one in draft.profiles.items() if len(systems) > 1 else ():
        verdicts = {text if text in systems else read_verdict_word(text) for text in one.texts}
        is_known = None not in verdicts and bool(verdicts & systems or verdicts >= {"a", "b"})
        if one.is_label and is_known and name not in found and not draft.is_taken(name):
            found.append(name)
    return found


def list_judges(draft: Draft) -> list[Cells]:
    """Columns with the verdicts of a rater each, at least two: the names have a rater, and the cells are usual words
    for verdicts."""
    found = [
        Cells(column=name, rater=rater)
        for name, one in draft.profiles.items()
        if one.texts and not draft.is_taken(name) and (rater := read_judge_name(name))
        if all(read_verdict_word(text) for text in one.texts)
    ]
    texts = {text for cells in found for text in draft.profiles[cells.column].texts}
    numbers = {text for text in texts if is_number(text)}
    is_known = not numbers or (numbers <= _SIDE_NUMBERS and "2" in numbers)
    return found if len({one.rater for one in found}) > 1 and is_known else []


def propose_verdicts(draft: Draft, column: str) -> None:
    """The verdicts that the cells of a column mean, and questions about the others."""
    names = {
        text
        for side in ("system_a", "system_b")
        for one in draft.columns.get(side, ())
        for text in draft.profiles[one].texts
    } | {draft.constants[side] for side in ("system_a", "system_b") if side in draft.constants}
    known = {}
    texts = [text for text in draft.profiles[column].texts if text not in names]
    numbers = [text for text in texts if is_number(text)]
    if not draft.verdicts and not (set(numbers) <= _SIDE_NUMBERS and "2" in numbers):  # a scale, or 0 and 1
        texts = [text for text in texts if text not in numbers]
        if numbers:
            draft.questions.append(_ask_for_scale(numbers, column))
    for text in texts:
        if (verdict := read_verdict_word(text)) is not None:
            known[text] = verdict
        else:
            draft.questions.append(_ask_for_verdict(text, column))
    if known:
        draft.values.setdefault("verdict", {}).update(known)
        meanings = ", ".join(f"{text} = {verdict}" for text, verdict in known.items())
        draft.explain("values.verdict", (column,), meanings)


def ask_for_verdicts(table: Table, mapping: Mapping) -> list[Question]:
    """Questions about words in a preset's column of verdicts that nothing explains."""
    known = set(mapping.values.get("verdict", {})) | set(VERDICTS) | {""}
    for name in ("system_a", "system_b"):
        known.add(mapping.constants.get(name, ""))
        for column in mapping.columns.get(name, ()):
            known |= {read_key(row.get(column)) for _number, row in table.sample}
    words: dict[str, str] = {}
    for column in mapping.columns.get("verdict", ()):
        for _number, row in table.sample:
            words.setdefault(read_key(row.get(column)), column)
    return [_ask_for_verdict(word, column) for word, column in words.items() if word not in known]


def _ask_for_verdict(word: str, column: str) -> Question:
    message = _("What does “%(text)s” in the column “%(column)s” mean?", text=word[:80], column=column)
    return Question("values.verdict", message, VERDICTS)


def _ask_for_scale(texts: Sequence[str], column: str) -> Question:
    numbers = [read_begin(text) or 0 for text in texts]
    low, high = min(numbers), max(numbers)
    if low < 0:  # both ends, though answers may reach one only
        low, high = min(low, -high), max(high, -low)
    message = _("The numbers in “%(column)s”, such as %(number)s, are no usual words for verdicts. State the verdict "
                "of each, such as 1 = a, or the ends of their scale, that of the first output in front: "
                '"values": {"verdict": {"scale": [%(low)s, %(high)s]}}.',
                column=column, number=texts[0], low=low, high=high)  # fmt: skip
    return Question("values.verdict", message, VERDICTS)
