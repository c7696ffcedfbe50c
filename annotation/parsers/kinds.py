"""Checks the rows of each table: from a dict as read to a flat tuple for staging. A faulty row still returns a tuple if
its key is valid, so that rows that refer to it are not reported as well."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from evalapp.names import explain_hidden, explain_language, explain_line
from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop

from .faults import Row
from .fields import (
    MAX_NAME,
    Bad,
    is_whole,
    read_flag,
    read_key,
    read_meta,
    read_number,
    read_step,
    read_text,
    read_text_or_texts,
    read_texts,
)  # fmt: skip
from .results import check_campaign, check_filter, check_judge_answer, check_score, check_score_set
from .writer import COLUMNS, WRITTEN, encode_ordered

SYSTEM_KINDS = ("machine", "human", "reference", "control")
VERDICTS = ("a", "b", "tie", "both_bad", "cannot_decide")


@dataclass(frozen=True)
class Kind:
    """A table of the format: its staged columns, its key, and its checker."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    check: Callable[[Row, Bad], tuple[Any, ...] | None]


SYSTEM_FIELDS = frozenset({"id", "kind", "meta"})
ITEM_FIELDS = frozenset({"id", "context", "source", "references", "group", "meta"})
OUTPUT_FIELDS = frozenset({"item", "system", "text", "step", "meta"})
DIALOGUE_FIELDS = frozenset({"id", "turns", "system", "speakers", "meta"})
RATING_FIELDS = frozenset({"item", "system", "dialogue", "rater", "aspect", "value", "step", "simulated", "meta"})
COMPARISON_FIELDS = frozenset(
    {"item", "system_a", "system_b", "rater", "aspect", "verdict", "step_a", "step_b", "simulated", "meta"}
)
PAIR_FIELDS = frozenset({"query", "response", "meta"})


