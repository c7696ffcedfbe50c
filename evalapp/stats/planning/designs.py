"""Power of rating study designs based on a pilot study: closed form, simulation, and advice.

Closed forms that need no pilot are in `power`, variance components in `components`.

Explained in docs/explanation/statistics/planning.md#rating-designs-from-a-pilot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalapp.stats.agreement.components import Components
from evalapp.stats.core.coding import FloatArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.planning.power import DEFAULT_ALPHA, DEFAULT_POWER, EffectError

DEFAULT_SIMULATIONS = 2000
#: Largest number of ratings per output in the search for designs.
MAX_RATINGS = 15

# Above this noncentrality the tail on the wrong side is below 1e-8 at any common level.
_ONE_TAIL = 5.0
# Normal variates per chunk.
_CHUNK = 1 << 20
_LARGEST_ITEMS = 1_000_000


@dataclass(frozen=True, slots=True)
class Design:
    """A study of two systems on the same `items` with `ratings` per output by different raters; `judgements` in total.

    `power`: of the paired t test of the items' mean differences; `simulated`: share of simulated studies that detect
    the difference (Wilson interval), undefined without simulations; `error`: standard error of the difference."""

    items: int
    ratings: int
    judgements: int
    power: float
    simulated: Estimate
    error: float

    def as_dict(self) -> dict[str, Any]:
        """Return the design as JSON-safe values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"simulated": self.simulated.as_dict()}


