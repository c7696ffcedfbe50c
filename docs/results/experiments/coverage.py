"""Coverage of intervals and level of tests on simulated data whose truth is known. Nothing is read or trained."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from study import Result, Run, Tables
from study import row as make_row

from evalapp.stats.agreement.calibration import calibrate_raters
from evalapp.stats.agreement.components import variance_components
from evalapp.stats.agreement.icc import icc
from evalapp.stats.agreement.kappa import fleiss_kappa
from evalapp.stats.agreement.krippendorff import krippendorff_alpha
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.ceiling import OutputRatings, noise_ceiling
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, Grouping, Level, correlate
from evalapp.stats.correlation.pair_tests import PairTests
from evalapp.stats.correlation.paired import compare
from evalapp.stats.correlation.significance import compare_all, compare_verdicts
from evalapp.stats.correlation.slices import slice_estimates
from evalapp.stats.ranking.bradley_terry import ELO_ZERO
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.judgements import PairwiseComparisons
from evalapp.stats.ranking.systems import Ranking, rank_by_mean
from evalapp.stats.resampling.bootstrap import Bootstrap

Array = NDArray[Any]
#: One simulated data set -> hits and misses by name.
Trial = Callable[[np.random.Generator, int], dict[str, list[bool]]]
#: Fields of a result that are not shares.
NOT_SHARES = ("seeds", "wall_seconds", "load", "code")


def compute(run: Run) -> None:
    for part, label, make, sets in list_trials(run.settings["trials"]):
        if run.wants(part):
            run.once(f"{part} | {label}", 0, lambda m=make, n=4 if run.quick else sets: count_hits(m(), n))


def list_trials(entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, Callable[[], Trial], int]]:
    """Part, label, trial and number of data sets: every combination of the arguments that are lists."""
    for entry in entries:
        arguments = dict(entry)
        part, label, trial, sets = (arguments.pop(key) for key in ("part", "label", "trial", "sets"))
        listed = {key: value for key, value in arguments.items() if isinstance(value, list)}
        for values in itertools.product(*listed.values()):
            chosen = arguments | dict(zip(listed, values, strict=True))
            yield part, label.format(**chosen), lambda t=trial, c=chosen: TRIALS[t](**c), sets


def count_hits(trial: Trial, seeds: int) -> Result:
    """The share of hits by name over so many simulated data sets."""
    hits: dict[str, list[bool]] = {}
    for seed in range(seeds):
        for name, found in trial(np.random.default_rng([seed, 77]), seed).items():
            hits.setdefault(name, []).extend(found)
    return {"seeds": seeds, **{name: float(np.mean(found)) if found else math.nan for name, found in hits.items()}}


def covers(found: Estimate, truth: float) -> bool:
    return found.has_interval and bool(found.low <= truth <= found.high)


def mean_ratings(items: int) -> Trial:
    """Five systems .15 apart on the same items; items and outputs differ by .7."""
    truth = np.arange(5) * 0.15

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        value = truth + rng.normal(0, 0.7, (items, 1)) + rng.normal(0, 0.7, (items, 5))
        item, system = np.repeat(np.arange(items), 5), np.tile(np.arange(5), items)
        rows = rank_by_mean(value.ravel(), item, system, bootstrap=Bootstrap(resamples=500, seed=seed)).systems
        return {
            "interval": [covers(row.estimate, truth[row.system]) for row in rows],
            "ranks": [row.rank_low <= 5 - row.system <= row.rank_high for row in rows],
        }

    return trial


def settled(items: int) -> Trial:
    """Two equal systems, six ratings of each output: are they significantly different at 99 %?"""

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        value = (
            rng.normal(0, 0.5, (items, 1, 1)) + rng.normal(0, 0.7, (items, 2, 1)) + rng.normal(0, 0.7, (items, 2, 6))
        )
        item, system = np.repeat(np.arange(items), 12), np.tile(np.repeat([0, 1], 6), items)
        rows = rank_by_mean(
            value.ravel(), item, system, bootstrap=Bootstrap(resamples=200, seed=seed, confidence=0.99)
        ).systems
        return {"different": [all(row.rank_low == row.rank_high for row in rows)]}

    return trial


def correlation(n: int) -> Trial:
    """Bivariate normal pairs that correlate .6."""
    rho = 0.6
    truth = {"pearson": rho, "spearman": 6 / math.pi * math.asin(rho / 2), "kendall": 2 / math.pi * math.asin(rho)}

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        x = rng.normal(size=n)
        y = rho * x + math.sqrt(1 - rho * rho) * rng.normal(size=n)
        hits = {}
        for way in ("percentile", "bca"):
            found = correlate(
                x,
                y,
                np.arange(n),
                np.zeros(n),
                bootstrap=Bootstrap(resamples=400, seed=seed),
                settings=CorrelationSettings(interval=way),
            )  # type: ignore[arg-type]
            hits |= {f"{name} {way}": [covers(found[name], truth[name])] for name in truth}  # type: ignore[index]
        return hits

    return trial


def system_level(systems: int) -> Trial:
    """A sample of systems whose true means correlate .7; 30 items add noise."""
    rho, n = 0.7, 30

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        one, other = rng.normal(size=(2, systems))
        system, item = np.tile(np.arange(systems), n), np.repeat(np.arange(n), systems)
        x = one[system] + rng.normal(size=len(item))
        y = (rho * one + math.sqrt(1 - rho * rho) * other)[system] + rng.normal(size=len(item))
        hits = {}
        for drawn in (None, "both", "inputs"):
            found = correlate(
                x,
                y,
                item,
                system,
                settings=CorrelationSettings(level="system", resampling_unit=drawn, coefficients=["pearson"]),
                bootstrap=Bootstrap(resamples=300, seed=seed),
            )["pearson"]  # type: ignore[call-overload]
            hits[drawn or "jackknife"] = [covers(found, rho / (1 + 1 / n))]
        return hits

    return trial


def simulate_slices(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
    """Six slices of 40 outputs whose Fisher z lies .2 about that of .5."""
    z, part = np.arctanh(0.5) + 0.2 * rng.normal(size=6), np.repeat(np.arange(6), 40)
    rho, x = np.tanh(z)[part], rng.normal(size=240)
    y = rho * x + np.sqrt(1 - rho * rho) * rng.normal(size=240)
    found = slice_estimates(
        x, y, np.arange(240), np.zeros(240), part, bootstrap=Bootstrap(resamples=200, seed=seed)
    ).slices
    pairs = list(zip(found, np.tanh(z), strict=True))
    return {
        "raw": [covers(one.raw, truth) for one, truth in pairs],
        "shrunken": [covers(one.shrunken, truth) for one, truth in pairs if one.shrunken.has_interval],
        "shrunken without an interval": [not one.shrunken.has_interval for one, _ in pairs],
    }


def simulate_verdicts(
    rng: np.random.Generator, theta: Array, items: int, per_item: int
) -> tuple[Array, Array, Array, Array]:
    """Bradley-Terry verdicts with an effect of each item on every strength (SD 0.6)."""
    k = len(theta)
    own = rng.normal(0, 0.6, (items, k))
    a = rng.integers(0, k, (items, per_item))
    b = (a + rng.integers(1, k, a.shape)) % k
    item = np.repeat(np.arange(items), per_item).reshape(a.shape)
    won = rng.random(a.shape) < expit(theta[a] - theta[b] + own[item, a] - own[item, b])
    return a.ravel(), b.ravel(), np.where(won, "a", "b").ravel(), item.ravel()


def read_values(ranking: Ranking) -> Array:
    found = np.zeros(len(ranking.systems))
    for row in ranking.systems:
        found[row.system] = row.estimate.value
    return found


def comparisons(items: int, equal: bool, method: str = "bradley-terry") -> Trial:
    """Six systems, 15 judgements of an item. The truth is the value from 20,000 items."""
    theta = np.zeros(6) if equal else np.array([0.6, 0.36, 0.12, -0.12, -0.36, -0.6])
    truth = np.full(6, ELO_ZERO)
    if not equal:
        a, b, verdict, _ = simulate_verdicts(np.random.default_rng(1), theta, 20_000, 15)
        truth = read_values(
            rank_by_comparisons(PairwiseComparisons(a, b, verdict), model=ComparisonModel(method=method))
        )  # type: ignore[arg-type]

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        a, b, verdict, item = simulate_verdicts(rng, theta, items, 15)
        rows = rank_by_comparisons(
            PairwiseComparisons(a, b, verdict, item=item), model=ComparisonModel(method=method)
        ).systems  # type: ignore[arg-type]
        hits = {"interval": [covers(row.estimate, truth[row.system]) for row in rows]}
        if equal:
            return hits | {"set too narrow": [(row.rank_low, row.rank_high) != (1, 6) for row in rows]}
        return hits | {"ranks": [row.rank_low <= 1 + row.system <= row.rank_high for row in rows]}

    return trial


def equal_metrics(n: int, systems: int, m: int, **options: Any) -> Trial:
    """Equally good metrics: do any two get different letters, and is the one-sided p of two at most .05?"""

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        human = rng.normal(size=n * systems)
        metrics = {str(k): human + 1.2 * rng.normal(size=len(human)) for k in range(m)}
        people = np.round(human) if options.get("coefficient") == "acc-eq" else human
        item, system = np.repeat(np.arange(n), systems), np.tile(np.arange(systems), n)
        asked = {name: value for name, value in options.items() if name != "cluster"}
        found = compare_all(
            metrics, people, item, system, cluster=item if options.get("cluster") else None,
            tests=PairTests(seed=seed, **asked),
        )  # fmt: skip
        return {"letters": [bool((found.p_holm <= 0.05).any())], "one-sided": [bool(found.p[0, 1] <= 0.05)]}

    return trial


#: Standard deviations of the simulation: quality of systems, outputs around it, items, noise of human scores, noise of
#: evaluators, and an evaluator's effect of items.
QUALITY, OUTPUT, ITEM, PEOPLE, CHANCE, ITEM_EFFECT = 0.5, 0.7, 0.5, 0.5, 1.0, 0.3


def rated_systems(rng: np.random.Generator, quality: Array, errors: Sequence[Array], n: int) -> tuple[Array, ...]:
    """Human scores, and those of an evaluator for each vector of errors about systems, (items, systems)."""
    k = len(quality)
    output = quality + OUTPUT * rng.normal(size=(n, k)) + ITEM * rng.normal(size=(n, 1))
    human = output + PEOPLE * rng.normal(size=(n, k))
    metrics = [
        output + error + CHANCE * rng.normal(size=(n, k)) + ITEM_EFFECT * rng.normal(size=(n, 1)) for error in errors
    ]
    return human, *metrics


def fixed_errors(rng: np.random.Generator, quality: Array, spread: float, times: int) -> list[Array]:
    """Errors about these systems that leave evaluators equally good: all texts of equal length, uncorrelated with
    quality."""
    found = []
    for _ in range(times):
        error = rng.normal(size=len(quality))
        error -= error.mean() + (error @ quality) / (quality @ quality) * quality
        found.append(spread * math.sqrt(len(quality)) * error / math.sqrt(error @ error))
    return found


def equal_evaluators(systems: int, spread: float, *, fixed: bool, items: int, level: Level, **options: Any) -> Trial:
    """Two equally good evaluators with errors about systems of SD `spread`: do they get different letters?

    With `fixed`, quality and errors are the same in all data sets ("these systems, items like these"); otherwise both
    are drawn for every data set ("systems and items like these").
    """
    quality = np.random.default_rng(systems).normal(0, QUALITY, systems)
    quality -= quality.mean()

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        drawn_quality = quality if fixed else rng.normal(0, QUALITY, systems)
        drawn = [spread * rng.normal(size=systems) for _ in range(2)]
        errors = fixed_errors(rng, quality, spread, 2) if fixed else drawn
        human, one, two = rated_systems(rng, drawn_quality, errors, items)
        item, system = np.repeat(np.arange(items), systems), np.tile(np.arange(systems), items)
        found = compare_all(
            {"one": one.ravel(), "two": two.ravel()},
            human.ravel(),
            item,
            system,
            tests=PairTests(level=level, seed=seed, **options),
        )
        return {"letters": [len(set(found.letters)) > 1]}

    return trial


def equal_verdicts(systems: int, spread: float, items: int) -> Trial:
    """The same for the share of decided pairs, systems and errors fixed."""
    quality = np.random.default_rng(systems).normal(0, QUALITY, systems)
    quality -= quality.mean()

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        human, one, two = rated_systems(rng, quality, fixed_errors(rng, quality, spread, 2), items)
        item = np.repeat(np.arange(items), 6)
        a = rng.integers(0, systems, len(item))
        b = (a + rng.integers(1, systems, len(item))) % systems
        sign = np.sign(human[item, a] - human[item, b])
        right = {
            name: (np.sign(metric[item, a] - metric[item, b]) == sign).astype(float)
            for name, metric in (("one", one), ("two", two))
        }
        return {"letters": [len(set(compare_verdicts(right, item, tests=PairTests(seed=seed)).letters)) > 1]}

    return trial


def true_correlations(spread: float, items: int) -> dict[str, float]:
    """True correlations of the systems' means, which are normal (an item's effect is the same for all systems)."""
    shared = QUALITY**2 + OUTPUT**2 / items
    one, other = shared + PEOPLE**2 / items, shared + spread**2 + CHANCE**2 / items
    rho = shared / math.sqrt(one * other)
    return {"pearson": rho, "spearman": 6 / math.pi * math.asin(rho / 2), "kendall": 2 / math.pi * math.asin(rho)}


def systems_covered(systems: int, spread: float, items: int) -> Trial:
    """Intervals of the correlation of systems' means and of a difference of two; systems and errors are drawn."""
    truth = true_correlations(spread, items)
    other = true_correlations(spread + 0.2, items)["pearson"]

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        quality = rng.normal(0, QUALITY, systems)
        errors = [sd * rng.normal(size=systems) for sd in (spread, spread + 0.2)]
        human, one, two = (column.ravel() for column in rated_systems(rng, quality, errors, items))
        where = np.repeat(np.arange(items), systems), np.tile(np.arange(systems), items)
        found = correlate(one, human, *where, settings=CorrelationSettings(level="system"))
        hits = {name: [covers(found[name], truth[name])] for name in truth if found[name].has_interval}  # type: ignore[index]
        before = correlate(
            one,
            human,
            *where,
            settings=CorrelationSettings(level="system", resampling_unit="both", coefficients=["pearson"]),
            bootstrap=Bootstrap(resamples=300, seed=seed),
        )["pearson"]  # type: ignore[call-overload]
        difference = compare(one, two, human, *where, settings=CorrelationSettings(level="system")).estimate
        hits |= {"difference": [covers(difference, truth["pearson"] - other)]}
        return hits | {"pearson before 0.2.0": [covers(before, truth["pearson"])]}

    return trial


