"""The alternative annotator test: may an evaluator take the place of a rater? (Calderon, Reichart and Dror 2025)"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from evalapp.stats.core.coding import FloatArray, encode, float_column, identifiers

NAN = float("nan")
#: Units per rater from which the t test is used; with fewer, Wilcoxon's signed-rank test.
T_TEST_FROM = 30
TOO_FEW_RATERS = "fewer than three raters with shared outputs"


@dataclass(frozen=True)
class RaterAdvantage:
    """The evaluator against one rater, both compared with the other raters of the same units.

    `evaluator_better` and `rater_better` are the shares of the `n` units where the one agrees with the others at least
    as well; ties count for both. `p` is that of the hypothesis that the rater is better by at least epsilon,
    `rejected` whether it is rejected."""

    rater: str
    n: int
    evaluator_better: float
    rater_better: float
    p: float
    rejected: bool


@dataclass(frozen=True)
class AlternativeTest:
    """`winning_rate`: the share of raters for whom the hypothesis is rejected; the evaluator `passes` from 1/2.
    `advantage`: the mean of `evaluator_better` over the raters. All nan with a `note` if there are too few raters."""

    raters: tuple[RaterAdvantage, ...]
    winning_rate: float
    advantage: float
    epsilon: float
    passes: bool
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return every field as JSON-safe values."""
        content = asdict(self)
        for name in ("winning_rate", "advantage"):
            content[name] = None if math.isnan(content[name]) else content[name]
        for row in content["raters"]:
            row["p"] = None if math.isnan(row["p"]) else row["p"]
        return {**content, "raters": list(content["raters"])}


def alternative_annotator_test(
    unit: ArrayLike,
    rater: ArrayLike,
    value: ArrayLike,
    evaluator: ArrayLike,
    *,
    epsilon: float = 0.1,
    measure: Literal["squared", "equal"] = "squared",
    least_units: int = 5,
) -> AlternativeTest:
    """Return the test of an evaluator against each rater who shares at least `least_units` units with others.

    `unit`, `rater`, `value`: (n,) ratings in the unit of the scale; `evaluator`: (n,) its value for the unit of each
    row, nan where it has none. A rater j and the evaluator are compared on each unit by their agreement with all other
    raters: minus the root mean squared difference (`measure` "squared"), or the share of equal values ("equal"). With
    d = [rater at least as good] - [evaluator at least as good] per unit, the hypothesis mean(d) >= `epsilon` is tested
    one-sided by the t test, below 30 units by Wilcoxon's signed-rank test; `epsilon` is the cost of a person (0.2 for
    experts, 0.15 skilled, 0.1 crowd workers). The error rate over the raters is controlled at 5 % by Benjamini and
    Yekutieli (2001). Units are taken as independent: several outputs of an item make p too small.

    >>> test = alternative_annotator_test([0, 0, 0] * 9, list("abc") * 9, [1, 2, 3] * 9, [2, 2, 2] * 9, least_units=1)
    >>> test.advantage
    1.0
    """
    y = float_column(value, "value")
    units, _names = encode(identifiers(unit, "unit", len(y)), "unit")
    raters, labels = encode(identifiers(rater, "rater", len(y)), "rater")
    x = float_column(evaluator, "evaluator", len(y))
    known = ~(np.isnan(y) | np.isnan(x))
    rows = [
        _compare(str(labels[j]), raters[known] == j, units[known], y[known], x[known], epsilon, measure)
        for j in range(len(labels))
    ]
    rows = [row for row in rows if row.n >= least_units]
    if len(rows) < 3:
        return AlternativeTest((), NAN, NAN, epsilon, False, TOO_FEW_RATERS)
    rejected = reject_dependent([row.p for row in rows])
    tested = tuple(
        RaterAdvantage(**{**asdict(row), "rejected": flag}) for row, flag in zip(rows, rejected, strict=True)
    )
    rate = sum(rejected) / len(rejected)
    advantage = float(np.mean([row.evaluator_better for row in tested]))
    return AlternativeTest(tested, rate, advantage, epsilon, rate >= 0.5)


def _compare(
    name: str, is_own: Any, units: Any, y: FloatArray, x: FloatArray, epsilon: float, measure: str
) -> RaterAdvantage:
    own: dict[int, tuple[float, float]] = {}
    for place in np.flatnonzero(is_own):
        own.setdefault(int(units[place]), (float(y[place]), float(x[place])))
    others = ~is_own
    theirs: dict[int, list[float]] = {}
    for code, number in zip(units[others].tolist(), y[others].tolist(), strict=True):
        if code in own:
            theirs.setdefault(code, []).append(number)
    better, worse = [], []
    for code, values in theirs.items():
        person, model = (_agree(number, np.array(values), measure) for number in own[code])
        # Equal up to rounding counts for both.
        better.append(model >= person - 1e-12)
        worse.append(person >= model - 1e-12)
    if not better:
        return RaterAdvantage(name, 0, NAN, NAN, NAN, False)
    d = np.array(worse, dtype=float) - np.array(better, dtype=float)
    p = _test_below(d, epsilon)
    return RaterAdvantage(name, len(d), float(np.mean(better)), float(np.mean(worse)), p, False)


def _agree(number: float, others: FloatArray, measure: str) -> float:
    if measure == "equal":
        return float(np.mean(others == number))
    return -math.sqrt(float(np.mean((others - number) ** 2)))


def _test_below(d: FloatArray, epsilon: float) -> float:
    """Return p of the hypothesis mean(d) >= epsilon against mean(d) < epsilon."""
    shifted = d - epsilon
    if np.ptp(shifted) == 0:
        return 0.0 if shifted[0] < 0 and len(d) >= T_TEST_FROM else float(0.5 ** len(d)) if shifted[0] < 0 else 1.0
    if len(d) < T_TEST_FROM:
        return float(stats.wilcoxon(shifted, alternative="less", method="auto").pvalue)
    return float(stats.ttest_1samp(d, epsilon, alternative="less").pvalue)


def reject_dependent(p_values: list[float], alpha: float = 0.05) -> list[bool]:
    """Return which hypotheses are rejected by Benjamini and Yekutieli (2001) at the false discovery rate `alpha`, valid
    for dependent tests; nan is never rejected.

    >>> reject_dependent([0.001, 0.02, 0.9])
    [True, False, False]
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    m = len(order)
    factor = sum(1 / k for k in range(1, m + 1))
    last = max((k for k, (p, _place) in enumerate(order, 1) if p <= k * alpha / (m * factor)), default=0)
    result = [False] * len(p_values)
    for _p, place in order[:last]:
        result[place] = True
    return result
