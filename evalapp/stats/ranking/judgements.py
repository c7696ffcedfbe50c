"""Columns of pairwise judgements, checked and coded as numbers. Models are in `comparison_fit`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.core.coding import (
    VERDICTS,
    BoolArray,
    ColumnError,
    FloatArray,
    IntArray,
    encode,
    float_column,
    identifiers,
    verdict_codes,
)  # fmt: skip
from evalapp.stats.ranking.connectivity import Connectivity, find_connectivity, largest_component
from evalapp.stats.ranking.systems import CannotDecide

WIN, TIE, LOSS = range(3)
_OUTCOME = np.array([WIN, LOSS, TIE, TIE, TIE])


@dataclass(frozen=True)
class Judgements:
    """Coded judgements: systems `a` and `b` (indices into `labels`), `outcome` WIN, TIE or LOSS of a.

    `verdict` holds positions in `VERDICTS`; `item`, `cluster` (the independent units), `rater` and `length` are None
    if not given. `totals` counts the judgements read and left out."""

    labels: NDArray[Any]
    a: IntArray
    b: IntArray
    verdict: IntArray
    item: IntArray | None
    cluster: IntArray | None
    rater: IntArray | None
    rater_labels: NDArray[Any]
    length: FloatArray | None
    weight: FloatArray | None
    totals: dict[str, int]
    settings: str

    def __len__(self) -> int:
        return len(self.a)

    @cached_property
    def outcome(self) -> IntArray:
        """WIN, TIE or LOSS of a; `both_bad` is a tie."""
        return np.asarray(_OUTCOME[self.verdict], dtype=np.int64)

    @property
    def n_items(self) -> int:
        """Number of distinct items; 0 if not given."""
        return 0 if self.item is None else int(np.count_nonzero(np.bincount(self.item)))

    @property
    def n_clusters(self) -> int:
        """Number of distinct independent units."""
        return len(self) if self.cluster is None else int(np.count_nonzero(np.bincount(self.cluster)))

    @cached_property
    def table(self) -> IntArray:
        """Counts (systems, systems, verdicts) of judgements with a on the first side and b on the second."""
        k, v = len(self.labels), len(VERDICTS)
        cells = (self.a * k + self.b) * v + self.verdict
        return np.bincount(cells, minlength=k * k * v).reshape(k, k, v).astype(np.int64, copy=False)

    @cached_property
    def outcomes(self) -> FloatArray:
        """Counts (systems, systems, 3) of wins, ties and losses of a against b, on either side."""
        one = self.table
        ties = one[..., 2:].sum(axis=2)
        shown = np.stack([one[..., 0], ties, one[..., 1]], axis=2)
        return (shown + shown.transpose(1, 0, 2)[..., ::-1]).astype(np.float64)

    @cached_property
    def n_ratings(self) -> IntArray:
        """Number of judgements of each system."""
        pairs = self.table.sum(axis=2)
        return np.asarray(pairs.sum(axis=0) + pairs.sum(axis=1), dtype=np.int64)

    @cached_property
    def n_outputs(self) -> IntArray:
        """Number of distinct (item, system); without items the number of judgements."""
        if self.item is None:
            return self.n_ratings
        k = len(self.labels)
        outputs = encode(np.concatenate([self.item * k + self.a, self.item * k + self.b]), "output")[1]
        return np.bincount(outputs % max(k, 1), minlength=k)

    @cached_property
    def shares(self) -> dict[str, FloatArray]:
        """Shares of each system's judgements: win, tie, both_bad, cannot_decide, loss."""
        first, second = self.table.sum(axis=1), self.table.sum(axis=0)
        both = first + second
        columns = {"win": first[:, 0] + second[:, 1], "tie": both[:, 2], "both_bad": both[:, 3],
                   "cannot_decide": both[:, 4], "loss": first[:, 1] + second[:, 0]}  # fmt: skip
        with np.errstate(invalid="ignore"):
            return {name: column / self.n_ratings for name, column in columns.items()}

    @property
    def verdict_shares(self) -> dict[str, float | None]:
        """Shares of all judgements that count: ties of any kind, and `both_bad`."""
        n = len(self)
        return {
            "tie_share": float(self.table[..., 2:].sum() / n) if n else None,
            "both_bad_share": float(self.table[..., VERDICTS.index("both_bad")].sum() / n) if n else None,
        }

    @cached_property
    def beats(self) -> BoolArray:
        """Whether the row's system won or tied at least once against the column's, (systems, systems)."""
        return np.asarray(self.outcomes[..., :2].any(axis=2))

    @cached_property
    def linked(self) -> BoolArray:
        """Mask (systems,) of the largest part that comparisons link. No method ranks systems of different parts."""
        return largest_component(self.beats, self.n_ratings)

    def only(self, rows: BoolArray) -> Judgements:
        """Return the selected judgements; labels and totals stay the same."""
        columns = ("a", "b", "verdict", "item", "cluster", "rater", "length", "weight")
        taken = {name: column[rows] for name in columns if (column := getattr(self, name)) is not None}
        return replace(self, **taken)

    @cached_property
    def connectivity(self) -> Connectivity:
        """Return how the judgements link the systems."""
        return find_connectivity(self.beats, self.labels, self.n_ratings)


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseComparisons:
    """(n,) columns, one row per judgement of two outputs.

    system_a: shown on the first side; system_b; verdict: among `VERDICTS`.
    item, rater: identifiers. length_difference: length of a minus that of b, in any unit.
    weight: positive, 1 / propensity for pairs chosen
    adaptively."""

    system_a: ArrayLike
    system_b: ArrayLike
    verdict: ArrayLike
    item: ArrayLike | None = None
    rater: ArrayLike | None = None
    length_difference: ArrayLike | None = None
    weight: ArrayLike | None = None


