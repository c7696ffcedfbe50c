"""Figures of an export: a repeated judgement does not count as another rater."""

from __future__ import annotations

from annotation.exporters.facts import Facts


def collect_facts(*raters: str) -> Facts:
    """r1 and r2 differ in every other unit; any other rater repeats r1's answers."""
    facts = Facts()
    for unit in range(8):
        for rater in raters:
            value = unit % 4 + (1 if rater == "r2" and unit % 2 else 0)
            row = {"item": f"i{unit}", "system": "s", "rater": rater, "aspect": "quality", "value": value}
            facts.take("ratings", row)
    return facts


def test_repeat_is_not_another_rater():
    plain, again = collect_facts("r1", "r2"), collect_facts("r1", "r1#2", "r2")
    found = again.judged["quality", "ratings"]
    assert found.agreement("interval").value == plain.judged["quality", "ratings"].agreement("interval").value
    assert (found.n, found.n_raters, again.n_raters) == (24, 2, 2)
    other = collect_facts("r2@9", "r1", "r2", "r1@7").judged["quality", "ratings"]
    assert (other.agreement("interval").value, other.n_raters) == (found.agreement("interval").value, 2)
    # Without a rater named r1, r1#2 counts as a rater.
    assert collect_facts("r1#2", "r2").n_raters == 2


def test_units_with_one_judgement_are_only_counted():
    single = collect_facts("r1").judged["quality", "ratings"]
    assert not single.agreement("interval").is_defined
    assert (single.n, single.n_units, len(single.value)) == (8, 8, 0)
    double = collect_facts("r1", "r2").judged["quality", "ratings"]
    assert double.agreement("interval").n == 8
    assert (double.n, double.n_units, len(double.value)) == (16, 8, 16)
    mixed = collect_facts("r1", "r2")
    mixed.take("ratings", {"item": "z", "system": "s", "rater": "r1", "aspect": "quality", "value": 1})
    found = mixed.judged["quality", "ratings"]
    assert found.agreement("interval") == double.agreement("interval")
    assert (found.n, found.n_units) == (17, 9)
