"""The time of a training from trials on a small part of its data, and the width of every estimate's range."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from scoring.ml import catalogue, plan
from scoring.ml.errors import TooFewData
from scoring.ml.training import trial
from scoring.ml.training.estimate import RANGE
from scoring.ml.training.fit import make_job, run_job
from scoring.ml.training.job import FitJob, TrainingProgress
from scoring.ml.training.trial import Trial, time_trials
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.ml.training.test_head import QUICK, WORDS

LEARNED = sorted(entry.name for entry in catalogue() if entry.learns)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"))


def rated(n_items: int) -> Dataset:
    """Items with a context, two references and three outputs, rated by two people."""
    items, outputs, ratings = [], [], []
    for number in range(n_items):
        word, other = WORDS[number % 10], WORDS[(3 * number + 1) % 10]
        item = f"i{number}"
        items.append(
            Item(item, (f"{other} {word} {number}",), None, (f"the {word} sat", f"{word} {other}"), f"g{number}")
        )
        for place, text in enumerate((f"yes {word} {other}", f"no {word}", f"{other} tea {number}")):
            outputs.append(Output(item, "abc"[place], text))
            ratings += [Rating(rater, "quality", 1 + (place + number + k) % 5, item, "abc"[place])
                        for k, rater in enumerate("rs")]  # fmt: skip
    return Dataset(
        "d", aspects=(Aspect("quality", 1, 5),), items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings)
    )


@pytest.mark.parametrize("name", LEARNED)
def test_every_plan_has_a_narrow_range(encoder: str, name: str) -> None:
    """Upper at most three times lower; random numbers are left as they were."""
    torch.manual_seed(4)
    wanted = torch.rand(2)
    torch.manual_seed(4)
    known = {option.name for option in next(entry for entry in catalogue() if entry.name == name).train_options}
    options = {key: value for key, value in QUICK.items() if key in known}
    found = plan(name, rated(16), encoder=encoder, **options)
    assert torch.equal(torch.rand(2), wanted)
    assert found.seconds is not None
    assert found.seconds > found.afterwards >= 0
    assert found.seconds_range == pytest.approx([share * found.seconds for share in RANGE])
    assert found.seconds_range[1] <= 3 * found.seconds_range[0]
    assert (found.steps > 0) == (name != "comparative")  # which fits its head without steps


def make_ream_job(encoder: str, n_items: int = 100, **options: Any) -> FitJob:
    return make_job("ream", rated(n_items), {"encoder": encoder, "pretrain": 0, **options})


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        ({}, 12),  # twice the patience of 5 and one more
        ({"epochs": 8}, 8),
        ({"patience": None}, 50),
        ({"max_steps": 18}, 18 / (6 * 100 / 32)),  # 6 steps in a pass of 32 items
    ],
)
def test_seconds_by_hand(encoder: str, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], passes: float) -> None:
    """1 s before the passes, .1 and .5 s for one of each kind, .2 s after them for 8 items, four times as much for 32
    items: for 100 items 12.5, 1.25, 6.25 and 2.5 s; the clock takes twice the processor's time."""
    job = make_ream_job(encoder, pretrain=4)
    job = replace(job, options={**job.options, **options})
    trials = [Trial(8, 1.0, 0.1, 0.5, 0.2, 1.5, 2), Trial(32, 4.0, 0.4, 2.0, 0.8, 2.0, 6)]
    monkeypatch.setattr(trial, "recent", {})
    monkeypatch.setattr(trial, "make_trials", lambda job, run_job: trials)
    seconds, after = time_trials(job, run_job)
    assert after == pytest.approx(2 * 2.5)
    assert seconds == pytest.approx(2 * (12.5 + 4 * 1.25 + passes * 6.25 + 2.5))


def test_long_pass_is_ended_and_computed(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass of 16 items has a step for each set; it ends after the first."""
    job = make_ream_job(encoder, 16, batch_size=1)
    whole = trial.run_trial(job, run_job, job.train, None)
    monkeypatch.setattr(trial, "LONGEST", 0.0)
    ended = trial.run_trial(job, run_job, job.train, None)
    assert ended.steps == whole.steps > 1
    assert ended.epochs > 0
    clock = trial.TrialClock(job)
    with pytest.raises(trial.LongPassError):
        clock(TrainingProgress(2, 8))
    assert clock.share == 0.25


def test_trials_grow_until_they_are_large_enough(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of less than 40 items are refused; the training itself is of 100."""
    sizes: list[int] = []

    def run(job: FitJob, run_job: Any, train: Dataset, dev: Dataset | None) -> Trial:
        sizes.append(len(train.items))
        if len(train.items) < 40:
            raise TooFewData("ream", "more")
        return Trial(len(train.items), 1.0, 0.0, 1.0, 0.0, 1.0, 1)

    monkeypatch.setattr(trial, "run_trial", run)
    trials = trial.make_trials(make_ream_job(encoder), run_job)
    assert sizes == [8, 16, 32, 64, 64, 64]
    assert [one.size for one in trials] == [64, 64]


def test_folds_share_their_trials(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def make(job: FitJob, run_job: Any) -> list[Trial]:
        calls.append(len(job.train.items))
        return [Trial(16, 1.0, 0.0, 1.0, 0.0, 1.0, 1)]

    monkeypatch.setattr(trial, "recent", {})
    monkeypatch.setattr(trial, "make_trials", make)
    assert time_trials(make_ream_job(encoder), run_job) == time_trials(make_ream_job(encoder), run_job)
    time_trials(make_ream_job(encoder, epochs=3), run_job)
    time_trials(make_ream_job(encoder, 90), run_job)  # another fold
    assert calls == [100, 100]


def test_check_can_be_ended_during_a_trial(encoder: str, tmp_path: Path) -> None:
    class Ended(Exception):
        pass

    def end(progress: Any) -> None:
        if progress.phase == "preparing":
            raise Ended

    with pytest.raises(Ended):
        plan("ream", rated(16), encoder=encoder, progress=end)
