"""The studies of ream: pools of candidates, figures over folds, and parts that are computed alone."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scoring.ml import Dataset, Item


@pytest.fixture(scope="module")
def references(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("experiments.references")


@pytest.mark.parametrize("part", ["e2e", "tried"])
def test_a_part_alone_is_computed(
    references: ModuleType, make_run: Any, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(references, "read_rated", lambda run, source: [source.name])
    monkeypatch.setattr(references, "measure", lambda *_: {"value": 1})
    monkeypatch.setattr(references, "try_other", lambda *_: {"value": 1})
    run = make_run("ream", only=(part,), seeds=(13,))
    references.compute(run)
    assert {setting.partition("/")[0] for setting, _ in run.store.rows} == {part}


def test_pools_mix_own_references_with_as_many_of_other_items(references: ModuleType) -> None:
    items = tuple(Item(str(n), references=(f"own {n}", f"also {n}", " ", f"own {n}")) for n in range(30))
    pools = references.make_pools(Dataset("d", items=items), items, np.random.default_rng(1))
    for item, pool in zip(items, pools, strict=True):
        assert set(pool.own) == {f"own {item.id}", f"also {item.id}"}
        assert len(pool.others) == 2
        assert not {*pool.others} & {*item.references}


def test_intervals_are_over_folds_of_the_means_over_seeds(references: ModuleType) -> None:
    results = [{"folds": [{"r2": fold + seed} for fold in (0.0, 1.0, 2.0)]} for seed in (0.0, 1.0)]
    found = references.average_folds(results, lambda fold: fold["r2"])
    assert found["value"] == pytest.approx(1.5)
    # t(2) = 4.3027, SD 1 over three folds.
    assert found["high"] - found["value"] == pytest.approx(4.302653 / 3**0.5, abs=1e-5)
