"""How often does a 95 % interval of ours cover the truth, and a test at .05 reject a true null? Simulated data.

Nothing is read and nothing is trained: numbers from distributions whose truth is known, and `evalapp.stats`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from store import ABSENT, Given, Result, Store, arguments, publish, store_of, table

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

PARTS = ("means", "correlations", "comparisons", "tests", "population", "agreement", "raters")
Array = NDArray[Any]
#: One simulated data set -> what came true of it, by name.
Trial = Callable[[np.random.Generator, int], dict[str, list[bool]]]


#: Of a result, what is not a figure.
UNTOLD = ("seeds", "wall_seconds", "load", "code")


def shares(trial: Trial, seeds: int) -> Result:
    """The share of hits by name over so many simulated data sets, with the number of hits that could be."""
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
    """Two equal systems, six ratings of each output: are they told apart at 99 %?"""

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        value = (
            rng.normal(0, 0.5, (items, 1, 1)) + rng.normal(0, 0.7, (items, 2, 1)) + rng.normal(0, 0.7, (items, 2, 6))
        )
        item, system = np.repeat(np.arange(items), 12), np.tile(np.repeat([0, 1], 6), items)
        rows = rank_by_mean(
            value.ravel(), item, system, bootstrap=Bootstrap(resamples=200, seed=seed, confidence=0.99)
        ).systems
        return {"told apart": [all(row.rank_low == row.rank_high for row in rows)]}

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


def of_slices(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
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


def judged(rng: np.random.Generator, theta: Array, items: int, per_item: int) -> tuple[Array, Array, Array, Array]:
    """Verdicts of Bradley-Terry, to whose strengths every item adds something of its own (SD .6)."""
    k = len(theta)
    own = rng.normal(0, 0.6, (items, k))
    a = rng.integers(0, k, (items, per_item))
    b = (a + rng.integers(1, k, a.shape)) % k
    item = np.repeat(np.arange(items), per_item).reshape(a.shape)
    won = rng.random(a.shape) < expit(theta[a] - theta[b] + own[item, a] - own[item, b])
    return a.ravel(), b.ravel(), np.where(won, "a", "b").ravel(), item.ravel()


def in_numbers(ranking: Ranking) -> Array:
    found = np.zeros(len(ranking.systems))
    for row in ranking.systems:
        found[row.system] = row.estimate.value
    return found


def comparisons(items: int, equal: bool, method: str = "bradley-terry") -> Trial:
    """Six systems, 15 judgements of an item. The truth is what 20,000 items give."""
    theta = np.zeros(6) if equal else np.array([0.6, 0.36, 0.12, -0.12, -0.36, -0.6])
    truth = np.full(6, ELO_ZERO)
    if not equal:
        a, b, verdict, _ = judged(np.random.default_rng(1), theta, 20_000, 15)
        truth = in_numbers(
            rank_by_comparisons(PairwiseComparisons(a, b, verdict), model=ComparisonModel(method=method))
        )  # type: ignore[arg-type]

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        a, b, verdict, item = judged(rng, theta, items, 15)
        rows = rank_by_comparisons(
            PairwiseComparisons(a, b, verdict, item=item), model=ComparisonModel(method=method)
        ).systems  # type: ignore[arg-type]
        hits = {"interval": [covers(row.estimate, truth[row.system]) for row in rows]}
        if equal:
            return hits | {"set too narrow": [(row.rank_low, row.rank_high) != (1, 6) for row in rows]}
        return hits | {"ranks": [row.rank_low <= 1 + row.system <= row.rank_high for row in rows]}

    return trial


def equal_metrics(n: int, systems: int, m: int, **options: Any) -> Trial:
    """Metrics that follow people equally well: do any two get different letters; is the one-sided p of two <= .05?"""

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


#: Of the simulated evaluators and people, standard deviations: systems' quality, outputs around it, items, what people
#: and evaluators add to an output by chance, and what an evaluator adds to an item.
QUALITY, OUTPUT, ITEM, PEOPLE, CHANCE, OF_ITEM = 0.5, 0.7, 0.5, 0.5, 1.0, 0.3


def rated_systems(rng: np.random.Generator, quality: Array, errors: Sequence[Array], n: int) -> tuple[Array, ...]:
    """People's scores and those of an evaluator for each vector of errors about systems, (items, systems)."""
    k = len(quality)
    output = quality + OUTPUT * rng.normal(size=(n, k)) + ITEM * rng.normal(size=(n, 1))
    human = output + PEOPLE * rng.normal(size=(n, k))
    metrics = [
        output + error + CHANCE * rng.normal(size=(n, k)) + OF_ITEM * rng.normal(size=(n, 1)) for error in errors
    ]
    return human, *metrics


