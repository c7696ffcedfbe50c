"""The robustness report: one evaluator over named kinds of texts, each against the original as its reference.

Kinds are the caller's: machine-generated (MGE), written by people (HWE), by people and far in words from the original
(LDHWE), by people with better wording (HWEBQ), adversarial (AE). Source: Gu, Wu & Yu 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evalapp.words import split_words
from scoring.ml.base import Evaluator, Floats
from scoring.ml.types import Record


@dataclass(frozen=True, slots=True)
class KindScore:
    """`score` is the evaluator's own score of all texts of the kind taken as one system, `mean` their plain mean."""

    kind: str
    n: int
    score: float
    mean: float
    sd: float


def robustness(
    evaluator: Evaluator, kinds: Mapping[str, Sequence[Record]], *, progress: Callable[[int], None] | None = None
) -> list[KindScore]:
    """Return one row per kind, in the order given; a kind without texts has n = 0 and nan.

    `kinds` has the records of each kind. If the score of the `evaluator` depends on the other texts of the call, the
    texts of all kinds are scored together. `progress` counts texts; an exception it raises ends the work.
    """
    rows, done = [], 0
    # A system score that is the mean need not be computed again.
    is_mean = evaluator.entry.system_score == "mean"
    together: Floats | None = None
    if evaluator.depends_on_batch:
        everything = [record for records in kinds.values() for record in records]
        share = _share(progress, 0, len(everything)) if progress else None
        together = evaluator.evaluate(everything, progress=share).values
    for kind, records in kinds.items():
        if not records:
            rows.append(KindScore(kind, 0, float("nan"), float("nan"), float("nan")))
            continue
        if together is None:
            share = _share(progress, done, len(records)) if progress else None
            values = evaluator.evaluate(records, progress=share).values
        else:
            values = together[done : done + len(records)]
        done += len(records)
        defined = values[~np.isnan(values)]
        spread = float(defined.std(ddof=1)) if len(defined) > 1 else float("nan")
        mean = float(defined.mean()) if len(defined) else float("nan")
        score = mean if is_mean else evaluator.system_score(records)
        rows.append(KindScore(kind, len(defined), score, mean, spread))
        if progress:
            progress(done if together is None else sum(map(len, kinds.values())))
    return rows


def _share(progress: Callable[[int], None], before: int, n: int) -> Callable[[int, int], None]:
    """Convert progress over the distinct texts of a kind to progress over all texts."""
    return lambda done, total: progress(before + (done * n // total if total else n))


def least_overlapping(original: str, others: Sequence[str]) -> int:
    """Return the place in `others` of the text with the smallest share of word tokens in common with the `original`
    (Jaccard); the first one wins. Raises ValueError without any text.

    >>> least_overlapping("a cat sat", ["a cat ran", "dogs run"])
    1
    """
    if not others:
        raise ValueError("no texts to choose from")
    own = set(split_words(original))

    def overlap(text: str) -> float:
        tokens = set(split_words(text))
        union = own | tokens
        return len(own & tokens) / len(union) if union else 1.0

    return min(range(len(others)), key=lambda place: (overlap(others[place]), place))
