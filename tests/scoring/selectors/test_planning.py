"""How many judgements are needed; figures of EVALUATORS 7.10."""

from __future__ import annotations

import pytest

from evalapp.common.errors import BadInput
from scoring.selectors.planning import answer_power, read_question


@pytest.mark.parametrize(
    ("test", "effect", "needed"),
    [("preference", "0.55", 783), ("correlation", ".3", 85), ("williams", "0.40,0.30,0.5", 521)],
)
def test_closed_forms_without_a_project(test, effect, needed):
    found = answer_power(read_question({"test": test, "effect": effect}))
    assert found["needed"] == pytest.approx(needed, abs=1)
    assert found["pilot"] is None
    assert [row["power"] for row in found["curve"]] == sorted(row["power"] for row in found["curve"])


@pytest.mark.parametrize("given", [{"test": "guess"}, {"effect": "much"}, {"power": "high"}, {"test": "williams"}])
def test_what_cannot_be_reckoned_is_refused_with_the_field(given):
    if given == {"test": "williams"}:
        given = {"test": "williams", "effect": "0.4"}
    with pytest.raises(BadInput) as caught:
        answer_power(read_question(given))
    assert caught.value.faults[0].field in given