def outputs_covered(systems: int, spread: float, items: int) -> Trial:
    """Intervals of correlations over outputs, systems and errors fixed. The truth is the value from 20,000 items."""
    rng = np.random.default_rng(systems)
    quality = rng.normal(0, QUALITY, systems)
    quality -= quality.mean()
    error = fixed_errors(rng, quality, spread, 1)
    human, metric = rated_systems(rng, quality, error, 20_000)
    where = np.repeat(np.arange(20_000), systems), np.tile(np.arange(systems), 20_000)
    groupings: tuple[Grouping, ...] = ("none", "item", "system")
    truth = {
        grouping: correlate(
            metric.ravel(),
            human.ravel(),
            *where,
            settings=CorrelationSettings(grouping=grouping, coefficients=["pearson"]),
            bootstrap=Bootstrap(resamples=0),
        )["pearson"].value
        for grouping in groupings
    }  # type: ignore[call-overload]

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        human, metric = rated_systems(rng, quality, error, items)
        where = np.repeat(np.arange(items), systems), np.tile(np.arange(systems), items)
        return {
            grouping: [covers(
                correlate(
                    metric.ravel(), human.ravel(), *where,
                    settings=CorrelationSettings(grouping=grouping, coefficients=["pearson"]),
                    bootstrap=Bootstrap(seed=seed, resamples=400),
                )["pearson"], value,
            )]
            for grouping, value in truth.items()
        }  # type: ignore[call-overload]  # fmt: skip

    return trial


