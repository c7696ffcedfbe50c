"""The study of perception: means over seeds, the chosen rate, and correlations over systems."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def discriminator(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("experiments.discriminator")


def make_results(p: np.ndarray) -> list[dict[str, Any]]:
    """Two seeds with different weights of the texts."""
    return [
        {"p": p.tolist(), "c": (p * 0 + c).tolist(), "m": (p * 0 + 1).tolist(), "dev": {"accuracy": c}}
        for c in (0.25, 0.75)
    ]


def test_means_over_seeds(discriminator: ModuleType) -> None:
    p, weights = discriminator.average_seeds(make_results(np.array([[0.2, 0.4]])))
    assert p == pytest.approx(np.array([[0.2, 0.4]]))
    assert weights == pytest.approx(np.array([[1.5, 1.5]]))  # the mean of c + m


def test_a_systems_score_is_a_weighted_mean_of_its_defined_values(discriminator: ModuleType) -> None:
    p, weights = np.array([[0.2, 0.6, np.nan], [np.nan] * 3]), np.array([[1.0, 3.0, 5.0], [1.0] * 3])
    found = discriminator.average_systems(p, weights)
    assert found[0] == pytest.approx(0.5)
    assert np.isnan(found[1])
    assert discriminator.average_systems(p, weights, np.array([3, 1, 1]))[0] == pytest.approx(0.4)


def test_the_interval_says_whether_systems_are_ordered_as_by_people(
    discriminator: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discriminator, "RESAMPLES", 200)
    rng = np.random.default_rng(1)
    quality = np.arange(12.0)[:, None] / 12 + rng.normal(0, 0.01, (12, 30))
    p, weights = discriminator.average_seeds(make_results(quality))
    alike, reverse, unrelated = (
        discriminator.correlate_systems(p, weights, human) for human in (quality, -quality, rng.normal(size=(12, 30)))
    )
    assert alike["low"] > 0.9
    assert reverse["high"] < -0.9
    assert unrelated["low"] < 0 < unrelated["high"]


def test_a_rate_that_was_not_tried_is_asked_for(discriminator: ModuleType, make_run: Any) -> None:
    run = make_run("perception", seeds=(13,))
    with pytest.raises(SystemExit, match="seed 13: add `choice` to --only"):
        discriminator.choose_rate(run)
    run.once("choice/0.1", 13, lambda: {"rate": 0.1, "loss": 0.7})
    run.once("choice/0.2", 13, lambda: {"rate": 0.2, "loss": 0.6})
    assert discriminator.choose_rate(run) == 0.2


def test_kinds_without_texts_have_no_figure(
    discriminator: ModuleType, make_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discriminator, "read_e2e", lambda run: None)
    monkeypatch.setattr(discriminator, "rank_outputs", lambda data: {})
    run = make_run("perception", items=40)
    kinds = dict.fromkeys(discriminator.KINDS, 4) | {"HWEBQ": 0}
    for seed, score in ((13, 0.4), (14, 0.6)):
        rows = [{"kind": kind, "n": n, "score": score if n else None} for kind, n in kinds.items()]
        run.once(
            "robustness/n-gram models", seed,
            lambda rows=rows: {"rows": {"perception": rows}, "dev": {"accuracy": 0.7}, "rate": 3e-4},
        )  # fmt: skip
    (row,) = discriminator.tabulate(run)
    assert row["trained"] == "against n-gram models"
    assert row["MGE"]["value"] == pytest.approx(0.5)
    assert row["MGE"]["sd"] == pytest.approx(np.std([0.4, 0.6], ddof=1), abs=1e-7)
    assert "HWEBQ" not in row
    assert row["seeds"] == 2
