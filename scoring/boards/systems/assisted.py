"""Systems by human judgements, assisted by an evaluator's scores of all outputs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.assisted.means import AssistedMeans, AssistedOptions, estimate_means, rank_by_assisted_mean
from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.data.columns import Ratings, Scores, select_ratings
from scoring.boards.systems.rankings import Settings, Table, read_draws, systems_table

#: Share of saved judgements below which an evaluator is said not to help: chance alone gives a few percent.
LEAST_SAVED = 0.05
SAMPLE = "The judged outputs count as a random sample of the scored ones: people must not have chosen them by quality."


def systems_by_assisted_ratings(
    ratings: Ratings,
    scores: Scores,
    settings: Settings,
    *,
    aspect: str,
    ends: tuple[float | None, float | None],
    evaluator: Mapping[str, Any],
) -> Table:
    """Return systems by mean rating of an aspect with an evaluator's help. `settings`: ratings, systems, target;
    `ends`: of the scale."""
    kept, value, counted = select_ratings(ratings, settings["ratings"], settings["systems"])
    kept, value = kept.only(np.isfinite(value)), value[np.isfinite(value)]
    scores = select_scores(scores, settings["systems"])
    place = find_outputs(kept.output, scores)
    human = mean_by_output(value, place, len(scores))
    means = estimate_means(
        human, scores.value, scores.cluster, scores.system, options=AssistedOptions(target=settings["target"])
    )
    bootstrap = Bootstrap(**read_draws(settings))
    ranking = rank_by_assisted_mean(means, bootstrap)
    is_scored = place >= 0
    side, simulated = scores.system[place[is_scored]], kept.simulated[is_scored]
    raters = len(np.unique(kept.rater[is_scored]))
    table = systems_table(settings, ranking, scores.units, simulated, side, aspect=aspect, raters=raters)
    table["scale"] = list(ends) if settings["ratings"] == "raw" else [None, None]
    table["counted"] = [*counted, *_describe_sample(means, len(np.unique(kept.output[~is_scored])))]
    add_assistance(table, means, scores, np.bincount(side, minlength=len(scores.units.units)), evaluator)
    return table


def select_scores(scores: Scores, subset: str) -> Scores:
    """Return the defined scores of a subset of systems."""
    wanted = scores.units.wanted(subset)
    rows = np.isfinite(scores.value) & (wanted[scores.system] if len(scores) else np.zeros(0, dtype=np.bool_))
    columns = {name: getattr(scores, name)[rows] for name in ("item", "cluster", "system", "value", "output")}
    return replace(scores, **columns)


def find_outputs(output: IntArray, scores: Scores) -> IntArray:
    """Return the row of each output in the scores, -1 if it has no score."""
    assert scores.output is not None
    order = np.argsort(scores.output)
    known = scores.output[order]
    if not len(known):
        return np.full(len(output), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(known, output), len(known) - 1)
    return np.where(known[place] == output, order[place], -1)


def mean_by_output(value: FloatArray, place: IntArray, n: int) -> FloatArray:
    """Return the mean of the values of each of `n` outputs, nan without one; `place` -1 is left out."""
    rows = place >= 0
    counts = np.bincount(place[rows], minlength=n)
    sums = np.bincount(place[rows], weights=value[rows], minlength=n)
    # Rounded like the human scores of metric tables, so that equal means are equal.
    return np.round(np.divide(sums, counts, out=np.full(n, np.nan), where=counts > 0), 10)


def add_assistance(
    table: Table, means: AssistedMeans, scores: Scores, n_ratings: NDArray[Any], evaluator: Mapping[str, Any]
) -> None:
    """Add to every row the figures by judgements only, and what the evaluator saves; to the table, who assists."""
    confidence = 0.95
    label = [scores.units.units[int(code)].label for code in means.labels]
    by_label = {name: k for k, name in enumerate(label)}
    codes = {unit.label: code for code, unit in enumerate(scores.units.units)}
    for row in table["rows"]:
        k = by_label[row["label"]]
        human = means.estimate(k, confidence, human=True).as_dict()
        row["n_ratings"] = int(n_ratings[codes[row["label"]]])
        is_judged = bool(means.n_judged[k])
        row["assisted"] = {
            "human": {name: human[name] for name in ("value", "low", "high", "note")},
            "n_scored": int(means.n_scored[k]),
            "effective": float(means.effective[k]) if is_judged else None,
            "weight": float(means.weight[k]) if is_judged else None,
        }
    target = means.options.target
    table |= {"assist": evaluator["slug"], "target": target, "evaluator": dict(evaluator)}
    table["signature"] += f"|assist:{evaluator['slug']}|target:{target}"
    table["extras"]["saved"] = saved = find_saved(means)
    table["findings"] = [*table.get("findings", []), describe_saved(str(evaluator["slug"]), means, saved)]


def find_saved(means: AssistedMeans) -> float | None:
    """Return the share of judgements that the evaluator saves: 1 - assisted / human variance, sums over systems; None
    without a variance."""
    known: BoolArray = (means.n_groups > 1) & (means.human_variance > 0)
    if not known.any():
        return None
    return float(1.0 - means.variance[known].sum() / means.human_variance[known].sum())


def describe_saved(name: str, means: AssistedMeans, saved: float | None) -> str:
    """Return a sentence on what the evaluator saves."""
    if saved is None:
        return f"Too few judgements to tell what {name} saves."
    if saved < LEAST_SAVED:
        reason = (
            "every scored output was judged"
            if (means.n_judged == means.n_scored).all()
            else ("its scores say little about the ratings within a system")
        )
        return f"{name} does not help here: {reason}. The intervals are about those of judgements only."
    return (
        f"{name} saves about {saved:.0%} of the judgements: intervals are as narrow as with "
        f"{1 / (1 - saved):.2f} times as many."
    )


def _describe_sample(means: AssistedMeans, n_unscored: int) -> list[str]:
    """Return sentences on judged outputs without a score, and on the sample."""
    result = []
    if n_unscored:
        result.append(f"{n_unscored:,} judged outputs have no score and are not counted.")
    if (means.n_judged < means.n_scored).any():
        result.append(SAMPLE)
    return result