def two_metrics(n: int) -> Trial:
    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        human = rng.normal(size=n)
        one, two = (human + 1.2 * rng.normal(size=n) for _ in range(2))
        found = compare(one, two, human, np.arange(n), np.zeros(n), bootstrap=Bootstrap(resamples=400, seed=seed))
        assert found.p is not None
        assert found.williams is not None
        return {"bootstrap": [found.p <= 0.05], "Williams": [found.williams <= 0.05]}

    return trial


COEFFICIENTS: dict[str, Callable[..., Estimate]] = {
    "alpha (interval)": lambda value, unit, rater, **how: krippendorff_alpha(unit, value, **how),
    "alpha (nominal)": lambda value, unit, rater, **how: krippendorff_alpha(unit, value, scale="nominal", **how),
    "Fleiss' kappa": fleiss_kappa,
    "ICC(A,1)": icc,
}


def rated(rng: np.random.Generator, units: int, bias: Sequence[float]) -> tuple[Array, Array, Array]:
    """Ratings 1 to 5 of every unit by each rater; units and chance have SD 1."""
    shape = (units, len(bias))
    value = np.clip(np.rint(3 + rng.normal(size=(units, 1)) + np.asarray(bias) + rng.normal(size=shape)), 1, 5)
    unit, rater = (grid.ravel() for grid in np.meshgrid(*map(np.arange, shape), indexing="ij"))
    return value.ravel(), unit, rater


