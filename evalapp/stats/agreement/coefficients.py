"""All coefficients of agreement for one set of ratings, with prevalence, and for each pair of raters.

The single coefficients are in `krippendorff`, `kappa` and `icc`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.agreement.icc import IccForm, iccs
from evalapp.stats.agreement.kappa import KappaWeights, cohen_kappa, fleiss_kappa, percent_agreement
from evalapp.stats.agreement.krippendorff import SCALES, Scale, krippendorff_alpha
from evalapp.stats.agreement.rating_columns import RatingColumns, code_ratings
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.resampling.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap

#: Pairs of raters with fewer common units are only counted; of the others those with most common units are listed.
MIN_SHARED_UNITS = 10
MAX_PAIRS = 200
#: With fewer units, intervals of agreement are too narrow (docs/results/intervals.md).
FEW_UNITS = 50
NARROW = (
    "too narrow: in simulations those called 95 % hold the truth in .73 to .91 from 10 units, in .88 to .91 from 20 "
    "and in .91 to .94 from 50."
)
UNWEIGHTED = "unweighted"
#: Note on Fleiss' kappa with unequal numbers of ratings; other programs weight units by their ratings.
OVER_UNITS = "units have unequally many ratings: the mean over units, each counted once"

# Above this prevalence chance-corrected coefficients depend on the few other answers.
_LOPSIDED = 0.8
_FORMS: dict[str, IccForm] = {"icc_1": "1", "icc_a1": "A,1", "icc_ak": "A,k", "icc_c1": "C,1", "icc_ck": "C,k"}
_WEIGHTS: dict[Scale, KappaWeights | None] = {
    "nominal": None,
    "ordinal": "quadratic",
    "interval": "quadratic",
    "ratio": "quadratic",
}


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement of two raters on their common units. `kappa` is Cohen's, with quadratic weights unless the scale is
    nominal."""

    rater_a: Any
    rater_b: Any
    n_units: int
    percent: Estimate
    kappa: Estimate
    alpha: Estimate

    def as_dict(self) -> dict[str, Any]:
        """Return the agreement as JSON-safe values."""
        return {
            "rater_a": _plain(self.rater_a),
            "rater_b": _plain(self.rater_b),
            "n_units": self.n_units,
            "percent": self.percent.as_dict(),
            "kappa": self.kappa.as_dict(),
            "alpha": self.alpha.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class AgreementTable:
    """Agreement of all raters and of each pair.

    `coefficients`: alpha, percent, fleiss, cohen (mean over all pairs with enough common units, weighted by units,
    without interval), and icc_1, icc_a1, icc_ak, icc_c1, icc_ck on interval and ratio scales. `prevalence` is the
    share of each value among the ratings, at most the 50 most frequent. `notes` are sentences on how to read the
    figures; `pairs_left_out` counts pairs of raters with too few common units or beyond the limit."""

    scale: Scale
    n_ratings: int
    n_units: int
    n_rated_twice: int
    n_raters: int
    coefficients: dict[str, Estimate]
    prevalence: dict[Any, float]
    pairs: tuple[PairAgreement, ...]
    pairs_left_out: int
    notes: tuple[str, ...]
    settings: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the table as JSON-safe values; prevalence as a list of value and share."""
        return {
            "scale": self.scale,
            "n_ratings": self.n_ratings,
            "n_units": self.n_units,
            "n_rated_twice": self.n_rated_twice,
            "n_raters": self.n_raters,
            "coefficients": {name: result.as_dict() for name, result in self.coefficients.items()},
            "prevalence": [{"value": _plain(value), "share": share} for value, share in self.prevalence.items()],
            "pairs": [pair.as_dict() for pair in self.pairs],
            "pairs_left_out": self.pairs_left_out,
            "notes": list(self.notes),
            "settings": self.settings,
        }


def agreement_table(
    value: ArrayLike,
    unit: ArrayLike,
    rater: ArrayLike,
    *,
    scale: Scale = "interval",
    min_shared: int = MIN_SHARED_UNITS,
    max_pairs: int = MAX_PAIRS,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> AgreementTable:
    """Return all agreement coefficients for the ratings of an aspect: (n,) columns, one row per rating, nan or None =
    missing.

    `scale` of the values for Krippendorff's alpha. Pairs of raters with fewer than `min_shared` common units are left
    out, as are all but the `max_pairs` pairs with the most.

    Intervals are bootstrapped over units, or over `bootstrap.cluster`.

    Raises `ColumnError` for columns that do not fit, also if a rater rated a unit twice.

    >>> table = agreement_table([1, 1, 2, 3], ["x", "x", "y", "y"], ["ann", "bob", "ann", "bob"])
    >>> table.coefficients["percent"].value
    0.5
    """
    if scale not in SCALES:
        raise ValueError(f"scale is one of {', '.join(SCALES)}, not '{scale}'")
    ratings = code_ratings(value, unit, rater, bootstrap.cluster, numeric=scale != "nominal")
    pairs, left_out, mean_kappa = _pairs(ratings, scale, min_shared, max_pairs, bootstrap)
    values, units, raters = ratings.labels[ratings.value], ratings.unit, ratings.rater
    clusters = ratings.cluster[ratings.unit]
    drawn = bootstrap.with_cluster(clusters)
    by_unit = bootstrap if bootstrap.cluster is None else drawn
    by_rater: dict[str, Callable[..., Estimate]] = {"percent": percent_agreement, "fleiss": fleiss_kappa}
    coefficients = {"alpha": krippendorff_alpha(units, values, scale=scale, bootstrap=by_unit)}
    for name, function in by_rater.items():
        coefficients[name] = function(values, units, raters, bootstrap=drawn)
    if scale in ("interval", "ratio"):
        of_forms = iccs(values, units, raters, forms=tuple(_FORMS.values()), bootstrap=drawn)
        coefficients |= {name: of_forms[form] for name, form in _FORMS.items()}
    coefficients["cohen"] = mean_kappa
    coefficients["fleiss"] = _explained(coefficients["fleiss"], ratings)
    shares = np.bincount(ratings.value, minlength=len(ratings.labels)) / max(len(ratings.value), 1)
    order = np.lexsort((np.arange(len(shares)), -shares))[:50]
    prevalence = {ratings.labels[place]: float(shares[place]) for place in np.sort(order)}
    return AgreementTable(
        scale, len(ratings.value), ratings.n_units, int((ratings.sizes >= 2).sum()), ratings.n_raters, coefficients,
        prevalence, tuple(pairs), left_out,
        (*_notes(ratings, coefficients, prevalence), *_narrow(ratings, coefficients, pairs)),
        {"resamples": bootstrap.resamples, "seed": bootstrap.seed, "confidence": bootstrap.confidence,
         "min_shared": min_shared, "cluster": bootstrap.cluster is not None},
    )  # fmt: skip


def _pairs(
    found: RatingColumns, scale: Scale, min_shared: int, max_pairs: int, bootstrap: Bootstrap
) -> tuple[list[PairAgreement], int, Estimate]:
    """Return the listed pairs (at most `max_pairs`), the number of other pairs, and the mean kappa of all pairs that
    have `min_shared` common units, listed or not."""
    from scipy.sparse import csr_array, triu

    indicator = csr_array((np.ones(len(found.unit)), (found.rater, found.unit)), shape=(found.n_raters, found.n_units))
    shared = triu(indicator @ indicator.T, k=1).tocoo()
    keep = shared.data >= max(min_shared, 1)
    first, second, units = shared.row[keep], shared.col[keep], shared.data[keep]
    order = np.lexsort((second, first, -units))
    places = _Places(found)
    pairs = [places.agreement(int(first[row]), int(second[row]), scale, bootstrap) for row in order[:max_pairs]]
    others = [places.kappa(int(first[row]), int(second[row]), scale) for row in order[max_pairs:]]
    mean = _mean_kappa([*(pair.kappa for pair in pairs), *others], units[order], scale, max(min_shared, 1))
    return pairs, len(shared.data) - len(pairs), mean


class _Places:
    """The ratings of every rater, prepared for joining with another rater's."""

    def __init__(self, found: RatingColumns) -> None:
        self._ratings = found
        order = np.argsort(found.rater, kind="stable")
        ends = np.cumsum(np.bincount(found.rater, minlength=found.n_raters))
        self._rows = np.split(order, ends[:-1])

    def kappa(self, a: int, b: int, scale: Scale) -> Estimate:
        """Return Cohen's kappa of two raters without an interval."""
        ratings, one, two = self._ratings, self._rows[a], self._rows[b]
        _, of_one, of_two = np.intersect1d(
            ratings.unit[one], ratings.unit[two], assume_unique=True, return_indices=True
        )
        x, y = ratings.labels[ratings.value[one[of_one]]], ratings.labels[ratings.value[two[of_two]]]
        return cohen_kappa(x, y, weights=_WEIGHTS[scale], bootstrap=Bootstrap(resamples=0))

    def agreement(self, a: int, b: int, scale: Scale, bootstrap: Bootstrap) -> PairAgreement:
        ratings = self._ratings
        one, two = self._rows[a], self._rows[b]
        shared, of_one, of_two = np.intersect1d(ratings.unit[one], ratings.unit[two], return_indices=True)
        x, y = ratings.labels[ratings.value[one[of_one]]], ratings.labels[ratings.value[two[of_two]]]
        clusters = ratings.cluster[shared]
        own = np.array_equal(ratings.cluster, np.arange(ratings.n_units))
        kappa = cohen_kappa(x, y, weights=_WEIGHTS[scale], bootstrap=bootstrap.with_cluster(None if own else clusters))
        value, unit = np.concatenate([x, y]), np.concatenate([shared, shared])
        both = np.concatenate([clusters, clusters])
        rater = np.repeat(np.arange(2), len(shared))
        return PairAgreement(
            ratings.rater_labels[a],
            ratings.rater_labels[b],
            len(shared),
            percent_agreement(value, unit, rater, bootstrap=bootstrap.with_cluster(both)),
            kappa,
            krippendorff_alpha(unit, value, scale=scale, bootstrap=bootstrap.with_cluster(None if own else both)),
        )


def _mean_kappa(kappas: list[Estimate], units: NDArray[np.int64], scale: Scale, min_shared: int) -> Estimate:
    """Return the mean over pairs, weighted by their common units."""
    defined = np.array([kappa.is_defined for kappa in kappas], dtype=np.bool_)
    if not defined.any():
        reason = "every pair of raters gave one value only" if kappas else "no two raters share enough units"
        return Estimate.undefined(reason)
    values, counts = np.array([kappa.value for kappa in kappas])[defined], units[defined]
    n = int(defined.sum())
    pairs = "1 pair of raters" if n == 1 else f"mean of {n:,} pairs of raters"
    note = f"{describe_weights(scale)}; {pairs} with {min_shared} or more units in common"
    return Estimate.point(float(values @ counts / counts.sum()), int(counts.sum()), note)


def _explained(fleiss: Estimate, found: RatingColumns) -> Estimate:
    sizes = found.sizes[found.sizes >= 2]
    if not fleiss.is_defined or not len(sizes):
        return fleiss
    equal = sizes.min() == sizes.max()
    return fleiss.with_note(UNWEIGHTED if equal else f"{UNWEIGHTED}; {OVER_UNITS}")


def describe_weights(scale: Scale) -> str:
    """Return how Cohen's kappa weights disagreements on this scale, in words."""
    weights = _WEIGHTS[scale]
    return f"{weights} weights" if weights else UNWEIGHTED


def _notes(found: RatingColumns, coefficients: dict[str, Estimate], prevalence: dict[Any, float]) -> list[str]:
    notes = []
    sizes = found.sizes
    once = int((sizes < 2).sum())
    if once:
        notes.append(f"{once} of {found.n_units} units have one rating and say nothing of agreement.")
    twice = sizes[sizes >= 2]
    if len(twice) and twice.min() < twice.max():
        notes.append(f"Units have {twice.min()} to {twice.max()} ratings.")
    share = max(prevalence.values(), default=0.0)
    if share >= _LOPSIDED and len(found.labels) > 1 and coefficients["percent"].is_defined:
        value = next(value for value, part in prevalence.items() if part == share)
        notes.append(
            f"{share:.0%} of the ratings are {_plain(value)}: kappa and alpha rest on the few others and are low even "
            f"where raters agree ({coefficients['percent'].value:.0%} of the pairs do)."
        )
    return notes


def _narrow(found: RatingColumns, coefficients: dict[str, Estimate], pairs: Sequence[PairAgreement]) -> list[str]:
    """Return notes on intervals from few units, overall or for pairs of raters."""
    clusters = found.cluster[found.sizes >= 2]
    n = len(np.unique(clusters))
    what = "units" if n == len(clusters) else "groups of units"
    if n < FEW_UNITS and any(estimate.has_interval for estimate in coefficients.values()):
        return [f"Intervals from {n} {what} are {NARROW}"]
    if any(pair.n_units < FEW_UNITS and pair.alpha.has_interval for pair in pairs):
        return [f"Intervals of pairs of raters with fewer than {FEW_UNITS} units in common are {NARROW}"]
    return []


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
