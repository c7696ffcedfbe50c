"""Two-way intraclass correlations of tables with missing ratings by restricted maximum likelihood (REML), with a
jackknife over groups of units. Complete tables and one-way forms are in `icc`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalapp.stats.agreement.mixed import MixedModel
from evalapp.stats.agreement.rating_columns import RatingColumns
from evalapp.stats.core.coding import FloatArray, IntArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.resampling.bootstrap import NO_WIDTH, few_note, too_few_note

#: Number of groups of clusters that the jackknife leaves out in turn.
GROUPS = 10
BY_REML = "REML, since some raters did not rate every unit"
NESTED = "no rater rated two units: consistency cannot be separated from agreement"
#: Coefficients this close to 0 or 1 are on the boundary, where their spread cannot be estimated.
_BORDER = 1e-6


@dataclass(frozen=True, slots=True)
class Variances:
    """Variances of units, raters and the residual, none negative; with `nested` raters theirs is part of the
    residual."""

    unit: float
    rater: float
    residual: float
    nested: bool

    def coefficient(self, form: str, k: float) -> float:
        """Return the ICC of a two-way form; nan for consistency if raters are nested, and without variance."""
        noise = self.residual if form.startswith("C") else self.rater + self.residual
        if self.nested and form.startswith("C"):
            return math.nan
        whole = self.unit + noise / (k if form.endswith("k") else 1.0)
        return self.unit / whole if whole > 0 else math.nan


def reml_iccs(
    found: RatingColumns, forms: Sequence[str], k: float, *, intervals: bool, seed: int, confidence: float
) -> dict[str, Estimate]:
    """Return every form with its interval: Fisher's z of the coefficient plus and minus Student's t times its
    jackknife standard error, over `GROUPS` groups of clusters (each cluster if there are fewer), truncated at 0."""
    numbers = found.numbers()
    numbers = (numbers - numbers.mean()) / float(np.ptp(numbers))
    whole, start = _variances(numbers, found.unit, found.rater, None)
    points = {form: whole.coefficient(form, k) for form in forms}
    too_few = too_few_note({"units": found.n_clusters})
    left_out = _leave_out(found, numbers, start, seed) if intervals and not too_few else []
    estimates = {}
    for form, value in points.items():
        if math.isnan(value):
            estimates[form] = Estimate.undefined(
                NESTED if whole.nested else "the ratings show no variance", found.n_units
            )
            continue
        point = Estimate.point(value, found.n_units, BY_REML)
        if not intervals:
            estimates[form] = point
        elif too_few:
            estimates[form] = point.with_note(too_few)
        else:
            estimates[form] = _with_ends(point, [one.coefficient(form, k) for one in left_out], confidence, found)
    return estimates


def _variances(
    numbers: FloatArray, unit: IntArray, rater: IntArray, start: FloatArray | None
) -> tuple[Variances, FloatArray]:
    """Return the variances, and their ratios to the residual's, a starting point for fits of nearly the same
    ratings."""
    units, raters = (np.unique(codes, return_inverse=True)[1].reshape(-1) for codes in (unit, rater))
    nested = int(raters.max()) + 1 == len(raters)
    factors = [units] if nested else [units, raters]
    model = MixedModel(numbers, np.zeros(len(numbers), dtype=np.int64), factors)
    fitted = model.fit(start, precise=True)
    of_unit, of_rater = float(fitted.variances[0]), 0.0 if nested else float(fitted.variances[1])
    ratios = fitted.variances / max(fitted.residual, 1e-300)
    return Variances(of_unit, of_rater, fitted.residual, nested), ratios


def _leave_out(found: RatingColumns, numbers: FloatArray, start: FloatArray, seed: int) -> list[Variances]:
    """Return the variances without each group of clusters in turn. Groups are skipped if fewer than two units
    remain."""
    n_groups = min(GROUPS, found.n_clusters)
    group = np.random.default_rng([seed, 0]).permutation(found.n_clusters) % n_groups
    of_row = group[found.cluster[found.unit]]
    variances = []
    for number in range(n_groups):
        rows = of_row != number
        unit = found.unit[rows]
        if len(unit) and unit[0] != unit[-1]:
            variances.append(_variances(numbers[rows], unit, found.rater[rows], start)[0])
    return variances


def _with_ends(point: Estimate, left_out: Sequence[float], confidence: float, found: RatingColumns) -> Estimate:
    from scipy import stats

    values = np.array(left_out)
    if np.isnan(values).any() or len(values) < 2:
        return point.with_note("no interval: without some units it is undefined")
    if not _BORDER < point.value < 1 - _BORDER:
        return point.with_note("no interval: the estimate is on the boundary of the possible range")
    z = np.arctanh(np.clip(values, 0.0, 1 - _BORDER))
    n = len(z)
    error = math.sqrt((n - 1) / n * float(((z - z.mean()) ** 2).sum()))
    if error < 1e-12:
        return point.with_note(NO_WIDTH)
    reach = float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * error
    centre = math.atanh(point.value)
    ends = max(0.0, math.tanh(centre - reach)), math.tanh(centre + reach)
    found_ends = Estimate(point.value, *ends, point.n, f"{point.note}; interval by a jackknife of {n} groups of units")
    few = few_note({"units": found.n_clusters})
    return found_ends.with_note(few) if few else found_ends
