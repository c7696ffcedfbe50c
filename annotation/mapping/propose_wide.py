"""Proposes which columns of a wide table have outputs and ratings, by their names and contents."""

from __future__ import annotations

from evalapp.translation import gettext as _

from .cell_names import (
    read_aspect_name,
    read_output_name,
    read_rating_name,
    read_systems_of_ratings,
)
from .draft import Draft
from .mapping import FIELDS, Cells
from .names import ASPECTS, OUTPUT_WORDS, REMARKS, is_language_name, normalize, strip_number
from .profile import Profile
from .propose_ratings import can_be_rating, is_free_rating, list_aspects

_TEXTS = ("text", "list", "messages")


def find_output_names(draft: Draft) -> dict[str, str]:
    """Column -> system, of columns that are named as outputs. Numbers are outputs if another one has texts."""
    named = {name: system for name in draft.table.columns if (system := read_output_name(name))}
    kinds = {name: draft.profiles[name].kind for name in named}
    if not any(kind in _TEXTS for kind in kinds.values()):
        return {}
    return {name: system for name, system in named.items() if kinds[name] in (*_TEXTS, "number", "date")}


def list_prose(draft: Draft) -> list[str]:
    """Columns of texts without a usual name."""
    named = {column for name in FIELDS["wide"] for column in draft.candidates.get(name, ())}
    return [
        name
        for name, one in draft.profiles.items()
        if one.is_prose and name not in named and not draft.is_taken(name) and normalize(name) not in REMARKS
    ]


def propose_wide_cells(draft: Draft) -> None:
    systems = _propose_outputs(draft)
    _propose_ratings(draft, systems)
    if not systems and not draft.ratings and not any(one.member == "outputs" for one in draft.questions):
        options = [name for name in draft.table.columns if not draft.is_taken(name)]
        draft.ask("outputs", _("Which columns have the outputs of systems?"), options)


def _propose_outputs(draft: Draft) -> list[str]:
    """Proposes the columns with outputs; returns the names of the systems."""
    found = {name: system for name, system in find_output_names(draft).items() if not draft.is_taken(name)}
    others = [name for name in list_prose(draft) if name not in found]
    others += [name for name in draft.list_free("text") if name not in (*found, *others)]
    if found:
        systems = {system: name for name, system in found.items()}
        if len(systems) < len(found):
            twice = [name for name, system in found.items() if systems[system] != name]
            twice += [systems[found[name]] for name in twice]
            draft.ask("outputs", _("Several columns have outputs of the same system. Which ones are imported?"), twice)
        cells = [Cells(column=name, system=system) for system, name in systems.items()]
        draft.set_outputs(cells, _("Texts, under the name of a system with a word for an output."))
        if others:
            _ask_for_others(draft, others)
        return list(systems)
    generic = [name for name in others if normalize(strip_number(name)) in OUTPUT_WORDS]
    if len(generic) > 1 or (generic and len(others) > 1):
        listed = ", ".join(f"“{name}”" for name in others)
        draft.ask("outputs", _("Which of the columns %(columns)s have outputs, and of what systems?", columns=listed),
                  others)  # fmt: skip
        return []
    others += _list_constant(draft, others)
    if languages := [name for name in others if is_language_name(name)]:
        _ask_for_languages(draft, languages, others)
        others = [name for name in others if name not in languages]
    if others:
        draft.set_outputs(
            [Cells(column=name, system=name) for name in others],
            _("Different texts in every row, without a usual name: a system each."),
        )
    return others


def _list_constant(draft: Draft, others: list[str]) -> list[str]:
    """Texts that are the same in many rows, such as refusals, are outputs if there are ratings of the column's name;
    otherwise it is asked."""
    columns = [name for name, one in draft.profiles.items() if _repeats(one)]
    columns = [name for name in columns if not _is_named(draft, name) and name not in others]
    ratings = [name for name, one in draft.profiles.items() if can_be_rating(one)]
    rated = [name for name in columns if any(read_rating_name(one, [name]) for one in ratings if one != name)]
    if others and (asked := [name for name in columns if name not in rated]):
        _ask_for_others(draft, asked)
    return rated


