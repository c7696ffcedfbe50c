"""Evaluators against human ratings: which values of an evaluator represent its systems."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.boards.data.columns import Ratings, Units
from scoring.boards.metrics.by_ratings import evaluators_table
from scoring.boards.metrics.people import FIXED, LEARNED, People, Scored, ScoredSets, describe_scored

SETTINGS = {
    "level": "system", "grouping": "none", "systems": "all", "references": "original", "ratings": "raw",
    "coefficient": "pearson", "test": "none", "resamples": 20,
}  # fmt: skip
ITEMS, SYSTEMS = 6, 4
#: The human order of systems, and an evaluator's own values in reverse order.
PEOPLE, OWN = (1.0, 2.0, 3.0, 4.0), (4.0, 3.0, 2.0, 1.0)


def people() -> People:
    units = Units({k: (f"s{k}", "machine") for k in range(SYSTEMS)})
    for k in range(SYSTEMS):
        units.code(k, None)
    item, system = (part.ravel() for part in np.meshgrid(np.arange(ITEMS), np.arange(SYSTEMS), indexing="ij"))
    n = len(item)
    value = np.array(PEOPLE)[system]
    zeros = np.zeros(n, dtype=np.int64)
    ratings = Ratings(np.arange(n), item, item, system, zeros, value, zeros.astype(bool), units, ("r",))
    return People(ratings, method="raw", subset="all")


@pytest.mark.parametrize(("n_in_training", "value", "note"), [(0, -1.0, FIXED), (8, 1.0, LEARNED)])
def test_own_value_of_a_system_counts_only_without_training_outputs(n_in_training, value, note):
    """The evaluator's values for systems include its training items: on the common rows (items 2 to 5) its scores
    follow the human scores perfectly, while its own values are reversed."""
    said = people()
    own = tuple({"system": f"s{k}", "step": None, "value": value} for k, value in enumerate(OWN))
    metric = np.where(said.item >= 2, np.array(PEOPLE)[said.system], -9.0 * said.system)
    one = Scored("p", "perception", "trained", "p|v:1", metric, own=own, n_in_training=n_in_training)
    outside = said.item >= 2 if n_in_training else np.ones(len(said), dtype=bool)
    (row,) = evaluators_table(said, ScoredSets([one], outside), SETTINGS, aspect="q")["rows"]
    assert row["pearson"]["value"] == pytest.approx(value)
    assert row["note"] == note


@pytest.mark.parametrize(
    ("kind", "signature", "expected"),
    [
        ("trained", "maude|profile:paper|seed:13|inputs:text|v:1", True),
        ("trained", "shared-bert|profile:paper|inputs:reference|v:1", True),
        ("trained", "maude|profile:paper|seed:13|v:1", False),
        ("combined", "three|inputs:text|v:1", False),
        ("sentinel", "length|v:1", True),
    ],
)
def test_one_sided_evaluators_are_trivial_baselines(kind, signature, expected):
    """Candidate-only and context-only versions of a trained evaluator are trivial baselines in every table."""
    said = people()
    one = Scored("p", "p", kind, signature, np.array(PEOPLE)[said.system])
    (row,) = evaluators_table(said, ScoredSets([one], np.ones(len(said), dtype=bool)), SETTINGS, aspect="q")["rows"]
    assert (row["kind"], row["is_sentinel"]) == (kind, expected)
    matrix = describe_scored(one)
    assert matrix["is_sentinel"] is expected
