"""The paper's protocol for people, by the evaluator: a text is compared with four others of the same context. No torch.

Explained in docs/explanation/evaluators/comparative.md#scores-of-single-texts.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from scoring.ml.evaluators.comparative.verdicts import Floats
from scoring.ml.types import Record

#: Texts that each text is compared with, and the ends of the scale: 1 and one point for each win.
N_OTHERS = 4
LOWEST, HIGHEST = 1.0, 1.0 + N_OTHERS
ALONE = "there is no other text of its context to compare it with"


def draw_others(records: Sequence[Record], seed: int) -> list[tuple[int, int]]:
    """Return pairs of places in `records`: each record with up to four others of the same context and source, the next
    ones in a random circle.

    The `records` are distinct. The circle is drawn by `seed` and by their content, not by their order.
    """
    together: dict[Hashable, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        together[record.context, record.source].append(place)

    def draw(place: int) -> bytes:
        texts = (seed, records[place].context, records[place].source, records[place].text)
        return hashlib.sha256(repr(texts).encode("utf-8", "surrogatepass")).digest()

    pairs = []
    for places in together.values():
        circle = sorted(places, key=draw)
        n_others = min(N_OTHERS, len(circle) - 1)
        pairs += [
            (place, circle[(k + apart) % len(circle)])
            for k, place in enumerate(circle)
            for apart in range(1, n_others + 1)
        ]
    return pairs


def count_wins(pairs: Sequence[tuple[int, int]], won: Floats, n: int) -> Floats:
    """Return (n,) scores: 1 plus the number of wins, in proportion if there were fewer than four others; nan without.

    `won` (m,) of the m `pairs`: 1 for a win of the first text, else 0, or its probability; `n` is the number of texts.
    """
    places = np.array([place for place, _other in pairs], dtype=np.int64)
    met = np.bincount(places, minlength=n)
    wins = np.bincount(places, weights=won, minlength=n)
    return np.where(met > 0, LOWEST + N_OTHERS * wins / np.maximum(met, 1), np.nan)
