"""Checks rows of the result files of an export: score sets and scores, rater filters, descriptions of campaigns of
other installations, and raw answers of judges."""

import json
import re
from datetime import datetime
from typing import Any, NamedTuple

from evalapp.names import explain_breaking
from evalapp.translation import gettext as _

from .faults import Row
from .fields import MAX_NAME, Bad, is_whole, read_key, read_number, read_step, read_text, read_texts
from .writer import COLUMNS, encode_ordered, encode_plain

MAX_SIGNATURE, MAX_NOTE = 500, 200
EVALUATOR_KINDS = ("sentinel", "baseline", "trained", "combined", "external", "judge")
#: Columns of a score by another program that say which score set it belongs to, and their longest texts.
_EXTERNAL_TEXTS = {"aspect": MAX_NAME, "reference_set": 63, "signature": 400}
#: Options of a judge that may have several lines.
_JUDGE_TEXTS = frozenset({"question", "labels", "guidelines", "template_text"})
#: The note of a row without a score.
NO_SCORE = "the file has no score"
#: Begins the name of a set that its rows describe; no name in a file has it.
_EXTERNAL = "\x1f"
_SCORE_SET_TEXTS = {"name": 60, "aspect": 100, "references": 63, "signature": 700, "short_signature": 500, "data": 16}


