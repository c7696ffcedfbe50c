"""The input of the generator and the translators in training, and the position of their texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from scoring.ml.evaluators.unreferenced.conversations import Conversation
from scoring.ml.evaluators.unreferenced.samples import KINDS
from scoring.ml.evaluators.unreferenced.tools import Tools
from scoring.ml.evaluators.unreferenced.training import _made_texts
from scoring.ml.registry import get_entry
from scoring.ml.training.job import FitJob
from scoring.ml.types import Dataset

TALK = [
    Conversation("a", "ga", ("hi you", "hi there", "how are you")),
    Conversation("b", "gb", ("what is it", "it is late", "then home", "yes"), first=3),
]


@pytest.fixture
def job(tmp_path: Path) -> FitJob:
    entry = get_entry("maude")
    return FitJob(
        entry, Dataset("none"), None, "recommended", entry.parse_train_options("recommended", {}), 13, tmp_path
    )  # fmt: skip


def test_generator_sees_only_the_context_of_the_reply(job: FitJob) -> None:
    """Never the true reply, which would be learned as a false one in other words."""
    shown: list[str] = []
    turned: list[str] = []

    def generate(contexts: list[str]) -> list[str]:
        shown.extend(contexts)
        return [f"ANSWER  to {len(context.splitlines())} turns" for context in contexts]

    def back(texts: list[str]) -> list[str]:
        turned.extend(texts)
        return [" ".join(reversed(text.split())) for text in texts]

    made = _made_texts(job, TALK, Tools(generate, back), KINDS["all"], "train")
    assert shown == ["hi you", "hi you\nhi there", "what is it\nit is late\nthen home"]
    assert turned == ["hi there", "how are you", "yes"]
    assert made.generated == {
        (0, 1): "answer to 1 turns", (0, 2): "answer to 2 turns", (1, 3): "answer to 3 turns",
    }  # fmt: skip
    assert made.back_translated == {(0, 1): "there hi", (0, 2): "you are how", (1, 3): "yes"}
    # A blank text has no position.
    silent = _made_texts(job, TALK, Tools(lambda texts: [" "] * len(texts)), KINDS["all"], "dev")
    assert (silent.generated, silent.back_translated) == ({}, {})


def test_unneeded_texts_are_not_generated(job: FitJob) -> None:
    def never(texts: list[str]) -> list[str]:
        raise AssertionError("asked for texts")

    made = _made_texts(job, TALK, Tools(never, never), KINDS["syntax"], "train")
    assert (made.generated, made.back_translated) == ({}, {})
