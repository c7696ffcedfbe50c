from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.allocation.writing import (
    Attempt,
    EarlierAttempts,
    GroupPosition,
    Rules,
    choose_arm,
    choose_group,
    draw_order,
    has_improved,
    is_allowed,
    judge_attempt,
    same_text,
    waits_for,
)

SCORES = Rules("scores", max_attempts=3)
AS_IT_IS, EDITED = "I went there.", "I went there once."


def sent(text: str, relevant: bool | None, before: float | None, after: float | None, **more: object) -> Attempt:
    return Attempt(text, AS_IT_IS, relevant, before, after, **more)  # type: ignore[arg-type]


# ---- the table of docs/explanation/evaluators/ream.md#reference-writing, row by row ----------------------------


@pytest.mark.parametrize(
    ("text", "relevant", "after", "decision", "why", "left"),
    [
        # relevant, improved: accepted unchanged
        (AS_IT_IS, True, 0.5, "accept", "", 0),
        # not relevant, improved: edit ...
        (AS_IT_IS, False, 0.5, "edit", "irrelevant", 3),
        # ... and accept when the edited text still improves
        (EDITED, False, 0.5, "accept", "", 0),
        (EDITED, False, 0.4, "edit", "no-gain", 2),
        # relevant or not, not improved: edit, accept when it improves
        (AS_IT_IS, True, 0.4, "edit", "no-gain", 3),
        (AS_IT_IS, False, 0.3, "edit", "no-gain", 3),
        (EDITED, True, 0.5, "accept", "", 0),
        (EDITED, True, 0.3, "edit", "no-gain", 2),
        # no relevance given for an unchanged candidate: it counts as relevant
        (AS_IT_IS, None, 0.5, "accept", "", 0),
    ],
)
def test_each_row_of_the_table(text, relevant, after, decision, why, left):
    verdict = judge_attempt(SCORES, EarlierAttempts(), sent(text, relevant, 0.4, after))
    assert (verdict.decision, verdict.why, verdict.left) == (decision, why, left)
    assert verdict.improved is (after > 0.4)


def test_last_edit_without_gain_drops_the_candidate():
    verdict = judge_attempt(SCORES, EarlierAttempts(as_it_is=True, edits=2), sent(EDITED, True, 0.4, 0.4))
    assert (verdict.decision, verdict.why, verdict.counted, verdict.closes) == ("drop", "limit", True, True)
    with pytest.raises(ValueError, match="dropped before"):
        judge_attempt(SCORES, EarlierAttempts(as_it_is=True, edits=3), sent(EDITED, True, 0.4, 0.9))


def test_resending_an_unchanged_candidate_uses_an_edit():
    assert not judge_attempt(SCORES, EarlierAttempts(), sent(AS_IT_IS, True, 0.4, 0.4)).counted
    assert judge_attempt(SCORES, EarlierAttempts(as_it_is=True), sent(AS_IT_IS, True, 0.4, 0.4)).counted
    assert not sent(f"  {AS_IT_IS.replace(' ', '  ')}", True, 0, 0).is_edited


def test_gain_must_exceed_min_gain():
    rules = Rules("scores", min_gain=0.25)
    assert has_improved(rules, sent(EDITED, True, 0.25, 0.5)) is False
    assert has_improved(rules, sent(EDITED, True, 0.25, 0.75)) is True


def test_without_a_score_the_text_waits_and_no_edit_is_used():
    for before, after in ((None, None), (0.4, None), (None, 0.4)):
        verdict = judge_attempt(SCORES, EarlierAttempts(edits=2), sent(EDITED, True, before, after))
        assert (verdict.decision, verdict.counted, verdict.left) == ("wait", False, 1)


def test_text_added_without_a_score_never_counts_as_improved():
    verdict = judge_attempt(SCORES, EarlierAttempts(), sent(EDITED, True, None, None, unscored=True))
    assert (verdict.decision, verdict.improved) == ("accept", None)
    # Adding without a score bypasses neither an existing score nor the relevance check.
    assert judge_attempt(SCORES, EarlierAttempts(), sent(EDITED, True, 0.4, 0.3, unscored=True)).decision == "edit"
    assert judge_attempt(SCORES, EarlierAttempts(), sent(AS_IT_IS, False, None, None, unscored=True)).decision == "edit"


def test_first_text_of_an_empty_set_has_nothing_to_improve():
    verdict = judge_attempt(SCORES, EarlierAttempts(), sent(AS_IT_IS, True, None, -0.2, empty=True))
    assert (verdict.decision, verdict.improved) == ("accept", None)


