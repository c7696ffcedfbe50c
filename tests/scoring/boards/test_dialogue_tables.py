"""Evaluators of whole dialogues, as a table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.agreement.calibration import calibrate_raters
from scoring.boards.data.columns import Ratings, Units
from scoring.boards.metrics.dialogues import NO_SYSTEM, Turns, dialogues_table
from scoring.boards.metrics.people import People, Scored, ScoredSets

SETTINGS = {
    "level": "dialogue", "grouping": "none", "systems": "all", "references": "original", "ratings": "raw",
    "resamples": 20, "test": "none",
}  # fmt: skip


def talks(n_systems: int = 6, per: int = 4, unnamed: int = 2) -> tuple[Ratings, np.ndarray]:
    """Dialogues by systems with ratings, the last system without any; each rated by a mild and a strict person, who
    rate different systems."""
    rng = np.random.default_rng(8)
    names = [f"s{k}" for k in range(n_systems)] + [NO_SYSTEM]
    units = Units({name: (name, "machine") for name in names})
    system = np.repeat([units.code(name, None) for name in names], [per] * n_systems + [unnamed])
    n = len(system)
    quality = system / 3 + rng.normal(size=n)
    dialogue, rater = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
    rater = np.where((rater == 1) & (system[dialogue] >= 3), 2, rater)
    value = quality[dialogue] + np.array([0.0, 2.0, -2.0])[rater] + rng.normal(size=2 * n)
    columns = (dialogue, dialogue, dialogue, system[dialogue], rater, value, np.zeros(2 * n, dtype=bool))
    return Ratings(*columns, units=units, raters=("a", "b", "c")), quality + rng.normal(size=n)


def make_table(ratings: Ratings, metric: np.ndarray, seen: list[int], **more):
    people = People(ratings, method="raw", subset="all")
    outside = ~np.isin(np.arange(len(people)), seen)
    one = Scored("e", "e", "trained", "e|v:1", metric)
    turns = Turns(np.arange(len(people)), len(people))
    return dialogues_table(people, turns, ScoredSets([one], outside, **more), SETTINGS, aspect="q")


@pytest.mark.parametrize("seen", [[], [0, 9]])
def test_system_means_against_calibrated_ones(seen):
    ratings, metric = talks()
    table = make_table(ratings, metric, seen, unapplied={"length": "not applied yet"})
    kept = ~np.isin(ratings.output, seen) & (ratings.system < 6)
    found = calibrate_raters(ratings.value[kept], ratings.system[kept], ratings.rater[kept])
    people = {row.label: row.estimate.value for row in found.systems}
    system = np.zeros(26, dtype=int)
    system[ratings.output] = ratings.system
    mine = [np.mean([metric[k] for k in range(26) if system[k] == s and k not in seen]) for s in range(6)]
    rows = {row["evaluator"]: row for row in table["rows"]}
    expected = stats.spearmanr(mine, [people[s] for s in range(6)])[0]
    assert rows["e"]["calibrated"]["value"] == pytest.approx(expected, abs=1e-12)
    assert rows["e"]["calibrated"]["n"] == 6
    raw = [ratings.value[kept & (ratings.system == s)].mean() for s in range(6)]
    assert stats.spearmanr(raw, [people[s] for s in range(6)])[0] < 1  # the raters matter here
    assert rows["length"]["calibrated"]["value"] is None
    assert "not applied yet" in rows["length"]["calibrated"]["note"]


def test_too_few_systems_have_a_reason():
    ratings, metric = talks(n_systems=2)
    (row,) = make_table(ratings, metric, [])["rows"]
    assert row["calibrated"]["value"] is None
    assert row["calibrated"]["note"]
    (row,) = make_table(ratings, metric, list(range(10)))["rows"]  # nothing is left
    assert row["calibrated"]["value"] is None