def fixed_errors(rng: np.random.Generator, quality: Array, spread: float, times: int) -> list[Array]:
    """Errors about these systems with which evaluators follow people equally well: of one length, without correlation
    with quality, so that one is the other turned around it."""
    found = []
    for _ in range(times):
        error = rng.normal(size=len(quality))
        error -= error.mean() + (error @ quality) / (quality @ quality) * quality
        found.append(spread * math.sqrt(len(quality)) * error / math.sqrt(error @ error))
    return found


def equal_evaluators(systems: int, spread: float, *, fixed: bool, items: int, level: Level, **options: Any) -> Trial:
    """Two evaluators that follow people equally well, each with errors about systems of SD `spread`: `fixed` for these
    systems, whose quality is fixed, too ("these systems, items like these"), or drawn anew with the systems in every
    data set ("systems and items like these"). Do they get different letters?"""
    quality = np.random.default_rng(systems).normal(0, QUALITY, systems)
    quality -= quality.mean()

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        of_systems = quality if fixed else rng.normal(0, QUALITY, systems)
        drawn = [spread * rng.normal(size=systems) for _ in range(2)]
        errors = fixed_errors(rng, quality, spread, 2) if fixed else drawn
        human, one, two = rated_systems(rng, of_systems, errors, items)
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
    """The same on pairs of outputs that people compared, systems and errors fixed: share of decided pairs."""
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
    """Of the systems' means, which are normal (an item's own part is the same for all systems)."""
    shared = QUALITY**2 + OUTPUT**2 / items
    one, other = shared + PEOPLE**2 / items, shared + spread**2 + CHANCE**2 / items
    rho = shared / math.sqrt(one * other)
    return {"pearson": rho, "spearman": 6 / math.pi * math.asin(rho / 2), "kendall": 2 / math.pi * math.asin(rho)}


