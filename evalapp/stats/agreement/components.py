"""How much of the spread of ratings comes from items, systems, outputs, raters and chance: variance components.

Explained in docs/explanation/statistics/human-scores.md#variance-components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.agreement.mixed import MixedModel
from evalapp.stats.core.coding import IntArray, encode, encode_pair, float_column, identifiers
from evalapp.stats.core.estimate import Estimate

#: Of more items so many are drawn, because the equations of all of them would not fit.
MAX_ITEMS = 500

PARTS = ("item", "system", "output", "rater", "residual")


@dataclass(frozen=True, slots=True)
class Components:
    """Variances (in squared units of the rating) with 95 % intervals; undefined with its reason where a part cannot be
    told from others. `n` of an estimate counts the levels: items, systems, outputs, raters, ratings."""

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
        """The variance of a part, 0 where it is undefined."""
        found: Estimate = getattr(self, part)
        return found.value if found.is_defined else 0.0

    @property
    def total(self) -> float:
        """The variance of one rating."""
        return sum(self.variance(part) for part in PARTS)

    @property
    def shares(self) -> dict[str, float]:
        """Every part over the total; empty where ratings do not vary."""
        total = self.total
        return {part: self.variance(part) / total for part in PARTS} if total > 0 else {}

    def reliability(self, ratings: float = 1.0) -> float:
        """Share of the variance of an output's mean over `ratings` different raters that is not raters and chance."""
        signal = self.variance("item") + self.variance("system") + self.variance("output")
        noise = (self.variance("rater") + self.variance("residual")) / ratings
        return signal / (signal + noise) if signal + noise > 0 else math.nan

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe: the parts, their shares, the mean, n."""
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
    """Variances of value = mu + item + system + output + rater + residual, all but mu random and independent, of
    largest restricted likelihood (REML); any pattern of who rated what.

    (n,) columns, one row per rating of one aspect, nan = missing. An output is an (item, system); it has a variance of
    its own where some output was rated twice, else that is part of the residual. Without `system` an item is what is
    rated. A part with one level is undefined. More than `max_items` items: as many are drawn by `seed`.
    Intervals: see `MixedModel.intervals`. Ratings are taken for a scale with equal steps.
    """
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
    found = {
        name: Estimate(variance, low, high, int(factors[name].max()) + 1 if name in factors else len(y))
        for name, variance, (low, high) in zip([*names, "residual"], values, ends, strict=True)
    }
    for name, reason in reasons.items():
        found[name] = Estimate.undefined(reason)
    n_outputs = len(np.unique(items)) if systems is None else len(encode_pair(items, systems, len(systems) + 1)[1])
    mean = float(model.effects(fitted.variances / max(fitted.residual, 1e-300), fitted.residual).fixed[0])
    return Components(**found, mean=mean, n=len(y), ratings_per_output=len(y) / n_outputs, note=note)


def _factors(items: IntArray, systems: IntArray | None, raters: IntArray) -> tuple[dict[str, IntArray], dict[str, str]]:
    """The random factors that can be told apart, and for the others why not."""
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
