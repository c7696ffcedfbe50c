"""Proposes which columns of a table have ratings, by their names and contents, and asks about those that may."""

from __future__ import annotations

from evalapp.translation import gettext as _

from .cell_names import (
    is_grade_name,
    is_rank_name,
    is_rating_name,
    read_aspect_name,
    read_named_raters,
    read_rater_name,
)
from .draft import Draft
from .mapping import Cells
from .names import ASPECTS, REMARKS, find_fields, guess_numbers, normalize
from .numbers import find_sign, parse_number
from .profile import Profile

#: The scale of German grades.
_BEST_GRADE, _WORST_GRADE = 1, 6


def list_aspects(draft: Draft) -> list[Cells]:
    """Columns of ratings whose names are an aspect, maybe with a rater."""
    found = []
    for name, profile in draft.profiles.items():
        cells = read_aspect_name(name) if is_free_rating(draft, profile) else None
        if cells is not None and (profile.kind != "text" or normalize(cells.aspect) in ASPECTS):
            found.append(cells)
    return found


def list_named_raters(draft: Draft) -> list[Cells]:
    """Columns of ratings whose names are an aspect and the name of a rater."""
    return read_named_raters([one for one, profile in draft.profiles.items() if is_free_rating(draft, profile)])


def list_raters(draft: Draft) -> list[Cells]:
    """Columns of ratings whose names are those of raters, such as `Annotator 1`."""
    return [
        Cells(column=name, rater=rater)
        for name, profile in draft.profiles.items()
        if is_free_rating(draft, profile) and (rater := read_rater_name(name))
    ]


def can_be_rating(profile: Profile) -> bool:
    return profile.kind in ("number", "numbers") or profile.is_label


def is_free_rating(draft: Draft, profile: Profile) -> bool:
    return can_be_rating(profile) and not draft.is_taken(profile.name)


def ask_for_words(draft: Draft) -> None:
    """Asks about columns of yes and no, or of grades: ratings, or properties of the rows."""
    for name, profile in draft.profiles.items():
        numbers = guess_numbers(profile.list_labels()) if profile.kind == "text" else None
        if numbers is None or draft.is_taken(name) or find_fields(name) or normalize(name) in REMARKS:
            continue
        shown = ", ".join(f"{word} = {number}" for word, number in numbers.items())
        message = _("Are the answers in “%(column)s” ratings? If so, name their system and aspect, and the number "
                    "of each word, such as %(numbers)s. Without an answer they are not imported.",
                    column=name, numbers=shown)  # fmt: skip
        draft.ask("ratings", message, (name,), shown)


def ask_for_numbers(draft: Draft) -> None:
    """Asks about columns of numbers with a word for ratings in their names, as `politeness_score`."""
    asked = {option for question in draft.questions for option in (*question.options, question.suggestion)}
    names = [name for name, one in draft.profiles.items() if one.kind in ("number", "numbers")]
    names = [name for name in names if not draft.is_taken(name) and name not in asked and is_rating_name(name)]
    if names:
        message = _("Are the numbers in %(columns)s ratings? If so, name their aspect, their rater, and their "
                    "system unless a column names it. Without an answer they are not imported.",
                    columns=", ".join(f"“{name}”" for name in names))  # fmt: skip
        draft.ask("ratings", message, names)


def ask_for_ranks(draft: Draft) -> None:
    """Asks about ratings that are ranks: of ratings the higher ones are better."""
    columns = [*(one.column for one in draft.ratings), *draft.columns.get("value", ())]
    if ranks := [name for name in columns if is_rank_name(name)]:
        message = _("Is 1 the best in %(columns)s? Ratings are better the higher they are: turn the numbers round in "
                    "the file, so that the best has the highest.",
                    columns=", ".join(f"“{name}”" for name in ranks))  # fmt: skip
        draft.ask("ratings", message, ranks)
    for name in columns:
        if is_grade_name(name) and (turned := _turn_grades(draft.profiles[name])):
            shown = ", ".join(f"{text} = {number:g}" for text, number in turned.items())
            message = _("Is 1 the best in “%(column)s”, as in German grades? Ratings are better the higher they are: "
                        "state the number of each grade, such as %(numbers)s.", column=name, numbers=shown)  # fmt: skip
            draft.ask("values.value", message, (), shown)


def _turn_grades(profile: Profile) -> dict[str, float]:
    """A number for each grade in the cells, the highest for the best; none if the cells are no German grades."""
    signs = {text: find_sign(text) for text in profile.texts}
    grades = {text: parse_number(text, sign or ".") for text, sign in signs.items() if sign in ("", ".", ",")}
    is_scale = grades and all(_BEST_GRADE <= grade <= _WORST_GRADE for grade in grades.values())
    best_first = sorted(grades.items(), key=lambda pair: pair[1]) if is_scale else []
    return {text: round(_BEST_GRADE + _WORST_GRADE - grade, 2) for text, grade in best_first}


def ask_for_ratings(draft: Draft) -> None:
    """Asks which columns have the ratings, if raters are named and no ratings are found."""
    is_open = any(one.member in ("ratings", "outputs", "shape") for one in draft.questions)
    if is_open or draft.ratings or "value" in draft.columns or not (raters := draft.list_free("rater")):
        return
    message = _("“%(column)s” names raters, but no column of ratings is recognized. Which columns have them? Without "
                "an answer no judgements are imported.", column=raters[0])  # fmt: skip
    options = [name for name in draft.table.columns if not draft.is_taken(name) and name not in raters]
    draft.ask("ratings", message, options)
