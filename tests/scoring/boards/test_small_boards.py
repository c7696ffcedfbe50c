"""Tables of systems from a few random comparisons, with every method and setting: never an error, always consistent."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalapp.stats.planning.watching import CampaignJudgements, watch
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.judgements import PairwiseComparisons
from scoring.boards.data.columns import Comparisons, Units
from scoring.boards.systems.rankings import COVARIATES, systems_by_comparisons

pytestmark = pytest.mark.slow

METHODS = ("win-rate", "bradley-terry", "davidson", "rao-kupper", "glicko2")
VERDICTS = ("a", "b", "tie", "both_bad", "cannot_decide")


@st.composite
def comparisons(draw):
    """Up to 24 comparisons of 2 to 6 systems, also with themselves; texts of one or few lengths; few items."""
    k, m = draw(st.integers(2, 6)), draw(st.integers(1, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    units = Units({number: (f"s{number}", "machine") for number in range(k)})
    codes = np.array([units.code(number, None) for number in range(k)])
    item = rng.integers(1 + rng.integers(m), size=m)
    return Comparisons(
        item, item // 2, codes[rng.integers(k, size=m)], codes[rng.integers(k, size=m)],
        rng.choice(VERDICTS, size=m, p=rng.dirichlet([1, 1, 0.5, 0.2, 0.2])), np.zeros(m, dtype=bool), units,
        rater=rng.integers(3, size=m), raters=("p", "q", "r"),
        longer=rng.integers(-2, 3, size=m) * float(rng.integers(0, 2)),
        propensity=np.where(rng.random(m) < 0.5, rng.uniform(0.01, 1, m), np.nan),
    )  # fmt: skip


@settings(max_examples=60)
@given(found=comparisons(), data=st.data())
@pytest.mark.parametrize("method", METHODS)
def test_table_is_consistent_for_any_comparisons(method, found, data):
    options = {"by": "", "ratings": "raw", "systems": "all", "method": method, "resamples": 20}
    if method in ("bradley-terry", "davidson", "rao-kupper"):
        chosen = data.draw(st.sets(st.sampled_from(COVARIATES)))
        options |= {"covariates": "+".join(sorted(chosen)) or "none"}
        options["weights"] = data.draw(st.sampled_from(["none", "propensity"]))
    table = systems_by_comparisons(found, options, aspect="q")
    json.dumps(table, allow_nan=False)
    ranked = [row for row in table["rows"] if row["rank"] is not None]
    for row in table["rows"]:
        if row["rank"] is None:
            assert row["value"] is None
            assert row["note"]
        else:
            assert 1 <= row["rank_low"] <= row["rank"] <= row["rank_high"] <= len(ranked)
            assert row["value"] is not None or row["note"]
        if row["low"] is not None:
            assert row["low"] <= row["value"] <= row["high"]
    assert table["rows"][: len(ranked)] == ranked


@settings(max_examples=25)
@given(found=comparisons())
def test_campaign_quality_is_consistent_for_any_comparisons(found):
    n, apart = len(found), found.system_a != found.system_b
    judged = CampaignJudgements(
        kind="pairwise", value=found.verdict[apart], unit=np.arange(n)[apart], item=found.item[apart],
        first=found.system_a[apart], second=found.system_b[apart], swapped=np.zeros(int(apart.sum()), dtype=bool),
        seconds=np.full(int(apart.sum()), 5.0), systems=tuple(unit.label for unit in found.units.units),
    )  # fmt: skip
    table = watch(judged, planned=100)
    json.dumps(table, allow_nan=False)
    assert all(row["rank"] is None or row["rank_low"] <= row["rank"] <= row["rank_high"] for row in table["ranking"])


def test_only_undecided_texts_differ_in_length():
    """The only pair with different lengths was undecided: no length effect remains, and a note says so."""
    found = rank_by_comparisons(
        PairwiseComparisons(["x", "x", "y"], ["y", "y", "x"], ["cannot_decide", "a", "a"], length_difference=[-2, 0, 0])
    )
    assert found.systems[0].estimate.is_defined
    assert found.extras["length"]["note"] == "all texts of the systems that can be rated are equally long"


def test_flat_likelihood_gives_no_finite_ratings():
    """By hand: x ties y and z, z beats y twice; ties and wins fit perfectly as nu grows. Once, the matrix became
    singular."""
    found = rank_by_comparisons(
        PairwiseComparisons(["x", "y", "y", "y"], ["z", "x", "z", "z"], ["tie", "tie", "b", "b"], item=[0, 3, 4, 1]),
        model=ComparisonModel(method="davidson"),
    )
    assert {row.estimate.note for row in found.systems} == {
        "ties and decided verdicts fit perfectly: no finite estimates"
    }
    assert not any(row.is_ranked for row in found.systems)
