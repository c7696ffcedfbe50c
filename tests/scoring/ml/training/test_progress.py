"""The progress reports of evaluations: the figures, and when they were found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from scoring.ml import TrainingProgress
from scoring.ml.training.finetune import FinetuneSettings, finetune
from scoring.ml.training.fit import make_job
from scoring.ml.training.job import FitJob
from scoring.ml.training.loop import LoopSettings, train_loop
from tests.scoring.ml.training.test_finetune import Slope, Slopes
from tests.scoring.ml.training.test_loop import One
from tests.scoring.ml.training.toy import toy_data

FIGURES = ({"n": 3.0, "loss": 0.5, "f1": 0.1}, {"n": 3.0, "loss": 0.7, "f1": 0.2}, {"n": 3.0, "loss": 0.6, "f1": 0.3})
#: Two steps per epoch, three epochs: each step reports the epochs evaluated before it. The evaluation that ends an
#: epoch comes after its last step, and the second, worse one is reported like the first.
BEFORE = [None, None, 1.0, 1.0, 2.0, 2.0]


def job_of(folder: Path, seen: list[TrainingProgress]) -> FitJob:
    return replace(make_job("toy", toy_data(4), {"frozen": True}, seed=1, folder=folder), report=seen.append)


def found(seen: list[TrainingProgress]) -> list[dict[str, float]]:
    return [dict(progress.metrics) for progress in seen]


def expected() -> list[dict[str, float]]:
    return [{} if evaluated is None else FIGURES[int(evaluated) - 1] for evaluated in BEFORE]


def test_fine_tuning_reports_when_its_figures_were_found(tmp_path: Path) -> None:
    for curve, foremost in ((None, ("loss", "n", "f1")), (("f1", "loss"), ("loss", "f1"))):
        seen: list[TrainingProgress] = []
        given = iter(FIGURES)
        settings = FinetuneSettings(0.5, 3, device="cpu", curve=curve)
        job = job_of(tmp_path / str(curve), seen)
        finetune(Slope.from_source(None, {}), Slopes(1, 1), settings, job, evaluate=lambda _, g=given: next(g))
        assert [progress.evaluated for progress in seen] == BEFORE
        assert found(seen) == expected()
        assert seen[-1].foremost == foremost


def test_plain_loop_reports_when_its_figures_were_found(tmp_path: Path) -> None:
    """Once, it reported the best epoch's figures every time."""
    seen: list[TrainingProgress] = []
    given, network = iter(FIGURES), One.from_source(None, {})

    def losses(epoch: int) -> Iterator[object]:
        for _ in range(2):
            yield network.weight.sum()

    settings = LoopSettings(0.1, 3)
    train_loop(network, losses, settings, job_of(tmp_path, seen), steps_per_epoch=2, evaluate=lambda _: next(given))
    assert [progress.evaluated for progress in seen] == BEFORE
    assert found(seen) == expected()
    assert seen[-1].foremost == ("loss", "n", "f1")
