"""The rows of the Delta table with a transparent evaluator: the corrupted reply of each row, and the count of lower
scores."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.ml.evaluators.unreferenced.conversations import Conversation
from scoring.ml.evaluators.unreferenced.delta import _row, delta_table
from scoring.ml.evaluators.unreferenced.tools import Tools
from scoring.ml.types import Record
from tests.scoring.ml.evaluators.unreferenced.by_function import ByFunction

#: Every turn of a conversation begins with the conversation's own word.
TALK = [
    Conversation(f"c{number}", f"g{number}", tuple(f"{word} says {turn}" for turn in ("one", "two", "three")))
    for number, word in enumerate(("ant", "bee", "cat", "dog"))
]


def belongs(record: Record) -> float:
    """1 for a text with the same conversation word as its context, whatever the rest; else 0."""
    return float(record.context[0].split()[0] in record.text.split())


def test_random_kinds_come_from_another_conversation() -> None:
    answered: list[list[str]] = []

    def generate(contexts: list[str]) -> list[str]:
        answered.append(list(contexts))
        return [f"{context.split()[0]} answers" for context in contexts]

    tools = Tools(generate, lambda texts: [f"{text} back" for text in texts])
    rows = {row.kind: row for row in delta_table(ByFunction(belongs), TALK, tools=tools)}
    assert {row.n for kind, row in rows.items() if not kind.startswith("word_")} == {8}
    # Its own reply, paraphrased or generated: no difference, and no lower score.
    for kind in ("ground_truth", "back_translation", "model_false"):
        assert (rows[kind].mean, rows[kind].sd, rows[kind].below) == (0, 0, 0), kind
    # From another conversation: human, generated, back-translated.
    for kind in ("rand_utt", "rand_model", "rand_back"):
        assert (rows[kind].mean, rows[kind].sd, rows[kind].below) == (1, 0, 1), kind
    # A model sees everything before the reply, and nothing of the reply.
    own, _ = answered
    assert own == ["\n".join(one.turns[:turn]) for one in TALK for turn in (1, 2)]


def test_row_by_hand() -> None:
    """Gaps of 0, 1/2, -1/2 and 1; one reply has no score."""
    found = _row("word_drop", np.array([0.0, 0.5, -0.5, 1.0, np.nan]))
    assert (found.n, found.mean, found.group) == (4, 0.25, "syntactic negative")
    # Squared differences from .25: .0625 + .0625 + .5625 + .5625 = 1.25, divided by 3.
    assert found.sd == pytest.approx((1.25 / 3) ** 0.5)
    # An equal score is not lower.
    assert found.below == 0.5
