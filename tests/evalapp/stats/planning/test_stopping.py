"""The early-stopping rule, on sequences worked by hand from its description: "win rate < lose rate for 5 consecutive
checks; returns the checkpoint preceding the run of 5" (Zhou and Xu 2020)."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from evalapp.stats.planning.stopping import Check, StoppingRule, early_stop, from_either_side


def checks(signs: str) -> list[Check]:
    """`+` won, `-` lost, `=` equally many wins and losses, `.` without comparisons; checkpoints are 100, 200, ..."""
    counts = {"+": (3, 1, 2), "-": (2, 1, 3), "=": (2, 4, 2), ".": (0, 0, 0)}
    return [Check(100 * (k + 1), *counts[sign]) for k, sign in enumerate(signs)]


def test_verdicts_are_counted_over_all_predecessors():
    check = Check.from_verdicts(300, np.array([[1, 0, -1, -1], [-1, 1, 0, np.nan]]))
    assert (check.wins, check.ties, check.losses, check.n) == (2, 2, 3, 7)
    assert check.win_rate == pytest.approx(2 / 7)
    assert check.lose_rate == pytest.approx(3 / 7)
    assert check.is_worse


def test_check_without_comparisons_has_no_rates():
    check = Check.from_verdicts("first", [])
    assert math.isnan(check.win_rate)
    assert math.isnan(check.lose_rate)
    assert not check.is_worse


@pytest.mark.parametrize(
    ("signs", "best", "at", "used"),
    [
        (".+-----", 200, 700, 7),  # the five lost checks are 300 to 700; 200 precedes them
        (".-----", 100, 600, 6),  # lost from the first comparison on
        (".+----+-----", 700, 1200, 12),  # four lost checks are not five; the run starts again
        (".+----=-----", 700, 1200, 12),  # a draw ends a run: the win rate is not lower
        (".+--.---+", 200, 800, 8),  # an unanswered check neither extends nor ends the run
        (".+----", 200, None, 6),  # not stopped, but the checkpoint before the run is still the best
        (".+++", 400, None, 4),
        ("", None, None, 0),
    ],
)
def test_when_it_stops_and_which_checkpoint_it_returns(signs, best, at, used):
    stop = early_stop(checks(signs))
    assert (stop.best, stop.at, stop.checks) == (best, at, used)


def test_unanswered_check_without_a_run_is_the_newest():
    rule = StoppingRule()
    for check in checks(".+."):
        rule.add(check)
    assert (rule.best, rule.run_length) == (300, 0)


def test_patience():
    assert early_stop(checks(".+--"), patience=2).best == 200
    with pytest.raises(ValueError, match="at least 1"):
        StoppingRule(0)


def test_nothing_is_added_after_the_stop():
    rule = StoppingRule(patience=1)
    assert rule.add(Check(1)) is False
    assert rule.add(Check(2, 0, 0, 4)) is True
    with pytest.raises(ValueError, match="keeps 1"):
        rule.add(Check(3))


def test_package_needs_no_django():
    code = "import sys, evalapp, evalapp.stats.planning.stopping; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == 0


def test_comparer_biased_to_a_position_favours_no_checkpoint():
    asked: list[tuple[list[int], list[int]]] = []

    def first_wins(a, b):
        asked.append((a, b))
        return [1] * len(a)

    found = from_either_side(first_wins, range(1000), range(1000, 2000))
    assert abs(found.mean()) < 0.1
    # Each pair once, in either order, with the verdict for the first.
    for place, (one, two, sign) in enumerate(zip(*asked[0], found, strict=True)):
        assert (one, two) == ((place, place + 1000) if sign > 0 else (place + 1000, place))
    larger = from_either_side(lambda a, b: np.sign(np.subtract(a, b)), [3, 1, 2, 5], [1, 3, 2, 4])
    assert larger.tolist() == [1, -1, 0, 1]
    assert np.isnan(from_either_side(lambda a, b: [np.nan] * len(a), [1, 2], [3, 4])).all()
    with pytest.raises(ValueError, match="shape"):
        from_either_side(lambda a, b: [1], [1, 2], [3, 4])
