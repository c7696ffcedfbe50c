"""The page about perception: means over seeds, and wording that follows the intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def perception(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("perception")


def results(p: np.ndarray) -> list[dict[str, Any]]:
    """Two seeds with different weights of the texts."""
    return [{"p": p.tolist(), "c": (p * 0 + c).tolist(), "m": (p * 0 + 1).tolist()} for c in (0.25, 0.75)]


def test_means_over_seeds(perception: ModuleType) -> None:
    p, weights = perception.over_seeds(results(np.array([[0.2, 0.4]])), ("c", "m"))
    assert p == pytest.approx(np.array([[0.2, 0.4]]))
    assert weights == pytest.approx(np.array([[1.5, 1.5]]))  # the mean of c + m
    assert perception.over_seeds(results(np.array([[0.2, 0.4]])), ())[1] == pytest.approx(np.ones((1, 2)))


def test_wording_follows_the_interval(perception: ModuleType) -> None:
    rng = np.random.default_rng(1)
    quality = np.arange(12.0)[:, None] / 12 + rng.normal(0, 0.01, (12, 30))
    human = {"quality": quality, "naturalness": -quality}
    against, alike = "against people", "as people do"
    lines = perception.in_words(results(quality), human)
    assert [line for line in lines if "By quality" in line and alike in line]
    assert [line for line in lines if "By naturalness" in line and against in line]
    assert "need not be what people like" in " ".join(lines)
    unknown = {name: rng.normal(size=(12, 30)) for name in human}
    said = " ".join(perception.in_words(results(quality), unknown))
    assert said.count("told from chance") == 2
    assert against not in said
    assert alike not in said


def test_diversity_is_reported_without_a_cause(perception: ModuleType) -> None:
    p = np.arange(12.0)[:, None] / 12 + np.zeros((12, 3))
    (line, _) = perception.with_variety(results(p), {"quality": p, "naturalness": -p}, [{"values": list(range(12))}])
    assert "P_sys 1.000 [1.000, 1.000]" in line
    assert "people's naturalness -1.000 [-1.000, -1.000]" in line
    assert "does not show" in line
    assert perception.with_variety(results(p), {}, []) == []


def test_untested_learning_rate_is_requested(perception: ModuleType, tmp_path: Path) -> None:
    kept = perception.Store(tmp_path / "x.jsonl", tmp_path / "aside.jsonl")
    kept.once("choice/0.1", 13, lambda: {"rate": 0.1, "loss": 0.7})
    kept.once("choice/0.2", 13, lambda: {"rate": 0.2, "loss": 0.6})
    assert perception.chosen_rate(kept, 13) == 0.2
    with pytest.raises(SystemExit, match="seed 14: add `choice` to --only"):
        perception.chosen_rate(kept, 14)


def robust(**scores: float) -> dict[str, Any]:
    """One seed's result; kinds without a score have no text."""
    rows = [
        {"kind": kind, "n": 4 if kind in scores else 0, "score": scores.get(kind), "mean": scores.get(kind), "sd": 0.2}
        for kind in ("MGE", "HWE", "LDHWE", "HWEBQ", "AE", "random reply")
    ]
    return {"rows": {"perception": rows}, "dev": {"accuracy": 0.7}, "train items": 400, "rate": 3e-4}


def test_pattern_of_the_paper_is_tested_on_means_over_seeds(perception: ModuleType) -> None:
    one = robust(MGE=0.1, HWE=0.35, LDHWE=0.4, AE=0.3, **{"random reply": 0.2})
    other = robust(MGE=0.38, HWE=0.55, LDHWE=0.6, AE=0.56, **{"random reply": 0.2})
    (_, line) = perception.pattern([one, other])  # means: .24, .45, .43
    assert line.endswith("MGE below .25: yes; HWE within .1 of .5: yes; AE below HWE: yes; AE below .5: yes.")
    (_, line) = perception.pattern([other])
    assert line.endswith("MGE below .25: no; HWE within .1 of .5: yes; AE below HWE: no; AE below .5: no.")


def test_longer_training_appears_only_on_the_page_of_few_items(perception: ModuleType, tmp_path: Path) -> None:
    kept = perception.Store(tmp_path / "x.jsonl", tmp_path / "aside.jsonl")
    found = robust(MGE=0.1, HWE=0.5, LDHWE=0.5, AE=0.4, **{"random reply": 0.3})
    longer, without_penalty = perception.LONGER
    kept.once(f"robustness/{longer}", 13, lambda: found)
    given = perception.Given(Path(), tmp_path, (13, 14), None, False, True, (), 40)
    lines = perception.robust_page(given, kept)
    text = "\n".join(lines)
    assert "| perception | .100 [-.096, .296] | .500 [" in text
    assert "| - | .400 [" in text  # HWEBQ has no text
    assert "chosen of 0.0001,0.0003 by dev log-loss in the short training; dev accuracy .700" in text
    assert text.count("Not computed yet") == 3
    assert f"### Trained against {without_penalty}\n\nNot computed yet" in text
    everything = perception.robust_page(replace(given, items=None), kept)
    assert longer not in "\n".join(everything)
