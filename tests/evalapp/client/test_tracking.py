"""Curves and leaderboards in tracking programs, read back from the files that each writes without a server. A program
that is not installed is skipped."""

from __future__ import annotations

import json
import struct

import pytest

from evalapp.client import MissingFile
from evalapp.client.leaderboards import Leaderboard
from evalapp.client.tracking import (
    MLflow,
    TensorBoard,
    Tracker,
    WeightsAndBiases,
    log_leaderboard,
    log_training,
    read_training_log,
)

CURVE = [
    {"step": 10, "epoch": 0.5, "loss": 0.75, "diverged": False},
    {"step": 20, "epoch": 1.0, "loss": None, "pearson": 0.25},
]
BOARD = Leaderboard(
    {"signature": "method:mean", "rows": [
        {"rank": 1, "system": "m", "step": 20, "value": 3.5, "low": 3.0, "high": 4.0, "cells": [{"value": 1}]},
        {"rank": 2, "system": "h|x", "step": None, "value": 2.5, "low": None, "high": None},
    ]}
)  # fmt: skip


class Recorder(Tracker):
    def __init__(self) -> None:
        self.values: list[tuple[int, dict[str, float]]] = []
        self.tables: dict[str, list[dict[str, object]]] = {}
        self.closed = False

    def log_values(self, values, step):
        self.values.append((step, dict(values)))

    def log_table(self, name, rows):
        self.tables[name] = rows

    def close(self):
        self.closed = True


def log_both(tracker: Tracker) -> None:
    with tracker:
        log_training(tracker, CURVE)
        log_leaderboard(tracker, BOARD)


def test_numbers_are_logged_at_their_steps():
    tracker = Recorder()
    log_both(tracker)
    assert tracker.closed
    assert tracker.values == [
        (10, {"training/epoch": 0.5, "training/loss": 0.75}),
        (20, {"training/epoch": 1.0, "training/pearson": 0.25}),
        (20, {"leaderboard/m/value": 3.5, "leaderboard/m/low": 3.0, "leaderboard/m/high": 4.0}),
        (0, {"leaderboard/h|x/value": 2.5}),
    ]
    assert [row["system"] for row in tracker.tables["leaderboard"]] == ["m", "h|x"]


def test_models_of_a_cross_fitting_have_curves_of_their_own(tmp_path):
    tracker = Recorder()
    log_training(tracker, [{"model": "fold-0", "step": 1, "loss": 2}, {"model": "fold-1", "step": 1, "loss": 3}])
    assert [values for _, values in tracker.values] == [{"training/fold-0/loss": 2.0}, {"training/fold-1/loss": 3.0}]
    (tmp_path / "train_log.jsonl").write_text(json.dumps(CURVE[0]) + "\n")
    assert read_training_log(tmp_path) == CURVE[:1]
    with pytest.raises(MissingFile):
        read_training_log(tmp_path / "nothing")


def test_tensorboard_events(tmp_path):
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    log_both(TensorBoard(tmp_path))
    (path,) = tmp_path.glob("events.*")
    data, place, found = path.read_bytes(), 0, {}
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        event = events.Event.FromString(data[place + 12 : place + 12 + length])
        found |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
        place += length + 16
    assert found["training/loss", 10] == 0.75
    assert found["leaderboard/m/value", 20] == 3.5
    assert ("leaderboard/text_summary", 0) in found


def test_mlflow_files(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    tracker = MLflow("weekend", uri=tmp_path.as_uri())
    log_both(tracker)
    client = mlflow.MlflowClient(tracking_uri=tmp_path.as_uri())
    history = client.get_metric_history(tracker.run_id, "training/loss")
    assert [(point.step, point.value) for point in history] == [(10, 0.75)]
    run = client.get_run(tracker.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["leaderboard/h_x/value"] == 2.5


def test_weights_and_biases_offline(tmp_path):
    pytest.importorskip("wandb")
    with WeightsAndBiases("weekend", mode="offline", dir=str(tmp_path)) as tracker:
        log_training(tracker, CURVE)
        log_leaderboard(tracker, BOARD)
        assert dict(tracker.run.summary)["leaderboard/m/value"] == 3.5
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
