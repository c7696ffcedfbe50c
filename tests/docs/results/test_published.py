"""Recomputed figures for the public sets equal those printed in the README of the data."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def published(module: Callable[[str], ModuleType]) -> ModuleType:
    found = module("experiments.published")
    found.RESAMPLES = 50
    return found


# Source: the line "Pairs" in the README of the data.
@pytest.mark.parametrize(
    ("name", "aspect", "rule", "expected"),
    [
        # .598 in the table of the data: since version 0.2 words of every script count, not [a-z0-9'] alone.
        ("scratchplot", "ending", "more words", 0.597),
        ("pandalm", "overall", "more words", 0.684),
        ("pandalm", "overall", "more characters, ties counted", 0.611),
    ],
)
def test_pairs(shared_data, published, name, aspect, rule, expected):
    found = published.measure_rule(published.Data(shared_data / name), aspect, rule)
    assert found["value"] == pytest.approx(expected, abs=0.0006)
    assert found["low"] < found["value"] < found["high"]


def test_columns_of_union(shared_data, published, module):
    study = module("study").read_study("published")
    (entry,) = [one for one in study.settings["columns"] if one["set"] == "union_roc"]
    data = published.Data(shared_data / "union_roc")
    found = published.measure_columns(data, "reasonable", (), False, study.settings["lower"])
    for column in ("union", "union_recon", "bleurt", "bleu"):
        values = [found["columns"][column][name]["value"] for name in ("pearson", "spearman")]
        assert values == pytest.approx(entry["printed"][column], abs=0.0006)
    assert found["compared"]["names"][0] == "union"
    # A perplexity is better when it is low: negated before it is compared.
    assert found["columns"]["ppl"]["pearson"]["value"] < 0
    assert found["compared"]["names"].index("ppl") < found["compared"]["names"].index("bleu")
