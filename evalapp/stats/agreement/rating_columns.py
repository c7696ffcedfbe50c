"""Columns of ratings by unit and rater, checked and coded for coefficients of agreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.core.coding import ColumnError, FloatArray, IntArray, encode, float_column, identifiers, parents

NO_PAIR = "no unit was rated twice"
ALL_EQUAL = "all ratings are equal"


@dataclass(frozen=True, slots=True)
class RatingColumns:
    """Present ratings: codes of value, unit and rater (n,), sorted by unit and rater, so that the order of the rows
    does not matter. `labels[value]` is the rating itself. `cluster` (n_units,) is the resampled group of each unit."""

    value: IntArray
    unit: IntArray
    rater: IntArray
    labels: NDArray[Any]
    unit_labels: NDArray[Any]
    rater_labels: NDArray[Any]
    cluster: IntArray
    n_clusters: int

    @property
    def n_units(self) -> int:
        return len(self.unit_labels)

    @property
    def n_raters(self) -> int:
        return len(self.rater_labels)

    @property
    def sizes(self) -> IntArray:
        """Ratings per unit, (n_units,)."""
        return np.bincount(self.unit, minlength=self.n_units)

    def numbers(self) -> FloatArray:
        """Ratings as floats, (n,). Raises `ColumnError` if they are labels."""
        return float_column(self.labels, "value")[self.value]

    def where(self, rows: NDArray[Any]) -> RatingColumns:
        """Return the selected ratings (mask or row numbers) with new codes."""
        cluster = self.cluster[self.unit[rows]]
        return code_ratings(
            self.labels[self.value[rows]],
            self.unit_labels[self.unit[rows]],
            self.rater_labels[self.rater[rows]],
            cluster,
        )

    def twice(self) -> RatingColumns:
        """Return the ratings of units that have at least two."""
        used = self.sizes[self.unit] >= 2
        return self if used.all() else self.where(used)


def code_ratings(
    value: ArrayLike, unit: ArrayLike, rater: ArrayLike, cluster: ArrayLike | None = None, *, numeric: bool = False
) -> RatingColumns:
    """Return coded (n,) columns; `value` holds numbers (nan = missing) or labels (None = missing).

    Raises `ColumnError` if a rater rated a unit twice, because agreement with oneself is not agreement between
    raters."""
    raw = identifiers(value, "value")
    n = len(raw)
    if raw.dtype.kind in "OUS" and not numeric:
        present = np.array([entry is not None and entry == entry for entry in raw.tolist()], dtype=np.bool_)
    else:
        raw = float_column(value, "value")
        present = np.isfinite(raw)
    units, unit_labels = encode(identifiers(unit, "unit", n)[present], "unit")
    raters, rater_labels = encode(identifiers(rater, "rater", n)[present], "rater")
    order = np.lexsort((raters, units))
    units, raters = units[order], raters[order]
    again = (units[1:] == units[:-1]) & (raters[1:] == raters[:-1])
    if again.any():
        row = int(np.flatnonzero(again)[0])
        raise ColumnError(
            "rater",
            f"{rater_labels[raters[row]]} rated the unit {unit_labels[units[row]]} more than once; "
            "leave repeated ratings out (rater_reports evaluates them)",
        )
    codes, labels = encode(raw[present][order], "value")
    of_unit, n_clusters = np.arange(len(unit_labels)), len(unit_labels)
    if cluster is not None:
        result, names = encode(identifiers(cluster, "cluster", n)[present][order], "cluster")
        of_unit, n_clusters = parents(units, result, len(unit_labels), "cluster"), len(names)
    return RatingColumns(codes, units, raters, labels, unit_labels, rater_labels, of_unit, n_clusters)
