"""The overall progress of a training. The expected seconds are calculated by hand from the clock's."""

from __future__ import annotations

import pytest

from scoring.ml import TrainingProgress
from scoring.pipelines.training_report import TimeLeft, read_progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def step(done: int, total: int, phase: str = "training") -> TrainingProgress:
    return TrainingProgress(done, total, phase=phase, loss=0.5)


def texts(done: int, total: int, phase: str = "held-out scores") -> TrainingProgress:
    return TrainingProgress(done, total, phase=phase)


def test_phase_of_a_fold_reports_its_own_model():
    # The second of three folds of 10 steps each, at its fourth step.
    assert read_progress(step(14, 30, "fold 2 of 3, training")) == (1, "training", 4, 10)
    assert read_progress(texts(5, 71)) == (0, "held-out scores", 5, 71)
    assert read_progress(TrainingProgress(7, None, phase="fold 1 of 2, reading texts")) == (0, "reading texts", 7, None)


def test_steps_are_only_a_part(clock):
    """Two models of 3 steps, estimated at 840 s together, with 600 s after the steps."""
    time_left = TimeLeft(models=2, steps=6, seconds=840.0, afterwards=600.0, clock=clock)
    share, left = time_left.update(step(1, 6, "fold 1 of 2, training"))
    assert (share, left) == (0.0, 840.0)  # nothing is measured yet
    clock.now = 20.0
    # 10 s per step: one more, then 300 s of scores; and again 330 s, with the first step at the start.
    share, left = time_left.update(step(3, 6, "fold 1 of 2, training"))
    assert left == pytest.approx(300 + 320)
    assert share == pytest.approx(20 / 640)
    # In the held-out part, 5 of 71 texts after 25 s more: as measured, not as estimated.
    time_left.update(texts(0, 142, "fold 1 of 2, held-out scores"))
    clock.now = 45.0
    share, left = time_left.update(texts(5, 142, "fold 1 of 2, held-out scores"))
    assert left == pytest.approx(66 * 5 + 45 + 66 * 5)
    assert 20 / 640 < share < 0.1


def test_finished_model_predicts_the_duration_of_the_next(clock):
    time_left = TimeLeft(models=2, steps=20, seconds=None, clock=clock)
    assert time_left.update(step(1, 20, "fold 1 of 2, training")) is None, "nobody checked how long it takes"
    clock.now = 30.0
    assert time_left.update(texts(71, 142, "fold 1 of 2, held-out scores")) is None
    clock.now = 50.0
    assert time_left.update(step(11, 20, "fold 2 of 2, training")) == (pytest.approx(0.5), pytest.approx(50.0))


def test_work_of_an_earlier_attempt_gives_no_duration(clock):
    time_left = TimeLeft(models=2, steps=20, seconds=100.0, is_new=False, clock=clock)
    time_left.update(texts(70, 142, "fold 1 of 2, held-out scores"))
    clock.now = 2.0
    share, left = time_left.update(step(11, 20, "fold 2 of 2, training"))
    assert left == pytest.approx(50.0)
    assert share == pytest.approx(0.5)


def test_further_step_phases_are_counted_by_the_plan(clock):
    time_left = TimeLeft(models=1, steps=30, seconds=10.0, clock=clock)
    time_left.update(step(0, 10, "strong"))
    clock.now = 5.0
    assert time_left.update(step(5, 10, "strong"))[1] == pytest.approx(5 + 20)
    clock.now = 10.0
    time_left.update(step(0, 20, "weak"))
    clock.now = 11.0
    assert time_left.update(step(1, 20, "weak"))[1] == pytest.approx(19)


def test_progress_never_decreases(clock):
    time_left = TimeLeft(models=1, steps=100, seconds=100.0, clock=clock)
    time_left.update(step(1, 100))
    shares = []
    for now, done in ((1.0, 50), (60.0, 51), (61.0, 90)):
        clock.now = now
        shares.append(time_left.update(step(done, 100))[0])
    assert shares == sorted(shares)
