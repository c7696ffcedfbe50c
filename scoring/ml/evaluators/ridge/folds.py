"""Scores of all outputs from judgements of a part, cross-fitted by group, from one table of features. numpy only.

Explained in docs/explanation/evaluators/ridge.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scoring.ml.evaluators.ridge.features import Floats, measure_columns
from scoring.ml.evaluators.ridge.solve import Ints, fit_comparisons, fit_ratings

FOLDS = 5
#: Outputs scored at a time: bounds the memory of their features.
BLOCK = 8192


@dataclass(frozen=True)
class FoldScores:
    """Scores of all outputs (n,), and the penalty of each fold's model."""

    values: Floats
    penalties: tuple[float, ...]


def deal_folds(groups: Sequence[str], n_folds: int = FOLDS) -> dict[str, int]:
    """Return which of `n_folds` each distinct name in `groups` belongs to: in the order of a hash, so that folds differ
    by one group at most."""
    ordered = sorted(set(groups), key=lambda name: hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest())
    return {name: place % n_folds for place, name in enumerate(ordered)}


@dataclass(frozen=True)
class Judged:
    """What to learn from, (m,) columns: the rows `first` of outputs and their ratings in `labels`; or, with the rows
    `second` of the outputs they were compared with, of the same groups, their wins: 1, 1/2 for a tie, 0."""

    first: Ints
    labels: Floats
    second: Ints | None = None

    @property
    def rows(self) -> Ints:
        """The rows of all judged outputs."""
        return self.first if self.second is None else np.concatenate([self.first, self.second])

    def only(self, wanted: npt.NDArray[np.bool_]) -> Judged:
        """Return the judgements that are `wanted` (m,)."""
        second = None if self.second is None else self.second[wanted]
        return Judged(self.first[wanted], self.labels[wanted], second)


def score_by_folds(
    features: npt.NDArray[np.floating], judged: Judged, groups: Sequence[str], n_folds: int = FOLDS
) -> FoldScores:
    """Return a score of every output by models that have not seen its group.

    `features` (n, k) of all outputs, nan where a text is missing; `groups` (n,). Each of `n_folds` models, or as many
    as there are judged groups, learns from the other folds, its penalty and the scale of its features included. An
    output of a judged group is scored by the model of its fold, another one by the mean of all models. Scores learned
    from comparisons are log-odds. Raises `ValueError` with fewer than two judged groups.
    """
    folds = deal_folds([groups[row] for row in judged.first.tolist()], n_folds)
    count = min(n_folds, len(folds))
    if count < 2:
        raise ValueError("at least two judged groups are needed")
    fold = np.array([folds.get(name, -1) for name in groups])
    models = [_fit(features, judged.only(fold[judged.first] != number), groups) for number in range(count)]
    weights = np.stack([model.weights for model in models], axis=1)
    shift = np.stack([model.mean * model.weights for model in models], axis=1)
    bias = np.array([model.bias for model in models]) - shift.sum(axis=0)
    values = np.empty(len(features))
    for start in range(0, len(features), BLOCK):
        own = slice(start, start + BLOCK)
        block = np.array(features[own], dtype=np.float64)
        missing = np.isnan(block)
        block[missing] = 0.0
        # A missing feature counts as the mean: its share of the score is 0.
        by_model = block @ weights + missing.astype(np.float64) @ shift + bias
        place = np.maximum(fold[own], 0)[:, None]
        seen = np.take_along_axis(by_model, place, axis=1)[:, 0]
        values[own] = np.where(fold[own] >= 0, seen, by_model.mean(axis=1))
    return FoldScores(values, tuple(model.penalty for model in models))


@dataclass(frozen=True)
class _Model:
    """A linear score of features as they are: missing ones count as `mean`."""

    mean: Floats
    weights: Floats
    bias: float
    penalty: float


def _fit(features: npt.NDArray[np.floating], judged: Judged, groups: Sequence[str]) -> _Model:
    outputs, place = np.unique(judged.rows, return_inverse=True)
    own = np.asarray(features[outputs], dtype=np.float64)
    mean, spread = measure_columns(own)
    own -= mean
    own /= spread
    own[np.isnan(own)] = 0.0
    names, n = [groups[row] for row in judged.first.tolist()], len(judged.first)
    if judged.second is None:
        found = fit_ratings(own[place], judged.labels, names)
        bias = found.bias
    else:
        found = fit_comparisons(own[place[:n]] - own[place[n:]], judged.labels, names)
        # Differences tell nothing about the level: the compared outputs have the mean 0, so that folds are comparable.
        bias = -float((own @ found.weights)[place].mean())
    return _Model(mean, found.weights / spread, bias, found.penalty)
