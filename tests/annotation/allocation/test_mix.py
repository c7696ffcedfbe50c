from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.allocation.mix import MemberCounts, choose_step, is_marked


@given(st.integers(0, 2**31), st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.5]))
def test_each_block_has_one_marked_place(seed, share):
    block = round(1 / share)
    for start in range(0, 20 * block, block):
        assert sum(is_marked(share, place, seed, "control") for place in range(start, start + block)) == 1


def test_marked_place_in_a_block_is_unpredictable():
    places = {place % 10 for seed in range(200) for place in range(10) if is_marked(0.1, place, seed, "control")}
    assert places == set(range(10))


def test_zero_share_marks_nothing():
    assert not any(is_marked(0.0, place, 1) for place in range(100))


@pytest.mark.parametrize("share", [0.07, 0.15, 0.3, 0.35, 0.4, 0.45])
def test_rate_holds_when_its_inverse_is_not_an_integer(share):
    marked = [place for place in range(3000) if is_marked(share, place, 5, "control")]
    assert len(marked) == pytest.approx(3000 * share, abs=1)


def test_practice_comes_first():
    steps = [choose_step(MemberCounts(7, done, 0), practice=3, controls=2, control_rate=0.5) for done in range(4)]
    assert steps[:3] == ["practice"] * 3
    assert steps[3] != "practice"


def test_controls_and_repeats_come_at_the_planned_rates():
    steps = [
        choose_step(MemberCounts(7, 0, given), practice=0, controls=9, control_rate=0.1, repeat_share=0.05)
        for given in range(2000)
    ]
    assert steps.count("control") == 200
    # A place marked for both goes to the control item.
    assert 80 <= steps.count("repeat") <= 100


def test_no_control_is_requested_when_there_are_none():
    steps = {choose_step(MemberCounts(7, 0, given), practice=0, controls=0, control_rate=0.5) for given in range(50)}
    assert steps == {"normal"}
