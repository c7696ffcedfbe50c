"""Turn scores as scores of dialogues and systems: by hand, against SciPy, missing scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.core.coding import ColumnError
from evalapp.stats.correlation.dialogue import calibrated_correlations, dialogue_correlations, dialogue_scores
from evalapp.stats.resampling.bootstrap import Bootstrap


def test_means_over_turns_by_hand():
    found = dialogue_scores([1, 3, np.nan, 0.1, 0.2, np.nan], ["b", "b", "b", "a", "a", "c"])
    assert found.dialogue.tolist() == ["a", "b", "c"]
    assert found.mean[:2] == pytest.approx([0.15, 2])
    assert np.isnan(found.mean[2])
    assert found.n_turns.tolist() == [2, 2, 0]
    assert found.n_missing == 2


def turns(n_systems=8, per=12, n_turns=5, seed=0):
    rng = np.random.default_rng(seed)
    n = n_systems * per
    quality = rng.normal(size=n) + np.repeat(np.linspace(0, 2, n_systems), per)
    dialogue = np.repeat(np.arange(n), n_turns)
    score = quality[dialogue] + rng.normal(size=len(dialogue))
    return quality, score, dialogue, dialogue // n_turns // 1, np.repeat(np.arange(n_systems), per)


def test_raw_ratings_per_dialogue_equal_scipy():
    quality, score, dialogue, _, _ = turns()
    rng = np.random.default_rng(1)
    fluency, humour = (np.round(quality + rng.normal(size=96)) for _ in range(2))
    found = dialogue_correlations(
        score,
        dialogue,
        np.concatenate([fluency, humour]),
        np.tile(np.arange(96), 2),
        np.repeat(["fluency", "humour"], 96),
        bootstrap=Bootstrap(resamples=100),
    )
    means = score.reshape(96, 5).mean(axis=1)
    for name, people in (("fluency", fluency), ("humour", humour)):
        assert found[name].value == pytest.approx(stats.spearmanr(means, people)[0], abs=1e-12)
        assert found[name].n == 96
        assert found[name].low < found[name].value < found[name].high


def test_calibrated_means_per_system_equal_scipy():
    _, score, dialogue, _, system = turns()
    order = np.random.default_rng(2).permutation(len(score))
    people = {"fluency": {k: float(k % 5) for k in range(8)}, "half": {k: float(k) for k in range(5)}}
    found = calibrated_correlations(
        score[order], dialogue[order], system[dialogue][order], people, bootstrap=Bootstrap(resamples=50)
    )
    means = score.reshape(8, 12, 5).mean(axis=(1, 2))
    assert found["fluency"].value == pytest.approx(stats.spearmanr(means, [k % 5 for k in range(8)])[0], abs=1e-12)
    assert found["fluency"].n == 8
    assert found["half"].n == 5
    assert found["half"].has_interval


def test_dialogues_without_a_score_are_counted_and_one_dialogue_has_one_system():
    _, score, dialogue, _, _ = turns()
    score = score.copy()
    score[:5] = np.nan
    value = np.arange(97.0)
    found = dialogue_correlations(score, dialogue, value, np.arange(97), ["a"] * 97, bootstrap=Bootstrap(resamples=0))[
        "a"
    ]
    assert found.n == 95
    assert found.note == "2 rated dialogues have no score"
    with pytest.raises(ColumnError, match="system"):
        calibrated_correlations([1, 2], ["d", "d"], ["x", "y"], {})
    flat = calibrated_correlations([1, 2, 3], [0, 1, 2], [0, 1, 2], {"a": {0: 1.0, 1: 1.0, 2: 1.0}})["a"]
    assert not flat.is_defined
    assert "constant" in flat.note