def test_control_arm_rewrites_freely_and_sees_no_score():
    rules = Rules("control")
    assert judge_attempt(rules, EarlierAttempts(), sent(EDITED, False, 0.4, 0.1)).decision == "accept"
    verdict = judge_attempt(rules, EarlierAttempts(), sent(AS_IT_IS, False, 0.4, 0.9))
    assert (verdict.decision, verdict.improved, verdict.why) == ("edit", None, "irrelevant")


def test_candidates_arm_accepts_candidates_unchanged():
    rules = Rules("candidates")
    assert judge_attempt(rules, EarlierAttempts(), sent(AS_IT_IS, True, None, None)).decision == "accept"
    assert judge_attempt(rules, EarlierAttempts(), sent(AS_IT_IS, False, None, None)).decision == "drop"
    assert not is_allowed(rules, sent(EDITED, True, None, None))
    with pytest.raises(ValueError, match="does not take"):
        judge_attempt(rules, EarlierAttempts(), sent(EDITED, True, None, None))


def test_own_texts_where_they_are_allowed():
    own = Attempt("My own words.", before=0.1, after=0.2)
    assert judge_attempt(SCORES, EarlierAttempts(), own).decision == "accept"
    assert not is_allowed(Rules("scores", own_text=False), own)


scores = st.one_of(st.none(), st.floats(-1, 1))
attempts = st.builds(
    Attempt,
    text=st.sampled_from([AS_IT_IS, EDITED, "Quite another text."]),
    candidate=st.sampled_from([AS_IT_IS, None]),
    relevant=st.sampled_from([True, False, None]),
    before=scores,
    after=scores,
    unscored=st.booleans(),
)


@given(st.lists(attempts, max_size=60), st.integers(1, 5), st.sampled_from(["scores", "control"]), st.floats(0, 0.5))
def test_rules_hold_for_any_submission(sequence, limit, arm, min_gain):
    rules = Rules(arm, max_attempts=limit, min_gain=min_gain)
    tried, stored = EarlierAttempts(), 0
    for attempt in sequence:
        verdict = judge_attempt(rules, tried, attempt)
        if arm == "scores" and verdict.decision == "accept":
            assert verdict.improved is not False
            if verdict.improved is None:  # added only on request and marked as unscored, never silently
                assert attempt.unscored
                assert None in (attempt.before, attempt.after)
            else:
                assert attempt.after - attempt.before > min_gain
        if verdict.decision == "wait":
            assert not verdict.counted
            continue
        stored += 1
        tried = EarlierAttempts(tried.as_it_is or not attempt.is_edited, tried.edits + verdict.counted)
        assert tried.edits <= limit
        assert verdict.closes or verdict.left == limit - tried.edits > 0
        if verdict.closes:
            break
    assert stored <= limit + 1  # the initial view plus the edits: then it ends


# ---- who gets what ------------------------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(0, 40))
def test_arms_stay_balanced_for_any_number_of_people(seed, count, people):
    arms = ["scores", "control", "candidates"][:count]
    found = Counter(choose_arm(seed, arms, place, "annotator") for place in range(people))
    given_ = [found[arm] for arm in arms]
    assert max(given_) - min(given_) <= 1


def test_arm_of_the_next_person_is_unpredictable():
    assert {choose_arm(seed, ["scores", "control"], 0, "annotator") for seed in range(20)} == {"scores", "control"}


def test_groups_fill_one_after_the_other():
    assert [choose_group(place, 3) for place in range(7)] == [0, 0, 0, 1, 1, 1, 2]


@given(st.integers(0, 2**31), st.text(max_size=8), st.integers(0, 120))
def test_display_order_is_a_permutation_set_by_the_seed(seed, key, count):
    order = draw_order(seed, key, count)
    assert sorted(order) == list(range(count))
    assert order == draw_order(seed, key, count)


def test_round_waits_only_for_active_members():
    me = GroupPosition(item=4, dealt=2)
    assert waits_for(me, [GroupPosition(4, 1), GroupPosition(4, 2), GroupPosition(4, 3)]) == 1
    assert waits_for(me, [GroupPosition(4, 1, present=False)]) == 0  # the lease has passed
    assert waits_for(me, [GroupPosition(4, 0), GroupPosition(3, 9)]) == 0  # came back late: continues at their own pace
    assert (
        waits_for(GroupPosition(4, 0), [GroupPosition(3, 9), GroupPosition(2, 0)]) == 1
    )  # all begin an item at the same time


@given(st.lists(st.builds(GroupPosition, st.integers(0, 3), st.integers(0, 4), st.booleans()), min_size=1, max_size=6))
def test_at_least_one_person_can_always_continue(places):
    waiting = [waits_for(own, [other for other in places if other is not own]) for own in places]
    assert 0 in waiting


def test_texts_with_invisible_differences_are_equal():
    assert same_text("  \uff28ello\u00a0World ") == same_text("hello world")
