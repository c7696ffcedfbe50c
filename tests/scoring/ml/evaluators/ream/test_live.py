"""Reliabilities during writing, compared with the evaluator's own."""

from __future__ import annotations

import pytest

from scoring.ml import ScoringError, load
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.encoders.source import EncoderSource, find_encoder
from scoring.ml.evaluators.ream.live import LiveReliability
from scoring.ml.types import Record
from tests.scoring.ml.evaluators.ream.untrained import untrained
from tests.scoring.ml.tiny import tiny_encoder

QUERY = Record("", context=("you like",), item="i1", group="g1")
TEXTS = ["cat sat", "the dog", "no tea"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> EncoderSource:
    return find_encoder(tiny_encoder("bert", tmp_path_factory.mktemp("encoder")))


def test_set_text_and_candidates_are_rated_like_the_evaluator(encoder):
    evaluator = untrained(encoder)
    live = LiveReliability(untrained(encoder))
    candidates = ["i ran", "the dog", " ", "i ran", "tea on mat"]
    found = live.write(QUERY, [*TEXTS, " ", "cat sat"], "yes the cat", candidates)
    sets = [TEXTS, [*TEXTS, "yes the cat"], [*TEXTS, "i ran"], [*TEXTS, "tea on mat"]]
    expected = evaluator.reliabilities(QUERY, sets).tolist()
    assert [found.now, found.with_text] == pytest.approx(expected[:2], abs=1e-5)
    assert found.candidates == pytest.approx(
        {"i ran": expected[2], "the dog": expected[0], "tea on mat": expected[3]}, abs=1e-5
    )
    assert (found.left, found.notes) == (0, ())
    # The check at submission uses the number that was displayed.
    assert live.rate(QUERY, [TEXTS, [*TEXTS, "yes the cat"], ["no"], []])[:2] == [found.now, found.with_text]
    assert live.rate(QUERY, [TEXTS, ["no"], []])[1:] == [
        pytest.approx(evaluator.reliability(("you like",), ["no"])),
        None,
    ]


def test_unratable_text_is_none(encoder):
    live = LiveReliability(untrained(encoder))
    alone = live.write(QUERY, [], "cat sat")
    assert alone.now is None
    assert alone.with_text == pytest.approx(untrained(encoder).reliability(("you like",), ["cat sat"]), abs=1e-5)
    blank = live.write(QUERY, TEXTS, " \n")
    assert blank.now is not None
    assert blank.with_text is None
    assert live.write(QUERY, TEXTS, "cat sat").with_text == blank.now


def test_edit_reads_one_pair_and_no_set_again(encoder, monkeypatch):
    evaluator = untrained(encoder)
    live = LiveReliability(evaluator)
    live.write(QUERY, TEXTS, "i")
    seen: list[int] = []
    tokenizing = evaluator.pair_encoder.tokenizing
    encode = tokenizing.texts
    monkeypatch.setattr(tokenizing, "texts", lambda rows, **how: (seen.append(len(rows)), encode(rows, **how))[1])
    monkeypatch.setattr("scoring.ml.evaluators.ream.live.GrownSet.of", None)
    live.write(QUERY, TEXTS[::-1], "i like")
    assert seen == [1]


def test_candidates_end_at_the_time_limit_and_continue_with_the_rest(encoder):
    live = LiveReliability(untrained(encoder))
    candidates = [f"cat {word}" for word in "abcdefghij"]
    turns = iter([True, False, False])
    first = live.write(QUERY, TEXTS, candidates=candidates, in_time=lambda: next(turns))
    assert (len(first.candidates), first.left) == (8, 2)
    second = live.write(QUERY, TEXTS, candidates=candidates, in_time=lambda: next(turns))
    assert (len(second.candidates), second.left) == (10, 0)
    assert first.candidates.items() <= second.candidates.items()


def test_large_set_is_read_in_turns_between_other_requests(encoder):
    live = LiveReliability(untrained(encoder))
    texts = [f"cat {word}" for word in "abcdefghij"]
    notes = []
    while (found := live.write(QUERY, texts, "dog", ["tea"], in_time=lambda: False)).now is None:
        notes.append((found.left, *found.notes))
    reading = "the references are being read: {} of 10"
    assert notes == [(7, reading.format(4)), (3, reading.format(8))]
    assert found.candidates.keys() == {"tea"}
    assert found.now == live.rate(QUERY, [texts])[0]


def test_models_of_folds_read_a_pair_once_and_only_unexposed_ones_rate(encoder):
    members = [untrained(encoder, groups=("g1", "g2"), seed=1), untrained(encoder, groups=("g1", "g3"), seed=2)]
    members.append(untrained(encoder, groups=("g2", "g3"), seed=3))
    live = LiveReliability(CrossFitted(members[0].entry, members))
    assert len({id(member.pair_encoder) for member in members}) == 1
    third = untrained(encoder, seed=3).reliability(QUERY.context, TEXTS)
    found = live.write(QUERY, TEXTS)
    assert found.now == pytest.approx(third, abs=1e-5)
    assert found.notes == ()
    new = live.write(Record("", context=("you like",), item="i9", group="new"), TEXTS)
    each = [untrained(encoder, seed=seed).reliability(QUERY.context, TEXTS) for seed in (1, 2, 3)]
    assert new.now == pytest.approx(sum(each) / 3, abs=1e-5)
    assert new.notes == ("mean of the 3 models that did not learn from this item",)
    alone = LiveReliability(untrained(encoder, groups=("g1",)))
    assert "learned from this item" in alone.write(QUERY, TEXTS).notes[0]


def test_moved_item_is_rated_by_models_that_never_saw_it(encoder):
    members = [
        untrained(encoder, groups=("g1",), items=("i1",), seed=1),
        untrained(encoder, groups=("item:i2",), seed=2),
    ]
    live = LiveReliability(CrossFitted(members[0].entry, members))
    moved = Record("", context=("you like",), item="i1", group="new")
    live.regroup({"i1": "new"})
    assert live.chosen(moved) == [1]
    assert live.write(moved, TEXTS).notes == ()
    # Out of its own group, and another item with a name that the model knows.
    live.regroup({"i2": "new"})
    assert live.chosen(Record("", item="i2", group="new")) == [0]
    live.regroup({})
    assert live.chosen(moved) == [0, 1]


def test_long_text_is_truncated_with_a_note(encoder):
    found = LiveReliability(untrained(encoder, max_length=16)).write(QUERY, TEXTS, "cat " * 10_000)
    assert found.with_text is not None
    assert "longer than the evaluator reads" in found.notes[-1]


def test_old_sets_are_dropped_from_the_cache(encoder):
    live = LiveReliability(untrained(encoder), nodes=7)
    for word in ("cat", "dog", "tea", "mat"):
        live.write(QUERY, [word, "no", "yes"])
    assert [set(key.texts) for key in live._sets] == [{"tea", "no", "yes"}, {"mat", "no", "yes"}]


def test_other_evaluators_than_ream_are_refused():
    with pytest.raises(ScoringError, match="length says nothing about the reliability"):
        LiveReliability(load("length"))
