"""Scores of a set and outputs of a project as columns. Large ones are cached in files by `services.columns`."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from django.conf import settings
from django.db.models import Count, Max

from annotation.models import Output, System, Upload
from evalapp.accounts.models import Project
from scoring.boards.data.columns import Labels, Units
from scoring.boards.data.project_judgements import get_units

from ..models import Score, ScoreSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 20_000


@dataclass(frozen=True)
class ScoreColumns:
    """Columns of equal length, sorted by primary key of the output; `value` is nan for undefined scores."""

    output: NDArray[np.int64]
    value: NDArray[np.float64]
    in_training: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.output)

    def of(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the values of the outputs, nan if there is none."""
        return self.at(self.places(outputs))

    def places(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of the outputs, -1 if absent."""
        if not len(self):
            return np.full(len(outputs), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.output, outputs), len(self) - 1)
        return np.where(self.output[place] == outputs, place, -1)

    def at(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the values at these positions."""
        return np.append(self.value, np.nan)[places]

    def learned_from(self, outputs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the outputs are in the training data of the evaluator."""
        return np.isin(outputs, self.output[self.in_training])


def get_columns_file(score_set: ScoreSet) -> Path | None:
    """Return the cache file of this state of the set; None while it is incomplete."""
    if score_set.scored_at is None:
        return None
    folder = Path(settings.ARTEFACTS_DIR) / "columns" / str(score_set.project_id)
    state = f"{score_set.scored_at.timestamp():.6f}-{score_set.n_scores}"
    return folder / f"{score_set.pk}-{state}.npz"


def load_columns(score_set: ScoreSet) -> ScoreColumns:
    """Return the scores from the cache file, or from the database."""
    return find_columns(score_set) or read_columns(score_set)


def find_columns(score_set: ScoreSet) -> ScoreColumns | None:
    """Return the scores from the cache file, None without one."""
    path = get_columns_file(score_set)
    if path is not None and path.is_file():
        try:
            with np.load(path, allow_pickle=False) as stored:
                return ScoreColumns(stored["output"], stored["value"], stored["in_training"])
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None  # damaged or removed: read the database
    return None


def read_columns(score_set: ScoreSet) -> ScoreColumns:
    rows = Score.objects.filter(score_set=score_set).order_by("output_id")
    scores = rows.values_list("output_id", "value", "in_training").iterator(chunk_size=CHUNK)
    defined = ((output, np.nan if value is None else value, seen) for output, value, seen in scores)
    table = np.fromiter(defined, dtype=[("output", np.int64), ("value", np.float64), ("in_training", np.bool_)])
    return ScoreColumns(**{name: np.ascontiguousarray(table[name]) for name in ("output", "value", "in_training")})


@dataclass(frozen=True)
class OutputColumns:
    """Every output of a project: primary key, item and group (codes by sorted name), system at a step (code of
    `units`)."""

    output: NDArray[np.int64]
    item: NDArray[np.int64]
    cluster: NDArray[np.int64]
    system: NDArray[np.int64]
    units: Units

    def __len__(self) -> int:
        return len(self.output)


def output_file(project: Project) -> Path:
    """Return the cache file of the current outputs. Outputs, items and systems change by uploads only."""
    outputs = Output.objects.filter(project=project).aggregate(n=Count("pk"), last=Max("pk"))
    uploads = (
        Upload.objects.filter(project=project).order_by().values_list("state").annotate(n=Count("pk"), last=Max("pk"))
    )
    systems = System.objects.filter(project=project).order_by("pk").values_list("pk", "name", "kind")
    state = repr([outputs["n"], outputs["last"], sorted(uploads), list(systems)])
    digest = hashlib.sha256(state.encode()).hexdigest()[:16]
    return Path(settings.ARTEFACTS_DIR) / "columns" / str(project.pk) / f"outputs-{digest}.npz"


def load_outputs(project: Project) -> OutputColumns:
    """Return the outputs from the cache file, or from the database."""
    path = output_file(project)
    if path.is_file():
        try:
            with np.load(path, allow_pickle=False) as stored:
                units = get_units(project)
                for system, step in stored["units"].tolist():
                    units.code(system, None if step < 0 else step)
                return OutputColumns(stored["output"], stored["item"], stored["cluster"], stored["system"], units)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            pass
    return read_outputs(project)


def read_outputs(project: Project) -> OutputColumns:
    units, items, groups = get_units(project), Labels(), Labels()
    rows = Output.objects.filter(project=project).order_by("pk")
    fields = ("pk", "item__key", "item__group", "system_id", "step")
    outputs = rows.values_list(*fields).iterator(chunk_size=CHUNK)
    codes = ((pk, items.code(key), groups.code(group), units.code(*unit)) for pk, key, group, *unit in outputs)
    output, item, cluster, system = np.ascontiguousarray(np.fromiter(codes, dtype=np.dtype((np.int64, 4))).T)
    return OutputColumns(output, items.sort()[item], groups.sort()[cluster], units.sort()[system], units)