def _repeats(profile: Profile) -> bool:
    is_text = profile.kind == "text" and profile.words >= 2 and profile.filled > 1
    return is_text and (profile.distinct == 1 or not (profile.is_prose or profile.is_label))


def _is_named(draft: Draft, name: str) -> bool:
    fields = FIELDS["wide"]
    return (
        draft.is_taken(name)
        or normalize(name) in REMARKS
        or any(name in draft.candidates.get(one, ()) for one in fields)
    )


def _ask_for_others(draft: Draft, others: list[str]) -> None:
    listed = ", ".join(f"“{name}”" for name in others)
    if {"context", "source"} & draft.columns.keys():
        draft.ask(
            "outputs", _("What are the texts in %(columns)s? They are not imported unless you say so.", columns=listed)
        )
    else:
        message = _("Which column has the prompts or source texts? The texts in %(columns)s are not imported unless "
                    "you say what they are.", columns=listed)  # fmt: skip
        draft.ask("columns.context", message, others, others[0] if len(others) == 1 else "")


def _ask_for_languages(draft: Draft, languages: list[str], others: list[str]) -> None:
    """Columns named after languages are parallel texts, and no systems."""
    if len(languages) < len(others):
        _ask_for_others(draft, languages)
        return
    listed = ", ".join(f"“{name}”" for name in languages)
    message = _("The names of %(columns)s are languages. Which column has the source texts, which ones have outputs, "
                "and of what system?", columns=listed)  # fmt: skip
    draft.ask("outputs", message, languages)


def _propose_ratings(draft: Draft, systems: list[str]) -> None:
    """Proposes the columns of ratings that name a system; asks for the system of others."""
    names = [name for name, one in draft.profiles.items() if is_free_rating(draft, one)]
    known = systems
    if not systems:
        known = list(dict.fromkeys(read_systems_of_ratings(names).values()))
    read = [cells for name in names if (cells := read_rating_name(name, known)) is not None]
    counts = {one.aspect: sum(other.aspect == one.aspect for other in read) for one in read}
    sure = [one for one in read if _is_sure(draft, one, counts, known)]
    if sure:
        draft.set_ratings(sure, _("Numbers, or words for them, under the names of a system and an aspect."))
    aspects = list_aspects(draft)
    left = [one.column for one in aspects] + [one for one in draft.list_free("value") if one in names]
    left = list(dict.fromkeys(one for one in left if not draft.is_taken(one)))
    if len(systems) == 1 and aspects and not sure:
        draft.set_ratings(
            [Cells(column=one.column, system=systems[0], aspect=one.aspect, rater=one.rater) for one in aspects],
            _("Ratings of the only system, under names of aspects."),
        )
    elif left:
        _ask_for_systems(draft, left, systems, is_alone=not sure)
    if draft.ratings:
        draft.propose_judges("")


def _is_sure(draft: Draft, cells: Cells, counts: dict[str, int], systems: list[str]) -> bool:
    """A short name such as `A` or `1` can be in any column's name, so its aspect must occur for other systems, too.
    Words are ratings only if they have a usual scale or the name of an aspect."""
    if len(cells.system) < 2 and len(systems) > 1 and counts[cells.aspect] < 2:
        return False
    profile = draft.profiles[cells.column]
    return profile.kind != "text" or counts[cells.aspect] > 1 or normalize(cells.aspect) in ASPECTS


def _ask_for_systems(draft: Draft, columns: list[str], systems: list[str], is_alone: bool) -> None:
    """Ratings without the name of a system. A rating likely rates the output to its left."""
    order = draft.table.columns
    outputs = {one.column: one.system for one in draft.outputs}
    for column in columns:
        left = [name for name in order[: order.index(column)] if name in outputs]
        message = _("Whose texts do the ratings in “%(column)s” rate? Without an answer they are not imported.")
        is_between = len(columns) > 1 and len(columns) == len(systems)
        suggestion = outputs[left[-1]] if left and is_between else ""
        draft.ask("ratings", message % {"column": column}, systems, suggestion)
    if is_alone and not draft.outputs:
        draft.set_ratings([cells for name in columns if (cells := read_aspect_name(name))], _("Names of aspects."))