def agreement(units: int) -> Trial:
    """Three raters with biases 0, .4, -.2. The truth is the value from 60,000 units."""
    bias = (0.0, 0.4, -0.2)
    large = rated(np.random.default_rng(0), 60_000, bias)
    truth = {name: function(*large, bootstrap=Bootstrap(resamples=0)).value for name, function in COEFFICIENTS.items()}

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        columns = rated(rng, units, bias)
        return {
            name: [covers(function(*columns, bootstrap=Bootstrap(resamples=300, seed=seed)), truth[name])]
            for name, function in COEFFICIENTS.items()
        }

    return trial


def ceiling(units: int) -> Trial:
    """Three raters without bias; units and chance have SD 1."""

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        value = rng.normal(size=(units, 1)) + rng.normal(size=(units, 3))
        unit, rater = np.repeat(np.arange(units), 3), np.tile(np.arange(3), units)
        found = noise_ceiling(
            OutputRatings(value.ravel(), unit, rater), repeats=20, bootstrap=Bootstrap(resamples=150, seed=seed)
        )
        return {"ceiling": [covers(found, math.sqrt(0.75))]}

    return trial


def design(rng: np.random.Generator, items: int, systems: int) -> tuple[Array, Array, Array, Array, Array]:
    """Three of eight raters for each output. SD: items .5, outputs .7, raters .5, chance .8; systems 2.5 to 3.5."""
    item, system = np.repeat(np.arange(items), systems * 3), np.tile(np.repeat(np.arange(systems), 3), items)
    rater = np.concatenate([rng.permutation(8)[:3] for _ in range(items * systems)])
    truth = np.linspace(2.5, 3.5, systems)
    noise = rng.normal(0, 0.5, items)[item] + rng.normal(0, 0.7, (items, systems))[item, system]
    value = truth[system] + noise + rng.normal(0, 0.5, 8)[rater] + rng.normal(0, 0.8, len(item))
    return value, item, system, rater, truth


