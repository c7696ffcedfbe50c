"""Verdicts calibrated on held-out human verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scoring.ml import fit, load
from scoring.ml.evaluators.comparative.calibration import (
    LEAST_SCALE,
    Calibration,
    choose_threshold,
    describe_verdicts,
    fit_calibration,
    fit_with_figures,
    measure_logits,
)
from scoring.ml.evaluators.comparative.evaluator import Comparative
from scoring.ml.evaluators.comparative.verdicts import average_thresholds, decide_signs, softmax
from tests.scoring.ml.evaluators.comparative.data import make
from tests.scoring.ml.tiny import tiny_encoder

TINY = {"epochs": 2, "learning_rate": 3e-3, "batch_size": 8, "max_steps": 6, "references": 4, "strong": "no",
        "features": "joint", "stages": "best"}  # fmt: skip


def simulate(n: int, scale: float, tie: float, seed: int = 5) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Probabilities of a network that calls nearly all pairs tied, verdicts by Davidson's model, and ten groups."""
    rng = np.random.default_rng(seed)
    lean = rng.normal(size=n)
    network = softmax(np.stack([-lean / 2, np.full(n, 3.0), lean / 2], axis=1))
    truth = softmax(np.stack([-scale * lean / 2, np.full(n, tie), scale * lean / 2], axis=1))
    drawn = [rng.choice(3, p=row) for row in truth]
    return network, np.eye(3)[drawn], [f"g{k % 10}" for k in range(n)]


def test_davidson_by_hand():
    """With strengths 2 and 1 and nu = 1: 2, sqrt(2) and 1 out of their sum (Davidson 1970, equation 2.4)."""
    strengths = np.array([[1.0, 2**0.5, 2.0]]) / (3 + 2**0.5)
    lean, tie = measure_logits(strengths)
    np.testing.assert_allclose([lean[0], tie[0]], [np.log(2), 0], atol=1e-12)
    np.testing.assert_allclose(Calibration(1, 0, 1, 0).calibrate(strengths), strengths, atol=1e-12)
    # Twice the scale squares the ratio of the strengths: 4, 2 and 1 out of 7.
    np.testing.assert_allclose(Calibration(2, 0, 0, 0).calibrate(strengths), [[1 / 7, 2 / 7, 4 / 7]], atol=1e-12)


def test_verdicts_by_threshold():
    probabilities = np.array([[0.1, 0.6, 0.3], [0.25, 0.6, 0.15], [0.2, 0.6, 0.2]])
    assert decide_signs(probabilities).tolist() == [0, 0, 0]
    assert decide_signs(probabilities, 0.15).tolist() == [1, 0, 0]
    assert decide_signs(probabilities, 0.0).tolist() == [1, -1, 0]
    assert decide_signs(probabilities[:, ::-1], 0.0).tolist() == [-1, 1, 0]
    assert [choose_threshold(probabilities, share) for share in (0, 2 / 3, 1)] == pytest.approx([0, 0.1, 0.2])
    assert average_thresholds([0.1, 0.3]) == pytest.approx(0.2)
    assert average_thresholds([0.1, None]) is average_thresholds([]) is None


