"""Training on several sets at once, with a head per scale, and what then counts as seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scoring.ml import InvalidRecords, fit
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.record import hash_content
from scoring.ml.training.sets import join_sets
from scoring.ml.types import Dataset
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.ml.training.test_head import QUICK, rated


def named(name: str, first: int) -> Dataset:
    return replace(rated(10, first=first), name=name)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.0)


@pytest.fixture(scope="module")
def found(encoder: str) -> TrainedEvaluator:
    both = join_sets([named("one", 0), named("two", 0)])
    evaluator = fit("shared-bert", both, encoder=encoder, stages="head", seed=3, **QUICK)
    assert isinstance(evaluator, TrainedEvaluator)
    return evaluator


def test_rows_of_equal_names_stay_apart() -> None:
    both = join_sets([named("one", 0), named("two", 0)])
    assert (both.name, len(both.items), len({item.id for item in both.items})) == ("one+two", 20, 20)
    assert {aspect.name for aspect in both.aspects} == {"quality (one)", "quality (two)"}
    assert {(row.item, row.system, row.rater) for row in both.ratings if row.item == "two/i3"} == {
        ("two/i3", "two/good", "two/r"), ("two/i3", "two/bad", "two/r"),
    }  # fmt: skip
    with pytest.raises(InvalidRecords, match="different names, found one, one"):
        join_sets([named("one", 0), named("one", 10)])


def test_each_scale_has_a_head(found: TrainedEvaluator) -> None:
    assert found.aspects == ("quality (one)", "quality (two)")
    assert found.score(rated(3, first=50).outputs_with_context()).shape == (6, 2)
    assert "one+two@" in found.signature
    assert "| Data | one+two (" in found.card


def test_groups_of_every_set_count_as_seen_under_their_own_names(found: TrainedEvaluator) -> None:
    assert {"g0", "g9", "one/g0", "two/g9"} <= found.trained_on
    assert "g10" not in found.trained_on
    item = rated(4).items[3]
    found.recognise([("elsewhere", "e", hash_content(item.context, item.source, item.id))])
    assert found.trained_on == {"e"}


def test_item_without_content_is_known_by_its_own_name(encoder: str) -> None:
    bare = [
        replace(one, items=tuple(replace(item, context=(), group="") for item in one.items))
        for one in (named("one", 0), named("two", 20))
    ]
    evaluator = fit("adversarial", join_sets(bare), encoder=encoder, stages="head", seed=3, **QUICK)
    assert {"item:i0", "item:one/i0", "item:i29"} <= evaluator.trained_on
    evaluator.recognise([("i5", "", hash_content((), None, "i5")), ("i77", "", hash_content((), None, "i77"))])
    assert evaluator.trained_on == {"item:i5"}


def test_set_left_out_begins_with_the_others(found: TrainedEvaluator, tmp_path: Path) -> None:
    """Its scale is new, so its head is, too; it is trained on the encoder of the others."""
    found.save_pretrained(tmp_path / "others")
    third = fit("shared-bert", named("three", 40), init=tmp_path / "others", stages="head", seed=3, **QUICK)
    assert third.aspects == ("quality",)
    assert {"g0", "one/g9", "g49"} <= third.trained_on
    assert np.isfinite(third.score(rated(2, first=60).outputs_with_context())).all()
