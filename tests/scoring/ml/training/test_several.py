"""Several processes that share a training: the same weights, the same end, and no orphans."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from scoring.ml import InvalidOption, ScoringError, TrainingProgress, catalogue, cross_fit, plan
from scoring.ml.errors import ProcessDied, TrainingDiverged
from scoring.ml.training import several
from scoring.ml.training.fit import MARK, claim_folder, run_job
from scoring.ml.training.job import FitJob
from scoring.ml.training.several import SHARED, train_together
from scoring.ml.training.store import write_json
from scoring.ml.training.together import Together, portable, take_share
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.ml.training.many import DRAWN, FAULTY, MANY, PARTS, comparable, make_job, split_job, uncut
from tests.scoring.ml.training.toy import ENTRY, ToyNetwork, toy_data
from tests.scoring.ml.training.warm import warm

FAKE = "tests.scoring.ml.training.fake_process"
ROOT = Path(__file__).resolve().parents[4]


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.0)


@pytest.fixture(scope="module")
def by_two(encoder: str, tmp_path_factory: pytest.TempPathFactory) -> FitJob:
    """Every evaluator, trained by two processes."""
    job = make_job(MANY, tmp_path_factory.mktemp("two"), toy_data(6, seed=9), encoder=encoder, processes=2)
    with warm():
        train_together(job)
    return job


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[several._Process]:
    """The processes started in a test."""
    found: list[several._Process] = []
    start = several._start

    def noted(*arguments: Any) -> several._Process:
        found.append(start(*arguments))
        return found[-1]

    monkeypatch.setattr(several, "_start", noted)
    return found


def trained(job: FitJob) -> Any:
    """The result of a job whose phases have ended."""
    return job.entry.load_implementation().train(job)


def gone(process: psutil.Process) -> bool:
    """Also for processes that no parent waits for, such as those of a killed owner."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait(until: Callable[[], object], seconds: float = 60) -> float:
    began = time.monotonic()
    while not until():
        assert time.monotonic() - began < seconds
        time.sleep(0.02)
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_two_processes_train_the_weights_of_one(by_two: FitJob, tmp_path: Path, name: str) -> None:
    """Without random draws, equal up to the rounding of sums: also with second-order gradients, unknown labels,
    recomputed activations, and a last batch with fewer rows than processes."""
    two = split_job(by_two, PARTS)[name]
    one = split_job(replace(by_two, folder=tmp_path, options={**by_two.options, "processes": 1}), PARTS)[name]
    with comparable():
        found, expected = trained(two), trained(one)
    # Weights moved by up to 2e-3; they differed by 3e-8 in single precision, by 2e-5 in bf16, which has 8 bits.
    tolerance = 5e-5 if name == "half" else 3e-7
    for key, weights in expected.network.state_dict().items():
        torch.testing.assert_close(found.network.state_dict()[key], weights, rtol=0, atol=tolerance, msg=key)
    assert len(found.record.log) == len(expected.record.log) > 0
    for mine, theirs in zip(found.record.log, expected.record.log, strict=True):
        figures = [
            {key: value for key, value in row.items() if key not in ("seconds", "phase")} for row in (mine, theirs)
        ]
        assert figures[0] == pytest.approx(figures[1], abs=1e-5)


@pytest.mark.slow
def test_every_process_ends_with_the_same_weights(by_two: FitJob) -> None:
    """Also where each draws its own dropout and hints, and where later work depends on a step's loss. Held-out data
    select the first process's weights for all; an evaluation that ends a training ends it in every process."""
    parts = {**split_job(by_two, PARTS), **split_job(by_two, DRAWN), "uncut": uncut(by_two)}
    for name, part in parts.items():
        assert (part.folder / "weights-0").read_text() == (part.folder / "weights-1").read_text(), name
    again = parts["begun again"].folder
    assert json.loads((again / "restarts.json").read_text()) == {"attempt": 1}
    assert (again / "supervised-2").is_dir()
    assert not (again / "supervised").exists()