@dataclass(frozen=True, slots=True)
class Plan:
    """Power of the requested design, and alternatives.

    `asked`: the requested design; `more_items`, `more_ratings`: the number of judgements doubled in either way;
    `cheapest`: the cheapest design with 1 to 15 ratings per output that reaches the power, None if there is none;
    `detectable`: the smallest difference that the requested design detects with that power; `advice`: sentences."""

    difference: float
    target: float
    alpha: float
    asked: Design
    more_items: Design
    more_ratings: Design
    cheapest: Design | None
    detectable: float
    reliability: float
    advice: tuple[str, ...]
    settings: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON-safe values."""
        designs = {name: getattr(self, name).as_dict() for name in ("asked", "more_items", "more_ratings")}
        return {
            "difference": self.difference, "target": self.target, "alpha": self.alpha, **designs,
            "cheapest": None if self.cheapest is None else self.cheapest.as_dict(), "detectable": self.detectable,
            "reliability": None if math.isnan(self.reliability) else self.reliability,
            "advice": list(self.advice), "settings": self.settings,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class StudyDesign:
    """A study in which both systems answer the same `items`.

    ratings: number of ratings per output, by different raters.
    same_raters: the same raters judge both outputs of an item, so that their bias cancels.
    raters: size of the rater pool; None: new raters for each output.
    scale: lowest and highest whole number of a rating; None: any number.
    item_cost: cost of an additional item in judgements (reading, generating)."""

    items: int
    ratings: int
    same_raters: bool = False
    raters: int | None = None
    scale: tuple[int, int] | None = None
    item_cost: float = 0.0


@dataclass(frozen=True, slots=True)
class SignificanceTest:
    """A paired t test over items at level `alpha`, two-sided or one-sided, and the desired power."""

    alpha: float = DEFAULT_ALPHA
    two_sided: bool = True
    power: float = DEFAULT_POWER


DEFAULT_TEST = SignificanceTest()


def plan(
    components: Components,
    difference: float,
    *,
    design: StudyDesign,
    test: SignificanceTest = DEFAULT_TEST,
    simulations: int = DEFAULT_SIMULATIONS,
    seed: int = 0,
) -> Plan:
    """Return the power of a design to detect a difference in true means, and designs that would raise it.

    `design`: the study; `test`: level and power; `simulations`: simulated studies, drawn by `seed`, that check the
    computed power (0: none).
    `components`: variances from a pilot (`variance_components`); `difference`: of the systems' true means, in units of
    the rating scale. With variances O (output), R (rater), E (residual) the mean difference of an item has variance 2
    (O + (E + R) / ratings), without R where the same raters judge both outputs; power follows from the noncentral t
    distribution. If the pilot could not separate outputs from items, the item variance replaces O, which is
    conservative. Simulated ratings are drawn by component, then rounded and truncated to the scale, if there is one.

    Raises `EffectError` if the variances or the design do not allow a plan.

    >>> from evalapp.stats.agreement.components import variance_components
    >>> components = variance_components([1, 2, 4, 5, 3, 3], list("xxyyzz"), ["ann", "bob"] * 3)
    >>> plan(components, 1.0, design=StudyDesign(items=40, ratings=2), simulations=0).asked.judgements
    160
    """
    items, ratings, raters = design.items, design.ratings, design.raters
    if difference == 0:
        raise EffectError("the difference to detect cannot be 0")
    if items < 2 or ratings < 1:
        raise EffectError("a design has at least 2 items and 1 rating per output")
    if raters is not None and raters < ratings:
        raise EffectError(f"{ratings} ratings per output by different raters need as many raters; there are {raters}")
    model = _Model(components, abs(difference), design, test, seed)
    if not model.noise(1) > 0:
        raise EffectError("the pilot shows no variance except between systems and items, so power cannot be computed")
    asked, more_items, more_ratings = (
        model.design(i, r, simulations) for i, r in ((items, ratings), (2 * items, ratings), (items, 2 * ratings))
    )
    cheapest = model.cheapest(test.power, design.item_cost, MAX_RATINGS if raters is None else min(MAX_RATINGS, raters))
    detectable = model.detectable(items, ratings, test.power)
    reliability = components.reliability(ratings)
    advice = _advice(model, asked, more_items, more_ratings, cheapest, detectable, test.power, design.item_cost)
    if not math.isnan(reliability):
        advice += _about_reliability(components, ratings, reliability)
    if model.cautious:
        advice.append(
            "The pilot had one system or one rating per output, so the item variance replaces the output variance."
        )
    settings = {
        "two_sided": test.two_sided, "same_raters": design.same_raters, "raters": raters,
        "item_cost": design.item_cost, "simulations": simulations,
        "scale": None if design.scale is None else list(design.scale), "seed": seed,
    }  # fmt: skip
    return Plan(
        difference, test.power, test.alpha, asked, more_items, more_ratings, cheapest, detectable, reliability,
        tuple(advice), settings,
    )  # fmt: skip


class _Model:
    """Variances of a paired design, with its power and simulation."""

    def __init__(
        self,
        components: Components,
        difference: float,
        design: StudyDesign,
        test: SignificanceTest,
        seed: int,
    ) -> None:
        self.difference, self.two_sided, self.same_raters = difference, test.two_sided, design.same_raters
        self.tail = test.alpha / 2.0 if test.two_sided else test.alpha
        self.cautious = not components.output.is_defined
        self.item, self.output = components.variance("item"), components.variance("output")
        if self.cautious:
            self.item, self.output = 0.0, self.item
        self.rater, self.residual = components.variance("rater"), components.variance("residual")
        self.mean, self.raters, self.scale, self.seed = components.mean, design.raters, design.scale, seed

    def noise(self, ratings: float) -> float:
        """Variance of an item's mean difference."""
        own = self.residual + (0.0 if self.same_raters else self.rater)
        return 2.0 * (self.output + own / ratings)

    def power(self, items: float, ratings: float, difference: float | None = None) -> float:
        from scipy.special import nctdtr, stdtrit

        freedom = items - 1.0
        shift = (self.difference if difference is None else difference) * math.sqrt(items / self.noise(ratings))
        critical = float(stdtrit(freedom, 1.0 - self.tail))
        result = 1.0 - float(nctdtr(freedom, shift, critical))
        # The other tail is negligible for larger shifts, and SciPy cannot compute it there.
        both = self.two_sided and shift < _ONE_TAIL
        return result + float(nctdtr(freedom, shift, -critical)) if both else result

    def design(self, items: int, ratings: int, simulations: int) -> Design:
        simulated = Estimate.undefined("no simulations were asked for")
        if simulations:
            hits = self._simulate(items, ratings, simulations)
            simulated = _wilson(hits, simulations)
        error = math.sqrt(self.noise(ratings) / items)
        return Design(items, ratings, 2 * items * ratings, self.power(items, ratings), simulated, error)

    def needed_items(self, ratings: int, power: float) -> int | None:
        """Return the smallest number of items that reaches the power; None above a million."""
        low, high = 1, 2
        while self.power(high, ratings) < power:
            low, high = high, high * 2
            if high > _LARGEST_ITEMS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.power(middle, ratings) < power else (low, middle)
        return high

    def cheapest(self, power: float, item_cost: float, most: int) -> Design | None:
        best, cost = None, math.inf
        for ratings in range(1, most + 1):
            items = self.needed_items(ratings, power)
            if items is not None and items * (item_cost + 2 * ratings) < cost - 1e-9:
                best, cost = (items, ratings), items * (item_cost + 2 * ratings)
        return None if best is None else self.design(*best, 0)

    def detectable(self, items: int, ratings: int, power: float) -> float:
        low, high = 0.0, math.sqrt(self.noise(ratings))
        while self.power(items, ratings, high) < power:
            high *= 2.0
        for _ in range(50):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.power(items, ratings, middle) < power else (low, middle)
        return high

    def _simulate(self, items: int, ratings: int, simulations: int) -> int:
        """Return the number of simulated studies that reject equality."""
        from scipy.special import stdtrit

        generator = np.random.default_rng([self.seed, items, ratings])
        critical = float(stdtrit(items - 1.0, 1.0 - self.tail))
        step = max(_CHUNK // (2 * items * ratings), 1)
        hits = 0
        for begin in range(0, simulations, step):
            result = self._campaigns(generator, min(step, simulations - begin), items, ratings)
            mean, sd = result.mean(axis=1), result.std(axis=1, ddof=1)
            flat = sd == 0
            shift = np.abs(mean) if self.two_sided else mean
            t = shift * math.sqrt(items) / np.where(flat, 1.0, sd)
            hits += int(np.where(flat, shift > 0, t > critical).sum())
        return hits

    def _campaigns(self, generator: np.random.Generator, size: int, items: int, ratings: int) -> FloatArray:
        """Draw the items' mean differences, (size, items)."""
        level = self.mean + generator.normal(0.0, math.sqrt(self.item), (size, items, 1, 1))
        shape = (size, items, 2, ratings)
        value = level + generator.normal(0.0, math.sqrt(self.output), (size, items, 2, 1))
        value = value + generator.normal(0.0, math.sqrt(self.residual), shape)
        value[:, :, 0] += self.difference / 2.0
        value[:, :, 1] -= self.difference / 2.0
        value += self._biases(generator, (size, items, 1 if self.same_raters else 2, ratings))
        if self.scale is not None:
            value = np.clip(np.rint(value), *self.scale)
        means = value.mean(axis=3)
        return np.asarray(means[:, :, 0] - means[:, :, 1])

    def _biases(self, generator: np.random.Generator, shape: tuple[int, int, int, int]) -> FloatArray:
        spread = math.sqrt(self.rater)
        if self.raters is None or spread == 0:
            return generator.normal(0.0, spread, shape)
        pool = generator.normal(0.0, spread, (shape[0], self.raters))
        # Different raters per output: a random start in a shuffled ring of raters.
        start = generator.integers(self.raters, size=(*shape[:3], 1))
        who = (start + np.arange(shape[3])) % self.raters
        return np.asarray(np.take_along_axis(pool[:, None, None, :], who, axis=3))


def _advice(
    model: _Model,
    asked: Design,
    more_items: Design,
    more_ratings: Design,
    cheapest: Design | None,
    detectable: float,
    target: float,
    item_cost: float,
) -> list[str]:
    simulated = f", {asked.simulated.value:.2f} in simulation" if asked.simulated.is_defined else ""
    said = [
        f"{_design(asked)} detect a difference of {model.difference:.3g} with power {asked.power:.2f}{simulated}; the "
        f"smallest difference they detect with power {target:g} is {detectable:.2g}."
    ]
    gain = more_items.power - more_ratings.power
    more = f"Doubling the judgements gives power {more_items.power:.2f} with more items ({more_items.items}) and "
    more += f"{more_ratings.power:.2f} with more ratings per output ({more_ratings.ratings}): "
    said.append(more + ("add items." if gain > 0.01 else "the two are equivalent."))
    best = model.power(asked.items, 1e9)
    if best < target:
        said.append(
            f"With any number of raters, {asked.items} items reach at most power {best:.2f}, because "
            f"outputs of a system differ by {math.sqrt(model.output):.2g} (standard deviation): more items are needed."
        )
    if cheapest is None:
        return [*said, f"No design with up to a million items reaches power {target:g}."]
    priced = f", counting an item as {item_cost:g} judgements," if item_cost else ""
    said.append(f"Power {target:g} is cheapest with {_design(cheapest)}{priced} for two systems.")
    return said


def _about_reliability(components: Components, ratings: int, reliability: float) -> list[str]:
    single = components.reliability(1)
    said = (
        f"The mean of {ratings} {'rating' if ratings == 1 else 'ratings'} per output has reliability {reliability:.2f}"
    )
    if reliability >= 0.8 or not 0 < single < 1:
        return [said + "."]
    needed = math.ceil(0.8 / 0.2 * (1 - single) / single - 1e-9)
    return [f"{said}; segment-level correlations of evaluators need about .8, which takes {needed} ratings per output."]


def _design(design: Design) -> str:
    ratings = "1 rating" if design.ratings == 1 else f"{design.ratings} ratings"
    return f"{design.items} items with {ratings} per output ({design.judgements} judgements)"


def _wilson(hits: int, n: int) -> Estimate:
    z = 1.959963984540054
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Estimate(share, max(0.0, centre - half), min(1.0, centre + half), n)
