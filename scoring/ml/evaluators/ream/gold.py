"""Gold reliability of reference sets (equations 1 and 2), the sets drawn for training, and their negatives.

Explained in docs/explanation/evaluators/ream.md#reliability.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Nodes: TypeAlias = tuple[int, ...]
#: The paper's test: one set of each size and query.
TEST_SIZES = (3, 5, 10, 20, 30, 40)


@dataclass(frozen=True)
class ItemGold:
    """A query: `metric` (outputs, references + foreign answers) are single-reference scores m(y_i, r_j), `human`
    (outputs,) human means. The first `n_references` columns are the item's own."""

    metric: Floats
    human: Floats
    n_references: int

    def reliabilities(self, sets: Sequence[Nodes]) -> Floats:
        """rho(q, R) = Pearson over outputs of max_{r in R} m(y, r) and human; nan where either is constant."""
        values = np.full(len(sets), np.nan)
        by_size: dict[int, list[int]] = {}
        for place, nodes in enumerate(sets):
            by_size.setdefault(len(nodes), []).append(place)
        for places in by_size.values():
            columns = np.array([sets[place] for place in places], dtype=np.int64)
            best = self.metric[:, columns].max(axis=2)  # (outputs, sets)
            values[places] = pearson_columns(best, self.human)
        return values


def pearson_columns(columns: Floats, human: Floats) -> Floats:
    """Return (k,) Pearson's r of each of the `columns` (n, k) with `human` (n,); nan if either is constant or n < 3."""
    if len(human) < 3:
        return np.full(columns.shape[1], np.nan)
    x = columns - columns.mean(axis=0)
    y = human - human.mean()
    norm_x, norm_y = np.sqrt((x**2).sum(axis=0)), math.sqrt(float((y**2).sum()))
    # A spread of nothing but rounding counts as constant.
    flat = norm_x <= 1e-12 * np.maximum(np.abs(columns).max(axis=0), 1e-300) * math.sqrt(len(human))
    if norm_y <= 1e-12 * max(float(np.abs(human).max()), 1e-300):
        return np.full(columns.shape[1], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        result = (x * y[:, None]).sum(axis=0) / (norm_x * norm_y)
    return np.where(flat, np.nan, np.clip(result, -1.0, 1.0))


def draw_sets(n: int, sizes: Sequence[int], per_size: int, rng: np.random.Generator) -> list[Nodes]:
    """Return `per_size` distinct sets of each of the `sizes` that `n` references can fill, drawn by `rng`, or all if
    there are no more."""
    result: list[Nodes] = []
    for size in sorted({size for size in sizes if 1 <= size <= n}):
        if math.comb(n, size) <= per_size:
            result += list(combinations(range(n), size))
            continue
        seen: dict[Nodes, None] = {}
        while len(seen) < per_size:
            seen[tuple(sorted(rng.choice(n, size, replace=False).tolist()))] = None
        result += list(seen)
    return result


def count_sets(queries: int, references: int, sizes: Collection[int], per_size: int) -> int:
    """Return the number of sets that `draw_sets` gives over all `queries`, each with this number of `references`:
    `per_size` for each of the `sizes`. It reproduces the paper's counts.

    >>> count_sets(2, 3, [1, 3], 25)
    8
    """
    return queries * sum(min(per_size, math.comb(references, size)) for size in sizes if size <= references)


class Sample(NamedTuple):
    """A reference set of an item, with its gold reliability, and the value to learn if it is another."""

    item: int
    nodes: Nodes
    gold: float
    shrunk: float | None = None

    @property
    def target(self) -> float:
        """The value to learn."""
        return self.gold if self.shrunk is None else self.shrunk


class Noise(NamedTuple):
    """`mean` (n,) of the gold of each sample's size, `true` variance of reliabilities around it, and (n,) the variance
    of each gold by chance."""

    mean: Floats
    true: float
    chance: Floats

    @property
    def ceiling(self) -> float:
        """The greatest R2 that a prediction can have on average: the share of the variance that is not chance."""
        total = self.true + float(self.chance.mean())
        return self.true / total if total > 0 else float("nan")


def measure_noise(samples: Sequence[Sample], gold: Sequence[ItemGold]) -> Noise:
    """Return how much of the gold reliability of `samples` of the items `gold` is chance.

    A correlation m over n answers has the sampling variance (1 - m^2)^2 / (n - 1), with m the mean of the sets of its
    size. The true variance is what is left of the observed one, at least 0.
    """
    values = np.array([sample.gold for sample in samples])
    sizes = np.array([len(sample.nodes) for sample in samples])
    mean = np.empty(len(values))
    for size in np.unique(sizes):
        mean[sizes == size] = values[sizes == size].mean()
    return split_variance(values, mean, np.array([len(gold[sample.item].human) for sample in samples]))


def split_variance(values: Floats, mean: Floats, n: npt.ArrayLike) -> Noise:
    """Return how much of the gold reliabilities `values` around `mean` is chance; each is a correlation over `n`
    answers. All are (n,)."""
    chance = (1 - mean**2) ** 2 / (np.asarray(n, dtype=np.float64) - 1)
    return Noise(mean, max(0.0, float(((values - mean) ** 2).mean() - chance.mean())), chance)


def shrink_gold(samples: Sequence[Sample], gold: Sequence[ItemGold]) -> list[Sample]:
    """Return the `samples` with their gold shrunk towards the mean of their size by its own reliability, the share
    true / (true + chance) of `measure_noise`."""
    if not samples:
        return []
    noise = measure_noise(samples, gold)
    share = noise.true / np.maximum(noise.true + noise.chance, 1e-12)
    return [
        sample._replace(shrunk=float(mean + part * (sample.gold - mean)))
        for sample, mean, part in zip(samples, noise.mean, share, strict=True)
    ]


def worse_by_removal(sample: Sample, item: ItemGold) -> list[tuple[Nodes, float]]:
    """Return the sets with one reference less than the `sample` whose gold reliability for the `item` really is lower,
    with that reliability (docs/explanation/evaluators/ream.md#negatives)."""
    nodes = sample.nodes
    if len(nodes) < 2:
        return []
    sets = [nodes[:place] + nodes[place + 1 :] for place in range(len(nodes))]
    gold = item.reliabilities(sets)
    return [(sets[place], float(gold[place])) for place in np.flatnonzero(gold < sample.gold)]


def draw_foreign(
    kind: str, sample: Sample, item: ItemGold, rng: np.random.Generator, *, gold: bool = True
) -> tuple[Nodes, float] | None:
    """Return a worse set made from a `sample` of an `item` with an answer to another query, and its gold reliability.

    `kind` add adds the answer, replace puts it in place of a reference; `rng` draws both. Without `gold` the
    reliability is nan. None if there are no foreign answers.
    """
    n_foreign = item.metric.shape[1] - item.n_references
    if not n_foreign:
        return None
    nodes, stranger = sample.nodes, item.n_references + int(rng.integers(n_foreign))
    if kind == "add":
        result = (*nodes, stranger)
    else:
        place = int(rng.integers(len(nodes)))
        result = (*nodes[:place], *nodes[place + 1 :], stranger)
    return result, float(item.reliabilities([result])[0]) if gold else float("nan")
