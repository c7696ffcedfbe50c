"""The caption of letters: what the test takes for granted, and which outputs the coefficients are of."""

from __future__ import annotations

import pytest

from scoring.tables import letters_caption


def table(test: str, ns: list[int]) -> dict:
    rows = [{"evaluator": f"e{place}", "n": n} for place, n in enumerate(ns)]
    return {
        "kind": "evaluators", "level": "segment", "rows": rows,
        "test": {"test": test, "names": ["e0", "e1"], "n_rows": 90, "k": 1000, "alpha": 0.05},
    }  # fmt: skip


@pytest.mark.parametrize("test", ["perm-inputs", "bootstrap", "williams"])
def test_the_caption_says_that_williams_takes_outputs_for_independent(test):
    assert ("takes outputs for independent" in letters_caption(table(test, [90, 90]))) == (test == "williams")


@pytest.mark.parametrize(("ns", "differ"), [([90, 90], False), ([90, 120], True)])
def test_the_caption_says_where_coefficients_are_over_other_outputs_than_the_tests(ns, differ):
    shown = letters_caption(table("perm-inputs", ns))
    assert "over 90 outputs that all have scored" in shown
    assert ("over all outputs that its own evaluator has scored" in shown) == differ
    # At the level of systems all coefficients are over the outputs that all have scored.
    of_systems = letters_caption({**table("perm-systems", ns), "level": "system"})
    assert "its own evaluator" not in of_systems
