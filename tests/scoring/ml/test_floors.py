"""Length and token-F1 on real data against the table of baselines in the README of the shared data sets.

The table gives Pearson and Spearman of item-level scores with the mean rating; here computed with plain scipy.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, rankdata, spearmanr

from scoring.ml import Dataset, load, read_dataset

TRUTH = ("Original Ground Truth",)
HUMANS = ("Original Ground Truth", "New Human Generated")
# dstc7_dev: since version 0.2 words of every script count; the table counted only [a-z0-9'] (22 outputs have other
# words now; see docs/results/floors.md). set, aspect, excluded systems, n, length, F1 (None: not in the table)
ROWS = [
    ("novikova", "informativeness", (), 2460, (0.101, 0.117), (0.123, 0.117)),
    ("novikova", "naturalness", (), 2460, (-0.159, -0.166), (0.141, 0.155)),
    ("novikova", "quality", (), 2460, (-0.098, -0.101), (0.090, 0.090)),
    ("dailydialog_multiref", "overall", ("human",), 400, (-0.287, -0.346), (0.235, 0.195)),
    ("usr_topicalchat", "overall", TRUTH, 300, (0.332, 0.270), (0.280, 0.299)),
    ("usr_topicalchat", "overall", HUMANS, 240, (0.063, 0.045), (0.336, 0.304)),
    ("usr_personachat", "overall", TRUTH, 240, (0.236, 0.216), (0.078, 0.062)),
    ("usr_personachat", "overall", HUMANS, 180, (-0.192, -0.181), (0.079, 0.055)),
    ("grade_convai2", "coherence", (), 600, (-0.043, -0.028), (0.127, 0.135)),
    ("grade_dailydialog", "coherence", (), 300, (-0.222, -0.266), (0.091, 0.028)),
    ("grade_empathetic", "coherence", (), 300, (0.037, -0.027), (0.051, 0.034)),
    ("predictive_engagement", "engagement", (), 600, (0.016, 0.143), None),
    ("predictive_engagement", "engagement", ("human",), 300, (-0.211, -0.354), None),
    ("union_roc", "reasonable", (), 400, (-0.116, -0.111), (0.012, -0.005)),
    ("dstc7_dev", "relevance", ("Human",), 6516, (-0.022, 0.013), (0.163, 0.154)),
    ("dstc7_dev", "informativeness", ("Human",), 6516, (0.044, 0.070), (0.141, 0.131)),
]  # fmt: skip
E2E = [("naturalness", (-0.134, -0.141), (0.086, 0.085)), ("quality", (0.195, 0.190), (0.187, 0.183))]
TOLERANCE = 0.002


@lru_cache(maxsize=1)
def read(folder: Path) -> Dataset:
    """Reads each set once for all its rows, which are adjacent in the table."""
    return read_dataset(folder)


@lru_cache(maxsize=2)
def compute_scores(folder: Path, name: str) -> dict[tuple[str, str], float]:
    """The score of every output, by item and system."""
    records = read(folder).outputs_with_context()
    return {(r.item, r.system): value for r, value in zip(records, load(name).score(records), strict=True)}


def mean_ratings(data: Dataset, aspect: str, *, ranked: bool = False) -> dict[tuple[str, str], float]:
    """The mean over raters of the values, or of the ranks within one (item, rater)."""
    rows = defaultdict(list)
    for rating in data.ratings:
        if rating.aspect == aspect:
            rows[rating.item, rating.rater].append((rating.system, rating.value))
    found = defaultdict(list)
    for (item, _), pairs in rows.items():
        values = [value for _, value in pairs]
        for (system, _), value in zip(pairs, rankdata(values) if ranked else values, strict=True):
            found[item, system].append(float(value))
    return {key: float(np.mean(values)) for key, values in found.items()}


def correlations(folder: Path, name: str, ratings: dict[tuple[str, str], float], without=()) -> tuple[int, list]:
    """The number of rated outputs, and Pearson and Spearman as computed for the table.

    225 outputs of dstc7_dev have no reference: token-F1 is undefined there, but the table counted it as 0.
    """
    found = compute_scores(folder, name)
    rated = [key for key in found if key in ratings and key[1] not in without]
    scores = np.nan_to_num([found[key] for key in rated], nan=0.0)
    people = np.array([ratings[key] for key in rated])
    return len(rated), [float(pearsonr(scores, people)[0]), float(spearmanr(scores, people)[0])]


@pytest.mark.parametrize(("name", "aspect", "without", "n", "length", "f1"), ROWS)
def test_baselines(shared_data: Path, name, aspect, without, n, length, f1):
    folder = shared_data / name
    ratings = mean_ratings(read(folder), aspect)
    assert correlations(folder, "length", ratings, without) == (n, pytest.approx(length, abs=TOLERANCE))
    if f1 is not None:
        assert correlations(folder, "token-f1", ratings, without) == (n, pytest.approx(f1, abs=TOLERANCE))


def test_outputs_without_references_are_undefined_not_zero(shared_data: Path):
    folder = shared_data / "dstc7_dev"
    ratings = mean_ratings(read(folder), "relevance")
    found = compute_scores(folder, "token-f1")
    rated = [key for key in found if key in ratings and key[1] != "Human"]
    scores = np.array([found[key] for key in rated])
    defined = ~np.isnan(scores)
    people = np.array([ratings[key] for key in rated])
    assert (len(rated), int(defined.sum())) == (6516, 6291)
    # Over the defined ones, the correlation is .169 / .156; with zeros for the others it is .163 / .154.
    assert pearsonr(scores[defined], people[defined])[0] == pytest.approx(0.1685, abs=1e-4)


@pytest.mark.slow
def test_baselines_of_open_scales_by_rank(shared_data: Path):
    folder = shared_data / "e2e"
    for aspect, length, f1 in E2E:
        ratings = mean_ratings(read(folder), aspect, ranked=True)
        assert correlations(folder, "length", ratings) == (6012, pytest.approx(length, abs=TOLERANCE))
        assert correlations(folder, "token-f1", ratings) == (6012, pytest.approx(f1, abs=TOLERANCE))
