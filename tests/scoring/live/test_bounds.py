"""Each request ends in time, and its slices give the same result as the whole."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest

from scoring.live import answering
from scoring.live.bounds import SLICE, Deadline, TooLate, count_pair_characters, evaluate_in_time
from scoring.ml import Record, load
from scoring.ml.base import Partial


def test_every_reference_is_read_with_text_and_context():
    assert count_pair_characters({"text": "aaaa"}) == 4
    assert count_pair_characters({"text": "aaaa", "context": ["b", "cc"], "references": ["d", "eeee"]}) == 2 * 7 + 5
    assert count_pair_characters({"a": "aa", "b": "b", "context": ["ccc"]}) == 9
    assert count_pair_characters({"context": ["cc"], "references": ["d", "d"]}) == 6


@pytest.mark.parametrize("name", ["chrf", "distinct-1"])
def test_slices_equal_the_whole(name):
    records = [Record(f"word{n % 7} " * 900, (f"word{n % 5} and more",)) for n in range(20)]
    records += [Record("", ("a",)), Record("a")]
    assert len(records[0].text) * len(records) > 2 * SLICE
    evaluator = load(name)
    whole, found = evaluator.evaluate(records), evaluate_in_time(evaluator, records, Deadline(None))
    np.testing.assert_array_equal(found.values, whole.values)
    assert (found.reasons, found.notes, found.signature) == (whole.reasons, whole.notes, whole.signature)


class Slow:
    """Takes a tenth of a second per text and reports no progress before the end, like several evaluators."""

    name, members, depends_on_batch, remarks, signature = "slow", None, False, (), "slow"

    def __init__(self) -> None:
        self.n = 0

    def identity(self, record):
        return record.text

    def evaluate(self, records, *, progress):
        self.n += len(records)
        time.sleep(0.1 * len(records))
        return load("length").evaluate(records)

    def reliability(self, context, references):
        self.n += len(references)
        time.sleep(0.01 * len(references))
        return 0.5


def test_evaluator_without_progress_is_stopped_between_slices(monkeypatch):
    slow = Slow()
    monkeypatch.setattr(answering, "_models", [type("Kept", (), {"get": lambda *_: slow})()])
    request = {"kind": "score", "source": {"name": "slow"}, "pairs": [{"text": "a" * SLICE}] * 64}
    with pytest.raises(TooLate):
        answering.execute(request, lambda: None, Deadline(0.25))
    assert 2 <= slow.n <= 5
    slow.n = 0
    request = {"kind": "reliability", "source": {"name": "slow"}, "context": [], "references": ["a"] * 1000}
    with pytest.raises(TooLate):
        answering.execute(request, lambda: None, Deadline(0.25))
    assert slow.n < 100


def test_nothing_is_computed_for_nobody_after_a_slow_load(monkeypatch):
    """The model stays loaded, so the next request has an answer."""
    slow = Slow()

    def get(*_):
        time.sleep(0.1)
        return slow

    monkeypatch.setattr(answering, "_models", [type("Kept", (), {"get": get})()])
    with pytest.raises(TooLate):
        answering.execute({"kind": "score", "source": {}, "pairs": [{"text": "a"}]}, lambda: None, Deadline(0.05))
    assert slow.n == 0


def test_non_finite_score_is_null_with_a_reason(monkeypatch):
    evaluator = load("length")
    monkeypatch.setattr(evaluator, "measure", lambda records, progress: Partial(np.array([math.inf, 2.0])))
    found = answering.score_pairs(evaluator, [{"text": "a"}, {"text": "b"}])
    assert json.loads(json.dumps(found, allow_nan=False))["scores"] == [None, 2.0]
    assert found["reasons"] == ["its score is infinite", ""]
