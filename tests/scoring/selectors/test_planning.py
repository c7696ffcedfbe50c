"""The number of judgements needed; figures of docs/explanation/statistics/planning.md#worked-numbers."""

from __future__ import annotations

import pytest

from evalapp.common.errors import BadInput
from evalapp.stats.agreement.components import variance_components
from scoring.selectors.planning import answer_plan, answer_power, read_question


@pytest.mark.parametrize(
    ("test", "effect", "needed"),
    [("preference", "0.55", 783), ("correlation", ".3", 85), ("williams", "0.40,0.30,0.5", 521)],
)
def test_closed_forms_without_a_project(test, effect, needed):
    found = answer_power(read_question({"test": test, "effect": effect}))
    assert found["needed"] == pytest.approx(needed, abs=1)
    assert found["pilot"] is None
    assert [row["power"] for row in found["curve"]] == sorted(row["power"] for row in found["curve"])


def test_sides_of_a_test_are_its_own_or_the_requested_ones():
    """z for .05 is 1.6449 one-sided and 1.9600 two-sided; one-sided figures by the same formulas."""
    asked = {"test": "williams", "effect": "0.5,0.3,0.5"}
    usual, two = (answer_power(read_question({**asked, "sides": sides})) for sides in ("", "2"))
    assert (usual["needed"], usual["sides"], two["sides"]) == (121, 1, 2)
    assert two["needed"] == pytest.approx(121 * ((1.9600 + 0.8416) / (1.6449 + 0.8416)) ** 2, abs=2)
    assert "one-sided" in usual["words"][0]
    assert "two-sided" in two["words"][0]
    one = answer_power(read_question({"test": "preference", "effect": "0.6", "sides": 1}))
    assert one["needed"] < answer_power(read_question({"test": "preference", "effect": "0.6"}))["needed"] == 194


@pytest.mark.parametrize(
    "given",
    [{"test": "guess"}, {"effect": "much"}, {"power": "high"}, {"test": "williams"}, {"sides": "3"}],
)
def test_impossible_calculation_is_refused_by_field(given):
    if given == {"test": "williams"}:
        given = {"test": "williams", "effect": "0.4"}
    with pytest.raises(BadInput) as caught:
        answer_power(read_question(given))
    assert caught.value.faults[0].field in given


def test_pilot_with_equal_ratings_is_refused_with_a_message():
    components = variance_components([3.0] * 8, [0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4).as_dict()
    table = {"components": components, "n_items": 4, "n_judgements": 8, "aspect": "quality"}
    with pytest.raises(BadInput, match="shows no variance"):
        answer_plan(read_question({"test": "rating", "effect": "0.3"}), table)


def test_evaluator_saves_the_square_of_its_correlation():
    """194 comparisons without (above), times 1 - .6 ^ 2 = .64."""
    found = answer_power(read_question({"test": "preference", "effect": "0.6", "rho": "0.6"}))
    assert found["assisted"]["needed"] == 125
    assert "by 0.6 within systems" in found["words"][-1]
    assert answer_power(read_question({"test": "preference", "effect": "0.6"}))["assisted"] is None


@pytest.mark.parametrize("given", [{"rho": "1"}, {"rho": "-0.1"}, {"rho": "x"}, {"rho": "0.5", "test": "correlation"}])
def test_wrong_correlation_of_an_evaluator_is_named(given):
    with pytest.raises(BadInput) as error:
        read_question(given)
    assert error.value.faults[0].field == "rho"
