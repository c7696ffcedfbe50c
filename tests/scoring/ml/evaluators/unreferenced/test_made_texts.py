"""The input of the generator and the translators in training, and the position of their texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scoring.ml.errors import TrainingDataError
from scoring.ml.evaluators.unreferenced.conversations import Conversation, Sets, collect_conversations
from scoring.ml.evaluators.unreferenced.outputs import collect_outputs, join_groups
from scoring.ml.evaluators.unreferenced.samples import (
    KINDS,
    GeneratedTexts,
    SampleOptions,
    TextTable,
    draw_replies,
    make_samples,
)
from scoring.ml.evaluators.unreferenced.tools import Tools
from scoring.ml.evaluators.unreferenced.training import _made_texts
from scoring.ml.registry import get_entry
from scoring.ml.training.job import FitJob
from scoring.ml.types import Dataset, Dialogue, Item, Output, System

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


def with_outputs() -> Dataset:
    """Dialogues, and outputs of two machines and a person to items, one of a dialogue's own group."""
    items = (Item("i1", ("hi",), group="a"), Item("i2", ("so",)), Item("i3", ("no",), group="other"))
    outputs = [Output(item.id, system, f"{system.upper()}  to {item.id}") for item in items for system in ("m1", "p")]
    return Dataset(
        "d", systems=(System("p", "human"),), items=items, outputs=(*outputs, Output("i3", "m2", " ")),
        dialogues=(Dialogue("a", ("hi you", "hi there")), Dialogue("b", ("what", "this"))),
    )  # fmt: skip


def test_machine_outputs_are_false_replies_of_other_conversations(job: FitJob) -> None:
    options = job.entry.parse_train_options("recommended", {"own_outputs": True, "pool_size": 10})
    talk = collect_conversations(with_outputs(), lower_case=True)
    given = replace(job, train=with_outputs(), options=options)
    sets = Sets(talk[1:], talk[:1], ())
    train, dev = (collect_outputs(given, sets, name) for name in ("train", "dev"))
    # The item of the held-out dialogue belongs to the held-out part.
    assert train == [("item:i2", "m1 to i2"), ("other", "m1 to i3")]
    assert dev == [("dialogue:a", "m1 to i1")]
    assert join_groups(("dialogue:b",), train) == ("dialogue:b", "item:i2", "other")
    own_dev = replace(given, dev=with_outputs())
    assert [text for _group, text in collect_outputs(own_dev, sets, "dev")] == ["m1 to i1", "m1 to i2", "m1 to i3"]
    table = TextTable()
    made = GeneratedTexts({(1, 1): "generated"}, outputs=[("dialogue:a", "m1 to i1"), ("other", "m1 to i3")])
    samples = make_samples(talk, table, SampleOptions(KINDS["all"]), rng=job.rng, made=made)
    pool = samples.pools["model_false"]
    assert [table.texts[row] for row in pool.rows] == ["generated", "m1 to i1", "m1 to i3"]
    assert pool.groups.tolist() == [1, 0, 2]
    # Only the outputs of other groups are drawn.
    rows = [draw_replies(samples, np.random.default_rng(seed)).rows[0, -1] for seed in range(20)]
    assert {table.texts[row] for row in rows} == {"generated", "m1 to i3"}


def test_without_machine_outputs_the_option_is_refused(job: FitJob) -> None:
    options = job.entry.parse_train_options("recommended", {"own_outputs": True})
    empty = replace(job, train=replace(with_outputs(), outputs=()), options=options)
    with pytest.raises(TrainingDataError, match="own_outputs needs outputs of machine systems"):
        collect_outputs(empty, Sets([], [], ()), "train")
    assert collect_outputs(job, Sets([], [], ()), "train") == []
