"""The run log's line about an evaluation: its epoch, and a few figures."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scoring.ml import TrainingProgress, fit
from scoring.pipelines.training_report import Reporter
from tests.scoring.ml.evaluators.shared_bert.test_evaluator import data
from tests.scoring.ml.tiny import tiny_encoder


class LogOnly(Reporter):
    """Only the lines of a training: no bar, no points."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        super().__init__(cast(Any, SimpleNamespace(log=self.lines.append)))

    def __call__(self, progress: TrainingProgress) -> None:
        if progress.phase != self.phase:
            self.phase, self.epoch = progress.phase, -1
        self._log_evaluation(progress)


def step(done: int, evaluated: float | None = None, foremost: tuple[str, ...] = (), **found: float) -> TrainingProgress:
    return TrainingProgress(done, 9, loss=1.0, metrics=found, evaluated=evaluated, foremost=foremost)


def test_line_names_the_evaluated_epoch() -> None:
    """The first step after an evaluation reports it, even if that step ends the next epoch."""
    report = LogOnly()
    for progress in (step(1), step(2, 1.0, ("loss",), loss=0.5), step(3, 2.0, ("loss",), loss=0.25), step(4, 2.0)):
        report(progress)
    assert report.lines == ["training, after epoch 1: loss 0.5", "training, after epoch 2: loss 0.25"]


def test_reports_of_an_earlier_attempt_are_not_repeated() -> None:
    report = LogOnly()
    for evaluated in (2.0, 2.0, 3.0):
        report(step(7, evaluated, ("loss",), loss=0.5))
    assert report.lines == ["training, after epoch 3: loss 0.5"]


@pytest.mark.parametrize(
    ("foremost", "line"),
    [
        (("f1", "mcc"), "f1 0.5, mcc 0.25, and 7 more: see the card"),
        (("f1", "mcc", *"abcdefg"), "f1 0.5, mcc 0.25, a 0, b 1, c 2, d 3, and 3 more: see the card"),
        # A non-finite figure is omitted.
        (("auroc", "mcc"), "mcc 0.25, and 8 more: see the card"),
    ],
)  # fmt: skip
def test_few_figures_are_shown_the_deciding_one_first(foremost: tuple[str, ...], line: str) -> None:
    found = {**{name: float(k) for k, name in enumerate("abcdefg")}, "mcc": 0.25, "f1": 0.5}
    report = LogOnly()
    report(step(1))
    report(step(2, 1.0, foremost, **found))
    assert report.lines == [f"training, after epoch 1: {line}"]


def test_training_of_several_aspects_reports_means(tmp_path: Path) -> None:
    """shared-bert computes a dozen figures per aspect; the reported ones are those drawn as curves."""
    report = LogOnly()
    fit(
        "shared-bert", data(8), dev=data(6, seed=4), encoder=tiny_encoder("bert", tmp_path), epochs=3, progress=report,
        batch_size=64, patience=None,
    )  # fmt: skip
    figures = "spearman [-.\\d]+, macro_f1 [-.\\d]+, mcc [-.\\d]+, auroc [.\\d]+, accuracy [.\\d]+"
    figures += ", and \\d+ more: see the card"
    # One batch per epoch; no step is left to report the last evaluation.
    assert len(report.lines) == 2
    for number, line in enumerate(report.lines, start=1):
        assert re.fullmatch(f"training, after epoch {number}: {figures}", line)
