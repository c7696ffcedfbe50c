"""Sample sizes and power of tests of human judgements, in closed form.

Designs with several items and raters, based on a pilot study, are simulated in `designs`.

Explained in docs/explanation/statistics/planning.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Literal, TypeAlias

PowerTest: TypeAlias = Literal["preference", "correlation", "williams"]
POWER_TESTS: tuple[PowerTest, ...] = ("preference", "correlation", "williams")
Effect: TypeAlias = float | Sequence[float]
_Strength: TypeAlias = Callable[[float, float], tuple[float, float]]

DEFAULT_POWER = 0.8
DEFAULT_ALPHA = 0.05

_NORMAL = NormalDist()

# The search ends here: a smaller effect cannot be detected in practice.
_LARGEST = 1 << 40


class EffectError(ValueError):
    """Raised for an effect or setting that the test does not allow; the message gives the allowed range."""


def compute_power(
    test: PowerTest,
    effect: Effect,
    n: int,
    *,
    alpha: float = DEFAULT_ALPHA,
    two_sided: bool | None = None,
    ties: float = 0.0,
    design_effect: float = 1.0,
) -> float:
    """Return the probability that `test` detects `effect` with `n` judgements, items or segments (normal
    approximation).

    - `preference`: a true share p of decisive verdicts against 1/2;
      power = Phi((|p - 1/2| sqrt(m) - z_a / 2) / sqrt(p (1 - p))), m = n (1 - ties) decisive verdicts, two-sided.
    - `correlation`: a true Pearson r against 0 over n items; Phi(|atanh r| sqrt(n - 3) - z_a), two-sided.
      Two-sided tests may also reject on the wrong side, the same with -|...|, which matters only for power below .1.
    - `williams`: (r12, r13, r23), whether metric 2 correlates with human scores (1) more than metric 3 does,
      r23 between the metrics, over n segments; Phi(t - z_a) with t the statistic at those correlations, one-sided.

    `alpha`: level of the test. `two_sided`: None takes the form given above for each test. `compare` and the letters of
    `compare_all` (with Holm's adjustment) are two-sided. `design_effect` divides n: 1 + (m - 1) rho for m judgements
    per item with intra-item correlation rho (Kish 1965).

    Raises `EffectError` for an effect or setting outside its range.

    Formulas: docs/explanation/statistics/planning.md.

    >>> round(compute_power("preference", 0.6, 200), 2)
    0.81
    """
    _check(alpha, ties, design_effect)
    strength = _strength(test, effect)
    z, both = _critical(test, alpha, two_sided)
    usable = n * (1.0 - (ties if test == "preference" else 0.0)) / design_effect
    right, wrong = strength(usable, z)
    return _NORMAL.cdf(right) + (_NORMAL.cdf(wrong) if both else 0.0)


def needed_judgements(
    test: PowerTest,
    effect: Effect,
    *,
    power: float = DEFAULT_POWER,
    alpha: float = DEFAULT_ALPHA,
    two_sided: bool | None = None,
    ties: float = 0.0,
    design_effect: float = 1.0,
) -> int:
    """Return the smallest n for which `compute_power` reaches `power`; same tests, effects and settings.

    `test`, `effect`, `alpha`, `two_sided`, `ties`, `design_effect`: as in `compute_power`; `power`: the wanted
    probability.

    preference: n = ((z_a / 2 + z_b sqrt(p (1 - p))) / (p - 1/2))^2 decisive judgements, over 1 - ties; correlation:
    ((z_a + z_b) / atanh r)^2 + 3; williams: the least n with t(n) >= z_a + z_b.

    Raises `EffectError` for an effect or setting outside its range."""
    _check(alpha, ties, design_effect)
    if not 0 < power < 1:
        raise EffectError(f"power lies between 0 and 1, it cannot be {power:g}")
    strength = _strength(test, effect)
    z, _ = _critical(test, alpha, two_sided)
    target = _NORMAL.inv_cdf(power)
    share = (1.0 - (ties if test == "preference" else 0.0)) / design_effect
    # Rounding can make the closed form off by one, so its neighbours are checked.
    low, high = 0, 1
    while strength(high * share, z)[0] < target:
        low, high = high, high * 2
        if high > _LARGEST:
            raise EffectError("the effect is too small to be found with any number of judgements")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if strength(middle * share, z)[0] < target else (low, middle)
    return high


def design_effect(per_item: float, correlation: float) -> float:
    """Return 1 + (m - 1) rho, the factor by which m judgements per item with correlation rho inflate the variance (Kish
    1965).

    `per_item`: m, judgements per item; `correlation`: rho, between judgements of the same item."""
    if per_item < 1 or not -1 <= correlation <= 1:
        raise EffectError("an item has at least one judgement, and a correlation lies between -1 and 1")
    return max(1.0 + (per_item - 1.0) * correlation, 0.0) or 1.0


def _check(alpha: float, ties: float, effect: float) -> None:
    if not 0 < alpha < 1:
        raise EffectError(f"alpha lies between 0 and 1, it cannot be {alpha:g}")
    if not 0 <= ties < 1:
        raise EffectError(f"the share of ties is at least 0 and below 1, it cannot be {ties:g}")
    if effect <= 0:
        raise EffectError(f"the design effect is above 0, it cannot be {effect:g}")


def _critical(test: PowerTest, alpha: float, two_sided: bool | None) -> tuple[float, bool]:
    both = test != "williams" if two_sided is None else two_sided
    return _NORMAL.inv_cdf(1.0 - alpha / (2.0 if both else 1.0)), both


def _strength(test: PowerTest, effect: Effect) -> _Strength:
    """Return the arguments of the normal distribution function on the right and the wrong side, by n and critical
    value."""
    if test == "williams":
        return _williams(effect)
    if test not in POWER_TESTS:
        raise EffectError(f"test is one of {', '.join(POWER_TESTS)}, not '{test}'")
    if not isinstance(effect, int | float):
        raise EffectError(f"the effect of {test} is one number")
    if test == "preference":
        return _preference(float(effect))
    return _correlation(float(effect))


def _preference(share: float) -> _Strength:
    if not 0 < share < 1 or share == 0.5:
        raise EffectError(f"the true share of preferences lies between 0 and 1 and is not 1/2, it cannot be {share:g}")
    distance, spread = abs(share - 0.5), math.sqrt(share * (1.0 - share))
    return lambda n, z: _sides(distance * math.sqrt(n) / spread, z / 2.0 / spread)


def _correlation(r: float) -> _Strength:
    if not -1 < r < 1 or r == 0:
        raise EffectError(f"the true correlation lies between -1 and 1 and is not 0, it cannot be {r:g}")
    return lambda n, z: _sides(abs(math.atanh(r)) * math.sqrt(max(n - 3.0, 0.0)), z)


def _williams(effect: Effect) -> _Strength:
    if isinstance(effect, int | float) or len(effect) != 3:
        raise EffectError("the effect of williams is three correlations: r12, r13 and r23")
    r12, r13, r23 = (float(r) for r in effect)
    k = 1.0 - r12**2 - r13**2 - r23**2 + 2.0 * r12 * r13 * r23
    if not all(-1 < r < 1 for r in (r12, r13, r23)) or k < 0:
        raise EffectError("three variables cannot have these correlations")
    if r12 <= r13:
        raise EffectError("r12 is the larger one: williams asks whether it is larger than r13")
    mean = (r12 + r13) / 2.0

    def strength(n: float, z: float) -> tuple[float, float]:
        if n <= 3:
            return -math.inf, -math.inf
        below = 2.0 * (n - 1.0) / (n - 3.0) * k + mean**2 * (1.0 - r23) ** 3
        return _sides((r12 - r13) * math.sqrt((n - 1.0) * (1.0 + r23) / below), z)

    return strength


def _sides(shift: float, critical: float) -> tuple[float, float]:
    return shift - critical, -shift - critical
