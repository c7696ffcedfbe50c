"""ridge on frozen vectors beside trivial baselines and trained evaluators, on held-out groups of rated sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from store import read_lines
from study import FOLDER, Result, Run, Tables, row, with_ends

from evalapp.stats.core.multiple_tests import holm
from evalapp.stats.correlation.coefficients import Coefficient
from evalapp.stats.correlation.grouping import GroupedCoefficients
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, Grouping, resample_correlation
from evalapp.stats.resampling.bootstrap import Bootstrap, percentile_interval
from scoring.ml import Dataset, cross_fit, load
from scoring.ml.encoders.kept import cached_vectors
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.ridge.features import Rows, build_features
from scoring.ml.evaluators.ridge.solve import fit_ratings
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder
from scoring.ml.training.gold import RatedOutputs, collect_rated_outputs
from scoring.ml.training.record import record_groups

Floats = npt.NDArray[np.float64]
RIDGE, FOLDS, RESAMPLES = "ridge", 5, 2000
#: What is measured of each evaluator: name -> coefficient and grouping.
MEASURES: Mapping[str, tuple[Coefficient, Grouping]] = {
    "pearson": ("pearson", "none"),
    "spearman": ("spearman", "none"),
    "within": ("spearman", "system"),
}


@dataclass(frozen=True)
class RatedSet:
    """A rated set without the systems left out: `columns` are the trivial scores and features of all its outputs."""

    name: str
    data: Dataset
    ratings: str

    def collect(self, aspect: str) -> RatedOutputs:
        return collect_rated_outputs(self.data, aspect, self.ratings)  # type: ignore[arg-type]

    def number_folds(self, seed: int) -> dict[str, int]:
        """The fold of each item: whole groups, drawn by `seed` as in `cross_fit`."""
        parts = self.data.split(seed=seed, shares=(1.0,) * FOLDS)
        return {item.id: number for number, part in enumerate(parts) for item in part.items}


class Measured:
    """An aspect of a set: people's means, and the figures of scores with intervals over groups of items."""

    def __init__(self, rated: RatedOutputs) -> None:
        self.means = rated.means()
        self.items = np.array([record.item for record in rated.records], dtype=object)
        self.systems = np.array([record.system for record in rated.records], dtype=object)
        self.groups = np.array(record_groups(rated.records), dtype=object)

    def resample(self, scores: Sequence[Floats], measure: str) -> tuple[float | None, Floats]:
        """The coefficient, mean over seeds, and its (resamples,) replicates, paired between evaluators."""
        coefficient, grouping = MEASURES[measure]
        settings = CorrelationSettings(coefficients=(coefficient,), grouping=grouping)
        bootstrap = Bootstrap(cluster=self.groups, resamples=RESAMPLES, seed=13)
        points, draws = [], []
        for values in scores:
            point, drawn, _units = resample_correlation(
                values, self.means, self.items, self.systems, settings=settings, bootstrap=bootstrap
            )
            points.append(point.value)
            draws.append(drawn)
        defined = [value for value in points if value is not None]
        return (float(np.mean(defined)) if len(defined) == len(points) else None), np.mean(draws, axis=0)
