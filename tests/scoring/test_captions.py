"""The caption about letters: the assumptions of the test, and the outputs behind the coefficients."""

from __future__ import annotations

import re

import pytest

from scoring.boards.render.figures import letters_caption


def table(test: str, ns: list[int]) -> dict:
    rows = [{"evaluator": f"e{place}", "n": n, "letters": "a"} for place, n in enumerate(ns)]
    return {
        "kind": "evaluators", "level": "segment", "rows": rows,
        "test": {"test": test, "names": ["e0", "e1"], "n_rows": 90, "k": 1000, "alpha": 0.05},
    }  # fmt: skip


@pytest.mark.parametrize("test", ["perm-inputs", "bootstrap", "williams"])
def test_caption_states_that_williams_assumes_independent_outputs(test):
    assert ("assumes independent outputs" in letters_caption(table(test, [90, 90]))) == (test == "williams")


@pytest.mark.parametrize(("ns", "differ"), [([90, 90], False), ([90, 120], True)])
def test_caption_states_where_coefficients_and_tests_use_other_outputs(ns, differ):
    shown = letters_caption(table("perm-inputs", ns))
    assert "90 outputs" in shown
    assert ("Each coefficient" in shown) == differ
    # At system level, all coefficients use the outputs that all evaluators have scored.
    of_systems = letters_caption({**table("perm-systems", ns), "level": "system"})
    assert "Each coefficient" not in of_systems


def test_caption_without_letters_gives_the_reason_and_the_test():
    found = {**table("perm-systems", [4, 4]), "level": "system"}
    found["rows"] = [{**row, "letters": ""} for row in found["rows"]]
    found["test"] |= {"note": "not tested: 4 systems only", "population": "systems and items like these", "k_used": 0}
    shown = letters_caption(found)
    assert all(words in shown for words in ("No letters", found["test"]["note"], "PERM-SYSTEMS"))
    assert shown.endswith(f"{found['test']['population']}.")
    assert not any(words in shown for words in ("share a letter", "draws", "smallest p"))
    found["test"] |= {"note": "all 8 exchanges give no p below 0.25", "k_used": 1000, "smallest_p": 0.25}
    shown = letters_caption(found)
    assert shown.startswith(f"No letters: {found['test']['note']}.")
    assert all(words in shown for words in ("PERM-SYSTEMS", "1,000 draws", "90 outputs"))
    assert "share a letter" not in shown
    assert re.search(r"smallest p [^.]*\b0\.25\b", shown)
