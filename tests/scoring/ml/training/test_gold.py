"""Human ratings as labels."""

from __future__ import annotations

import numpy as np

from scoring.ml.training.gold import collect_rated_outputs
from scoring.ml.types import Dataset, Item, Output, Rating

VALUES = {"r": (1, 2, 4), "r@12": (2, 5, 5), "s": (3, 3, 1)}
#: Outputs rated under each key: r@12 is the same person, asked about other outputs than r.
PLACES = {
    "r": [("i1", "a"), ("i1", "b"), ("i2", "a")],
    "r@12": [("i1", "c"), ("i2", "b"), ("i2", "c")],
    "s": [("i1", "a"), ("i1", "b"), ("i2", "a")],
}


def labels(names: dict[str, str], method) -> np.ndarray:
    """Six outputs of two items, rated under three keys with these names."""
    places = sorted({place for of_key in PLACES.values() for place in of_key})
    ratings = tuple(
        Rating(names[rater], "q", value, item=item, system=system)
        for rater, values in VALUES.items()
        for (item, system), value in zip(PLACES[rater], values, strict=True)
    )
    outputs = tuple(Output(item, system, "text") for item, system in places)
    items = tuple(Item(name, ("context",), group=name) for name in ("i1", "i2"))
    found = collect_rated_outputs(Dataset("d", items=items, outputs=outputs, ratings=ratings), "q", method)
    return np.concatenate(found.values)


def test_rater_in_another_campaign_is_the_same_person_in_z_scores():
    """Once, `r` and `r@12` were two raters, each with their own mean and spread."""
    keys, merged, apart = ({"r": "r", "r@12": name, "s": "s"} for name in ("r@12", "r", "t"))
    np.testing.assert_array_equal(labels(keys, "z"), labels(merged, "z"))
    assert not np.allclose(labels(keys, "z"), labels(apart, "z"))
    np.testing.assert_array_equal(labels(keys, "rank"), labels(apart, "rank"))  # each row separately
    np.testing.assert_array_equal(labels(keys, "raw")[:3], [1, 3, 2])  # r and s of i1 a, r of i1 b
