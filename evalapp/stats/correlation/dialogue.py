"""Turn-level evaluators at the level of dialogues: mean scores over turns, correlated with ratings of whole dialogues
and with calibrated system means. Calibration is in `calibration`.

Explained in docs/explanation/statistics/correlation.md#dialogues."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.core.coding import FloatArray, IntArray, encode, float_column, identifiers, parents, snap
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.options import refuse_options
from evalapp.stats.correlation.coefficients import Coefficient
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.resampling.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap


@dataclass(frozen=True, slots=True)
class DialogueScores:
    """One score per dialogue: parallel vectors of identifiers (sorted), the mean over turns with a score (nan
    without any), and their number. `n_missing` counts turns without a score."""

    dialogue: NDArray[Any]
    mean: FloatArray
    n_turns: IntArray
    n_missing: int

    def __len__(self) -> int:
        return len(self.mean)


def dialogue_scores(score: ArrayLike, dialogue: ArrayLike) -> DialogueScores:
    """Return mean scores over turns; (n,) columns, one row per turn of the system, nan = no score.

    `score`: of each turn; `dialogue`: its identifier.

    Means that differ only by rounding are made equal, so that ties stay ties."""
    scores = float_column(score, "score")
    codes, labels = encode(dialogue, "dialogue", len(scores))
    known = np.isfinite(scores)
    counts = np.bincount(codes[known], minlength=len(labels))
    sums = np.bincount(codes[known], weights=scores[known], minlength=len(labels))
    means = np.divide(sums, counts, out=np.full(len(labels), np.nan), where=counts > 0)
    return DialogueScores(labels, snap(means), counts, int((~known).sum()))


def dialogue_correlations(
    score: ArrayLike,
    dialogue: ArrayLike,
    value: ArrayLike,
    rated_dialogue: ArrayLike,
    aspect: ArrayLike,
    *,
    coefficient: Coefficient = "spearman",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> dict[str, Estimate]:
    """Return, by aspect, the correlation of the evaluator's mean over turns with raw ratings of whole dialogues.

    `score`, `dialogue`: one row per turn; `value`, `rated_dialogue`, `aspect`: one row per rating. Several ratings of
    one dialogue are averaged. n = dialogues with a score and a rating; those without one are counted in the note; the
    interval is a bootstrap over dialogues."""
    scores = dialogue_scores(score, dialogue)
    values = float_column(value, "value")
    rated = identifiers(rated_dialogue, "rated_dialogue", len(values))
    aspects, names = encode(aspect, "aspect", len(values))
    own = dict(zip(scores.dialogue.tolist(), scores.mean.tolist(), strict=True))
    result = {}
    for code, name in enumerate(names.tolist()):
        rows = aspects == code
        people = dialogue_scores(values[rows], rated[rows])
        metric = [own.get(label, np.nan) for label in people.dialogue.tolist()]
        missing = int((~np.isfinite(metric) & np.isfinite(people.mean)).sum())
        estimate = correlate(
            metric,
            people.mean,
            people.dialogue,
            np.zeros(len(people)),
            settings=CorrelationSettings(coefficients=[coefficient]),
            bootstrap=bootstrap,
        )[coefficient]
        result[str(name)] = estimate.with_note(f"{missing} rated dialogues have no score") if missing else estimate
    return result


def calibrated_correlations(
    score: ArrayLike,
    dialogue: ArrayLike,
    system: ArrayLike,
    calibrated: Mapping[str, Mapping[Hashable, float]],
    *,
    coefficient: Coefficient = "spearman",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> dict[str, Estimate]:
    """Return, by aspect, the correlation of the evaluator's mean per system with the calibrated human mean of that
    system.

    `score`, `dialogue`, `system`: score of each turn, its dialogue and the dialogue's system; `coefficient`: see
    `correlate`.

    One row per turn; a system's score is the mean over its dialogues of their means over turns. `calibrated` gives
    by aspect the mean of each system adjusted for the raters' leniency (`calibrate_raters`). n = systems with both;
    the interval is a jackknife over systems that treats calibrated means as known; of `bootstrap` only whether there
    are `resamples` and the `confidence` apply."""
    refuse_options(bootstrap, "cluster")
    scores = dialogue_scores(score, dialogue)
    codes, _ = encode(dialogue, "dialogue")
    systems, labels = encode(system, "system", len(codes))
    names = labels[parents(codes, systems, len(scores), "system")]
    result = {}
    for aspect, means in calibrated.items():
        human = [means.get(name, np.nan) for name in names.tolist()]
        result[str(aspect)] = correlate(
            scores.mean,
            human,
            scores.dialogue,
            names,
            settings=CorrelationSettings(level="system", coefficients=[coefficient]),
            bootstrap=bootstrap,
        )[coefficient]
    return result