def test_figures_by_hand():
    targets = np.eye(3)[[2, 0, 2, 1]]
    probabilities = np.array([[0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [0.5, 0.3, 0.2], [0.2, 0.6, 0.2]])
    usual = np.tile(targets.mean(axis=0), (4, 1))
    found = describe_verdicts(probabilities, np.array([1, 0, -1, 0], np.int8), targets, usual)
    # Two of three decided pairs are called, one of them rightly; forced: right, even, wrong.
    assert found == pytest.approx({
        "log_loss": -np.log([0.7, 0.3, 0.2, 0.6]).mean(),
        "log_loss_of_frequencies": -np.log([0.5, 0.25, 0.5, 0.25]).mean(),
        "called_tied": 1 / 2, "people_call_tied": 1 / 4, "coverage": 2 / 3, "right_if_called": 1 / 2,
        "right_if_forced": 1 / 2,
    })  # fmt: skip


def test_finds_the_numbers_that_made_the_verdicts():
    network, targets, _ = simulate(20_000, scale=2.0, tie=0.4)
    found = fit_calibration(network, targets)
    assert found.scale == pytest.approx(2.0, abs=0.1)
    # Every pair has the same evidence for a tie, 3, so only the sum is determined.
    assert found.tie + 3 * found.evidence == pytest.approx(0.4, abs=0.1)
    called = decide_signs(found.calibrate(network), found.threshold)
    assert (called == 0).mean() == pytest.approx(targets[:, 1].mean(), abs=1e-3)

    # It is the minimum: moving any number away raises the loss.
    def loss(one: Calibration) -> float:
        return -float((targets * np.log(one.calibrate(network))).sum(axis=1).mean())

    for name in ("scale", "tie", "evidence"):
        for step in (-0.05, 0.05):
            assert loss(replace(found, **{name: getattr(found, name) + step})) > loss(found)


def test_verdicts_that_were_all_tied_tell_what_the_leaning_knows():
    network, targets, groups = simulate(2000, scale=2.0, tie=0.4)
    assert (decide_signs(network) == 0).mean() > 0.9
    found = fit_with_figures(network, targets, groups)
    assert found is not None
    figures = found[1]
    assert figures["log_loss"] < figures["log_loss_of_frequencies"]
    assert figures["called_tied"] == pytest.approx(figures["people_call_tied"], abs=0.05)
    assert figures["right_if_called"] >= figures["right_if_forced"] - 0.02
    assert 0.4 < figures["coverage"] < 0.9


def test_a_network_that_knows_nothing_still_calls_as_many_tied_as_people():
    """Against the verdicts the leaning is worth nothing: its scale is the least one, not negative."""
    network, targets, _ = simulate(2000, scale=2.0, tie=0.4)
    found = fit_calibration(network, targets[:, ::-1])
    assert found.scale == LEAST_SCALE
    signs = decide_signs(found.calibrate(network), found.threshold)
    assert (signs == 0).mean() == pytest.approx(targets[:, 1].mean(), abs=1e-3)


def test_too_few_pairs_or_groups():
    network, targets, groups = simulate(60, scale=2.0, tie=0.4)
    assert fit_with_figures(network, targets, groups) is not None
    assert fit_with_figures(network[:29], targets[:29], groups[:29]) is None
    assert fit_with_figures(network, targets, ["one"] * 60) is None


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def calibrated(encoder) -> Comparative:
    return fit("comparative", make(), dev=make(12, 9, prefix="d"), encoder=encoder, **TINY)


def test_training_calibrates_on_held_out_groups(calibrated, encoder, tmp_path):
    numbers = calibrated.calibration
    assert numbers is not None
    metrics = calibrated.record.metrics
    assert {"log_loss", "coverage", "right_if_called"} <= metrics.keys()
    assert f"coverage {metrics['coverage']:.4g}" in calibrated.card
    plain = fit("comparative", make(), dev=make(12, 9, prefix="d"), encoder=encoder, calibrate=False, **TINY)
    assert plain.calibration is None
    records = make(6, 5).outputs_with_context()
    first, second = records[:12], records[12:24]
    judged, raw = (one.judge(first, second) for one in (calibrated, plain))
    np.testing.assert_allclose(judged.probabilities, numbers.calibrate(raw.probabilities), atol=1e-6)
    assert judged.signs.tolist() == decide_signs(judged.probabilities, numbers.threshold).tolist()
    np.testing.assert_array_equal(calibrated.judge(second, first).signs, -judged.signs)
    assert "calibration:" in calibrated.signature
    assert "calibration:" not in plain.signature
    calibrated.save_pretrained(tmp_path / "saved")
    assert load(tmp_path / "saved").judge(first, second).signs.tolist() == judged.signs.tolist()


def test_without_held_out_part_a_tenth_of_the_groups_is_held_out(encoder):
    found = fit("comparative", make(40), encoder=encoder, **TINY)
    assert len(found.record.groups) + len(found.record.dev_groups) == 20
    assert found.record.dev_groups
    few = fit("comparative", make(10), dev=make(4, 9, prefix="d"), encoder=encoder, **TINY)
    assert few.calibration is None
    assert any("not calibrated" in note for note in few.record.notes)


def test_profile_paper_is_not_calibrated(calibrated):
    assert calibrated.entry.train_defaults("paper")["calibrate"] is False
    assert calibrated.entry.train_defaults("recommended")["calibrate"] is True
