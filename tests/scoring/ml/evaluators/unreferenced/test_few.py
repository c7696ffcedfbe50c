"""Few dialogues: the held-out part is large enough to draw false replies from, or training is refused at the start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scoring.ml import TrainingDataError, fit, plan
from scoring.ml.evaluators.unreferenced.conversations import collect_conversations, groups_in, split_conversations
from scoring.ml.types import Dataset


def first(dialogues: Dataset, n: int) -> Dataset:
    return replace(dialogues, dialogues=dialogues.dialogues[:n])


@pytest.mark.parametrize("n", [10, 11, 12, 14, 15, 19, 20])
def test_at_least_two_groups_are_held_out(dialogues: Dataset, n: int) -> None:
    for seed in range(5):
        train, dev = split_conversations(collect_conversations(first(dialogues, n), False), seed)
        assert len(groups_in(dev)) == 2
        assert len(groups_in(train)) == n - 2


@pytest.mark.parametrize("name", ["maude", "ruber"])
def test_replies_of_others_are_drawn_for_the_smallest_held_out_part(
    encoder: str, dialogues: Dataset, name: str
) -> None:
    """Once, its loss was a mean over nothing, which ended the training after its first epoch."""
    found = fit(name, first(dialogues, 10), encoder=encoder, negatives="semantics", epochs=1)
    assert found.record.examples["held-out true replies"] > 0
    assert 0 <= found.record.metrics["below"] <= 1


def test_held_out_part_of_one_conversation_is_refused_before_training(encoder: str, dialogues: Dataset) -> None:
    few, one = first(dialogues, 12), replace(dialogues, dialogues=dialogues.dialogues[12:13])
    with pytest.raises(TrainingDataError, match="hold out two or more"):
        plan("maude", few, dev=one, encoder=encoder, negatives="semantics")
    assert plan("maude", few, dev=one, encoder=encoder, negatives="all").steps
