"""The script behind docs/results/published.md gives the figures of the real sets that are printed with the data."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "docs/results"


@pytest.fixture(scope="module")
def published() -> ModuleType:
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("results_published", FOLDER / "published.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["results_published"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    module.RESAMPLES = 50
    return module


# Source: the line "Pairs" of the README that comes with the data.
@pytest.mark.parametrize(
    ("name", "aspect", "rule", "expected"),
    [
        # .598 in the data's table: since version 0.2, words of every script count, not only [a-z0-9'].
        ("scratchplot", "ending", "more words", 0.597),
        ("pandalm", "overall", "more words", 0.684),
        ("pandalm", "overall", "more characters, ties counted", 0.611),
    ],
)
def test_pairs(shared_data, published, name, aspect, rule, expected):
    found = published.pair_shares(published.Set(shared_data / name), aspect, rule)
    assert found["value"] == pytest.approx(expected, abs=0.0006)
    assert found["low"] < found["value"] < found["high"]


def test_columns_of_union(shared_data, published):
    found = published.columns_of(published.Set(shared_data / "union_roc"), "reasonable", (), False)
    for column in ("union", "union_recon", "bleurt", "bleu"):
        values = [found["columns"][column][name]["value"] for name in ("pearson", "spearman")]
        assert values == pytest.approx(published.PRINTED["union_roc", "reasonable", column], abs=0.0006)
    assert found["compared"]["names"][0] == "union"
    # Lower perplexity is better, so its sign is reversed before the comparison.
    assert found["columns"]["ppl"]["pearson"]["value"] < 0
    assert found["compared"]["names"].index("ppl") < found["compared"]["names"].index("bleu")
