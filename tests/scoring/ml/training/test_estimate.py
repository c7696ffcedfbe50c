"""The rule for the time of a training: operations over a measured rate."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from scoring.ml.encoders.source import find_encoder
from scoring.ml.training import estimate
from scoring.ml.training.estimate import held_out_seconds
from scoring.ml.types import Comparison, Dataset, Item, Output, Rating


def test_operations_by_hand(tiny_family, monkeypatch):
    """Width 32, inner 48, 2 layers: 2 (4 * 32^2 + 2 * 32 * 48) = 14,336 weights; DistilBERT names them otherwise."""
    monkeypatch.setattr(estimate, "layer_speed", lambda device, width: estimate.Speed(2e6, 1e6, 5e5))
    for family in ("bert", "distilbert"):
        source = find_encoder(tiny_family(family))
        assert estimate.layer_parameters(source) == 14_336
        seconds = estimate.training_seconds(source, 1000, "cpu")
        assert seconds == pytest.approx(6 * 14_336 * 1000 / 1e6)
        assert estimate.scoring_seconds(source, 1000, "cpu") == pytest.approx(seconds / 3)


def test_the_speed_is_measured_once_and_leaves_random_numbers_alone():
    import torch

    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)
    speed = estimate.layer_speed("cpu", 48)
    assert torch.equal(torch.rand(3), wanted)
    assert estimate.layer_speed("cpu", 48) is speed
    assert speed.best >= speed.usual >= speed.worst > 0


def test_the_range_grows_with_what_else_the_machine_does(monkeypatch):
    """0.4 of 60 s to three times; where the best step was 1.2 times as fast as the median and the slowest quarter took
    1.25 times as long, 0.4 / 1.2 to 3 * 1.25; not more than three times either way."""
    monkeypatch.setattr(estimate, "_speeds", {})
    assert estimate.estimate_range(60) == (24, 180)
    assert estimate.estimate_range(60, measured=False) == (12, 360)
    estimate._speeds["cpu", 32] = estimate.Speed(1.2, 1.0, 0.8)
    assert estimate.estimate_range(60) == pytest.approx((20, 225))
    estimate._speeds["cpu", 48] = estimate.Speed(20.0, 1.0, 0.01)
    assert estimate.estimate_range(60) == pytest.approx((8, 540))


@pytest.fixture
def dev(monkeypatch) -> Dataset:
    """Two items, of which each has a context of 10 words and a reference of 10; an output of 20 words each, and one of
    which nobody thought anything. Seconds are tokens here: 2 + 1.3 of a word."""
    monkeypatch.setattr(estimate, "scoring_seconds", lambda encoder, n_tokens, device="auto": n_tokens)
    ten, twenty = " ".join(["word"] * 10), " ".join(["word"] * 20)
    outputs = [Output(item, system, twenty) for item in ("a", "b") for system in ("x", "y")]
    ratings = [Rating(item=item, system="x", rater="r", aspect="quality", value=1.0) for item in ("a", "b")]
    items = [Item(name, (ten,), None, (ten,), name) for name in ("a", "b")]
    return Dataset("d", items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings))


def job(dev: Dataset | None, **entry: object) -> SimpleNamespace:
    known = {"level": "segment", "needs": ("encoder",), "compares": False, **entry}
    return SimpleNamespace(dev=dev, aspect=None, entry=SimpleNamespace(**known), encoder=None, options={})


def test_the_held_out_part_is_scored_for_the_card(dev):
    one = (2 + 26) + (2 + 13) + (2 + 13)
    assert held_out_seconds(job(dev)) == pytest.approx(2 * one + 10 * one)  # the rated ones, and ten fixtures
    assert held_out_seconds(job(replace(dev, ratings=dev.ratings[:1]))) == pytest.approx(11 * one)


def test_compared_texts_are_scored_for_the_card_too(dev):
    """Two people compared the outputs of one item, one compared one with a reference: two texts are read, by what
    compares each pair from both sides; and as often again what was also rated."""
    one = (2 + 26) + (2 + 13) + (2 + 13)
    compared = [Comparison("a", "x", "y", rater, "quality", "a") for rater in ("r", "s")]
    compared.append(Comparison("b", "x", None, "r", "quality", "a", reference_b=0))
    both = replace(dev, comparisons=tuple(compared))
    alone = replace(both, ratings=())
    assert held_out_seconds(job(alone)) == pytest.approx((2 + 10) * one)
    assert held_out_seconds(job(alone, compares=True)) == pytest.approx((4 + 10) * one)
    assert held_out_seconds(job(both)) == pytest.approx((2 + 2 + 10) * one)
    assert held_out_seconds(job(replace(alone, comparisons=alone.comparisons[2:]))) == 0


def test_what_scores_nothing_afterwards_takes_no_time_for_it(dev):
    assert held_out_seconds(job(None)) == 0
    assert held_out_seconds(job(replace(dev, ratings=()))) == 0
    assert held_out_seconds(job(dev, level="references")) == 0
    assert held_out_seconds(job(dev, needs=())) == 0
