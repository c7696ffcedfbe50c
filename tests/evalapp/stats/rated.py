"""Ratings in the form that tables take, from rows of item, system, rater and value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scoring.boards.data.columns import Ratings, Units


def make_ratings(rows: Sequence[tuple[str, str, str, float]]) -> Ratings:
    items, systems, raters = (tuple(sorted({row[place] for row in rows})) for place in range(3))
    units = Units({name: (name, "machine") for name in systems})
    item = np.array([items.index(row[0]) for row in rows])
    system = np.array([units.code(row[1], None) for row in rows])
    rater = np.array([raters.index(row[2]) for row in rows])
    value = np.array([row[3] for row in rows], dtype=np.float64)
    output = item * len(systems) + system
    return Ratings(output, item, item, system, rater, value, np.zeros(len(rows), dtype=bool), units, raters)