def calibration(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
    """Five systems on 30 items."""
    value, item, system, rater, truth = design(rng, 30, 5)
    ways: dict[str, dict[str, Any]] = {
        "with outputs": {"item": item * 5 + system, "variances": "reml"},
        "without": {"variances": "reml"},
        "unit variances": {},
    }
    hits = {}
    for name, how in ways.items():
        found = calibrate_raters(value, system, rater, **how).systems
        hits[name] = [covers(row.estimate, truth[row.label]) for row in found]
    return hits


def components(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
    """Six systems on 25 items; their means have SD .32."""
    value, item, system, rater, truth = design(rng, 25, 6)
    value = value + (rng.normal(0, math.sqrt(0.1), 6) - truth)[system]
    found = variance_components(value, item, rater, system)
    parts = {"item": 0.25, "system": 0.1, "output": 0.49, "rater": 0.25, "residual": 0.64}
    return {name: [covers(getattr(found, name), variance)] for name, variance in parts.items()}


TRIALS: dict[str, Callable[..., Trial]] = {
    "mean_ratings": mean_ratings,
    "settled": settled,
    "correlation": correlation,
    "system_level": system_level,
    "slices": lambda: simulate_slices,
    "comparisons": comparisons,
    "equal_metrics": equal_metrics,
    "two_metrics": two_metrics,
    "equal_evaluators": equal_evaluators,
    "equal_verdicts": equal_verdicts,
    "systems_covered": systems_covered,
    "outputs_covered": outputs_covered,
    "agreement": agreement,
    "calibration": lambda: calibration,
    "components": lambda: components,
    "ceiling": ceiling,
}


def tabulate(run: Run) -> Tables:
    """Shares of all settings of a row together: mean, lowest and highest."""
    for table in ("coverage", "level"):
        for entry in run.settings[table]:
            found, sets = [], 0
            for result in find_results(run, entry["settings"]):
                names = entry.get("names", [name for name in result if name not in NOT_SHARES])
                found += [result[name] for name in names if result.get(name) is not None]
                sets = max(sets, result["seeds"])
            if found:
                share = {"value": float(np.mean(found)), "low": min(found), "high": max(found)}
                yield make_row(table, "what", entry["label"], share=share, settings=len(found), sets=sets)


def find_results(run: Run, prefix: str) -> list[Result]:
    """Results whose setting begins with the prefix; a star stands for any text."""
    start, _, end = prefix.partition("*")
    return [
        seeds[0] for setting, seeds in run.store.find(start).items() if end in setting
    ]  # fmt: skip
