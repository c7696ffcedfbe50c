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
