"""Plans: power of the paired test by hand and by simulation, advice in words, refused input."""

from __future__ import annotations

import json
import math

import pytest
from statsmodels.stats.power import TTestPower

from evalapp.stats.agreement.components import Components
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.planning.designs import SignificanceTest, StudyDesign, plan
from evalapp.stats.planning.power import EffectError


def pilot(item=0.3, system=0.1, output=0.2, rater=0.15, residual=0.6):
    undefined = Estimate.undefined("no output was rated twice")
    parts = [
        undefined if part is None else Estimate.point(part, 50) for part in (item, system, output, rater, residual)
    ]
    return Components(*parts, mean=3.0, n=500, ratings_per_output=3.0)


def test_power_equals_the_paired_t_test():
    found = plan(pilot(), 0.3, simulations=0, design=StudyDesign(items=100, ratings=3))
    spread = math.sqrt(2 * (0.2 + 0.75 / 3))
    expected = TTestPower().power(effect_size=0.3 / spread, nobs=100, alpha=0.05)
    assert found.asked.power == pytest.approx(expected, abs=1e-9)
    assert found.asked.judgements == 600
    assert found.asked.error == pytest.approx(spread / 10)
    assert found.asked.simulated.note == "no simulations were asked for"
    # A rater's bias cancels if the rater judges both outputs.
    same = plan(pilot(), 0.3, simulations=0, design=StudyDesign(items=100, ratings=3, same_raters=True))
    spread = math.sqrt(2 * (0.2 + 0.6 / 3))
    assert same.asked.power == pytest.approx(TTestPower().power(0.3 / spread, 100, 0.05), abs=1e-9)
    # Large differences: a noncentral t far in the tail.
    assert plan(pilot(), 3.0, simulations=0, design=StudyDesign(items=50, ratings=3)).asked.power == pytest.approx(1)
    assert plan(pilot(), 300.0, simulations=0, design=StudyDesign(items=500, ratings=3)).asked.power == pytest.approx(1)
    # One-sided, with the whole alpha on one side.
    one = plan(
        pilot(), 0.3, simulations=0, design=StudyDesign(items=100, ratings=3), test=SignificanceTest(two_sided=False)
    )
    spread = math.sqrt(2 * 0.45)
    expected = TTestPower().power(0.3 / spread, 100, 0.05, alternative="larger")
    assert one.asked.power == pytest.approx(expected, abs=1e-9)
    assert one.cheapest.judgements < found.cheapest.judgements
    again = TTestPower().power(found.detectable / math.sqrt(2 * 0.45), 100, 0.05)
    assert again == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "two_sided"),
    [({}, True), ({"same_raters": True}, True), ({"raters": 60}, True), ({"raters": 60, "same_raters": True}, False)],
)
def test_simulation_agrees_with_the_closed_form(options, two_sided):
    asked = {"design": StudyDesign(items=60, ratings=3, **options), "test": SignificanceTest(two_sided=two_sided)}
    found = plan(pilot(), 0.3, simulations=600, **asked)
    for design in (found.asked, found.more_items):
        assert design.simulated.value == pytest.approx(design.power, abs=0.07)
        assert design.simulated.low < design.simulated.value < design.simulated.high
    again = plan(pilot(), 0.3, simulations=600, **asked)
    assert again.as_dict() == found.as_dict()
    json.dumps(found.as_dict(), allow_nan=False)


def test_coarse_scale_costs_power():
    fine = plan(pilot(), 0.3, simulations=600, design=StudyDesign(items=60, ratings=1))
    coarse = plan(pilot(), 0.3, simulations=600, design=StudyDesign(items=60, ratings=1, scale=(2, 4)))
    assert coarse.asked.simulated.value < fine.asked.simulated.value


def test_advice_more_items_or_more_raters():
    found = plan(pilot(), 0.3, simulations=0, design=StudyDesign(items=40, ratings=2))
    assert any("add items" in sentence for sentence in found.advice)
    assert found.more_items.power > found.more_ratings.power
    assert found.more_items.judgements == found.more_ratings.judgements == 2 * found.asked.judgements
    assert any("reliability" in sentence for sentence in found.advice)
    # Outputs do not differ in quality, so only the number of ratings counts.
    even = plan(pilot(output=0.0), 0.3, simulations=0, design=StudyDesign(items=40, ratings=2))
    assert any("the two are equivalent" in sentence for sentence in even.advice)
    few = plan(pilot(output=2.0), 0.3, simulations=0, design=StudyDesign(items=10, ratings=2))
    assert any("With any number of raters" in sentence for sentence in few.advice)


def test_cheapest_design_by_the_cost_of_items():
    cheap = plan(pilot(), 0.3, simulations=0, design=StudyDesign(items=40, ratings=2)).cheapest
    assert cheap.ratings == 1
    assert cheap.power >= 0.8
    dear = plan(pilot(), 0.3, simulations=0, design=StudyDesign(items=40, ratings=2, item_cost=40)).cheapest
    # sqrt(c/2 * (E + R) / O) = sqrt(20 * .75 / .2) = 8.7 ratings per output.
    assert 7 <= dear.ratings <= 10
    assert dear.items < cheap.items
    assert plan(pilot(), 1e-5, simulations=0, design=StudyDesign(items=40, ratings=2)).cheapest is None


def test_pilot_of_one_system_is_used_with_care():
    found = plan(pilot(system=None, output=None), 0.3, simulations=50, design=StudyDesign(items=40, ratings=2))
    assert any("item variance replaces the output variance" in sentence for sentence in found.advice)
    assert found.asked.error == pytest.approx(math.sqrt(2 * (0.3 + 0.75 / 2) / 40))


@pytest.mark.parametrize(
    ("difference", "options", "words"),
    [
        (0.0, {}, "cannot be 0"),
        (0.3, {"items": 1}, "at least 2 items"),
        (0.3, {"ratings": 3, "raters": 2}, "as many raters"),
    ],
)
def test_invalid_input_is_refused_with_a_message(difference, options, words):
    with pytest.raises(EffectError, match=words):
        plan(pilot(), difference, design=StudyDesign(**({"items": 40, "ratings": 2} | options)))
    with pytest.raises(EffectError, match="no variance"):
        plan(pilot(output=0.0, rater=0.0, residual=0.0), 0.3, design=StudyDesign(items=40, ratings=2))
