"""Tokens that are read for the card of a training."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from scoring.ml.training.estimate import count_held_out_tokens
from scoring.ml.types import Comparison, Dataset, Item, Output, Rating


@pytest.fixture
def dev() -> Dataset:
    """Two items, each with a context of 10 words and a reference of 10; one output of 20 words each, and one without
    judgements. A text has 2 + 1.3 tokens per word."""
    ten, twenty = " ".join(["word"] * 10), " ".join(["word"] * 20)
    outputs = [Output(item, system, twenty) for item in ("a", "b") for system in ("x", "y")]
    ratings = [Rating(item=item, system="x", rater="r", aspect="quality", value=1.0) for item in ("a", "b")]
    items = [Item(name, (ten,), None, (ten,), name) for name in ("a", "b")]
    return Dataset("d", items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings))


def job(dev: Dataset | None, **entry: object) -> SimpleNamespace:
    known = {"level": "segment", "needs": ("encoder",), "compares": False, **entry}
    return SimpleNamespace(dev=dev, aspect=None, entry=SimpleNamespace(**known), encoder=None, options={})


def test_scoring_the_held_out_part_for_the_card_is_included(dev):
    one = (2 + 26) + (2 + 13) + (2 + 13)
    assert count_held_out_tokens(job(dev)) == pytest.approx(2 * one + 10 * one)  # the rated ones, and ten fixtures
    assert count_held_out_tokens(job(replace(dev, ratings=dev.ratings[:1]))) == pytest.approx(11 * one)


def test_scoring_compared_texts_for_the_card_is_included(dev):
    """Two people compared the outputs for the same item, one compared an output with a reference: a comparative
    evaluator reads two texts in both orders, and again as often for rated ones."""
    one = (2 + 26) + (2 + 13) + (2 + 13)
    compared = [Comparison("a", "x", "y", rater, "quality", "a") for rater in ("r", "s")]
    compared.append(Comparison("b", "x", None, "r", "quality", "a", reference_b=0))
    both = replace(dev, comparisons=tuple(compared))
    alone = replace(both, ratings=())
    assert count_held_out_tokens(job(alone)) == pytest.approx((2 + 10) * one)
    assert count_held_out_tokens(job(alone, compares=True)) == pytest.approx((4 + 10) * one)
    assert count_held_out_tokens(job(both)) == pytest.approx((2 + 2 + 10) * one)
    assert count_held_out_tokens(job(replace(alone, comparisons=alone.comparisons[2:]))) == 0


def test_evaluators_without_card_scores_take_no_extra_time(dev):
    assert count_held_out_tokens(job(None)) == 0
    assert count_held_out_tokens(job(replace(dev, ratings=()))) == 0
    assert count_held_out_tokens(job(dev, level="references")) == 0
    assert count_held_out_tokens(job(dev, needs=())) == 0
