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
    """Width 32, inner 48, 2 layers: 2 (4 * 32^2 + 2 * 32 * 48) = 14,336 weights; DistilBERT names them differently."""
    monkeypatch.setattr(estimate, "layer_speed", lambda device, width: estimate.Speed(1e6, 3.0))
    for family in ("bert", "distilbert"):
        source = find_encoder(tiny_family(family))
        assert estimate.layer_parameters(source) == 14_336
        seconds = estimate.training_seconds(source, 1000, "cpu")
        assert seconds == pytest.approx(6 * 14_336 * 1000 / (0.5 * 1e6))
        assert estimate.scoring_seconds(source, 1000, "cpu") == pytest.approx(seconds / 3)


def test_speed_is_measured_once_and_preserves_the_random_state():
    import torch

    torch.manual_seed(1)
    wanted, threads = torch.rand(3), torch.get_num_threads()
    torch.manual_seed(1)
    speed = estimate.layer_speed("cpu", 48)
    assert torch.equal(torch.rand(3), wanted)
    assert estimate.layer_speed("cpu", 48) is speed
    assert speed.rate > 0
    assert speed.slowed >= 1
    assert torch.get_num_threads() == threads


def test_range_grows_with_other_load_on_the_machine(monkeypatch):
    """0.4 to 3.5 times 60 s, twice as wide without a measurement; if other work slows steps by a factor of 1.6, the
    maximum is 1.6 times higher, but never more than four times."""
    monkeypatch.setattr(estimate, "_speeds", {})
    assert estimate.estimate_range(60) == (24, 210)
    assert estimate.estimate_range(60, measured=False) == (12, 420)
    estimate._speeds["cpu", 32] = estimate.Speed(1.0, 1.6)
    assert estimate.estimate_range(60) == (24, 336)
    estimate._speeds["cpu", 48] = estimate.Speed(1.0, 20.0)
    assert estimate.estimate_range(60) == (24, 840)


#: Trainings of the default encoder, seed 13, on two cores: data, estimate in seconds, processor seconds of both cores.
#: Half the latter is the duration on an idle machine.
MEASURED = [
    ("adem, usr_topicalchat, 360 outputs", 24.0, 21.6), ("adem, the same again", 24.0, 29.1),
    ("maude, grade_convai2, 80 conversations", 10.3, 12.7), ("maude, 120 conversations", 12.3, 29.9),
    ("shared-bert, usr_topicalchat, 120 outputs, 2 epochs", 26.3, 69.5), ("shared-bert, the same again", 26.3, 82.4),
    ("shared-bert, 192 outputs, 2 epochs", 37.8, 89.4),
    ("comparative, pandalm, 60 pairs, 4 steps", 25.7, 148.5), ("comparative, the same, 6 steps", 38.7, 192.8),
    ("maude, 80 conversations again", 9.5, 18.6), ("shared-bert, 120 outputs, a third time", 24.3, 91.6),
]  # fmt: skip


@pytest.mark.parametrize(("training", "seconds", "processor_seconds"), MEASURED)
def test_measured_trainings_are_in_their_range(monkeypatch, training, seconds, processor_seconds):
    monkeypatch.setattr(estimate, "_speeds", {})
    low, high = estimate.estimate_range(seconds)
    assert low <= processor_seconds / 2 <= high, training


def test_trainings_under_other_load_are_in_their_range(monkeypatch):
    """Clock seconds of the last two, where steps took 2.2 and 2.3 times their processor time."""
    for seconds, slowed, took in ((9.5, 2.2, 27.1), (24.3, 2.33, 124.1)):
        monkeypatch.setattr(estimate, "_speeds", {("cpu", 384): estimate.Speed(1.0, slowed)})
        low, high = estimate.estimate_range(seconds)
        assert low <= took <= high


def test_measured_training_of_ream_is_in_its_range(monkeypatch):
    """dailydialog_multiref, 48 items, 672 sets, 1 epoch: estimate 12.7 s, 96.6 processor seconds of two cores; its
    estimate comes from a rule, not from this machine. Trainings of perception were not measured to the end."""
    monkeypatch.setattr(estimate, "_speeds", {})
    low, high = estimate.estimate_range(12.7, measured=False)
    assert low <= 96.6 / 2 <= high


@pytest.fixture
def dev(monkeypatch) -> Dataset:
    """Two items, each with a context of 10 words and a reference of 10; one output of 20 words each, and one without
    judgements. Here seconds are tokens: 2 + 1.3 per word."""
    monkeypatch.setattr(estimate, "scoring_seconds", lambda encoder, n_tokens, device="auto": n_tokens)
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
    assert held_out_seconds(job(dev)) == pytest.approx(2 * one + 10 * one)  # the rated ones, and ten fixtures
    assert held_out_seconds(job(replace(dev, ratings=dev.ratings[:1]))) == pytest.approx(11 * one)


def test_scoring_compared_texts_for_the_card_is_included(dev):
    """Two people compared the outputs for the same item, one compared an output with a reference: a comparative
    evaluator reads two texts in both orders, and again as often for rated ones."""
    one = (2 + 26) + (2 + 13) + (2 + 13)
    compared = [Comparison("a", "x", "y", rater, "quality", "a") for rater in ("r", "s")]
    compared.append(Comparison("b", "x", None, "r", "quality", "a", reference_b=0))
    both = replace(dev, comparisons=tuple(compared))
    alone = replace(both, ratings=())
    assert held_out_seconds(job(alone)) == pytest.approx((2 + 10) * one)
    assert held_out_seconds(job(alone, compares=True)) == pytest.approx((4 + 10) * one)
    assert held_out_seconds(job(both)) == pytest.approx((2 + 2 + 10) * one)
    assert held_out_seconds(job(replace(alone, comparisons=alone.comparisons[2:]))) == 0


def test_evaluators_without_card_scores_take_no_extra_time(dev):
    assert held_out_seconds(job(None)) == 0
    assert held_out_seconds(job(replace(dev, ratings=()))) == 0
    assert held_out_seconds(job(dev, level="references")) == 0
    assert held_out_seconds(job(dev, needs=())) == 0
