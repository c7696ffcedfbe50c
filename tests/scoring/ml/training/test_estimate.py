"""The rule for the time of a training: operations over a measured rate."""

from __future__ import annotations

import pytest

from scoring.ml.encoders.source import find_encoder
from scoring.ml.training import estimate


def test_operations_by_hand(tiny_family, monkeypatch):
    """Width 32, inner 48, 2 layers: 2 (4 * 32^2 + 2 * 32 * 48) = 14,336 weights; DistilBERT names them otherwise."""
    monkeypatch.setattr(estimate, "matrix_rate", lambda device, width: 1e6)
    for family in ("bert", "distilbert"):
        source = find_encoder(tiny_family(family))
        assert estimate.layer_parameters(source) == 14_336
        seconds = estimate.training_seconds(source, 1000, "cpu")
        assert seconds == pytest.approx(6 * 14_336 * 1000 / (0.4 * 1e6))
        assert estimate.scoring_seconds(source, 1000, "cpu") == pytest.approx(seconds / 3)


def test_the_rate_is_measured_once():
    assert estimate.matrix_rate("cpu", 32) == estimate.matrix_rate("cpu", 32) > 0
