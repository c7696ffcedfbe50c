"""Figures besides coefficients in tables of evaluators: pairwise accuracies, noise ceiling and significance tests."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from evalapp.stats.core.coding import FloatArray, IntArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.multiple_tests import needed_draws
from evalapp.stats.correlation.ceiling import OutputRatings, disattenuate, noise_ceiling
from evalapp.stats.correlation.coefficients import Coefficient
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, resample_correlation
from evalapp.stats.correlation.pair_tests import PairTests
from evalapp.stats.correlation.pairs import TieCalibration, calibrate_ties
from evalapp.stats.correlation.significance import AllPairs, compare_all
from evalapp.stats.correlation.system_pairs import soft_pairwise_accuracy, system_pairwise_accuracy
from evalapp.stats.resampling.bootstrap import Bootstrap, with_interval
from scoring.boards.base import Settings, Table
from scoring.boards.metrics.people import People

#: Figures by which evaluators are tested: a coefficient, or pairwise accuracy with calibrated ties.
COMPARED = ("pearson", "spearman", "kendall", "acc-eq")
TESTS = ("permutation", "williams", "bootstrap", "none")
#: The permutation test before 0.2.0, in old exports and snapshots: it exchanged groups of items at every level (for
#: rankings, systems).
EARLIER: Literal["perm-both"] = "perm-both"
CHANGED = (
    "Since version 0.2.0, scores of whole systems are exchanged at this level; before, groups of items were exchanged, "
    "which had too many false positives"
)
#: Figures of a row after the coefficients, by level.
EXTRA: dict[str, tuple[str, ...]] = {"segment": ("accuracy",), "system": ("pa", "spa")}
#: Folds of the cross-validated accuracy.
FOLDS = 5
#: Block size of sequential tests for rank coefficients, whose resamples are expensive.
BLOCK = 500
_FAST = ("pearson", "acc-eq")


def extra_figures(metric: FloatArray, people: People, settings: Settings) -> Table:
    """Return pairwise accuracies of an evaluator: within items with calibrated ties (with threshold and cross-validated
    accuracy), or PA and SPA at the system level."""
    draws = {} if settings.get("resamples") is None else {"resamples": int(settings["resamples"])}
    if settings["level"] == "system":
        pa = system_pairwise_accuracy(metric, people.mean, people.system, bootstrap=Bootstrap(**draws))
        spa = soft_pairwise_accuracy(metric, people.mean, people.item, people.system, bootstrap=Bootstrap(**draws))
        return {"pa": pa.as_dict(), "spa": spa.as_dict()}
    rule: Any = settings.get("undefined") or "drop"
    bootstrap = Bootstrap(cluster=people.cluster, seed=13, **draws)
    ties = calibrate_ties(metric, people.mean, people.item, folds=FOLDS, nan_rule=rule, bootstrap=bootstrap)
    return {"accuracy": describe_ties(ties)}


def describe_ties(ties: TieCalibration) -> Table:
    """Return an accuracy with calibrated ties, its threshold and the cross-validated accuracy."""
    validated = ties.cross_validated
    return {
        **ties.accuracy.as_dict(),
        "epsilon": None if np.isnan(ties.epsilon) else ties.epsilon,
        "cross_validated": None if validated is None else validated.as_dict(),
    }


def no_figures(settings: Settings, reason: str) -> Table:
    """Return undefined figures with a reason."""
    undefined = Estimate.undefined(reason).as_dict()
    return {name: dict(undefined) for name in EXTRA[settings["level"]]}


def compute_ceiling(people: People, settings: Settings) -> Estimate:
    """Return the noise ceiling: the highest coefficient that an error-free metric could reach with these raters' means
    (split halves). Undefined for figures that are not correlations."""
    place = people.rating_place
    if not len(place):
        return Estimate.undefined("nothing was rated")
    coefficient = settings.get("coefficient", "pearson")
    if coefficient not in get_args(Coefficient):
        return Estimate.undefined("a ceiling is defined only for correlation coefficients")
    return noise_ceiling(
        OutputRatings(
            people.rating_value, place, people.rating_rater, item=people.item[place], system=people.system[place]
        ),
        bootstrap=Bootstrap(cluster=people.cluster[place], resamples=500, seed=13),
        settings=CorrelationSettings(
            coefficients=(coefficient,), level=settings["level"], grouping=settings["grouping"]
        ),
    )


def corrected(estimate: Mapping[str, Any], ceiling: Estimate) -> Table:
    """Return a coefficient divided by the ceiling."""
    value, low, high = (np.nan if estimate[end] is None else float(estimate[end]) for end in ("value", "low", "high"))
    return disattenuate(Estimate(value, low, high, int(estimate["n"]), str(estimate["note"])), ceiling).as_dict()


def exceed_rival(metric: FloatArray, rival: FloatArray, people: People, settings: Settings) -> Estimate:
    """Return by how much the coefficient of an evaluator exceeds that of a rival on the outputs that both have scored,
    with the interval of paired resamples."""
    both = np.isfinite(metric) & np.isfinite(rival)
    part = people.only(both)
    if not len(part):
        return Estimate.undefined("no output has both scores")
    correlation = CorrelationSettings(
        level=settings["level"],
        grouping=settings["grouping"],
        coefficients=(settings.get("coefficient") or "pearson",),
        nan_rule=settings.get("undefined") or "drop",
    )
    (own, own_drawn, units), (other, drawn, _units) = (
        resample_correlation(
            column[both], part.mean, part.item, part.system, settings=correlation, bootstrap=part.draw(settings)
        )
        for column in (metric, rival)
    )
    if not (own.is_defined and other.is_defined):
        return Estimate.undefined(own.note or other.note or "one of both coefficients is undefined", own.n)
    return with_interval(Estimate.point(own.value - other.value, own.n), own_drawn - drawn, clusters=units)


def tell_apart(
    columns: Sequence[FloatArray],
    names: Sequence[str],
    human: tuple[FloatArray, IntArray, IntArray],
    settings: Settings,
    *,
    cluster: IntArray | None,
) -> AllPairs | str:
    """Test all pairs of evaluators by `test` and `coefficient` of `settings` on the outputs that all have scored, or
    return why nothing is tested. `human`: the human score, item and system of each output."""
    test: Any = settings.get("test") or "permutation"
    coefficient: Any = settings.get("coefficient") or "pearson"
    usable = usable_columns(columns, names)
    if why_not := untested(test, usable):
        return why_not
    if test == "williams" and (
        coefficient != "pearson" or settings["level"] != "segment" or settings["grouping"] != "none"
    ):
        return "Williams’ test is for Pearson over all outputs together; choose the permutation test"
    if coefficient not in COMPARED:
        return f"there is no test for {coefficient.upper()}; see the intervals"
    if coefficient == "acc-eq" and settings["level"] == "system":
        return "pairs with calibrated ties belong to the level of outputs"
    is_earlier = test == EARLIER and cluster is not None
    result = compare_all(
        usable,
        *human,
        cluster=cluster,
        tests=PairTests(
            level=settings["level"],
            grouping="item" if coefficient == "acc-eq" else settings["grouping"],
            nan_rule=settings.get("undefined") or "drop",
            coefficient=coefficient,
            test="perm-inputs" if is_earlier else test,
            k=needed_draws(len(usable)),
            block=0 if coefficient in _FAST else BLOCK,
        ),
    )
    return replace(result, test=EARLIER) if is_earlier else result


def usable_columns(columns: Sequence[FloatArray], names: Sequence[str]) -> dict[str, FloatArray]:
    """Return columns with a value by name; equal names are numbered."""
    labels = unique_names(names)
    return {name: column for name, column in zip(labels, columns, strict=True) if np.isfinite(column).any()}


def unique_names(names: Sequence[str]) -> list[str]:
    """Return unique names: the second `name` becomes `name#2`."""
    return [name if (n := names[:place].count(name)) == 0 else f"{name}#{n + 1}" for place, name in enumerate(names)]


def untested(test: str, usable: Mapping[str, FloatArray]) -> str:
    """Return why these evaluators are not tested, "" if they are."""
    if test == "none":
        return "no test was requested"
    return "there are fewer than two evaluators to compare" if len(usable) < 2 else ""


def described(tested: AllPairs | str, names: Sequence[str], *, changed: str = CHANGED) -> Table:
    """Return the tests as a table with these names of evaluators. `changed` is the note on PERM-SYSTEMS, which replaced
    another test."""
    if isinstance(tested, str):
        return {"note": tested, "signature": "test:none", "names": [], "p": [], "p_holm": []}
    plain = tested.as_dict()
    kept = (
        "p",
        "p_holm",
        "test",
        "coefficient",
        "adjust",
        "alpha",
        "k",
        "k_used",
        "seed",
        "n_rows",
        "note",
        "signature",
        "population",
        "smallest_p",
    )
    own = dict(zip(unique_names(names), names, strict=True))
    changed = changed if tested.test == "perm-systems" else ""
    return {name: plain[name] for name in kept} | {"names": [own[name] for name in tested.names], "changed": changed}


def by_place(tested: AllPairs | str, names: Sequence[str]) -> dict[int, tuple[str, int]]:
    """Return letters and cluster of every tested evaluator by position."""
    if isinstance(tested, str):
        return {}
    places = {name: place for place, name in enumerate(unique_names(names))}
    rows = zip(tested.names, tested.letters, tested.rank, strict=True)
    return {places[name]: (letters, rank) for name, letters, rank in rows if letters}