@pytest.mark.slow
def test_interrupted_training_of_two_ends_with_the_same_weights(
    by_two: FitJob, tmp_path: Path, started: list[several._Process]
) -> None:
    whole = uncut(by_two)

    def cut_off(at: int, how: Callable[[], object], error: type[Exception], match: str | None = None) -> list[int]:
        """Starts it, calls the action at that step, and checks that all processes are gone."""
        told: list[int] = []
        since: list[float] = []
        started.clear()

        def report(progress: TrainingProgress) -> None:
            told.append(progress.done)
            if progress.done == at:
                since.append(time.monotonic())
                how()

        with warm(), pytest.raises(error, match=match):
            run_job(replace(whole, folder=tmp_path, report=report))
        assert time.monotonic() - since[0] < 5
        assert len(started) == 2
        assert not any(psutil.pid_exists(process.popen.pid) for process in started)
        assert list(tmp_path.glob("training/checkpoint-*/complete"))
        assert not (tmp_path / SHARED).exists()
        return told

    def stop() -> None:
        raise Stop

    assert cut_off(3, stop, Stop) == [1, 2, 3]
    states = [tmp_path / f"training/checkpoint-2/rng_state_{rank}.pth" for rank in (0, 1)]
    drawn = [torch.load(path, weights_only=False) for path in states]
    assert not torch.equal(drawn[0]["cpu"], drawn[1]["cpu"])
    # A step is reported before it is saved: the one whose report failed was not saved, earlier ones were.
    killed = r"process 2 of the 2 that share the training was killed by SIGKILL.*continues from the last one"
    told = cut_off(7, lambda: started[1].popen.kill(), ProcessDied, killed)
    assert told[0] == 3
    with pytest.raises(InvalidOption, match="other processes"):
        run_job(replace(whole, folder=tmp_path, options={**whole.options, "processes": 1}))
    told.clear()
    with warm():
        evaluator = run_job(replace(whole, folder=tmp_path, report=lambda progress: told.append(progress.done)))
    assert told[-1] == 12
    assert 7 <= told[0] <= 9
    expected = trained(whole)
    for key, weights in expected.network.state_dict().items():
        assert torch.equal(evaluator.network.state_dict()[key], weights), key
    figures = [{key: row[key] for key in ("step", "loss", "dev_loss")} for row in expected.record.log]
    assert [{key: row[key] for key in figures[0]} for row in evaluator.record.log] == figures
    assert not list(tmp_path.rglob("checkpoint-*"))
    assert not list(tmp_path.glob("meeting-*"))
    started.clear()
    run_job(replace(whole, folder=tmp_path, report=lambda progress: pytest.fail("a finished training ran again")))
    assert not started


def fake(monkeypatch: pytest.MonkeyPatch, folder: Path, what: str) -> FitJob:
    monkeypatch.setattr(several, "_MODULE", FAKE)
    return replace(make_job(ENTRY, folder, processes=2), profile=what)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        ("refused", ScoringError, r"^a text of 900 tokens does not fit into memory$"),
        (
            "wrong",
            ProcessDied,
            r"process 2 of the 2 .* ended with an error.* printed\nTrace.*\nValueError: of the second",
        ),
        ("silent", ProcessDied, r"process 2 of the 2 .* ended with an error"),
        ("killed", ProcessDied, r"process 2 of the 2 .* was killed by SIGKILL \(perhaps there was too little memory\)"),
    ],
)
def test_failing_process_ends_the_others_and_is_named(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    started: list[several._Process],
    what: str,
    error: type[ScoringError],
    said: str,
) -> None:
    real = what in ("refused", "wrong")
    job = replace(make_job(FAULTY, tmp_path, processes=2), profile=what) if real else fake(monkeypatch, tmp_path, what)
    with warm() if real else nullcontext(), pytest.raises(error, match=f"(?s){said}") as caught:
        train_together(job)
    assert type(caught.value) is error
    assert not any(psutil.pid_exists(process.popen.pid) for process in started)
    assert {path.name for path in tmp_path.iterdir()} <= {"threads.json", "pid-0", "pid-1"}


def test_processes_share_the_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    printed: list[str] = []
    monkeypatch.setattr(several, "_end", lambda processes: printed.extend(each.last_lines() for each in processes))
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(7)
        train_together(fake(monkeypatch, tmp_path, "done"))
    finally:
        torch.set_num_threads(threads)
    # Half of seven threads each, by rank.
    assert printed == ["0 2 3", "1 2 3"]
    assert json.loads((tmp_path / SHARED).read_text()) == {"processes": 2}


