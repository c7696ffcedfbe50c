"""The rows of the Delta table by an evaluator one can see through: whose reply is broken, and what counts as below."""

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
    """1 for a text whose conversation's word is that of its context, however the rest of it reads; else 0."""
    return float(record.context[0].split()[0] in record.text.split())


def test_random_kinds_are_made_of_another_conversation() -> None:
    answered: list[list[str]] = []

    def generate(contexts: list[str]) -> list[str]:
        answered.append(list(contexts))
        return [f"{context.split()[0]} answers" for context in contexts]

    tools = Tools(generate, lambda texts: [f"{text} back" for text in texts])
    rows = {row.kind: row for row in delta_table(ByFunction(belongs), TALK, tools=tools)}
    assert {row.n for kind, row in rows.items() if not kind.startswith("word_")} == {8}
    # Its own, said otherwise or by a model: no difference, and nothing is below.
    for kind in ("ground_truth", "back_translation", "model_false"):
        assert (rows[kind].mean, rows[kind].sd, rows[kind].below) == (0, 0, 0), kind
    # Of another conversation: by people, by a model, translated back.
    for kind in ("rand_utt", "rand_model", "rand_back"):
        assert (rows[kind].mean, rows[kind].sd, rows[kind].below) == (1, 0, 1), kind
    # What a model is shown is all that stood before the reply, and nothing of it.
    own, _ = answered
    assert own == ["\n".join(one.turns[:turn]) for one in TALK for turn in (1, 2)]


def test_a_row_by_hand() -> None:
    """Gaps of 0, 1/2, -1/2 and 1; one reply has no score."""
    found = _row("word_drop", np.array([0.0, 0.5, -0.5, 1.0, np.nan]))
    assert (found.n, found.mean, found.group) == (4, 0.25, "syntactic negative")
    # Squares of the differences from .25: .0625 + .0625 + .5625 + .5625 = 1.25, by 3.
    assert found.sd == pytest.approx((1.25 / 3) ** 0.5)
    # An equal score is not below.
    assert found.below == 0.5
