"""Systems by human judgements, assisted by an evaluator's scores of all outputs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.assisted.comparisons import AssistedComparisons, ScoredOutputs, rank_by_assisted_comparisons
from evalapp.stats.assisted.means import (
    AssistedMeans,
    AssistedOptions,
    Target,
    estimate_means,
    find_saved,
    rank_by_assisted_mean,
    share_saved,
)
from evalapp.stats.core.coding import FloatArray, IntArray
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.data.columns import Comparisons, Ratings, Scores, persons, select_ratings, without_repeats
from scoring.boards.systems.rankings import (
    Settings,
    Table,
    compared_within,
    number_units,
    read_draws,
    systems_table,
)

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
    chance = find_chances(kept.chance, place, len(scores))
    target: Target = "items-like-these" if chance is not None else settings["target"]
    means = estimate_means(
        human, scores.value, scores.cluster, scores.system, options=AssistedOptions(target=target), chance=chance
    )
    bootstrap = Bootstrap(**read_draws(settings))
    ranking = rank_by_assisted_mean(means, bootstrap)
    is_scored = place >= 0
    side, simulated = scores.system[place[is_scored]], kept.simulated[is_scored]
    raters = len(np.unique(kept.rater[is_scored]))
    table = systems_table(settings, ranking, scores.units, simulated, side, aspect=aspect, raters=raters)
    table["scale"] = list(ends) if settings["ratings"] == "raw" else [None, None]
    table["counted"] = [
        *counted, *_describe_sample(means, len(np.unique(kept.output[~is_scored]))),
        *_describe_chosen(chance, asked=settings["target"]),
    ]  # fmt: skip
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


def find_chances(chance: FloatArray | None, place: IntArray, n: int) -> FloatArray | None:
    """Return the chance of each of `n` outputs, None if none was chosen. An output with a rating from elsewhere was not
    chosen: it belongs to the sample of that rating."""
    if chance is None or not np.isfinite(chance).any():
        return None
    result = np.full(n, np.nan)
    chosen, rows = np.isfinite(chance), place >= 0
    result[place[rows & chosen]] = chance[rows & chosen]
    result[place[rows & ~chosen]] = np.nan
    return result


def systems_by_assisted_comparisons(
    comparisons: Comparisons, scores: Scores, settings: Settings, *, aspect: str, evaluator: Mapping[str, Any]
) -> Table:
    """Return systems by comparisons of an aspect with an evaluator's help. `settings`: method, systems, assist."""
    kept = compared_within(comparisons, settings["systems"], turing=False)
    scores = select_scores(scores, settings["systems"])
    assert kept.output_a is not None
    assert kept.output_b is not None
    one, two = find_outputs(kept.output_a, scores), find_outputs(kept.output_b, scores)
    is_scored = (one >= 0) & (two >= 0)
    kept, one, two = kept.only(is_scored), one[is_scored], two[is_scored]
    labels = np.array([unit.label for unit in scores.units.units] or [""])
    outputs = ScoredOutputs(scores.item, scores.cluster, labels[scores.system], scores.value)
    found = rank_by_assisted_comparisons(
        one, two, kept.verdict, outputs, method=settings["method"], bootstrap=Bootstrap(**read_draws(settings))
    )
    ranking = number_units(found.assisted, scores.units)
    side = np.concatenate([scores.system[one], scores.system[two]])
    raters = len(np.unique(persons(kept.rater, kept.raters)))
    simulated = np.concatenate([kept.simulated] * 2)
    table = systems_table(settings, ranking, scores.units, simulated, side, aspect=aspect, raters=raters)
    table["n_simulated"] = int(kept.simulated.sum())  # one judgement, not one per side
    table["scale"] = [0.0, 1.0] if settings["method"] == "win-rate" else [None, None]
    table["counted"] = without_repeats(int(comparisons.repeat.sum()))
    if n_unscored := int((~is_scored).sum()):
        table["counted"].append(f"{n_unscored:,} comparisons of outputs without a score are not counted.")
    if found.n_judged < found.n_pairs:
        table["counted"].append(SAMPLE)
    if not ranking.systems:
        table["note"] = f"No scored output has been compared with another for {aspect}."
    _add_assisted_rows(table, found, scores)
    saved = share_saved(sum(found.variance.values()), sum(found.human_variance.values()))
    _name_evaluator(table, evaluator, "items-like-these", saved, found.n_judged == found.n_pairs)
    return table


