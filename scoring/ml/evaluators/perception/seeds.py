"""Scores of systems by discriminators that differ only in their seed: mean and spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scoring.ml.base import Evaluator
from scoring.ml.types import Record

#: Fields that may differ in the signatures of discriminators that differ only in their seed.
_OF_A_SEED = ("w", "seed")


@dataclass(frozen=True, slots=True)
class SystemOverSeeds:
    """`values` has the system's score by each discriminator, nan if undefined; `mean` and `sd` (n - 1) are over the `n`
    defined ones, nan without enough."""

    system: str
    n: int
    mean: float
    sd: float
    values: tuple[float, ...]


def scores_over_seeds(readers: Sequence[Evaluator], systems: Mapping[str, Sequence[Record]]) -> list[SystemOverSeeds]:
    """Return the `system_score` of each of the `systems` by each of the `readers`, in the order of the systems.

    Raises ValueError without any, or if they differ in more than seed and weights: a system's score falls as a
    discriminator gets stronger, so others have another scale.
    """
    if not readers:
        raise ValueError("no evaluator to score with")
    kinds = {_without_seed(reader) for reader in readers}
    if len(kinds) > 1:
        raise ValueError(f"these differ in more than their seed: {'; '.join(sorted(kinds))}")
    rows = []
    for system, records in systems.items():
        values = np.array([reader.system_score(records) for reader in readers], dtype=np.float64)
        defined = values[~np.isnan(values)]
        mean = float(defined.mean()) if defined.size else float("nan")
        sd = float(defined.std(ddof=1)) if defined.size > 1 else float("nan")
        rows.append(SystemOverSeeds(system, int(defined.size), mean, sd, tuple(values.tolist())))
    return rows


def _without_seed(reader: Evaluator) -> str:
    name, *fields = reader.signature.split("|")
    return "|".join([name, *(field for field in fields if field.split(":")[0] not in _OF_A_SEED)])
