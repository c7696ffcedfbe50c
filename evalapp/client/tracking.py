"""Training curves and leaderboards in TensorBoard, MLflow or Weights & Biases. Each needs its package.

with TensorBoard("runs/weekend") as tracker:
    log_training(tracker, project.training_curve("shared-bert-1"))
    log_leaderboard(tracker, project.leaderboard("systems", aspect="quality"))
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from evalapp.client.errors import MissingFile, MissingPackage
from evalapp.client.leaderboards import Leaderboard

#: Names of rows and figures of a leaderboard, in the order of preference.
_ROW_NAMES = ("system", "evaluator", "aspect", "name")


class Tracker(ABC):
    """A run of a tracking program; `close` ends it, as the end of a `with` block does."""

    @abstractmethod
    def log_values(self, values: Mapping[str, float], step: int) -> None:
        """Log `values` by name at a `step`."""

    @abstractmethod
    def log_table(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Log `rows` as the table `name`."""

    @abstractmethod
    def close(self) -> None:
        """End the run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class TensorBoard(Tracker):
    """Event files in `folder`, by tensorboardX, or by torch if tensorboard is installed."""

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise MissingPackage("tensorboardX", "TensorBoard") from error
        self._writer: Any = SummaryWriter(str(folder))

    def log_values(self, values: Mapping[str, float], step: int) -> None:
        """Log `values` by name at a `step`."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def log_table(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Log `rows` as the text `name`, a table in Markdown."""
        columns = _list_columns(rows)
        lines = [columns, ["---"] * len(columns), *([_write_cell(row.get(key)) for key in columns] for row in rows)]
        self._writer.add_text(name, "\n".join(f"| {' | '.join(line)} |" for line in lines))

    def close(self) -> None:
        """Write the files."""
        self._writer.close()


class MLflow(Tracker):
    """A run `name` in an `experiment` at the tracking address `uri` (default: that of mlflow)."""

    def __init__(self, name: str = "", *, experiment: str = "evalapp", uri: str | None = None) -> None:
        try:
            from mlflow import MlflowClient
        except ImportError as error:
            raise MissingPackage("mlflow-skinny", "MLflow") from error
        self._client = MlflowClient(tracking_uri=uri)
        known = self._client.get_experiment_by_name(experiment)
        number = known.experiment_id if known is not None else self._client.create_experiment(experiment)
        self.run_id = str(self._client.create_run(number, run_name=name or None).info.run_id)

    def log_values(self, values: Mapping[str, float], step: int) -> None:
        """Log `values` by name at a `step`."""
        for name, value in values.items():
            self._client.log_metric(self.run_id, re.sub(r"[^\w\-. :/]", "_", name), value, step=step)

    def log_table(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Log `rows` as the artefact `name`.json."""
        self._client.log_text(self.run_id, json.dumps(rows, ensure_ascii=False, indent=1), f"{name}.json")

    def close(self) -> None:
        """End the run."""
        self._client.set_terminated(self.run_id)


class WeightsAndBiases(Tracker):
    """A run `name` in a `project`. `options` are those of `wandb.init`, such as `mode="offline"` and `dir`."""

    def __init__(self, name: str = "", *, project: str = "evalapp", **options: Any) -> None:
        try:
            import wandb
        except ImportError as error:
            raise MissingPackage("wandb", "WeightsAndBiases") from error
        self._wandb = wandb
        self.run: Any = wandb.init(project=project, name=name or None, **options)
        # Curves may be logged one after the other, each from its first step.
        self.run.define_metric("*", step_metric="step")

    def log_values(self, values: Mapping[str, float], step: int) -> None:
        """Log `values` by name at a `step`."""
        self.run.log({"step": step, **values})

    def log_table(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Log `rows` as the table `name`."""
        columns = _list_columns(rows)
        cells = [[_write_cell(row.get(key)) for key in columns] for row in rows]
        self.run.log({name: self._wandb.Table(columns=columns, data=cells)})

    def close(self) -> None:
        """End the run."""
        self.run.finish()


def read_training_log(path: str | Path) -> list[dict[str, Any]]:
    """Return the rows of the training curve of a saved evaluator; `path` is its folder or `train_log.jsonl`. Raises
    `MissingFile`."""
    file = Path(path)
    file = file / "train_log.jsonl" if file.is_dir() else file
    if not file.is_file():
        raise MissingFile(f"{file} does not exist; a trained evaluator has it in its folder")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def log_training(tracker: Tracker, rows: Iterable[Mapping[str, Any]], *, prefix: str = "training") -> None:
    """Log a training curve to `tracker`: `rows` with `step` and numbers, as `Project.training_curve` and
    `read_training_log` return them. Names are `prefix/loss`, with several models `prefix/fold-0/loss`. Undefined
    numbers are left out."""
    for row in rows:
        place = "/".join(str(part) for part in (prefix, row.get("model")) if part)
        values = {f"{place}/{name}": value for name, value in _list_numbers(row) if name != "step"}
        if values and isinstance(row.get("step"), int):
            tracker.log_values(values, row["step"])


def log_leaderboard(tracker: Tracker, board: Leaderboard, *, step: int = 0, prefix: str = "leaderboard") -> None:
    """Log a leaderboard `board` to `tracker`: its rows as the table `prefix`, and its estimates by name, such as
    `leaderboard/my-model/value`. Rows of checkpoints are logged at their own step, all others at `step`."""
    rows = [_flatten(row) for row in board.rows]
    tracker.log_table(prefix, rows)
    for row in rows:
        name = next((str(row[key]) for key in _ROW_NAMES if row.get(key)), "all")
        estimates = {
            key: value for key, value in _list_numbers(row) if key.rpartition(".")[2] in ("value", "low", "high")
        }
        own = row.get("step")
        if estimates:
            place = f"{prefix}/{name}"
            values = {f"{place}/{key}": value for key, value in estimates.items()}
            tracker.log_values(values, own if isinstance(own, int) else step)


def _list_numbers(row: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [
        (name, float(value))
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ]


def _flatten(row: Mapping[str, Any]) -> dict[str, Any]:
    """The plain members of a row, and those of its estimates as `pearson.value`."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": part for inner, part in value.items() if not isinstance(part, Mapping | list)}
        elif not isinstance(value, list):
            flat[name] = value
    return flat


def _list_columns(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _write_cell(value: Any) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return " ".join(text.replace("|", "\\|").split())
