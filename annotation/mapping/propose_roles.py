"""Finds items, systems, outputs and ratings of a table with an output per row by how its values depend on each other,
where the names of its columns do not say it: a system occurs once per item and rater, outputs differ by system within
an item, and ratings of an output differ by rater."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evalapp.translation import gettext as _

from .cell_names import is_property_name, list_tokens, read_rater_name, strip_question
from .draft import Draft
from .mapping import Cells
from .names import NAMES, REMARKS, find_fields, normalize, strip_scale
from .profile import Profile
from .propose_ratings import is_free_rating
from .propose_wide import find_output_names
from .values import is_empty

_MOST_SYSTEMS, _MOST_SYSTEM_WORDS = 50, 8
_MOST_POINTS = 11
#: The names of columns with outputs or judgements of two systems.
_PAIRS = ("system_a", "system_b", "text_a", "text_b", "chosen", "rejected")


def find_roles(draft: Draft) -> None:
    """Set the columns of system, output and context that no name tells, if the values of the table tell all."""
    if draft.table.format == "lines" or draft.candidates.keys() & set(_PAIRS):
        return
    if not (key := _find_key(draft)):
        return
    system = _find_system(draft, key)
    rater = "" if system or draft.candidates.get("rater") else _find_rater(draft, key)
    if rater:
        draft.candidates["rater"] = [rater]
        system = _find_system(draft, key)
    outputs = [*draft.candidates.get("text", ()), *find_output_names(draft)] or _list_outputs(draft, key, system)
    outputs = list(dict.fromkeys(outputs))
    is_found = bool(system) and len(outputs) == 1 and not _depends(draft, [key], outputs[0])
    if not is_found or not _depends(draft, [key, system], outputs[0]):
        if rater:
            del draft.candidates["rater"]
        return
    if rater:
        draft.set("rater", rater, _("Few names, several for each output."))
    if system not in draft.candidates.get("system", ()):
        draft.candidates["system"] = [system]
        draft.set("system", system, _("Few names, each once per item and rater."))
    if outputs[0] not in draft.candidates.get("text", ()):
        draft.candidates["text"] = outputs
        draft.set("text", outputs[0], _("Texts that differ by system within an item."))
    _find_inputs(draft, key)


def list_judged(draft: Draft) -> list[Cells]:
    """Columns of numbers that differ by rater for the same output, by the item, system and rater of the draft."""
    # Without a column of ids, rows with the same input are one item.
    item = next((draft.columns[name] for name in ("item", "context", "source") if name in draft.columns), ())
    output = [*item[:1], *draft.columns.get("system", ())[:1]]
    raters = draft.candidates.get("rater", [])
    if len(output) < 2 or len(raters) != 1:
        return []
    return [
        Cells(column=name, aspect=strip_question(strip_scale(name)))
        for name, one in draft.profiles.items()
        if one.kind == "number" and one.distinct <= _MOST_POINTS and is_free_rating(draft, one)
        and not find_fields(name) and not is_property_name(name)
        and not _depends(draft, output, name) and not _depends(draft, raters, name)
    ]  # fmt: skip


def _find_key(draft: Draft) -> str:
    """The column whose values are items in several rows each: one of ids, else one of inputs, else the first texts."""
    named = [name for field in ("item", "context", "source") for name in draft.candidates.get(field, ())]
    texts = [name for name, one in draft.profiles.items() if not named and one.kind == "text" and one.words >= 4]
    return next((name for name in (*named, *texts) if _repeats(draft.profiles[name])), "")


def _repeats(profile: Profile) -> bool:
    return 1 < profile.distinct <= profile.filled / 2


def _find_system(draft: Draft, key: str) -> str:
    """The only column of a few names that occur once per item and rater; empty if none is, or several are."""
    if named := draft.candidates.get("system", []):
        return named[0] if len(named) == 1 else ""
    raters = draft.candidates.get("rater", [])[:1]
    found = [
        name
        for name in _list_labels(draft, key)
        if not (raters and _depends(draft, raters, name)) and _is_unique(draft, [key, name, *raters])
    ]
    return found[0] if len(found) == 1 else ""


def _find_rater(draft: Draft, key: str) -> str:
    """The only column of names that, with a system, are unique for an item, and on which no output depends."""
    labels = _list_labels(draft, key)
    found = [
        rater
        for rater in labels
        for system in labels
        if rater != system and _is_unique(draft, [key, system, rater])
        and _list_outputs(draft, key, system) and not _list_outputs(draft, key, rater)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else ""


def _list_labels(draft: Draft, key: str) -> list[str]:
    """Columns of a few names that occur for several items and do not follow from the item."""
    return [
        name
        for name, one in draft.profiles.items()
        if _is_free(draft, name) and one.kind == "text" and one.words <= _MOST_SYSTEM_WORDS
        and _repeats(one) and one.distinct <= _MOST_SYSTEMS
        and not _depends(draft, [key], name) and _occurs_again(draft, key, name)
    ]  # fmt: skip


def _list_outputs(draft: Draft, key: str, system: str) -> list[str]:
    return [
        name
        for name, one in draft.profiles.items()
        if system and name != system and _is_free(draft, name) and one.kind == "text" and one.words >= 2
        and not _depends(draft, [key], name) and _depends(draft, [key, system], name)
    ]  # fmt: skip


def _find_inputs(draft: Draft, key: str) -> None:
    """Texts that are the same in all rows of an item: references by a word of their names, or the context."""
    texts = [
        name
        for name, one in draft.profiles.items()
        if _is_free(draft, name) and one.kind == "text" and one.words >= 2 and _depends(draft, [key], name)
    ]
    references = [name for name in texts if {token.word for token in list_tokens(name)} & set(NAMES["references"])]
    if references:
        draft.candidates.setdefault("references", []).extend(references)
    others = [name for name in texts if name not in references]
    if len(others) == 1 and not draft.candidates.keys() & {"context", "source"}:
        draft.candidates["context"] = others
        draft.set("context", others[0], _("Texts that are the same in all rows of an item."))


def _is_free(draft: Draft, name: str) -> bool:
    is_named = any(name in names for names in draft.candidates.values()) or normalize(name) in REMARKS
    return not (is_named or draft.is_taken(name) or read_rater_name(name))


def _depends(draft: Draft, columns: Sequence[str], name: str) -> bool:
    """Whether rows that agree in the columns agree in the other one as well."""
    known: dict[tuple[str, ...], str] = {}
    for _number, row in draft.table.sample:
        key = tuple(str(row.get(column)) for column in columns)
        if not is_empty(row.get(name)) and known.setdefault(key, str(row[name])) != str(row[name]):
            return False
    return True


def _occurs_again(draft: Draft, key: str, name: str) -> bool:
    """Whether each value of a column occurs for at least two items, as a name does and a text does not."""
    pairs = {(str(row.get(name)), str(row.get(key))) for _number, row in draft.table.sample}
    return min(Counter(value for value, _key in pairs).values(), default=0) > 1


def _is_unique(draft: Draft, columns: Sequence[str]) -> bool:
    keys = [tuple(str(row.get(column)) for column in columns) for _number, row in draft.table.sample]
    return len(set(keys)) == len(keys)
