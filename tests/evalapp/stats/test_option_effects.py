"""Every field of an options object changes the result of each function that takes it, or the function refuses it."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import evalapp.stats
from evalapp.stats.agreement.coefficients import agreement_table
from evalapp.stats.agreement.icc import icc, iccs
from evalapp.stats.agreement.kappa import cohen_kappa, fleiss_kappa, percent_agreement
from evalapp.stats.agreement.krippendorff import krippendorff_alpha
from evalapp.stats.assisted.comparisons import ScoredOutputs, rank_by_assisted_comparisons
from evalapp.stats.assisted.means import estimate_means, rank_by_assisted_mean
from evalapp.stats.correlation.ceiling import OutputRatings, noise_ceiling
from evalapp.stats.correlation.dialogue import calibrated_correlations, dialogue_correlations
from evalapp.stats.correlation.matrix import correlation_matrix
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate, resample_correlation
from evalapp.stats.correlation.pair_tests import PairTests
from evalapp.stats.correlation.paired import compare, compare_replicates, compare_shares
from evalapp.stats.correlation.pairs import acc_eq, calibrate_ties, tau_eq
from evalapp.stats.correlation.significance import compare_all, compare_verdicts
from evalapp.stats.correlation.slices import slice_estimates
from evalapp.stats.correlation.system_pairs import soft_pairwise_accuracy, system_pairwise_accuracy
from evalapp.stats.correlation.verdicts import agree_on_pairs, one_against_others, verdict_pairs
from evalapp.stats.ranking.comparisons import PairwiseComparisons, rank_by_comparisons
from evalapp.stats.ranking.systems import rank_by_m1, rank_by_mean, rank_by_win_rate
from evalapp.stats.resampling.bootstrap import Bootstrap

RNG = np.random.default_rng(5)
ITEMS, SYSTEMS = 24, 8
ITEM, SYSTEM = (axis.ravel() for axis in np.meshgrid(np.arange(ITEMS), np.arange(SYSTEMS), indexing="ij"))
N = ITEMS * SYSTEMS
HUMAN = RNG.integers(1, 6, N) + 0.3 * SYSTEM
#: Scores related to the human ones. All scores of item 3 are equal, so that it has no coefficient.
GOOD, POOR = (np.where(ITEM == 3, 2.0, HUMAN + RNG.normal(0, noise, N)) for noise in (2, 3))
GROUP = ITEM // 3
#: Three ratings of every output.
RATER, OUTPUT = np.tile(np.arange(3), N), np.repeat(np.arange(N), 3)
RATING = np.clip(np.round(np.repeat(HUMAN, 3)) + RNG.integers(-1, 2, 3 * N), 1, 8)
RATING[ITEM[OUTPUT] == 3] = 4
#: Comparisons of five systems; three people judge each pair.
SIDES = RNG.permutation([(a, b) for a in range(5) for b in range(a + 1, 5)] * 12)
VERDICT = np.where(RNG.random(len(SIDES)) < 0.2, "tie", np.where(RNG.random(len(SIDES)) < 0.6, "a", "b"))
JUDGED = verdict_pairs(np.repeat(np.arange(40), 3) * 2, np.repeat(np.arange(40), 3) * 2 + 1, RNG.integers(-1, 2, 120))
OUTCOMES = {name: RNG.random(N) < share for name, share in (("good", 0.9), ("fair", 0.7), ("poor", 0.6))}

RESAMPLED = Bootstrap(resamples=60, seed=3)
BY_OUTPUT, BY_ITEM, BY_RATING = np.arange(N) // 24, GROUP, np.repeat(GROUP, 3)
SEGMENTS = CorrelationSettings(grouping="item")


@dataclass(frozen=True)
class Call:
    """A function, its arguments, the options objects in them, and another cluster for its rows."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    cluster: Any = None
    numbers: Callable[[Any], Any] = lambda result: result


def resampled(function: Callable[..., Any], *arguments: Any, cluster: Any, **others: Any) -> Call:
    return Call(function, arguments, {"bootstrap": RESAMPLED, **others}, cluster)


