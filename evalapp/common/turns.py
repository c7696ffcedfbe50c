"""Speakers of the turns of a dialogue, for display. Contexts are stored as texts without speakers."""

import re
from collections.abc import Sequence

_NAMED = re.compile(r"([^\W\d_][\w .'’-]{0,29}):(?:\s(.*))?", re.DOTALL)
_LETTERS = "AB"


def name_speakers(turns: Sequence[str], task: str) -> list[tuple[str, str]]:
    """(speaker, text) of each turn: the names before a colon if every turn has one and one of them speaks again,
    otherwise A and B in turn. Without speakers (empty names): a single turn, and tasks other than dialogue."""
    if task != "dialogue" or len(turns) < 2:
        return [("", turn) for turn in turns]
    matches = [_NAMED.fullmatch(turn.strip()) for turn in turns]
    named = [(match[1], (match[2] or "").lstrip()) for match in matches if match]
    if len(named) == len(turns) and (len(turns) == 2 or len({name for name, _ in named}) < len(turns)):
        return named
    return [(_LETTERS[place % 2], turn) for place, turn in enumerate(turns)]
