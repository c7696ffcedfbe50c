"""Speakers of the turns of a context."""

from __future__ import annotations

import pytest

from evalapp.common.turns import name_speakers

TALK = ["Any plans?", "I am thinking of hiking.", "Where?"]


def test_two_speakers_alternate() -> None:
    assert name_speakers(TALK, "dialogue") == list(zip("ABA", TALK, strict=True))


def test_given_names_replace_the_letters() -> None:
    turns = ["Anna: Any plans?", "Dr. O’Neil: None: I stay.", "Anna: Two\nlines."]
    assert name_speakers(turns, "dialogue") == [
        ("Anna", "Any plans?"),
        ("Dr. O’Neil", "None: I stay."),
        ("Anna", "Two\nlines."),
    ]
    assert name_speakers(["Anna: Hi", "Bo: Yo", "Anna: "], "dialogue")[2] == ("Anna", "")


@pytest.mark.parametrize(
    "turns",
    [
        ["Anna: Any plans?", "None."],  # not every turn has a name
        ["Note: it rains.", "Warning: it pours.", "Hint: stay in."],  # no one speaks again
        ["12:30 works.", "3: fine."],  # numbers are no names
    ],
)
def test_colons_that_follow_no_name_stay_in_the_text(turns: list[str]) -> None:
    assert name_speakers(turns, "dialogue") == list(zip("ABA", turns, strict=False))


@pytest.mark.parametrize(("turns", "task"), [(TALK[:1], "dialogue"), (TALK, "story"), ([], "dialogue")])
def test_single_turns_and_other_tasks_have_no_speakers(turns: list[str], task: str) -> None:
    assert name_speakers(turns, task) == [("", turn) for turn in turns]