def systems_covered(systems: int, spread: float, items: int) -> Trial:
    """Intervals of the correlation of systems' means and of a difference of two, systems and errors drawn anew."""
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
    """Intervals of correlations over outputs for these systems, errors about them fixed. The truth is what 20,000 items
    give."""
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
    """Three raters with biases 0, .4, -.2. The truth is what 60,000 units give."""
    bias = (0.0, 0.4, -0.2)
    large = rated(np.random.default_rng(0), 60_000, bias)
    truth = {name: function(*large, resamples=0).value for name, function in COEFFICIENTS.items()}

    def trial(rng: np.random.Generator, seed: int) -> dict[str, list[bool]]:
        columns = rated(rng, units, bias)
        return {
            name: [covers(function(*columns, resamples=300, seed=seed), truth[name])]
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


def population_settings() -> dict[str, tuple[Callable[[], Trial], int]]:
    """Tests and intervals against the null hypothesis of their own caption, and the earlier test and interval."""
    found: dict[str, tuple[Callable[[], Trial], int]] = {}
    new, these = "systems and items like these", "these systems, items like these"
    for k in (8, 16, 32):
        for t in (0.0, 0.1, 0.3):
            where = f"{k} systems, t = {t:g}"
            ways: dict[str, tuple[bool, int, int, dict[str, Any]]] = {
                f"{new}: PERM-SYSTEMS, Pearson": (False, 200, 600, {"level": "system"}),
                f"{new}: PERM-SYSTEMS, Spearman": (False, 50, 300, {"level": "system", "coefficient": "spearman"}),
                f"{new}: bootstrap, Pearson": (False, 50, 300, {"level": "system", "test": "bootstrap", "k": 300}),
                f"{new}: PERM-INPUTS, means (0.1.0; no letters now)": (
                    False,
                    200,
                    300,
                    {"level": "system", "test": "perm-inputs", "k": 400},
                ),
                f"{these}: PERM-INPUTS, means (no letters)": (
                    True,
                    100,
                    300,
                    {"level": "system", "test": "perm-inputs", "k": 400},
                ),
                f"{these}: PERM-INPUTS, outputs": (True, 100, 500, {"level": "segment", "k": 400}),
                f"{these}: PERM-INPUTS, within items": (
                    True,
                    100,
                    500,
                    {"level": "segment", "grouping": "item", "k": 400},
                ),
                f"{these}: PERM-INPUTS, within systems": (
                    True,
                    100,
                    500,
                    {"level": "segment", "grouping": "system", "k": 400},
                ),
                f"{these}: bootstrap, outputs": (True, 100, 200, {"level": "segment", "test": "bootstrap", "k": 300}),
                f"{new}: PERM-INPUTS, outputs (another caption’s question)": (
                    False,
                    100,
                    300,
                    {"level": "segment", "k": 400},
                ),
            }
            for name, (fixed, n, times, how) in ways.items():
                found[f"{name}, {where}"] = (
                    lambda k=k, t=t, fixed=fixed, n=n, how=how: equal_evaluators(k, t, fixed=fixed, items=n, **how),
                    times,
                )
            found[f"{these}: on compared pairs, {where}"] = (lambda k=k, t=t: equal_verdicts(k, t, 100), 500)
            found[f"{new}: intervals of means, {where}"] = (lambda k=k, t=t: systems_covered(k, t, 200), 500)
            for n in (30, 100):
                found[f"{these}: intervals over outputs, {n} items, {where}"] = (
                    lambda k=k, t=t, n=n: outputs_covered(k, t, n), 1000
                )  # fmt: skip
    return found


#: Part -> setting -> trial made when it is needed, and how many data sets.
SETTINGS: dict[str, dict[str, tuple[Callable[[], Trial], int]]] = {
    "means": {
        **{f"{n} items": (lambda n=n: mean_ratings(n), 1000) for n in (5, 10, 20, 50)},
        **{f"settled, {n} items": (lambda n=n: settled(n), 1000) for n in (2, 3, 5, 10, 20)},
    },
    "correlations": {
        **{f"{n} pairs": (lambda n=n: correlation(n), 60) for n in (10, 20, 50, 200)},
        **{f"{k} systems": (lambda k=k: system_level(k), 60) for k in (6, 10, 20)},
        "slices": (lambda: of_slices, 30),
    },
    "comparisons": {
        **{f"{n} items": (lambda n=n: comparisons(n, False), 400) for n in (7, 10, 20, 50)},
        "20 items, Davidson": (lambda: comparisons(20, False, "davidson"), 400),
        **{f"{n} items, equal": (lambda n=n: comparisons(n, True), 400) for n in (10, 50)},
    },
    "tests": {
        "2 metrics, PERM-INPUTS, Pearson, 100 outputs": (lambda: equal_metrics(100, 1, 2), 400),
        "2 metrics, bootstrap, Pearson, 100 outputs": (lambda: equal_metrics(100, 1, 2, test="bootstrap", k=400), 100),
        "2 metrics, Williams, 100 outputs": (lambda: equal_metrics(100, 1, 2, test="williams"), 400),
        "5 metrics, PERM-INPUTS, Pearson, 100 outputs": (lambda: equal_metrics(100, 1, 5), 60),
        "2 metrics, PERM-INPUTS, Spearman, 60 outputs": (
            lambda: equal_metrics(60, 1, 2, coefficient="spearman", k=400), 100),
        "2 metrics, PERM-BOTH, acc-eq, 40 items of 5, pairs apart": (
            lambda: equal_metrics(40, 5, 2, coefficient="acc-eq", grouping="item", k=400, test="perm-both"), 100),
        "2 metrics, PERM-INPUTS, acc-eq, 40 items of 5, whole items": (
            lambda: equal_metrics(40, 5, 2, coefficient="acc-eq", grouping="item", k=400, cluster=True), 100),
        "2 metrics, PERM-BOTH, acc-eq, 20 items of 10, pairs apart": (
            lambda: equal_metrics(20, 10, 2, coefficient="acc-eq", grouping="item", k=400, test="perm-both"), 100),
        "2 metrics, PERM-INPUTS, acc-eq, 20 items of 10, whole items": (
            lambda: equal_metrics(20, 10, 2, coefficient="acc-eq", grouping="item", k=400, cluster=True), 100),
        "2 metrics, PERM-SYSTEMS, means of 8 systems": (lambda: equal_metrics(20, 8, 2, level="system", k=400), 60),
        "2 metrics, bootstrap, means of 8 systems": (
            lambda: equal_metrics(20, 8, 2, level="system", test="bootstrap", k=300), 60),
        **{f"a difference, {n} outputs": (lambda n=n: two_metrics(n), 100) for n in (10, 30, 100)},
    },
    "population": population_settings(),
    "agreement": {f"{n} units": (lambda n=n: agreement(n), 400) for n in (10, 20, 50)},
    "raters": {
        "calibration": (lambda: calibration, 200),
        "components": (lambda: components, 100),
        **{f"ceiling, {n} units": (lambda n=n: ceiling(n), 200) for n in (30, 100)},
    },
}  # fmt: skip


def compute(given: Given, store: Store) -> None:
    for part in PARTS:
        for setting, (made, seeds) in SETTINGS[part].items() if given.wants(part) else ():
            n = 4 if given.quick else seeds
            store.once(f"{part} | {setting}", 0, lambda made=made, n=n: shares(made(), n))  # type: ignore[misc]


NOTES = {
    "means": """
`interval` and `ranks`: how often the interval of a system's mean holds the true mean, and its best to worst rank the
true rank. `told apart`: how often two equal systems come out as settled at 99 %. Percentiles of few items are too
narrow, as for any statistic; that is why the watch page gives no advice to stop below 20 items. Fewer than 5
items have no interval and any rank, so nothing is settled there.""",
    "correlations": """
Pairs: percentile and BCa intervals of the three coefficients over independent outputs. Systems: the interval of the
correlation of means, where each system is left out once (`jackknife`, the default), where items and systems are drawn
(`both`, until 0.1.0) and where only items are (`inputs`), against the correlation in the population the systems are a
sample of: `inputs` does not say how little few systems tell.
Slices: the shrunken interval takes the whole and the spread of slices as known.""",
    "comparisons": """
Sandwich intervals over items and, unless the systems are equal, ranks. `set too narrow`: the share of equal systems
whose set of ranks is not 1 to 6, because one differs from one of five others at .05 each; `adjust="holm"` counts all
pairs.""",
    "tests": """
`letters`: how often two equal metrics get different letters, after Holm: .05 at most is right. `one-sided`: how often
the one-sided p of the better is at most .05, which is twice as often because the data say which is the better. With
pairs of outputs exchanged one by one (as WMT does) the test of `acc-eq` is too bold, the more so the more outputs an
item has: pairs of one output are not independent. The product exchanges whole items. A bootstrap over systems and
items is cautious.""",
    "population": """
Every test and interval against the null hypothesis, or the truth, of its own caption. *Systems and items like these*:
systems, their quality (SD .5) and each evaluator's errors about them (SD t) are drawn anew in every data set. *These
systems, items like these*: quality and errors are fixed, with equal true correlations of both evaluators. `letters`:
how often two equally good evaluators get different ones; at most .08 of 8 systems and .07 of more is asked for. Other
names: how often an interval of 95 % holds the truth, .93 to .97 is asked for; behind it the Monte Carlo interval
(Wilson). At the level of systems the product tests by PERM-SYSTEMS only: PERM-INPUTS, its test until 0.1.0, keeps an
evaluator's errors about systems on both sides of every exchange, and rejects far too often for other systems and for
these. Over outputs PERM-INPUTS speaks about these systems alone; for others it would reject too often, so the caption
says so, and the level of systems is the way to that question. Intervals over outputs are a little too narrow (.906 to
.942 from 30 items, .921 to .946 from 100), those of Kendall's coefficient over systems a little too wide; the tables
say so.""",
    "agreement": "\nThe three raters are taken as given: another three would have another agreement.",
    "raters": """
Calibrated means of systems where each output has three ratings: with outputs as an effect of their own (what the
product computes), without, and with all variances 1. Components: intervals of REML. The ceiling is that of three
raters.""",
}


def rows_of(part: str, store: Store) -> Iterable[list[str]]:
    for setting in SETTINGS[part]:
        for found in store.of(f"{part} | {setting}", [0]):
            told = {name: value for name, value in found.items() if name not in UNTOLD}
            figures = ", ".join(
                f"{name} {'-' if value is None else f'{value:.3f}'}" + _around(part, value, found["seeds"])
                for name, value in told.items()
            )
            yield [setting, figures, str(found["seeds"])]


def _around(part: str, share: float | None, n: int) -> str:
    """Wilson's interval of a share of n data sets, where the part has one hit or miss for each."""
    if part != "population" or share is None:
        return ""
    z = 1.96
    centre, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = ((centre + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return f" [{low:.3f}, {high:.3f}]"


def write(given: Given, store: Store) -> None:
    lines = [
        "# Do intervals cover, do tests hold their level?", "",
        "Simulated data of known truth, by `intervals.py`. An interval of 95 % should hold the truth in .95 of the",
        "data sets, a test at .05 reject a true null in .05. With 1,000 independent data sets .95 is between .94",
        "and .96 by chance, with 400 between .93 and .97, with 100 between .91 and .99, with 60 between .90 and 1.",
    ]  # fmt: skip
    for part in PARTS:
        rows = list(rows_of(part, store))
        shown = table(["setting", "share", "data sets"], rows)
        body = [*NOTES[part].splitlines(), "", *shown] if rows else ["", ABSENT]
        lines += ["", f"## {part.capitalize()}", *body]
    publish(given, "intervals", lines)


def main() -> None:
    given = arguments(__doc__ or "", seeds=[0], parts=PARTS, without=("data", "seeds", "encoder", "items"))
    store = store_of(given, "intervals")
    if not given.page_only:
        compute(given, store)
    write(given, store)


if __name__ == "__main__":
    main()
