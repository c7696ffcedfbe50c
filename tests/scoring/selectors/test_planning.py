"""How many judgements are needed; figures of docs/explanation/statistics/planning.md#worked-numbers."""

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


def test_the_sides_of_a_test_are_those_it_has_or_those_asked_for():
    """z for .05 is 1.6449 on one side and 1.9600 on two; one-sided figures by the same formulas."""
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
def test_what_cannot_be_reckoned_is_refused_with_the_field(given):
    if given == {"test": "williams"}:
        given = {"test": "williams", "effect": "0.4"}
    with pytest.raises(BadInput) as caught:
        answer_power(read_question(given))
    assert caught.value.faults[0].field in given


def test_a_pilot_in_which_all_ratings_are_equal_is_refused_in_words():
    components = variance_components([3.0] * 8, [0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4).as_dict()
    table = {"components": components, "n_items": 4, "n_judgements": 8, "aspect": "quality"}
    with pytest.raises(BadInput, match="shows no variance"):
        answer_plan(read_question({"test": "rating", "effect": "0.3"}), table)
