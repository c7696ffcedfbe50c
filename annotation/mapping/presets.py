"""Presets: the files of known tools, recognized by their columns and values, with a mapping for each.

A preset for nested records has a `flatten` (see `records`); its mapping names the columns of the flat rows. The mapping
is an ordinary one, which can be changed. A field that the file does not tell is missing in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from evalapp.translation import gettext_noop

from . import records
from .mapping import CELL_MEMBERS, Cells, Ids, Mapping, Reading, Turns
from .names import read_verdict_word
from .numbers import is_number
from .picking import Columns, Rows, pick_columns, pick_sides
from .records import Flatten, Row, WrongRecord
from .sources import Report, Source
from .surveys import FORMS, LIMESURVEY, QUALTRICS, TIMES, flatten_mturk, make_mturk, make_survey, skip_words
from .tables import Table


@dataclass(frozen=True)
class Preset:
    """A known kind of file. `label` is shown to people; `remark` says what an import leaves out or needs."""

    name: str
    label: str
    matches: Callable[[Columns, Rows], bool]
    make: Callable[[Columns, Rows], dict[str, Any]]
    flatten: Flatten | None = None
    remark: str = ""
    #: Whether such a file has neither outputs nor judgements.
    has_items_only: bool = False

    def make_mapping(self, table: Table) -> Mapping:
        """The mapping, made from the columns and the first rows of a table."""
        flat = flatten_table(table, self.name)
        made = make_draft(self.make(flat.columns, [row for _number, row in flat.sample]))
        reading = replace(table.reading, skip_below=made.reading.skip_below or table.reading.skip_below)
        return replace(made, preset=self.name, reading=reading)


class FlatSource(Source):
    """The flat rows of nested records."""

    def __init__(self, source: Source, flatten: Flatten) -> None:
        super().__init__(source.path, source.name, source.reading, source.limits)
        self.source, self.flatten, self.format = source, flatten, source.format
        self.letters = source.letters

    def read(self, report: Report) -> Iterator[tuple[int, Row]]:
        for number, row in self.source.read(report):
            try:
                for flat in self.flatten(row):
                    yield number, flat
            except WrongRecord as wrong:
                report(number, wrong.column, wrong.message)
            self.position = self.source.position


def flatten_table(table: Table, preset: str) -> Table:
    """The table with the flat rows of a preset; the same one if the preset has none."""
    known = PRESETS.get(preset)
    if known is None or known.flatten is None or isinstance(table.source, FlatSource):
        return table
    return Table(table.path, table.name, table.format, FlatSource(table.source, known.flatten), table.notes)


def make_draft(document: dict[str, Any]) -> Mapping:
    """The mapping in a JSON object that may be incomplete. Its types are not checked."""

    def list_names(value: Any) -> tuple[str, ...]:
        return (value,) if isinstance(value, str) else tuple(value)

    members: dict[str, Any] = {"shape": "long", **document}
    members["only"] = {
        key: () if value is True else list_names(value) for key, value in document.get("only", {}).items()
    }
    for name in ("columns", "meta"):
        members[name] = {key: list_names(value) for key, value in document.get(name, {}).items()}
    for name in CELL_MEMBERS:
        members[name] = tuple(Cells(**cells) for cells in document.get(name, ()))
    members["turns"] = {name: _make_turns(rule) for name, rule in document.get("turns", {}).items()}
    members["explode"] = tuple(document.get("explode", ()))
    return Mapping(
        **{**members, "ids": Ids(**document.get("ids", {})), "reading": Reading(**document.get("reading", {}))}
    )


def _make_turns(rule: dict[str, Any]) -> Turns:
    members: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in rule.items()}
    return Turns(**members)


# ---- columns ----------------------------------------------------------------------------------------------------


def has_columns(columns: Columns, *names: str) -> bool:
    """Whether the file has all columns, or columns with dotted names below them."""
    return all(any(column == name or column.startswith(f"{name}.") for column in columns) for name in names)


def _same(*fields: str) -> dict[str, str]:
    """Columns of flat rows with the names of the fields."""
    return {field: field for field in fields}


def _values(rows: Rows) -> dict[str, Any]:
    words = skip_words(rows)
    return {"values": {"value": words}} if words else {}


_LIST = {"rule": "json"}


# ---- evaluation of language models ------------------------------------------------------------------------------


def _plain(**mapping: Any) -> Callable[[Columns, Rows], dict[str, Any]]:
    return lambda columns, rows: dict(mapping)


def _make_lm_eval(columns: Columns, rows: Rows) -> dict[str, Any]:
    rated = any("value" in row for row in rows)
    fields = ("item", "context", "text", *(("rater", "aspect", "value", "simulated") if rated else ()))
    return {"shape": "long", "columns": {**_same(*fields), "references": "reference"}}


def _is_chat(columns: Columns, rows: Rows) -> bool:
    column = next((name for name in ("messages", "conversations") if name in columns), None)
    if column is None or not rows or {"chosen", "rejected"} <= set(columns):
        return False
    return any({"role", "from"} & message.keys() for message in _list_objects(rows[0].get(column)))


def _make_chat(columns: Columns, rows: Rows) -> dict[str, Any]:
    picked = {**pick_columns(columns, "item", "system"), **_same("context", "text")}
    mapping: dict[str, Any] = {"shape": "long", "columns": picked, "turns": {"context": _LIST}}
    return mapping if "item" in picked else {**mapping, "ids": {"source": "hash"}}


_MARKS = ("\n\nHuman:", "\n\nAssistant:")


def _is_marked(columns: Columns, rows: Rows) -> bool:
    """Whether chosen and rejected texts are whole dialogues with marks before each turn."""
    sides = [row.get(name) for row in rows for name in ("chosen", "rejected")]
    return bool(sides) and all(isinstance(text, str) and text.startswith(_MARKS[0]) for text in sides)


# ---- annotation tools -------------------------------------------------------------------------------------------


def _has_result(*types: str) -> Callable[[Columns, Rows], bool]:
    def matches(columns: Columns, rows: Rows) -> bool:
        return has_columns(columns, "annotations", "data") and any(
            result.get("type") in types
            for row in rows
            for annotation in _list_objects(row.get("annotations"))
            for result in _list_objects(annotation.get("result"))
        )

    return matches


def _list_objects(value: Any) -> list[Row]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _make_label_studio_pairs(columns: Columns, rows: Rows) -> dict[str, Any]:
    data = [column for column in columns if column.startswith("data.")]
    picked = {
        **pick_columns(data, "context", "source", "references", "group"),
        **_same("item", "rater", "aspect", "verdict"),
    }
    if own := next((column for column in data if column[5:].lower() in ("item", "item_id", "prompt_id")), None):
        picked["item"] = own
    return {"shape": "pairs", "columns": {**picked, **pick_sides(data)}}


def _is_label_studio_pairs(columns: Columns, rows: Rows) -> bool:
    """Whether there are pairwise results, or choices that say which of two texts is better."""
    if _has_result("pairwise")(columns, rows):
        return True
    data = [column for column in columns if column.startswith("data.")]
    return "text_a" in pick_sides(data) and _has_result("choices")(columns, rows)


def _is_argilla_pairs(columns: Columns, rows: Rows) -> bool:
    fields = [column for column in columns if column.startswith("fields.")]
    return _is_argilla(columns, rows) and "text_a" in pick_sides(fields)


def _make_argilla_pairs(columns: Columns, rows: Rows) -> dict[str, Any]:
    own = [column for column in columns if column.startswith(("fields.", "metadata."))]
    picked = {**pick_columns(own, "item", "context", "source", "references", "group"), **pick_sides(own)}
    words = {word: read_verdict_word(word) for row in rows if isinstance(word := row.get("value"), str)}
    return {
        "shape": "pairs", "columns": {**picked, **_same("rater", "aspect"), "verdict": "value"},
        **({} if "item" in picked else {"ids": {"source": "hash"}}),
        "values": {"verdict": {word: verdict for word, verdict in words.items() if verdict is not None}},
    }  # fmt: skip


def _make_ratings(prefix: str = "", *judged: str) -> Callable[[Columns, Rows], dict[str, Any]]:
    """Ratings of outputs whose columns have `prefix`; items by id, otherwise by the prompt."""

    def make(columns: Columns, rows: Rows) -> dict[str, Any]:
        own = [column for column in columns if column.startswith(prefix) and column not in ("value", "aspect", "rater")]
        fields = ("item", "context", "source", "references", "group", "system", "text")
        picked = {**pick_columns(own, *fields), **_same(*judged)}
        mapping: dict[str, Any] = {"shape": "long", "columns": picked, **_values(rows)}
        if not {"context", "source"} & picked.keys():
            mapping["make_items"] = True
        elif "item" not in picked:
            mapping["ids"] = {"source": "hash"}
        return mapping

    return make


def _is_argilla(columns: Columns, rows: Rows) -> bool:
    return has_columns(columns, "fields", "responses")


def _is_prodigy(columns: Columns, rows: Rows, numbers: bool) -> bool:
    if not has_columns(columns, "options", "accept", "answer"):
        return False
    options = [option for row in rows for option in _list_objects(row.get("options"))]
    return bool(options) and all(is_number(option.get("id")) for option in options) == numbers


def _is_doccano(columns: Columns, rows: Rows) -> bool:
    return "text" in columns and ("Comments" in columns or "comments" in columns) and has_columns(columns, "label")


def _is_potato(columns: Columns, rows: Rows) -> bool:
    return "instance_id" in columns and (
        has_columns(columns, "label_annotations") or any(":::" in column for column in columns)
    )


# ---- dialogue research ------------------------------------------------------------------------------------------


def _is_usr(columns: Columns, rows: Rows) -> bool:
    if not has_columns(columns, "context", "responses"):
        return False
    first = next((row.get("responses") for row in rows), None)
    return isinstance(first, list) and bool(first) and isinstance(first[0], dict) and "model" in first[0]


def _make_parallel(columns: Columns, rows: Rows) -> dict[str, Any]:
    fields = [name for name in ("context", "system", "text", "rater", "aspect", "value") if name in columns]
    mapping: dict[str, Any] = {"shape": "long", "columns": _same(*fields), "ids": {"source": "hash"},
                               "turns": {"context": _LIST}}  # fmt: skip
    if "reference" in columns:
        mapping["columns"]["references"] = "reference"
    return mapping


def _has(*names: str) -> Callable[[Columns, Rows], bool]:
    return lambda columns, rows: has_columns(columns, *names)


_RATED = ("system", "text", "rater", "aspect", "value")
_COMPARED = ("system_a", "text_a", "system_b", "text_b", "rater", "aspect", "verdict")

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "alpaca-eval-annotations", gettext_noop("alpaca_eval annotations"),
            _has("instruction", "output_1", "output_2", "preference"),
            _plain(shape="pairs", columns=_same("context", *_COMPARED, "simulated"), ids={"source": "hash"}),
            records.flatten_alpaca_annotations,
            gettext_noop("Outputs that were not compared are left out."),
        ),
        Preset(
            "alpaca-eval-outputs", gettext_noop("alpaca_eval outputs"), _has("instruction", "output", "generator"),
            _plain(shape="long", columns=_same("context", "system", "text"), ids={"source": "hash"}),
            records.flatten_alpaca_outputs,
        ),
        Preset(
            "mt-bench-questions", gettext_noop("MT-Bench questions"), _has("question_id", "category", "turns"),
            _plain(shape="long", columns={**_same("item", "context", "group"), "references": "reference"},
                   turns={"context": _LIST}, meta={"items": ["category"]}),
            records.flatten_mt_bench_questions,
            gettext_noop("Each turn is an item, with the questions up to it as context."), has_items_only=True,
        ),
        Preset(
            "mt-bench-answers", gettext_noop("MT-Bench answers"), _has("question_id", "model_id", "choices"),
            _plain(shape="long", columns=_same("item", "system", "text"), make_items=False),
            records.flatten_mt_bench_answers,
            gettext_noop("Upload question.jsonl first: it has the items."),
        ),
        Preset(
            "mt-bench-scores", gettext_noop("MT-Bench scores by a model"),
            _has("question_id", "model", "judge", "score", "turn"),
            _plain(shape="long", columns=_same("item", "system", "rater", "aspect", "value", "simulated"),
                   make_items=False),
            records.flatten_mt_bench_scores,
            gettext_noop("Upload questions and answers first. Judgements without a score (-1) are left out."),
        ),
        Preset(
            "mt-bench-pairs", gettext_noop("MT-Bench comparisons by a model"),
            _has("question_id", "model_1", "model_2", "g1_winner", "g2_winner"),
            _plain(shape="pairs",
                   columns=_same("item", "system_a", "system_b", "rater", "aspect", "verdict", "simulated"),
                   make_items=False),
            records.flatten_mt_bench_pairs,
            gettext_noop("Upload questions and answers first. A win in a single order is a tie; errors are "
                         "left out."),
        ),
        Preset(
            "arena", gettext_noop("Chatbot Arena battles"),
            _has("model_a", "model_b", "winner", "conversation_a", "conversation_b"),
            _plain(shape="pairs", columns=_same("item", "context", "group", *_COMPARED, "simulated"),
                   turns={"context": _LIST}),
            records.flatten_arena,
            gettext_noop("The context has the user's turns; the texts are the answers to the last of them."),
        ),
        Preset(
            "arena-votes", gettext_noop("Chatbot Arena votes in a column for each answer"),
            _has("model_a", "model_b", "response_a", "response_b", "winner_model_a", "winner_model_b", "winner_tie"),
            _plain(shape="pairs", columns=_same("item", "context", *_COMPARED), turns={"context": _LIST}),
            records.flatten_arena_votes,
            gettext_noop("The context has the user's turns; the texts are the answers to the last of them."),
        ),
        Preset(
            "chat-messages", gettext_noop("Chats with roles"), _is_chat, _make_chat, records.flatten_chat,
            gettext_noop("The last answer is the output, the messages before it are the context."),
        ),
        Preset(
            "marked-preferences", gettext_noop("Preferences between dialogues"), _is_marked,
            _plain(shape="preference", columns=_same("chosen", "rejected"), ids={"source": "row"},
                   constants={"rater": "unknown", "aspect": "preference"},
                   turns={name: {"rule": "marks", "marks": list(_MARKS)} for name in ("chosen", "rejected")}),
            None, gettext_noop("The last turn of each dialogue is the output."),
        ),
        Preset(
            "lm-evaluation-harness", gettext_noop("lm-evaluation-harness samples"),
            _has("doc_id", "arguments", "resps", "filtered_resps"), _make_lm_eval, records.flatten_lm_eval,
            gettext_noop("The harness's own metrics become ratings that are marked as made by a program."),
        ),
        Preset(
            "mturk", gettext_noop("Mechanical Turk batch results"), _has("HITId", "AssignmentId", "WorkerId"),
            make_mturk, flatten_mturk, gettext_noop("Rejected assignments are left out."),
        ),
        Preset(
            "qualtrics", gettext_noop("Qualtrics responses"), _has("ResponseId", "StartDate", "Finished"),
            make_survey(lambda column: column in QUALTRICS, ("ResponseId",), reading={"skip_below": 2},
                         only={"Finished": ["True", "TRUE", "1"]}),
            None, gettext_noop("Unfinished responses are left out. Upload items and outputs first."),
        ),
        Preset(
            "limesurvey", gettext_noop("LimeSurvey responses"), _has("id", "submitdate", "lastpage", "startlanguage"),
            make_survey(lambda column: column in LIMESURVEY, ("token", "id"), only={"submitdate": True}), None,
            gettext_noop("Unfinished responses are left out. Upload items and outputs first."),
        ),
        Preset(
            "google-forms", gettext_noop("Google Forms responses"),
            lambda columns, rows: bool(columns) and columns[0].lower() in TIMES,
            make_survey(lambda column: column.lower() in (*TIMES, *FORMS), (*FORMS, *TIMES)), None,
            gettext_noop("Upload items and outputs first."),
        ),
        Preset(
            "label-studio-pairs", gettext_noop("Label Studio comparisons"), _is_label_studio_pairs,
            _make_label_studio_pairs, records.flatten_label_studio_pairs,
            gettext_noop("Cancelled annotations are left out."),
        ),
        Preset(
            "label-studio-ratings", gettext_noop("Label Studio ratings"),
            _has_result("rating", "number", "choices"), _make_ratings("data.", "rater", "aspect", "value"),
            records.flatten_label_studio_ratings, gettext_noop("Cancelled annotations are left out."),
        ),
        Preset(
            "argilla-pairs", gettext_noop("Argilla records with two texts"), _is_argilla_pairs,
            _make_argilla_pairs, records.flatten_argilla,
            gettext_noop("Only submitted responses are imported."),
        ),
        Preset(
            "argilla", gettext_noop("Argilla records"), _is_argilla,
            _make_ratings("", "rater", "aspect", "value"), records.flatten_argilla,
            gettext_noop("Only submitted responses are imported."),
        ),
        Preset(
            "potato", gettext_noop("Potato annotations"), _is_potato,
            _make_ratings("", "rater", "aspect", "value"), records.flatten_potato,
        ),
        Preset(
            "prodigy-pairs", gettext_noop("Prodigy choices between texts"),
            lambda columns, rows: _is_prodigy(columns, rows, False),
            _plain(shape="pairs", columns=_same("context", *_COMPARED), ids={"source": "hash"}),
            records.flatten_prodigy_pairs, gettext_noop("Only accepted tasks with one choice are imported."),
        ),
        Preset(
            "prodigy-ratings", gettext_noop("Prodigy ratings"),
            lambda columns, rows: _is_prodigy(columns, rows, True),
            _make_ratings("", "rater", "aspect", "value"), records.flatten_prodigy_ratings,
            gettext_noop("Only accepted tasks with one choice are imported."),
        ),
        Preset(
            "doccano", gettext_noop("doccano labels"), _is_doccano, _make_ratings("", "value"),
            records.flatten_doccano, gettext_noop("Texts with several labels are left out."),
        ),
        Preset(
            "usr", gettext_noop("USR ratings"), _is_usr,
            _plain(shape="long", columns=_same("context", "source", *_RATED), ids={"source": "hash"},
                   turns={"context": _LIST}),
            records.flatten_usr,
        ),
        Preset(
            "turn-ratings", gettext_noop("FED or DSTC ratings"), _has("context", "annotations"),
            _plain(shape="long", columns=_same("context", *_RATED), ids={"source": "hash"},
                   turns={"context": _LIST}),
            records.flatten_turn_ratings,
            gettext_noop("Ratings of whole dialogues and answers that are no numbers are left out."),
        ),
        Preset(
            "parallel-lists", gettext_noop("Lists of contexts, responses and scores"),
            _has("contexts", "responses", "scores"), _make_parallel, records.flatten_parallel_lists,
        ),
    )
}  # fmt: skip


def find_preset(table: Table) -> Preset | None:
    """The preset that recognizes a table by its columns and first rows; None if none does."""
    rows = [row for _number, row in table.sample]
    return next((preset for preset in PRESETS.values() if preset.matches(table.columns, rows)), None)
