"""The training set as numbers: pairing of replies and composition of batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scoring.ml.evaluators.unreferenced.conversations import (
    Conversation,
    collect_conversations,
    context_turns,
    split_conversations,
)
from scoring.ml.evaluators.unreferenced.samples import (
    KINDS,
    GeneratedTexts,
    SampleOptions,
    Samples,
    TextTable,
    cut_batches,
    draw_replies,
    make_samples,
    select_contexts,
)
from scoring.ml.types import Dataset, Dialogue, Item, Record

TALK = [
    Conversation("a", "ga", ("hi you", "hi there friend", "how are you today", "fine and you my friend")),
    Conversation("b", "gb", ("good morning all", "a very good morning")),
    Conversation("c", "gc", ("what is it", "it is late now", "then we go home", "yes"), first=3),
]


def made(flat: bool = False, *, texts: GeneratedTexts | None = None, variants: int = 2) -> tuple[Samples, TextTable]:
    table = TextTable()
    samples = make_samples(
        TALK, table, SampleOptions(KINDS["all"], flat, variants),
        rng=lambda purpose: np.random.default_rng(len(purpose)), made=texts,
    )  # fmt: skip
    return samples, table


def context(samples: Samples, table: TextTable, row: int) -> list[str]:
    start = samples.starts[row]
    return [table.texts[text] for text in samples.context_rows[start : start + samples.lengths[row]]]


def test_every_turn_from_the_first_reply_on_answers_all_earlier_ones() -> None:
    samples, table = made()
    assert [table.texts[row] for row in samples.reply] == [*TALK[0].turns[1:], TALK[1].turns[1], "yes"]
    assert context(samples, table, 2) == list(TALK[0].turns[:3])
    assert context(samples, table, 4) == list(TALK[2].turns[:3])
    assert samples.conversation.tolist() == [0, 0, 0, 1, 2]
    flat, flat_table = made(flat=True)
    assert context(flat, flat_table, 2) == [" ".join(TALK[0].turns[:3])]
    assert flat_table.left[flat.context_rows[2]]
    assert not flat_table.left[flat.reply[2]]


def test_corrupted_replies_have_variants_and_are_omitted_without_one() -> None:
    samples, table = made(variants=3)
    assert set(samples.broken) == {"word_drop", "word_order", "word_repeat"}
    for rows in samples.broken.values():
        assert rows.shape == (5, 3)
        assert (rows[4] == -1).all()  # "yes" has one word
        assert all(table.texts[row] != "fine and you my friend" for row in rows[2])
    drawn = draw_replies(samples, np.random.default_rng(1))
    assert drawn.targets.tolist() == [1, 0, 0, 0, 0]
    assert drawn.weights[4].tolist() == [1, 0, 0, 0, 1]
    assert drawn.weights[0].tolist() == [4, 1, 1, 1, 1]
    assert draw_replies(samples, np.random.default_rng(1), positive_weight=1.0).weights[0].tolist() == [1, 1, 1, 1, 1]


def test_random_replies_come_from_other_groups_and_are_drawn_each_epoch() -> None:
    samples, _ = made()
    seen: list[set[int]] = [set() for _ in range(5)]
    for epoch in range(60):
        drawn = draw_replies(samples, np.random.default_rng(epoch))
        for place in range(5):
            if drawn.weights[place, 4]:
                seen[place].add(int(drawn.rows[place, 4]))
    groups_by_reply = dict(zip(samples.reply.tolist(), samples.group.tolist(), strict=True))
    for place, rows in enumerate(seen):
        assert len(rows) > 1
        assert all(groups_by_reply[row] != samples.group[place] for row in rows)


def test_generated_texts_become_false_and_true_replies() -> None:
    texts = GeneratedTexts(
        generated={(0, 1): "i am a model", (1, 1): "so am i"},
        back_translated={(0, 2): "how do you do today", (1, 1): "a good morning indeed"},
    )
    samples, table = made(texts=texts)
    assert samples.kinds == ("word_drop", "word_order", "word_repeat", "rand_utt", "model_false", "rand_back")
    drawn = draw_replies(samples, np.random.default_rng(2))
    assert drawn.rows.shape == (5, 7)
    # The only generated reply from a group other than b's is that of a.
    assert table.texts[drawn.rows[3, 5]] == "i am a model"
    with_positives = draw_replies(samples, np.random.default_rng(2), paraphrased=1.0)
    assert with_positives.targets.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    assert [bool(w) for w in with_positives.weights[:, 1]] == [False, True, False, True, False]
    assert table.texts[with_positives.rows[1, 1]] == "how do you do today"
    assert with_positives.weights[1, :2].sum() == pytest.approx(with_positives.weights[1, 2:].sum())


@pytest.mark.parametrize("sort", [True, False])
def test_batches_hold_every_reply_once(sort: bool) -> None:
    samples, _ = made()
    for whole in (True, False):
        batches = cut_batches(samples, 2, np.random.default_rng(3), whole=whole, sort=sort)
        assert sorted(np.concatenate(batches).tolist()) == [0, 1, 2, 3, 4]
        if whole:
            owners = [set(samples.conversation[batch].tolist()) for batch in batches]
            assert sum(len(own) for own in owners) == 3  # no conversation is split
        else:
            assert max(len(batch) for batch in batches) == 2


def test_conversation_is_read_once_for_all_its_replies() -> None:
    samples, _ = made()
    found = select_contexts(samples, np.array([2, 0, 4]))
    assert found.lengths.tolist() == [3, 3]
    assert found.position.tolist() == [3, 1, 3]
    assert found.owner.tolist() == [0, 0, 1]
    apart = select_contexts(replace(samples, shared=False), np.array([2, 0]))
    assert apart.lengths.tolist() == [3, 1]
    assert apart.rows.tolist() == [*samples.context_rows[:3].tolist(), samples.context_rows[0]]


def test_conversations_come_from_dialogues_or_else_from_references() -> None:
    data = Dataset(
        "d",
        items=(
            Item("i1", context=("Your persona: I row.", "Hi  THERE"), references=("hello you", " "), group="g"),
            Item("i2", source="A Source", references=("an answer",)),
            Item("i3", references=("no context",)),
        ),
        dialogues=(Dialogue("x", ("one", " ", "two")), Dialogue("w", ("alone",))),
    )
    assert collect_conversations(data, True) == [Conversation("x", "dialogue:x", ("one", "two"))]
    without = replace(data, dialogues=())
    assert collect_conversations(without, True) == [
        Conversation("i1:0", "g", ("hi there", "hello you"), 1),
        Conversation("i2:0", "item:i2", ("a source", "an answer"), 1),
    ]
    assert collect_conversations(without, False)[0].turns == ("Hi THERE", "hello you")
    assert context_turns(Record("t", context=("a", " b "), source="s"), True) == ("a", "b")


def test_groups_are_held_out_whole() -> None:
    many = [Conversation(f"c{n}", f"g{n // 3}", ("a b", "c d")) for n in range(60)]
    train, dev = split_conversations(many, 13)
    assert len(dev) == 6
    assert not {one.group for one in train} & {one.group for one in dev}
    assert split_conversations(list(reversed(many)), 13)[1] == list(reversed(dev))
