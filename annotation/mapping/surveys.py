"""Mappings for questionnaires and for the batches of crowd workers, made from their columns and first rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .cell_names import find_sides
from .names import find_fields, find_scale, read_verdict_word
from .numbers import is_number, read_begin
from .picking import Columns, Rows, pick_columns, pick_sides
from .questions import read_field, read_questions
from .sources import Row
from .values import FLAGS, read_key

QUALTRICS = frozenset({
    "StartDate", "EndDate", "Status", "IPAddress", "Progress", "Duration (in seconds)", "Finished", "RecordedDate",
    "ResponseId", "RecipientLastName", "RecipientFirstName", "RecipientEmail", "ExternalReference", "LocationLatitude",
    "LocationLongitude", "DistributionChannel", "UserLanguage", "Q_RecaptchaScore",
})  # fmt: skip
LIMESURVEY = frozenset(
    {"id", "submitdate", "lastpage", "startlanguage", "seed", "startdate", "datestamp", "token", "ipaddr", "refurl"}
)
FORMS = ("username", "email address", "email", "nutzername", "e-mail-adresse")
#: The first column of Google Forms in several languages.
TIMES = ("timestamp", "zeitstempel", "horodateur", "marca temporal")


def skip_words(rows: Rows, column: str = "value") -> dict[str, Any]:
    """Answers that are no numbers: the number at their beginning, or null, which leaves them out."""
    words = {str(row[column]) for row in rows if row.get(column) is not None and not is_number(row[column])}
    return {word: read_begin(word) for word in sorted(words)[:100]}


# ---- questionnaires ---------------------------------------------------------------------------------------------


def make_survey(
    known: Callable[[str], bool], raters: Sequence[str], **more: Any
) -> Callable[[Columns, Rows], dict[str, Any]]:
    """A questionnaire with a column for each question. `known`: columns of the tool itself."""

    def make(columns: Columns, rows: Rows) -> dict[str, Any]:
        skipped = rows[more.get("reading", {}).get("skip_below", 0) :]
        own = [column for column in columns if not known(column)]
        rater = next((column for name in raters for column in columns if column.lower() == name.lower()), None)
        picked = {"rater": rater} if rater else {}
        for name in ("item", "system"):
            if len(named := [column for column in own if name in read_field(column)]) == 1:
                picked[name] = named[0]
        questions = [
            column for column in own if column not in picked.values() and _has_answers(skipped, column)
        ]  # fmt: skip
        mapping: dict[str, Any] = {"shape": "wide", "columns": picked, "make_items": False, **more}
        mapping["ratings"] = _make_ratings(questions, has_system="system" in picked)
        words: dict[str, Any] = {}
        for name in questions:
            labels = [word for word in skip_words(skipped, name) if word.strip()]
            begins: dict[str, float | int | None] = {word: read_begin(word) for word in labels}
            numbers = find_scale(labels) or begins
            words.update({word: number for word, number in numbers.items() if number is not None})
        return {**mapping, "values": {"value": words}} if words else mapping

    return make


def _make_ratings(questions: Sequence[str], has_system: bool) -> list[dict[str, str]]:
    """The columns of questions, as far as they say what was rated. `has_system`: another column names the system."""
    if has_system:
        return [{"column": name, "aspect": name} for name in questions]
    read = read_questions(questions)
    if read.pattern:
        return [{"pattern": read.pattern}]
    cells = [
        {"column": one.column, "system": one.system, "aspect": one.aspect, **({"item": one.item} if one.item else {})}
        for one in read.cells
    ]
    return cells or [{"column": name} for name in questions]


def _has_answers(rows: Rows, column: str) -> bool:
    """Whether the answers are numbers, begin with one, or are words of a usual scale."""
    values = [row.get(column) for row in rows if str(row.get(column) or "").strip()]
    words = [str(value) for value in values if not is_number(value)]
    return bool(values) and (all(read_begin(word) is not None for word in words) or find_scale(words) is not None)


# ---- Mechanical Turk --------------------------------------------------------------------------------------------

_OPTION = re.compile(r"\A(Answer\..+)\.([^.]+)\Z")


def flatten_mturk(row: Row) -> Iterator[Row]:
    """Assignments, in which a question with a column of true and false for each option (`Answer.choice.A`) becomes one
    with the chosen option, or with several and `|` between them as where MTurk itself writes them so."""
    options: dict[str, dict[str, str]] = {}
    for name in row:
        if (match := _OPTION.match(name)) is not None:
            options.setdefault(match[1], {})[match[2]] = name
    flat = dict(row)
    for question, names in options.items():
        values = [read_key(row[name]).lower() for name in names.values()]
        if len(names) < 2 or question in row or not all(value in FLAGS for value in values):
            continue
        chosen = [option for option, value in zip(names, values, strict=True) if FLAGS[value]]
        flat = {name: value for name, value in flat.items() if name not in names.values()}
        flat[question] = "|".join(chosen)
    yield flat


def make_mturk(columns: Columns, rows: Rows) -> dict[str, Any]:
    """Ratings of the output in a task, or comparisons of its two outputs and ratings of either."""
    given = [column for column in columns if column.startswith("Input.")]
    answers = [column for column in columns if column.startswith("Answer.")]
    sides = pick_sides(given)
    fields = ("item", "context", "source", "references", "group", *(() if "text_a" in sides else ("system", "text")))
    mapping: dict[str, Any] = {
        "shape": "wide", "columns": {**pick_columns(given, *fields), "rater": "WorkerId"},
        "only": {"AssignmentStatus": ["Approved", "Submitted"]},
    }  # fmt: skip
    if "item" not in mapping["columns"] and {"context", "source"} & mapping["columns"].keys():
        mapping["ids"] = {"source": "hash"}
    rated = [column for column in answers if _has_numbers(rows, column)]
    if "text_a" not in sides:
        mapping["ratings"] = [{"column": column, "aspect": column.removeprefix("Answer.")} for column in rated]
        return mapping
    mapping["shape"] = "pairs"
    mapping["columns"].update(sides)
    if "item" not in mapping["columns"]:
        mapping["ids"] = {"source": "hash" if "ids" in mapping else "row"}
    mapping["ratings"] = [
        {"column": column, "aspect": aspect.removeprefix("Answer."), "side": side}
        for column, (aspect, side) in find_sides(rated).items()
    ]
    if verdict := _find_verdict(rows, [column for column in answers if column not in rated]):
        mapping["columns"]["verdict"] = verdict
        mapping["constants"] = {"aspect": "preference"}
        words = {str(row.get(verdict)): read_verdict_word(str(row.get(verdict))) for row in rows}
        mapping["values"] = {"verdict": {word: meaning for word, meaning in words.items() if meaning is not None}}
    return mapping


def _find_verdict(rows: Rows, columns: Sequence[str]) -> str:
    """The column that says which output is better: by its name, or because all answers are usual words for it."""
    named = [column for column in columns if "verdict" in find_fields(column)]
    for column in columns:
        values = {str(value) for row in rows if (value := row.get(column)) not in (None, "")}
        if values and all(read_verdict_word(value) for value in values):
            named.append(column)
    return next(iter(dict.fromkeys(named)), "")


def _has_numbers(rows: Rows, column: str) -> bool:
    values = [row.get(column) for row in rows if row.get(column) not in (None, "")]
    return bool(values) and all(is_number(value) for value in values)
