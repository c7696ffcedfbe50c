"""How a shipped evaluator agrees with people on rated dialogue sets that it has not seen, for its card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml.base import Floats
from scoring.ml.dataset import read_dataset
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.ridge.features import Rows, build_features
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder
from scoring.ml.registry import load
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.gold import RatedOutputs, collect_rated_outputs
from scoring.ml.training.record import record_groups
from scoring.ml.types import Record


@dataclass(frozen=True)
class RatedSet:
    """A rated set: its folder, the aspect, the systems left out, and the Spearman coefficient of MAUDE that Yeh,
    Eskenazi and Mehri (2021) printed for it."""

    name: str
    aspect: str
    published: float
    without: tuple[str, ...] = ()


_REFERENCE = ("Original Ground Truth",)
RATED = (
    RatedSet("usr_topicalchat", "overall", 0.083, _REFERENCE),
    RatedSet("usr_personachat", "overall", 0.298, _REFERENCE),
    RatedSet("grade_convai2", "coherence", 0.304),
    RatedSet("grade_dailydialog", "coherence", -0.073),
    RatedSet("grade_empathetic", "coherence", -0.057),
    RatedSet("predictive_engagement", "engagement", 0.060),
)


def measure_agreement(evaluator: TrainedEvaluator, name: str, folder: Path, seed: int) -> tuple[dict[str, Any], ...]:
    """Return rows for `TrainingRecord.elsewhere`: for each set in `folder` the coefficients of the `evaluator`, called
    `name`, of length and of the better cosine, with 95 % intervals (bootstrap over groups of items by `seed`), and the
    published coefficient. Raises the errors of `read_dataset`."""
    return tuple(row for one in RATED for row in _measure_set(evaluator, name, folder / one.name, one, seed))


def _measure_set(
    evaluator: TrainedEvaluator, name: str, folder: Path, one: RatedSet, seed: int
) -> Iterator[dict[str, Any]]:
    data = read_dataset(folder)
    outputs = tuple(row for row in data.outputs if row.system not in one.without)
    ratings = tuple(row for row in data.ratings if row.system not in one.without)
    rated = collect_rated_outputs(replace(data, outputs=outputs, ratings=ratings), one.aspect)
    said = {"data": one.name, "aspect": one.aspect}
    for label, values in ((name, evaluator.score(rated.records)), ("length", load("length").score(rated.records))):
        yield {**said, "evaluator": label, **_correlate(values, rated, seed)}
    found = [_correlate(values, rated, seed) for values in _cosines(rated.records)]
    best = max(found, key=lambda row: float(row["pearson"]["value"]))
    yield {**said, "evaluator": "best cosine", **best}
    unknown = {"value": None, "low": None, "high": None, "n": best["pearson"]["n"], "note": "not quoted"}
    published = {"pearson": unknown, "spearman": {**unknown, "value": one.published, "note": ""}}
    yield {**said, "evaluator": "MAUDE as published", "n_groups": best["n_groups"], **published}


def _correlate(values: Floats, rated: RatedOutputs, seed: int) -> dict[str, Any]:
    cluster = np.array(record_groups(rated.records), dtype=object)
    found = correlate(
        values,
        rated.means(),
        np.array([record.item for record in rated.records], dtype=object),
        np.array([record.system for record in rated.records], dtype=object),
        bootstrap=Bootstrap(cluster=cluster, seed=seed),
        settings=CorrelationSettings(level="segment"),
    )
    return {"n_groups": found.n_clusters, **{kind: found[kind].as_dict() for kind in ("pearson", "spearman")}}


def _cosines(records: Sequence[Record]) -> list[Floats]:
    """The cosine of each output with the last turns of its context, and with the nearest reference where all have
    one."""
    rows = Rows(records)
    sides = tuple(name for name in ("context", "references") if all(rows.sides[name]))
    encoder = UtteranceEncoder(find_encoder())
    vectors = encoder.vectors(encoder.tokenize(rows.table.texts, rows.table.left).encodings)
    features = build_features(vectors.astype(np.float64), rows, sides)
    width = vectors.shape[1]
    # The columns of a side are its products, then its cosines (two for references).
    return [features[:, (2 + number) * width + number] for number in range(len(sides))]