def check_filter(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    """A rater filter."""
    name, raters = read_key(row, "name", bad, 63), read_texts(row, "raters", bad)
    if name is not None and not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
        bad("name", _("name must consist of at most 63 lower-case letters, digits and hyphens."))
    if not raters:
        bad("raters", _("raters must name at least one rater."))
    _one_line("raters", raters, bad)
    _moments(row, ("created_at", "withdrawn_at"), bad)
    columns = COLUMNS["filters"]
    encoded = encode_ordered({**dict.fromkeys(columns), **row, "raters": sorted(set(raters))}, columns)
    return None if name is None else (name, encoded)


def check_campaign(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    """The description of a campaign of another installation."""
    name = read_key(row, "campaign", bad, MAX_NAME)
    if type(row.get("kind")) is not str:
        bad("kind", _("kind must be text."))
    if type(row.get("told")) is not dict:
        bad("told", _("told must be an object."))
    return None if name is None else (name, encode_ordered(row, COLUMNS["campaigns"]))


def check_score_set(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    key, evaluator = read_key(row, "id", bad, 400), read_key(row, "evaluator", bad, MAX_NAME)
    for name, longest in _SCORE_SET_TEXTS.items():
        value = row.get(name, "")
        if type(value) is not str or len(value) > longest:
            bad(name, _("%(name)s must be text of at most %(longest)s characters.", name=name, longest=longest))
        else:
            _one_line(name, value, bad)
    for name in ("name", "signature", "short_signature"):
        if not row.get(name):
            bad(name, _("%(name)s is missing.", name=name))
    count = row.get("n_in_training", 0)
    if type(count) is not int or not 0 <= count < 2**31:
        bad("n_in_training", _("n_in_training must be a whole number from 0."))
    if row.get("kind") not in EVALUATOR_KINDS:
        bad("kind", _("kind must be one of %(choices)s.", choices=", ".join(EVALUATOR_KINDS)))
    if type(row.get("options", {})) is not dict:
        bad("options", _("options must be an object."))
    else:
        _one_line("options", _leave_out_texts(row.get("kind"), row.get("options", {})), bad)
    if type(row.get("systems", [])) is not list:
        bad("systems", _("systems must be a list."))
    _one_line("systems", row.get("systems"), bad)
    if row.get("judge") is not None and type(row["judge"]) is not dict:
        bad("judge", _("%(name)s must be %(type)s, or null.", name="judge", type=_("an object")))
    _moments(row, ("scored_at",), bad)
    if row.get("scored_at") is None:
        bad("scored_at", _("scored_at is missing: only complete score sets are exported."))
    return None if key is None or evaluator is None else (key, encode_ordered(row, COLUMNS["score_sets"]))


def _leave_out_texts(kind: Any, options: Row) -> Row:
    """Return the options without the texts of a judge, which are those of campaigns and templates."""
    return {name: value for name, value in options.items() if kind != "judge" or name not in _JUDGE_TEXTS}


class ExternalSet(NamedTuple):
    """What the rows of scores by another program say about their set. `evaluator` is its name as given."""

    evaluator: str
    aspect: str
    references: str
    signature: str
    higher_is_better: bool

    def as_name(self) -> str:
        """The name of the set in the staging file, which `read_external_set` reads."""
        return _EXTERNAL + json.dumps(self)


def read_external_set(name: str) -> ExternalSet | None:
    """The set with that name; None for the name of a row of `score_sets`."""
    return ExternalSet(*json.loads(name[1:])) if name.startswith(_EXTERNAL) else None


def check_score(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    """A score of a set that `score_sets` describes, or of an `evaluator` of another program."""
    if row.get("evaluator") is not None:
        return _check_external(row, bad)
    if row.get("set") is None and ("score" in row or "value" not in row):
        bad("evaluator", _("evaluator is missing. Name the metric or program that made the score."))
        return None
    name, item, system = read_key(row, "set", bad, 400), read_key(row, "item", bad), read_key(row, "system", bad)
    value, seen = row.get("value"), row.get("input")
    if value is not None:
        value = read_number(value, "value", bad)
    note = _read_note(row, bad)
    if seen is not None and not is_whole(seen):
        bad("input", _("input must be the hash of the scored input, a whole number, or null."))
        seen = None
    flags = []
    for flag in ("in_training", "empty", "truncated"):
        if row.get(flag) is not None and type(row[flag]) is not bool:
            bad(flag, _("%(flag)s must be true or false.", flag=flag))
        flags.append(int(row.get(flag) is True))
    step = read_step(row, "step", bad)
    if name is None or item is None or system is None:
        return None
    return name, item, system, step, value, note, *flags, seen


def _check_external(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    """A score by another program. Without `item` it is the score of the whole system. If lower is better, the score is
    negated, so that higher is better in every table."""
    evaluator, system, step = (
        read_key(row, "evaluator", bad, MAX_NAME),
        read_key(row, "system", bad),
        read_step(row, "step", bad),
    )
    item = None if row.get("item") in (None, "") else read_key(row, "item", bad)
    texts = {}
    for name, longest in _EXTERNAL_TEXTS.items():
        given = row.get(name)
        texts[name] = "" if given in (None, "") else read_key(row, name, bad, longest) or ""
    if row.get("set") is not None:
        bad("set", _("A row has either a set from score_sets or an evaluator, not both."))
    if row.get("value") is not None:
        bad("value", _("Write the number in the column “score” in rows with an evaluator."))
    upwards = row.get("higher_is_better")
    if upwards is not None and type(upwards) is not bool:
        bad("higher_is_better", _("higher_is_better must be true or false."))
    score = row.get("score")
    value = None if score is None else read_number(score, "score", bad)
    if value is not None and upwards is False:
        value = 0.0 - value
    note = _read_note(row, bad) or ("" if score is not None else NO_SCORE)
    if evaluator is None or system is None or (item is None and row.get("item") not in (None, "")):
        return None
    chosen = ExternalSet(evaluator, texts["aspect"], texts["reference_set"], texts["signature"], upwards is not False)
    return chosen.as_name(), item, system, step, value, note, 0, 0, 0, None


def check_judge_answer(row: Row, bad: Bad) -> tuple[Any, ...] | None:
    """A raw answer of a language model, found by the hash of its request. What it is about and how it was read are not
    stored: they follow from the texts."""
    evaluator, model = read_key(row, "evaluator", bad, MAX_NAME), read_key(row, "model", bad, 200)
    request = row.get("request")
    if type(request) is not str or not re.fullmatch("[0-9a-f]{64}", request):
        bad("request", _("%(name)s must be a hash of 64 hexadecimal digits.", name="request"))
        return None
    text, finish = read_text(row, "text", bad), row.get("finish") or ""
    refused, tokens = row.get("refused") or False, row.get("tokens") or []
    if type(finish) is not str:
        bad("finish", _("%(name)s must be %(type)s, or null.", name="finish", type=_("text")))
    if type(refused) is not bool:
        bad("refused", _("%(name)s must be %(type)s, or null.", name="refused", type=_("true or false")))
    if type(tokens) is not list or not all(map(_is_token, tokens)):
        bad("tokens", _("tokens must be a list, such as %(example)s.", example='[["4", [["4", -0.1], ["5", -2.5]]]]'))
    kept: Row = {"text": text, "finish": finish, "refused": refused, "tokens": tokens}
    for name in ("sample", "characters", "prompt_tokens", "completion_tokens"):
        kept[name] = row.get(name)
        if kept[name] is not None and (type(kept[name]) is not int or not 0 <= kept[name] < _MOST_COUNTED[name]):
            bad(name, _("%(name)s must be %(type)s, or null.", name=name, type=_("a whole number")))
    for name in ("cost", "seconds"):
        kept[name] = 0.0 if row.get(name) is None else read_number(row[name], name, bad)
    if evaluator is None or model is None:
        return None
    return evaluator, request, kept["sample"] or 0, model, encode_plain(kept)


#: Limits of whole numbers of an answer.
_MOST_COUNTED = {"sample": 1 << 15, "characters": 1 << 31, "prompt_tokens": 1 << 31, "completion_tokens": 1 << 31}


def _is_token(token: Any) -> bool:
    """Whether a value is a token with log-probabilities of its alternatives: `["4", [["4", -0.1], ["5", -2.5]]]`."""
    if type(token) is not list or len(token) != 2 or type(token[1]) is not list:
        return False
    pairs = [pair for pair in token[1] if type(pair) is list and len(pair) == 2]
    texts = [token[0], *(pair[0] for pair in pairs)]
    return (
        len(pairs) == len(token[1])
        and all(type(text) is str for text in texts)
        and all(type(pair[1]) in (int, float) and -1e6 < pair[1] < 1 for pair in pairs)
    )


def _read_note(row: Row, bad: Bad) -> str:
    note = row.get("note") or ""
    if type(note) is str and len(note) <= MAX_NOTE:
        return note
    bad("note", _("note must be text of at most %(n)d characters.", n=MAX_NOTE))
    return ""


def _one_line(field: str, value: Any, bad: Bad) -> None:
    """Reject line breaks, control characters and changes of direction in a text and in all nested texts."""
    left = [value]
    while left:
        part = left.pop()
        if type(part) is dict:
            left += [*part, *part.values()]
        elif type(part) is list:
            left += part
        elif type(part) is str and (why := explain_breaking(part)):
            bad(field, _("%(field)s contains %(why)s", field=field, why=why))
            return


def _moments(row: Row, names: tuple[str, ...], bad: Bad) -> None:
    for name in names:
        value = row.get(name)
        if value is None:
            continue
        try:
            aware = datetime.fromisoformat(value).tzinfo is not None
        except (TypeError, ValueError):
            aware = False
        if not aware:
            bad(
                name,
                _("%(name)s must be a date and time with time zone, such as 2026-05-01T12:00:00+00:00.", name=name),
            )