def read_judgements(
    columns: PairwiseComparisons, *, cluster: ArrayLike | None = None, cannot_decide: CannotDecide = "drop"
) -> Judgements:
    """Return checked and coded judgements. Self-comparisons are left out, and `cannot_decide` unless it is "tie"; both
    are counted.

    `cluster`: (n,) groups of dependent judgements; default: the item, else the judgement.

    Raises `ColumnError` for columns that do not fit."""
    if cannot_decide not in ("drop", "tie"):
        raise ValueError(f"cannot_decide is 'drop' or 'tie', not '{cannot_decide}'")
    codes = verdict_codes(columns.verdict)
    n = len(codes)
    both, labels = encode(
        np.concatenate([identifiers(columns.system_a, "system_a", n), identifiers(columns.system_b, "system_b", n)]),
        "system",
    )
    a, b = both[:n], both[n:]
    kept = (a != b) & ((codes != VERDICTS.index("cannot_decide")) | (cannot_decide == "tie"))
    totals = {"judgements": n, "self": int((a == b).sum())}
    totals |= {name: int((codes == VERDICTS.index(name)).sum()) for name in VERDICTS[2:]}
    length = None
    if columns.length_difference is not None:
        length = float_column(columns.length_difference, "length_difference", n)
        if not np.isfinite(length).all():
            raise ColumnError("length_difference", "every judgement needs a finite number")
    weights = None
    if columns.weight is not None:
        weights = float_column(columns.weight, "weight", n)
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise ColumnError("weight", "weights are positive and finite")
    coded = {
        name: None if column is None else encode(column, name, n)
        for name, column in (("item", columns.item), ("cluster", cluster), ("rater", columns.rater))
    }
    units = coded["cluster"] or coded["item"]
    raters = coded["rater"]

    whole = bool(kept.all())

    def rows(column: tuple[IntArray, NDArray[Any]] | None) -> IntArray | None:
        return None if column is None else column[0] if whole else column[0][kept]

    a, b, codes = (a, b, codes) if whole else (a[kept], b[kept], codes[kept])
    return Judgements(
        labels, a, b, codes, rows(coded["item"]), rows(units), rows(raters),
        raters[1] if raters else np.empty(0), None if length is None else length[kept],
        None if weights is None else weights[kept] / weights[kept].mean() if kept.any() else weights[kept],
        totals, f"both_bad:tie|cannot_decide:{cannot_decide}",
    )  # fmt: skip