def _add_assisted_rows(table: Table, found: AssistedComparisons, scores: Scores) -> None:
    human = {row.system: row.estimate.as_dict() for row in found.human.systems}
    n_scored = np.bincount(scores.system, minlength=len(scores.units.units))
    codes = {unit.label: code for code, unit in enumerate(scores.units.units)}
    for row in table["rows"]:
        name = row["label"]
        above, below = (one.get(name, np.nan) for one in (found.human_variance, found.variance))
        row["assisted"] = {
            "human": {key: human[name][key] for key in ("value", "low", "high", "note")},
            "n_scored": int(n_scored[codes[name]]),
            "effective": float(row["n"] * above / below) if below > 0 else None,
            "weight": found.weight if below > 0 else None,
        }


def add_assistance(
    table: Table, means: AssistedMeans, scores: Scores, n_ratings: NDArray[Any], evaluator: Mapping[str, Any]
) -> None:
    """Add to every row the figures by judgements only, and what the evaluator saves; to the table, who assists."""
    label = [scores.units.units[int(code)].label for code in means.labels]
    by_label = {name: k for k, name in enumerate(label)}
    codes = {unit.label: code for code, unit in enumerate(scores.units.units)}
    for row in table["rows"]:
        k = by_label[row["label"]]
        human = means.estimate(k, human=True).as_dict()
        row["n_ratings"] = int(n_ratings[codes[row["label"]]])
        is_judged = bool(means.n_judged[k])
        row["assisted"] = {
            "human": {name: human[name] for name in ("value", "low", "high", "note")},
            "n_scored": int(means.n_scored[k]),
            "effective": float(means.effective[k]) if is_judged else None,
            "weight": float(means.weight[k]) if is_judged else None,
        }
    _name_evaluator(
        table, evaluator, means.options.target, find_saved(means), bool((means.n_judged == means.n_scored).all())
    )


def _name_evaluator(
    table: Table, evaluator: Mapping[str, Any], target: str, saved: float | None, is_complete: bool
) -> None:
    table |= {"assist": evaluator["slug"], "target": target, "evaluator": dict(evaluator)}
    table["signature"] += f"|assist:{evaluator['slug']}|target:{target}"
    table["extras"]["saved"] = saved
    table["findings"] = [*table.get("findings", []), describe_saved(str(evaluator["slug"]), saved, is_complete)]


def describe_saved(name: str, saved: float | None, is_complete: bool) -> str:
    """Return a sentence on what the evaluator saves; `is_complete`: everything scored was judged."""
    if saved is None:
        return f"Too few judgements to tell what {name} saves."
    if saved < LEAST_SAVED:
        reason = (
            "everything scored was judged" if is_complete else "its scores say little about judgements within systems"
        )
        return f"{name} does not help here: {reason}. The intervals are about those of judgements only."
    return (
        f"{name} saves about {saved:.0%} of the judgements: intervals are as narrow as with "
        f"{1 / (1 - saved):.2f} times as many."
    )


def _describe_chosen(chance: FloatArray | None, *, asked: str) -> list[str]:
    """Return sentences on outputs that were chosen with known chances."""
    if chance is None:
        return []
    n = int(np.isfinite(chance).sum())
    result = [f"{n:,} outputs were chosen by their expected error and are weighted by 1 / chance, in both columns."]
    if asked != "items-like-these":
        result.append("A chosen sample has estimates for items like these only.")
    return result


def _describe_sample(means: AssistedMeans, n_unscored: int) -> list[str]:
    """Return sentences on judged outputs without a score, and on the sample."""
    result = []
    if n_unscored:
        result.append(f"{n_unscored:,} judged outputs have no score and are not counted.")
    if (means.n_judged < means.n_scored).any() and not means.is_weighted:
        result.append(SAMPLE)
    return result