def check_system(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    key = read_key(row, "id", bad)
    kind = row.get("kind") or "machine"
    if kind not in SYSTEM_KINDS:
        bad("kind", _("kind must be one of %(choices)s.", choices=", ".join(SYSTEM_KINDS)))
    meta = read_meta(row, SYSTEM_FIELDS, bad)
    return None if key is None else (key, kind, meta)


def check_item(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    key = read_key(row, "id", bad)
    context = read_text_or_texts(row, "context", bad)
    references = read_text_or_texts(row, "references", bad)
    source = row.get("source")
    if source is not None and type(source) is not str:
        bad("source", _("source must be text or null."))
        source = None
    group = key if row.get("group") in (None, "") else read_key(row, "group", bad)
    meta = read_meta(row, ITEM_FIELDS, bad)
    if key is None:
        return None
    return key, orjson.dumps(context).decode(), source, group, meta, orjson.dumps(references).decode(), len(references)


def check_output(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    item, system = read_key(row, "item", bad), read_key(row, "system", bad)
    text, step, meta = read_text(row, "text", bad), read_step(row, "step", bad), read_meta(row, OUTPUT_FIELDS, bad)
    return None if item is None or system is None else (item, system, step, text, meta)


def check_dialogue(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    key = read_key(row, "id", bad)
    turns = read_texts(row, "turns", bad)
    if row.get("turns") is None:
        bad("turns", _("turns is missing."))
    system = None if row.get("system") in (None, "") else read_key(row, "system", bad)
    speakers = None
    if row.get("speakers") is not None:
        speakers = read_texts(row, "speakers", bad)
        if len(speakers) != len(turns):
            bad(
                "speakers",
                _(
                    "There are %(speakers)d speakers for %(turns)d turns. Name one for each turn.",
                    speakers=len(speakers),
                    turns=len(turns),
                ),
            )
    meta = read_meta(row, DIALOGUE_FIELDS, bad)
    if key is None:
        return None
    encoded = None if speakers is None else orjson.dumps(speakers).decode()
    return key, system, orjson.dumps(turns).decode(), encoded, meta


def check_rating(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    dialogue = item = system = None
    if row.get("dialogue") not in (None, ""):
        dialogue = read_key(row, "dialogue", bad)
        if row.get("item") or row.get("system"):
            bad("dialogue", _("A rating is of a dialogue, or of an item's output by a system, not of both."))
        if row.get("step") is not None:
            bad("step", _("A rating of a whole dialogue has no step."))
    else:
        item, system = read_key(row, "item", bad), read_key(row, "system", bad)
    rater, aspect = read_key(row, "rater", bad, MAX_NAME), read_key(row, "aspect", bad, MAX_NAME)
    value = row.get("value")
    if value is None:
        bad("value", _("value is missing. Leave out rows without a value."))
    number = 0.0 if value is None else read_number(value, "value", bad) or 0.0
    step, simulated, meta = read_step(row, "step", bad), read_flag(row, bad), read_meta(row, RATING_FIELDS, bad)
    if rater is None or aspect is None or (dialogue is None and (item is None or system is None)):
        return None
    return item, system, step, dialogue, rater, aspect, number, simulated, meta


def check_comparison(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    item, a = read_key(row, "item", bad), read_key(row, "system_a", bad)
    other, reference, b = row.get("system_b"), None, None
    if type(other) is dict:
        reference = other.get("reference")
        if len(other) != 1 or type(reference) is not int or not 0 <= reference < 2**31:
            bad("system_b", _('Write {"reference": n}, where n is the position of the reference, counted from 0.'))
            reference = 0
        if row.get("step_b") is not None:
            bad("step_b", _("A reference has no step."))
    else:
        b = read_key(row, "system_b", bad)
    rater, aspect = read_key(row, "rater", bad, MAX_NAME), read_key(row, "aspect", bad, MAX_NAME)
    verdict = row.get("verdict")
    if verdict not in VERDICTS:
        bad("verdict", _("verdict must be one of %(choices)s.", choices=", ".join(VERDICTS)))
    step_a, step_b = read_step(row, "step_a", bad), read_step(row, "step_b", bad)
    if a is not None and a == b and step_a == step_b:
        bad("system_b", _("An output is compared with itself. Name two systems, or two steps of a system."))
    simulated, meta = read_flag(row, bad), read_meta(row, COMPARISON_FIELDS, bad)
    if None in (item, a, rater, aspect) or (b is None and reference is None):
        return None
    return item, a, step_a, b, step_b, reference, rater, aspect, verdict, simulated, meta


def check_pair(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    return read_text(row, "query", bad), read_text(row, "response", bad), read_meta(row, PAIR_FIELDS, bad)


# ---- what people wrote ------------------------------------------------------------------------------------

SET_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
#: Words that are used in page addresses in the position of a set's name.
RESERVED_SETS = frozenset({"annotate", "select-references", "compare", "merge", "curves", "enhanced"})
MAX_POSITION = 2**31 - 1
#: Represents a text outside the set.
NO_PLACE = -1
_REFERENCE = frozenset(COLUMNS["references"])
_FLAGS = ("relevant", "edited", "counted", "unscored", "improved")
_WHOLE = ("annotator_group", "number", "round", "references_before")
_NUMBERS = ("score_before", "score_after", "seconds")
_WORDS = (
    "annotator", "arm", "set", "decision", "why", "candidate", "text_before", "text", "signature", "created_at",
)  # fmt: skip


def _set_name(row: Row, bad: Bad) -> str | None:
    name = read_key(row, "set", bad, 63)
    if name is None:
        return None
    if name == "original":
        bad("set", _("The set “original” is the references in items.jsonl. Leave its rows out here."))
    elif name in RESERVED_SETS:
        bad(
            "set",
            _(
                "“%(name)s” is the address of a page, so it cannot name a reference set. Choose another name.",
                name=name,
            ),
        )
    elif not SET_NAME.fullmatch(name):
        bad("set", _("set must consist of at most 63 lower-case letters, digits, hyphens and underscores."))
    else:
        return name
    return None


def _submission(value: Row, where: str, bad: Bad) -> str | None:
    submission = value.get("submission")
    if type(submission) is str and 0 < len(submission) <= MAX_NAME:
        return submission
    bad(
        where,
        _("submission must be the id of the submission, a text of at most %(n)d characters.", n=MAX_NAME),
    )
    return None


def check_reference(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    name, item, text = _set_name(row, bad), read_key(row, "item", bad), read_text(row, "text", bad)
    position, place = row.get("position"), NO_PLACE
    if type(position) is int and 0 <= position <= MAX_POSITION:
        place = position
    elif position is not None:
        bad("position", _("position must be a whole number from 0, or null for a text that is not in the set."))
        return None
    written, submission, origin = row.get("written"), None, None
    if type(written) is dict:
        submission = _submission(written, "written", bad)
        origin = encode_ordered(written, WRITTEN)
    elif written is not None:
        bad("written", _("written must be an object that says who wrote the text and how."))
    elif place == NO_PLACE:
        bad(
            "position",
            _("position is missing. Only a text with “written” can be outside the set (withdrawn, waiting)."),
        )
        return None
    meta = read_meta(row, _REFERENCE, bad)
    if name is None or item is None or (place == NO_PLACE and submission is None):
        return None
    return name, item, place, text, meta, origin, submission


def check_attempt(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    campaign, item = read_key(row, "campaign", bad, MAX_NAME), read_key(row, "item", bad)
    submission = _submission(row, "submission", bad)
    kinds: tuple[tuple[tuple[str, ...], tuple[type, ...], str], ...] = (
        (_WORDS, (str,), gettext_noop("text")), (_FLAGS, (bool,), gettext_noop("true or false")),
        (_WHOLE, (int,), gettext_noop("a whole number")), (_NUMBERS, (int, float), gettext_noop("a number")),
        (("candidate_source",), (dict,), gettext_noop("an object")),
    )  # fmt: skip
    for names, types, what in kinds:
        for name in names:
            value = row.get(name)
            if value is None:
                continue
            if type(value) not in types:
                bad(name, _("%(name)s must be %(type)s, or null.", name=name, type=_(what)))
            elif names is _NUMBERS:
                read_number(value, name, bad)
            elif names is _WHOLE and not is_whole(value):
                bad(name, _("%(name)s is too large.", name=name))
    if campaign is None or item is None or submission is None:
        return None
    columns = COLUMNS["attempts"]
    return campaign, item, submission, encode_ordered({**dict.fromkeys(columns), **row}, columns)


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("systems", ("key", "kind", "meta"), ("key",), check_system),
        Kind("items", ("key", "context", "source", "grp", "meta", "refs", "nrefs"), ("key",), check_item),
        Kind("dialogues", ("key", "system", "turns", "speakers", "meta"), ("key",), check_dialogue),
        Kind("outputs", ("item", "system", "step", "text", "meta"), ("item", "system", "step"), check_output),
        Kind(
            "ratings",
            ("item", "system", "step", "dialogue", "rater", "aspect", "value", "simulated", "meta"),
            ("item", "system", "step", "dialogue", "rater", "aspect"),
            check_rating,
        ),
        Kind(
            "comparisons",
            ("item", "a", "step_a", "b", "step_b", "reference", "rater", "aspect", "verdict", "simulated", "meta"),
            ("item", "a", "step_a", "b", "step_b", "reference", "rater", "aspect"),
            check_comparison,
        ),
        Kind("corpus", ("query", "response", "meta"), (), check_pair),
        Kind(
            "references",
            ("name", "item", "position", "text", "meta", "written", "submission"),
            ("name", "item", "position"),
            check_reference,
        ),
        Kind("attempts", ("campaign", "item", "submission", "row"), ("submission",), check_attempt),
        Kind("filters", ("key", "row"), ("key",), check_filter),
        Kind("campaigns", ("key", "row"), ("key",), check_campaign),
        Kind("score_sets", ("key", "row"), ("key",), check_score_set),
        Kind(
            "scores",
            ("name", "item", "system", "step", "value", "note", "in_training", "empty", "truncated", "seen"),
            ("name", "item", "system", "step"),
            check_score,
        ),
        Kind("judge_answers", ("evaluator", "request", "sample", "model", "row"), (), check_judge_answer),
    )
}


# ---- dataset.json -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AspectRow:
    """`low` and `high` are None for an aspect that is used in comparisons only. Not `is_whole`: its scale is faulty."""

    name: str
    low: float | None
    high: float | None
    meta: dict[str, Any] = field(default_factory=dict)
    is_whole: bool = True


@dataclass(frozen=True)
class DatasetRow:
    """`fields`: those of name, task, lang, licence, source and notes that the file has."""

    fields: dict[str, str]
    aspects: list[AspectRow]
    meta: dict[str, Any]


_FIELDS = {"name": 200, "task": 40, "lang": 20, "licence": 100_000, "source": 100_000, "notes": 1_000_000}
#: The check for characters in single-line fields; source and notes may have several lines.
_CHARACTERS = {"name": explain_hidden, "task": explain_hidden, "lang": explain_language, "licence": explain_line}


def check_dataset(document: Row, bad: Bad) -> DatasetRow:
    fields = {}
    for name, longest in _FIELDS.items():
        value = document.get(name)
        if value is None:
            continue
        if type(value) is not str or len(value) > longest:
            bad(
                name,
                _("%(name)s must be text of at most %(longest)s characters.", name=name, longest=f"{longest:,}"),
            )
        elif name in _CHARACTERS and (why := _CHARACTERS[name](value)):
            bad(name, f"{name}: {why}")
        else:
            fields[name] = value
    if "task" in fields and not fields["task"].strip():
        bad("task", _("task is empty. Name the task of the systems, such as dialogue or data-to-text."))
    rows = document.get("aspects", [])
    if type(rows) is not list:
        bad("aspects", _('aspects must be a list, such as [{"name": "quality", "min": 1, "max": 5}].'))
        rows = []
    aspects = [aspect for row in rows if (aspect := _aspect(row, bad)) is not None]
    names = [aspect.name for aspect in aspects]
    for name in sorted({name for name in names if names.count(name) > 1}):
        bad("aspects", _("The aspect “%(name)s” occurs twice.", name=name))
    known = {*_FIELDS, "aspects"}
    return DatasetRow(fields, aspects, {name: value for name, value in document.items() if name not in known})


def _aspect(row: Any, bad: Bad) -> AspectRow | None:
    if type(row) is not dict:
        bad("aspects", _('Each aspect must be an object, such as {"name": "quality", "min": 1, "max": 5}.'))
        return None
    name = read_key(row, "name", bad, MAX_NAME)
    low, high = row.get("min"), row.get("max")
    for bound in (low, high):
        if bound is not None and type(bound) not in (int, float):
            bad("aspects", _("min and max of “%(name)s” must be numbers or null.", name=name))
        elif (
            bound is None
            or read_number(bound, _("min or max of “%(name)s”", name=name), lambda _name, why: bad("aspects", why))
            is not None
        ):
            continue
        return None if name is None else AspectRow(name, None, None, {}, False)
    is_whole = (low is None) == (high is None) and not (low is not None and high is not None and low > high)
    if not is_whole:
        bad("aspects", _("min and max of “%(name)s” must both be null, or min must not be above max.", name=name))
    if name is None:
        return None
    meta = {key: value for key, value in row.items() if key not in ("name", "min", "max")}
    return AspectRow(name, None if low is None else float(low), None if high is None else float(high), meta, is_whole)