def test_no_process_outlives_a_killed_owner(tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.write_bytes(pickle.dumps(make_job(ENTRY, tmp_path, processes=2)))
    code = (
        "import pickle, sys, pathlib\n"
        "from scoring.ml.training import several\n"
        f"several._MODULE = {FAKE!r}\n"
        "several.train_together(pickle.loads(pathlib.Path(sys.argv[1]).read_bytes()))\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, str(job)], cwd=ROOT, env={**os.environ, "PYTHONPATH": "."})
    try:
        pids = [tmp_path / f"pid-{rank}" for rank in (0, 1)]
        wait(lambda: all(path.is_file() and path.read_text() for path in pids))
        children = [psutil.Process(int(path.read_text())) for path in pids]
        assert not any(map(gone, children))
        owner.send_signal(signal.SIGKILL)
        assert wait(lambda: all(map(gone, children))) < 5
    finally:
        owner.kill()
        owner.wait()


def test_batch_shares_are_weighted_by_known_labels() -> None:
    network = ToyNetwork.from_source(None, {})
    batch = {"features": torch.arange(5.0)[:, None], "labels": torch.tensor([1.0, torch.nan, 3.0, 4.0, torch.nan])}
    shares = [take_share(batch, network, rank, 2) for rank in (0, 1)]
    assert [share["features"].flatten().tolist() for share in shares] == [[0, 2, 4], [1, 3]]
    # By rows: three and two of five, times the two processes averaged over.
    assert [share["weight of the share"] for share in shares] == [2 * 3 / 5, 2 * 2 / 5]
    one = {name: values[:1] for name, values in batch.items()}
    shares = [take_share(one, network, rank, 3) for rank in range(3)]
    assert [share["features"].tolist() for share in shares] == [[[0.0]]] * 3
    assert [share["weight of the share"] for share in shares] == [3.0, 0.0, 0.0]


def test_single_process_agrees_with_itself() -> None:
    alone = Together()
    alone.wait()
    assert (alone.agree(lambda: 3), alone.mean(0.1), alone.first) == (3, 0.1, True)


def test_error_of_the_first_is_read_by_the_others() -> None:
    plain, own = KeyError("a"), TrainingDiverged("toy")
    assert portable(plain) is plain
    # Built from its message, it would say everything twice.
    assert (type(portable(own)), str(portable(own))) == (ScoringError, str(own))
    local = type("Local", (ValueError,), {})("b")
    assert (type(portable(local)), str(portable(local))) == (RuntimeError, "Local('b')")


def test_unshareable_training_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**options: Any) -> str:
        with pytest.raises(InvalidOption) as caught:
            plan("toy", toy_data(), **options)
        return str(caught.value)

    assert "is 4, but batch_size is 3" in refused(processes=4, batch_size=3)
    assert "must be at least 1" in refused(processes=0)
    assert "must be at most 16" in refused(processes=17)
    on_one = plan("toy", toy_data(), train_device="cpu")
    on_two = plan("toy", toy_data(), train_device="cpu", processes=2, batch_size=3)
    assert on_two.notes == (*on_one.notes, "2 processes that share a processor take no less time than one")
    assert (on_two.steps, on_two.seconds) == (on_one.steps, on_one.seconds)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert "3 are asked for, 2 can be seen here" in refused(processes=3)
    assert "cuda:1 is one: take train_device=cuda" in refused(processes=2, train_device="cuda:1")
    implementation = ENTRY.load_implementation()
    monkeypatch.setattr(implementation, "plan", classmethod(lambda cls, job: replace(on_one, seconds=60.0)))
    assert plan("toy", toy_data(), processes=2).seconds == 30.0
    assert plan("toy", toy_data()).seconds == 60.0


def test_folder_started_by_one_process_is_not_continued_by_two(tmp_path: Path) -> None:
    one, two = (make_job(ENTRY, tmp_path, processes=n) for n in (1, 2))
    claim_folder(one)
    claim_folder(one)
    with pytest.raises(InvalidOption, match="other processes: take another folder"):
        claim_folder(two)
    # Nor one that was started before the option existed.
    said = json.loads((tmp_path / MARK).read_text())
    del said["options"]["processes"]
    write_json(tmp_path / MARK, said)
    claim_folder(one)
    with pytest.raises(InvalidOption, match="other processes: take another folder"):
        claim_folder(two)


def test_models_of_all_folds_are_shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, encoder: str) -> None:
    shared: list[Path] = []

    def by_one(job: FitJob) -> None:
        shared.append(job.folder)
        trained(replace(job, options={**job.options, "processes": 1}))

    monkeypatch.setattr(several, "train_together", by_one)
    cross_fit("toy", toy_data(), folds=2, encoder=encoder, epochs=1, processes=2, train_device="cpu", folder=tmp_path)
    assert shared == [tmp_path / "fold-0" / "work", tmp_path / "fold-1" / "work"]


def test_shared_training_is_not_run_by_one_process(tmp_path: Path, encoder: str) -> None:
    with pytest.raises(RuntimeError, match="training is to be trained by 2 processes, not by 1"):
        trained(make_job(ENTRY, tmp_path, encoder=encoder, processes=2))


def test_every_trainable_encoder_has_the_option() -> None:
    having = {entry.name for entry in catalogue() if any(option.name == "processes" for option in entry.train_options)}
    assert having == {"adversarial", "comparative", "perception", "shared-bert", "toy"}
