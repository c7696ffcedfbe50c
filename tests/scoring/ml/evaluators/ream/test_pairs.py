"""The metric's values of outputs and references, which the folds of a cross-fitting share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.ml import cross_fit
from scoring.ml.base import PairEvaluator, Query
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.ream import contrast, training
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.training.fit import make_job
from tests.scoring.ml.evaluators.ream.test_evaluator import QUICK, data
from tests.scoring.ml.evaluators.ream.untrained import untrained
from tests.scoring.ml.tiny import tiny_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), layers=3)


@pytest.fixture(scope="module")
def found(encoder: str) -> Ream:
    return untrained(find_encoder(encoder))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    """The queries that a metric was asked for."""
    result: list[Query] = []
    whole = PairEvaluator.all_pairs

    def note(self: PairEvaluator, queries: Sequence[Query], **more: Any) -> list[Any]:
        result.extend(queries)
        return whole(self, queries, **more)

    monkeypatch.setattr(PairEvaluator, "all_pairs", note)
    return result


def prepare(found: Ream, folder: Path, part: str, **options: Any) -> tuple[training.PreparedItems, list[Any]]:
    """The prepared items of a training on `data(4)`, and their items."""
    job = make_job("ream", data(4), {**QUICK, **options}, folder=folder)
    items = training.query_items(job.train, "overall", "raw")
    return training.Preparer(job, found.metric, found.pair_encoder).prepare(items, part), items


def test_each_item_is_measured_once_for_all_folds(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Query] = []
    whole = training.measure_pairs

    def note(metric: PairEvaluator, queries: Sequence[Query], tick: training.Tick) -> list[Any]:
        asked.extend(queries)
        return whole(metric, queries, tick)

    monkeypatch.setattr(training, "measure_pairs", note)
    given = data(9)
    cross_fit("ream", given, folds=3, encoder=encoder, folder=tmp_path, pretrain=0, **QUICK)
    measured = Counter(query.references for query in asked)
    assert [measured[item.references] for item in given.items] == [1] * 9


@pytest.mark.parametrize(("part", "gold_margin"), [("dev", False), ("train", False), ("train", True)])
def test_values_are_those_of_all_columns_together(found: Ream, tmp_path: Path, part: str, gold_margin: bool) -> None:
    """Answers to other queries are measured only where a reliability is computed from them."""
    prepared, items = prepare(found, tmp_path, part, gold_margin=gold_margin)
    rng = make_job("ream", data(4), QUICK, folder=tmp_path).rng(f"foreign:{part}")
    foreign = training.foreign_answers(items, QUICK["foreign"], rng)
    columns = [Query(item.outputs, (*item.references, *more)) for item, more in zip(items, foreign, strict=True)]
    for gold, item, wanted in zip(prepared.gold, items, found.metric.all_pairs(columns), strict=True):
        n = len(item.references)
        np.testing.assert_array_equal(gold.metric[:, :n], wanted[:, :n])
        others = wanted[:, n:] if part == "dev" or gold_margin else np.full_like(wanted[:, n:], np.nan)
        np.testing.assert_array_equal(gold.metric[:, n:], others)


def test_second_training_in_a_folder_measures_nothing_anew(found: Ream, tmp_path: Path, asked: list[Query]) -> None:
    first, _ = prepare(found, tmp_path, "train")
    assert len(asked) == 4
    (tmp_path / "prepared-train.safetensors").unlink()
    second, _ = prepare(found, tmp_path, "train")
    assert len(asked) == 4
    for one, other in zip(first.gold, second.gold, strict=True):
        np.testing.assert_array_equal(one.metric, other.metric)


def test_queries_without_outputs_are_not_measured(found: Ream, tmp_path: Path, asked: list[Query]) -> None:
    """Learning by contrast needs no metric."""
    job = make_job("ream", data(4), QUICK, folder=tmp_path)
    queries = contrast.list_queries(job.train, job.rng("queries"))
    prepared = training.Preparer(job, found.metric, found.pair_encoder).prepare(queries, "contrast")
    assert asked == []
    assert [gold.metric.shape for gold in prepared.gold] == [(0, 5 + QUICK["foreign"])] * 4


def test_metric_that_depends_on_all_texts_measures_them_together(
    found: Ream, tmp_path: Path, asked: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(found.metric), "depends_on_batch", True)
    prepare(found, tmp_path, "train")
    assert [len(query.references) for query in asked] == [5 + QUICK["foreign"]] * 4
    assert not list(tmp_path.glob("texts/pairs-*"))
