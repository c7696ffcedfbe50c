"""Selection with the comparative evaluator: when to stop a training, and which settings to take.

`scoring.ml.selection` measures the quality of such choices for any evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from evalapp.stats.planning.stopping import PATIENCE, PREVIOUS, Check, Stop, early_stop, from_either_side
from evalapp.stats.ranking.skill import SkillRatings
from scoring.ml.types import Record

#: Comparisons with each earlier checkpoint.
PAIRS = 1000
#: Random settings for each architecture.
SETTINGS = 5


class Compares(Protocol):
    """Says which of two texts is better: 1, 0 or -1 for each pair."""

    def compare(self, a: Sequence[Record], b: Sequence[Record]) -> Any: ...


class Ranks(Protocol):
    """Rates the skill of systems from their outputs."""

    def rank(self, systems: Mapping[str, Sequence[Record]], *, seeds: int, seed: int) -> SkillRatings: ...


def make_checks(
    evaluator: Compares,
    checkpoints: Mapping[int, Sequence[Record]],
    *,
    previous: int = PREVIOUS,
    pairs: int = PAIRS,
    seed: int = 13,
) -> list[Check]:
    """Compare each checkpoint, in the order of steps, with the `previous` ones before it, on the same inputs.

    `evaluator` compares texts; `checkpoints` has the outputs of each step. At most `pairs` common inputs are drawn by
    `seed`, which also decides in which half the newest text is second. The first checkpoint is compared with
    nothing.
    """
    steps = sorted(checkpoints)
    texts = {step: {record.item: record for record in checkpoints[step]} for step in steps}
    result = []
    for place, step in enumerate(steps):
        verdicts: list[np.ndarray[Any, Any]] = []
        for earlier in steps[max(0, place - previous) : place]:
            items = sorted(texts[step].keys() & texts[earlier].keys())
            if len(items) > pairs:
                chosen = np.random.default_rng(seed).choice(len(items), pairs, replace=False)
                items = [items[number] for number in sorted(chosen.tolist())]
            newest, before = [texts[step][item] for item in items], [texts[earlier][item] for item in items]
            verdicts.append(from_either_side(evaluator.compare, newest, before, seed=seed))
        result.append(Check.from_verdicts(step, np.concatenate(verdicts) if verdicts else []))
    return result


def select_checkpoint(
    evaluator: Compares,
    checkpoints: Mapping[int, Sequence[Record]],
    *,
    previous: int = PREVIOUS,
    pairs: int = PAIRS,
    patience: int = PATIENCE,
    seed: int = 13,
) -> Stop:
    """Apply the paper's stopping rule to a finished training: stop when the newest checkpoint loses for `patience`
    checks, and take the one before that run (`evalapp.stats.planning.stopping`).

    Any `evaluator` with `compare` works; verdicts count whatever its `outcome`, as during training. `checkpoints`,
    `previous`, `pairs` and `seed` are as in `make_checks`.
    """
    return early_stop(make_checks(evaluator, checkpoints, previous=previous, pairs=pairs, seed=seed), patience=patience)


def select_variant(
    evaluator: Ranks, variants: Mapping[str, Sequence[Record]], *, seeds: int = 100, seed: int = 13
) -> SkillRatings:
    """Return ratings of all `variants` by the evaluator's `outcome`; `.order[0]` is the best.

    `evaluator` rates the systems from their outputs in `seeds` simulations that begin with `seed`.
    """
    return evaluator.rank(variants, seeds=seeds, seed=seed)


def random_settings(space: Mapping[str, Sequence[Any]], n: int = SETTINGS, *, seed: int = 13) -> list[dict[str, Any]]:
    """Return `n` different settings, drawn uniformly by `seed` from the product of the values in `space`; all settings
    if there are fewer.

    >>> random_settings({"lr": [1, 2]}, 5)
    [{'lr': 1}, {'lr': 2}]
    """
    names = sorted(space)
    if not all(len(space[name]) for name in names):
        raise ValueError("every name needs at least one value")
    sizes = [len(space[name]) for name in names]
    total = int(np.prod(sizes, dtype=np.int64)) if sizes else 0
    chosen = np.random.default_rng(seed).choice(total, min(n, total), replace=False) if total else np.zeros(0, int)
    places = np.unravel_index(np.sort(chosen), sizes) if total else ()
    return [
        {name: space[name][int(column[row])] for name, column in zip(names, places, strict=True)}
        for row in range(len(chosen))
    ]
