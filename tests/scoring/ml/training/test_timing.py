"""The time of a training from two of its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import plan
from scoring.ml.encodings import Encodings
from scoring.ml.training import fit as fit_module
from scoring.ml.training import timing
from scoring.ml.training.estimate import RANGE, Counts
from scoring.ml.training.fit import fit, make_job
from scoring.ml.training.frame import count_readings
from scoring.ml.training.timing import Timing, Work, time_work
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.ml.training.test_head import QUICK, rated


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"))


def test_line_through_two_steps_by_hand() -> None:
    """1 s for 100 tokens and 2.5 s for 400: half a second and 5 ms for each token. Alike steps: in proportion."""
    assert timing.fit_line(100, 1.0, 400, 2.5) == pytest.approx((0.5, 0.005))
    assert timing.fit_line(100, 1.0, 120, 1.2) == pytest.approx((0.0, 0.01))
    assert timing.fit_line(100, 2.0, 400, 1.0) == pytest.approx((0.0, 3.0 / 500))


class Batches:
    """Three batches of 10, 20 and 30 tokens."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> dict[str, Any]:
        return {"input_ids": torch.zeros((10, number + 1), dtype=torch.int64)}


def test_seconds_by_hand(encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """12 steps of 20 tokens at 0.5 + 20 * 0.1 s, each third one twice as long; 7 rows of 4 tokens, read at 0.01 s for
    each token; 50 tokens afterwards. All is processor time, and the clock is 1.5 times as fast."""
    monkeypatch.setattr(timing, "recent", {})
    monkeypatch.setattr(timing, "REST", 0.0)
    monkeypatch.setattr(
        timing, "measure_steps", lambda *given: Timing(0.01, 0.5, 0.1, 2.0, 1.5, timing.time.monotonic())
    )
    inputs = Encodings(np.arange(8, dtype=np.int32), np.array([4, 4]))
    work = Work(lambda: torch.nn.Linear(1, 1), Batches(), inputs, Counts(12, 0, 7), read=50.0, every=3, scored=True)
    job = make_job("adversarial", rated(4), {"encoder": encoder}, folder=tmp_path)
    seconds, after = time_work(job, [work])
    assert after == pytest.approx(1.5 * 50 * 0.01)
    assert seconds == pytest.approx(1.5 * (12 * 2.5 * (1 + 1 / 3) + 7 * 4 * 0.01) + after)


def test_a_pause_by_other_work_changes_the_ratio_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading uses 0.2 s of the processor. In the second one the process waits 0.6 s for its turn: the clock shows
    1 s for 0.4 s of the processor."""
    inputs = Encodings(np.arange(8, dtype=np.int32), np.array([4, 4]))
    clock, used = [10.0], [3.0]
    waits = iter([0.0, 0.6])

    def read(*given: Any) -> None:
        clock[0] += 0.2 + next(waits)
        used[0] += 0.2

    monkeypatch.setattr(timing, "read_features", read)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(timing.time, "process_time", lambda: used[0])
    work = Work(lambda: torch.nn.Linear(1, 1), Batches(), inputs, Counts(0, 0, 7))  # type: ignore[arg-type]
    found = timing.measure_steps(torch.nn.Linear(1, 1), work, [])
    assert (found.reading, found.slowed) == (pytest.approx(0.2 / 8), pytest.approx(2.5))


@pytest.mark.parametrize(
    ("stages", "counts"),
    [
        ("together", (6, 0, 10)),
        ("head", (0, 20, 5)),
        ("best", (6, 20, 15)),
    ],
)
def test_readings_by_stages(encoder: str, stages: str, counts: tuple[int, int, int]) -> None:
    """Two epochs of three steps (20 rows, 8 each) with 5 held-out rows."""
    job = make_job("adversarial", rated(4), {"encoder": encoder, "stages": stages, **QUICK})
    assert count_readings(job, 6, 20, 5) == counts


@pytest.mark.parametrize("features", ["joint", "separate"])
@pytest.mark.parametrize("name", ["shared-bert", "adversarial", "perception", "comparative"])
def test_every_plan_has_a_narrow_range(encoder: str, name: str, features: str) -> None:
    """Upper at most three times lower; random numbers are left as they were."""
    torch.manual_seed(4)
    wanted = torch.rand(2)
    torch.manual_seed(4)
    found = plan(name, rated(12), encoder=encoder, features=features, stages="best", **QUICK)
    assert torch.equal(torch.rand(2), wanted)
    assert found.seconds is not None
    assert found.seconds_range == pytest.approx([share * found.seconds for share in RANGE])
    assert RANGE[1] <= 3 * RANGE[0]
    assert found.steps > 0
    assert plan(name, rated(12), encoder=encoder, features=features, stages="head", **QUICK).steps == 0


def test_training_is_not_timed_again(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any) -> None:
        raise AssertionError("timed")

    monkeypatch.setattr(fit_module, "add_estimate", refuse)
    fit("adversarial", rated(6), encoder=encoder, stages="head", **QUICK)