def read_tests(result: Any) -> Any:
    """The numbers of `AllPairs` without the settings that it repeats."""
    return [getattr(result, field.name) for field in fields(result) if field.name not in PairTests.__slots__]


CALLS = [
    resampled(agreement_table, RATING, OUTPUT, RATER, cluster=BY_RATING),
    resampled(icc, RATING, OUTPUT, RATER, cluster=BY_RATING),
    resampled(iccs, RATING, OUTPUT, RATER, cluster=BY_RATING),
    resampled(percent_agreement, RATING, OUTPUT, RATER, cluster=BY_RATING),
    resampled(fleiss_kappa, RATING, OUTPUT, RATER, cluster=BY_RATING),
    resampled(cohen_kappa, RATING[::3], RATING[1::3], cluster=BY_ITEM),
    resampled(krippendorff_alpha, OUTPUT, RATING, cluster=BY_RATING),
    Call(noise_ceiling, (OutputRatings(RATING, OUTPUT, RATER, ITEM[OUTPUT], SYSTEM[OUTPUT]),),
         {"settings": SEGMENTS, "bootstrap": RESAMPLED}, BY_RATING),
    resampled(dialogue_correlations, GOOD, ITEM, HUMAN, ITEM, np.full(N, "fluency"), cluster=BY_ITEM),
    resampled(calibrated_correlations, GOOD, ITEM * SYSTEMS + SYSTEM, SYSTEM,
              {"fluency": {system: HUMAN[system == SYSTEM].mean() for system in range(SYSTEMS)}}, cluster=BY_ITEM),
    resampled(correlation_matrix, np.stack([GOOD, POOR, HUMAN], axis=1), cluster=BY_ITEM),
    Call(correlate, (GOOD, HUMAN, ITEM, SYSTEM), {"settings": SEGMENTS, "bootstrap": RESAMPLED}, BY_ITEM,
         lambda result: result.estimates),
    Call(resample_correlation, (GOOD, HUMAN, ITEM, SYSTEM), {"settings": SEGMENTS, "bootstrap": RESAMPLED}, BY_ITEM),
    Call(compare, (GOOD, POOR, HUMAN, ITEM, SYSTEM), {"settings": SEGMENTS, "bootstrap": RESAMPLED}, BY_ITEM),
    Call(compare_replicates, ([GOOD, HUMAN + POOR], POOR, HUMAN, ITEM, SYSTEM),
         {"settings": SEGMENTS, "bootstrap": RESAMPLED}, BY_ITEM),
    resampled(compare_shares, OUTCOMES["good"], OUTCOMES["fair"], cluster=BY_ITEM),
    resampled(acc_eq, GOOD, HUMAN, ITEM, cluster=BY_ITEM),
    resampled(tau_eq, GOOD, HUMAN, ITEM, cluster=BY_ITEM),
    resampled(calibrate_ties, GOOD, HUMAN, ITEM, cluster=BY_ITEM),
    Call(slice_estimates, (GOOD, HUMAN, ITEM, SYSTEM, np.where(ITEM % 2, "news", "chat")),
         {"settings": SEGMENTS, "bootstrap": RESAMPLED}, ITEM // 2),
    resampled(system_pairwise_accuracy, GOOD, HUMAN, SYSTEM, cluster=BY_ITEM),
    resampled(soft_pairwise_accuracy, GOOD, HUMAN, ITEM, SYSTEM, cluster=BY_ITEM),
    resampled(agree_on_pairs, GOOD[:60] - POOR[:60], np.sign(HUMAN[:60] - HUMAN[60:120]).astype(int),
              cluster=np.arange(60) // 4),
    resampled(one_against_others, JUDGED, cluster=np.arange(120) // 6),
    resampled(rank_by_mean, RATING, ITEM[OUTPUT], SYSTEM[OUTPUT], cluster=BY_RATING),
    resampled(rank_by_assisted_mean, estimate_means(np.where(ITEM % 2, HUMAN, np.nan), GOOD, ITEM, SYSTEM),
              cluster=BY_ITEM),
    Call(rank_by_assisted_comparisons,
         (*(SYSTEMS * (np.arange(len(SIDES)) % ITEMS)[:, None] + SIDES).T, VERDICT,
          ScoredOutputs(ITEM, ITEM, SYSTEM, GOOD)),
         {"method": "win-rate", "bootstrap": RESAMPLED}, BY_ITEM),
    resampled(rank_by_win_rate, np.arange(len(SIDES)), SIDES[:, 0], SIDES[:, 1], VERDICT,
              cluster=np.arange(len(SIDES)) // 4),
    resampled(rank_by_m1, ITEM, SYSTEM, np.where(HUMAN > 4, "a", "b"), cluster=BY_ITEM),
    Call(compare_all, ({"good": GOOD, "poor": POOR, "twin": GOOD + RNG.normal(0, 0.1, N)}, HUMAN, ITEM, SYSTEM),
         {"tests": PairTests(grouping="item", k=200, test="perm-inputs")}, numbers=read_tests),
    Call(compare_verdicts, (OUTCOMES, ITEM), {"tests": PairTests(k=200)},
         numbers=read_tests),
    Call(rank_by_comparisons,
         (PairwiseComparisons(
             [f"s{a}" for a in SIDES[:, 0]], [f"s{b}" for b in SIDES[:, 1]], VERDICT.tolist(), np.arange(len(SIDES))
         ),), {"interval": "bootstrap", "bootstrap": RESAMPLED}, np.arange(len(SIDES)) // 4),
]  # fmt: skip
#: Another value of each field.
OTHERS: dict[str, Any] = {
    "resamples": 90, "seed": 4, "confidence": 0.8, "level": "system", "grouping": "system", "nan_rule": "zero",
    "coefficients": ("kendall",), "interval": "bca", "resampling_unit": "both", "coefficient": "kendall",
    "test": "bootstrap", "k": 100, "alpha": 0.9, "adjust": "none", "block": 20,
}  # fmt: skip


#: Fields that a function documents as unused: jackknife intervals have no draws, and replicates have no confidence.
UNUSED = {
    "calibrated_correlations-bootstrap.resamples", "calibrated_correlations-bootstrap.seed",
    "resample_correlation-bootstrap.confidence",
}  # fmt: skip


def list_fields() -> Iterator[Any]:
    for call in CALLS:
        for name, options in call.options.items():
            for field in fields(options) if is_dataclass(options) else ():
                place = f"{call.function.__name__}-{name}.{field.name}"
                if place not in UNUSED:
                    yield pytest.param(call, name, field.name, id=place)


@pytest.mark.parametrize(("call", "name", "field"), list(list_fields()))
def test_every_field_has_an_effect_or_is_refused(call: Call, name: str, field: str) -> None:
    other = call.cluster if field == "cluster" else OTHERS[field]
    changed = {**call.options, name: replace(call.options[name], **{field: other})}
    before, refusal, after = call.numbers(call.function(*call.arguments, **call.options)), "", None
    try:
        after = call.numbers(call.function(*call.arguments, **changed))
    except ValueError as error:
        refusal = str(error)
    assert field in refusal if after is None else pickle.dumps(before) != pickle.dumps(after)


def test_every_function_with_options_is_called() -> None:
    taking = set()
    for module in pkgutil.walk_packages(evalapp.stats.__path__, "evalapp.stats."):
        if module.name.endswith(".recompute"):
            continue
        for name, function in vars(importlib.import_module(module.name)).items():
            if isinstance(function, FunctionType) and function.__module__ == module.name and not name.startswith("_"):
                defaults = [parameter.default for parameter in inspect.signature(function).parameters.values()]
                if {Bootstrap, CorrelationSettings, PairTests} & set(map(type, defaults)):
                    taking.add(name)
    assert taking == {call.function.__name__ for call in CALLS}
