"""Variance components of ratings: items, systems, outputs, raters, residual.

Explained in docs/explanation/statistics/human-scores.md#variance-components."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.agreement.mixed import MixedModel
from evalapp.stats.core.coding import IntArray, encode, encode_pair, float_column, identifiers
from evalapp.stats.core.estimate import Estimate

#: With more items a random sample is used, because the equations of all would not fit in memory.
MAX_ITEMS = 500

PARTS = ("item", "system", "output", "rater", "residual")


@dataclass(frozen=True, slots=True)
class Components:
    """Variances (in squared units of the rating) with 95 % intervals; undefined, with the reason, if a part is not
    identifiable. `n` of an estimate counts the levels: items, systems, outputs, raters, ratings."""

    item: Estimate
    system: Estimate
    output: Estimate
    rater: Estimate
    residual: Estimate
    mean: float
    n: int
    ratings_per_output: float
    note: str = ""

    def variance(self, part: str) -> float:
        """Return the variance of a part, 0 if undefined."""
        result: Estimate = getattr(self, part)
        return result.value if result.is_defined else 0.0

    @property
    def total(self) -> float:
        """Variance of a single rating."""
        return sum(self.variance(part) for part in PARTS)

    @property
    def shares(self) -> dict[str, float]:
        """Share of every part in the total; empty if ratings do not vary."""
        total = self.total
        return {part: self.variance(part) / total for part in PARTS} if total > 0 else {}

    def reliability(self, ratings: float = 1.0) -> float:
        """Return the share of the variance of an output's mean over `ratings` different raters that is not due to
        raters and residual."""
        signal = self.variance("item") + self.variance("system") + self.variance("output")
        noise = (self.variance("rater") + self.variance("residual")) / ratings
        return signal / (signal + noise) if signal + noise > 0 else math.nan

    def as_dict(self) -> dict[str, Any]:
        """Return the parts, their shares, the mean and n as JSON-safe values."""
        parts = {part: getattr(self, part).as_dict() for part in PARTS}
        return {
            **parts, "shares": self.shares, "mean": _known(self.mean), "n_ratings": self.n,
            "ratings_per_output": _known(self.ratings_per_output), "message": self.note,
        }  # fmt: skip


def variance_components(
    value: ArrayLike,
    item: ArrayLike,
    rater: ArrayLike,
    system: ArrayLike | None = None,
    *,
    intervals: bool = True,
    max_items: int = MAX_ITEMS,
    seed: int = 0,
) -> Components:
    """Return the variances of value = mu + item + system + output + rater + residual, all but mu random and
    independent, estimated by restricted maximum likelihood (REML) for any pattern of missing ratings.

    (n,) columns, one row per rating for a single aspect, nan = missing. An output is an (item, system); its variance is
    separate if some output was rated twice, else part of the residual. Without `system` items are rated. A part with
    one level is undefined. With more than `max_items` items, a sample of that size is drawn by `seed`. Intervals:
    see `MixedModel.intervals`. Ratings are treated as an interval scale."""
    y = float_column(value, "value")
    n, present = len(y), np.isfinite(y)
    items, item_labels = encode(identifiers(item, "item", n)[present], "item")
    raters, _ = encode(identifiers(rater, "rater", n)[present], "rater")
    systems = None if system is None else encode(identifiers(system, "system", n)[present], "system")[0]
    y, note = y[present], ""
    if len(item_labels) > max_items:
        drawn = np.random.default_rng([seed, 0]).choice(len(item_labels), max_items, replace=False)
        kept = np.isin(items, drawn)
        note = f"from {max_items} of {len(item_labels)} items, drawn at random"
        y, items, raters = y[kept], items[kept], raters[kept]
        systems = None if systems is None else systems[kept]
    if len(y) < 3:
        return _nothing("fewer than 3 ratings", y)
    if float(np.ptp(y)) == 0:
        return _nothing("all ratings are equal", y)
    factors, reasons = _factors(items, systems, raters)
    names = [name for name in ("item", "system", "output", "rater") if name in factors]
    model = MixedModel(y, np.zeros(len(y), dtype=np.int64), [factors[name] for name in names])
    fitted = model.fit()
    ends = model.intervals(fitted) if intervals else [(math.nan, math.nan)] * (len(names) + 1)
    values = [*fitted.variances.tolist(), fitted.residual]
    result = {
        name: Estimate(variance, low, high, int(factors[name].max()) + 1 if name in factors else len(y))
        for name, variance, (low, high) in zip([*names, "residual"], values, ends, strict=True)
    }
    for name, reason in reasons.items():
        result[name] = Estimate.undefined(reason)
    n_outputs = len(np.unique(items)) if systems is None else len(encode_pair(items, systems, len(systems) + 1)[1])
    mean = float(model.effects(fitted.variances / max(fitted.residual, 1e-300), fitted.residual).fixed[0])
    return Components(**result, mean=mean, n=len(y), ratings_per_output=len(y) / n_outputs, note=note)


def _factors(items: IntArray, systems: IntArray | None, raters: IntArray) -> tuple[dict[str, IntArray], dict[str, str]]:
    """Return the identifiable random factors, and for the others the reason."""
    items = np.unique(items, return_inverse=True)[1].reshape(-1)
    raters = np.unique(raters, return_inverse=True)[1].reshape(-1)
    factors, reasons = {"item": items, "rater": raters}, {}
    if systems is None:
        reasons["system"] = reasons["output"] = "no systems were given"
    else:
        systems = np.unique(systems, return_inverse=True)[1].reshape(-1)
        outputs, first = encode_pair(items, systems, int(systems.max()) + 1)
        factors |= {"system": systems, "output": outputs}
        if len(first) == len(items):
            del factors["output"]
            reasons["output"] = "no output was rated twice: its variance is part of the residual"
        elif len(first) == int(items.max()) + 1:
            del factors["output"]
            reasons["output"] = "every item has one output: its variance is part of the item's"
    for name, codes in list(factors.items()):
        if int(codes.max()) == 0:
            del factors[name]
            reasons[name] = f"there is one {name} only"
    if "item" in factors and int(factors["item"].max()) + 1 == len(items):
        del factors["item"]
        reasons["item"] = "no item has two ratings: its variance is part of the residual"
    if "rater" in factors and int(factors["rater"].max()) + 1 == len(items):
        del factors["rater"]
        reasons["rater"] = "no rater gave two ratings: the variance is part of the residual"
    return factors, reasons


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _nothing(reason: str, y: Any) -> Components:
    parts = {part: Estimate.undefined(reason, len(y)) for part in PARTS}
    return Components(**parts, mean=float(y.mean()) if len(y) else math.nan, n=len(y), ratings_per_output=math.nan,
                      note=reason)  # fmt: skip
