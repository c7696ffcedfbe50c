"""Automatic selection of references with a transparent judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from scoring.ml.evaluators.ream.annotate import Annotation, Search, choose_references, mix

WORTH = {"a": 0.1, "b": 0.3, "c": 0.2, "bad": -0.2, "start": 0.0}


def judge(sets: Sequence[Sequence[str]]) -> list[float]:
    return [sum(WORTH[text] for text in texts) for texts in sets]


def choose(start: list[str], candidates: list[str], **changes: object) -> Annotation:
    return choose_references("i", start, candidates, judge, Search(**changes), rng=np.random.default_rng(1))  # type: ignore[arg-type]


def test_first_fit_takes_improvements_and_records_every_step() -> None:
    found = choose(["start"], ["a", "bad", "b", "c"])
    assert set(found.added) == {"a", "b", "c"}
    assert found.reliability == pytest.approx(0.6)
    assert len(found.trace) == 4
    (refused,) = (step for step in found.trace if not step.accepted)
    assert refused.candidate == "bad"
    assert refused.after == pytest.approx(refused.before - 0.2)
    scores = [step.after for step in found.trace if step.accepted]
    assert scores == sorted(scores)


def test_greedy_takes_the_best_first_and_stops_without_improvement() -> None:
    found = choose(["start"], ["a", "bad", "b", "c"], greedy=True)
    assert found.added == ("b", "c", "a")
    assert [step.accepted for step in found.trace] == [True, True, True, False]


def test_min_gain_and_most() -> None:
    assert set(choose(["start"], ["a", "b", "c"], min_gain=0.15).added) == {"b", "c"}
    assert len(choose(["start"], ["a", "b", "c"], most=3).references) == 3
    assert choose(["start"], ["a"], most=1).added == ()


def test_blank_and_present_candidates_are_excluded() -> None:
    found = choose(["start", "start"], [" ", "start", "a", "a"])
    assert found.references == ("start", "a")
    assert len(found.trace) == 1


def test_without_a_start_the_best_comes_first() -> None:
    assert choose([], ["a", "b"], greedy=True).references == ("b", "a")
    assert choose([], []).references == ()
    # Whatever its gain: a set needs a first reference.
    assert choose([], ["bad"]).references == ("bad",)
    assert choose([], ["a", "bad"], min_gain=2.0, greedy=True).references == ("a",)
    lowest = choose_references("i", [], ["a"], lambda sets: [-1.0] * len(sets), Search(), rng=np.random.default_rng(1))
    assert (lowest.references, lowest.reliability) == (("a",), -1.0)


def test_seed_decides_the_order() -> None:
    one = choose(["start"], ["a", "b", "c", "bad"])
    two = choose(["start"], ["a", "b", "c", "bad"])
    assert one == two


@pytest.mark.parametrize("greedy", [False, True])
def test_texts_are_read_before_they_are_judged_with_limited_lookahead(greedy: bool) -> None:
    texts = [f"c{number}" for number in range(40)]
    read: list[list[str]] = []

    def worth(sets: Sequence[Sequence[str]]) -> list[float]:
        known = {text for chunk in read for text in chunk}
        assert known >= {text for each in sets for text in each}
        return [sum(0.1 if text in texts[::2] else -0.1 for text in each) for each in sets]

    def choose_with(reader: object) -> Annotation:
        rng = np.random.default_rng(2)
        return choose_references("i", ["start"], texts, worth, Search(5, greedy=greedy), rng=rng, read=reader)  # type: ignore[arg-type]

    found = choose_with(lambda chunk: read.append(list(chunk)))
    assert [len(chunk) for chunk in read] == ([41] if greedy else [5, 8])
    assert found == choose_with(None)
    assert read[0][0] == "start"
    assert not greedy or read[0][1:] == texts
    assert len(found.references) == 5
    # A set that is full at the start needs no candidate.
    read.clear()
    choose_references("i", ["start"], texts, worth, Search(1), rng=np.random.default_rng(2), read=read.append)  # type: ignore[arg-type]
    assert read == [["start"]]


def test_mix_is_the_union() -> None:
    one = choose(["start"], ["a", "b"], most=2)
    two = choose(["start"], ["c", "b"], most=3)
    (found,) = mix([one], [two])
    assert found.references[: len(one.references)] == one.references
    assert set(found.references) == {*one.references, *two.references}
    # Models with different seeds start with different references of the item; neither was added.
    (other,) = mix([one], [choose(["a"], ["c", "b"], most=3)])
    assert other.start == ("start", "a")
    assert set(other.added) == set(other.references) - {"start", "a"}
    with pytest.raises(ValueError, match="not of the same items"):
        mix([one], [])
