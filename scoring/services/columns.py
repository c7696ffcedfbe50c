"""Cache the scores of large sets as columns in files: a leaderboard that is computed again after each judgement reads
the unchanged scores from there. The files can be deleted at any time."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from django.conf import settings

from annotation.models import Output
from evalapp.accounts.models import Project

from ..models import ScoreSet
from ..selectors.columns import get_columns_file, output_file, read_columns, read_outputs

#: Smaller score sets are read from the database; caching does not pay off.
MIN_CACHED = 20_000


def cache_columns(score_set: ScoreSet) -> None:
    """Write the columns of a large set to a file, and remove the files of its earlier states."""
    path = get_columns_file(score_set)
    if path is None or score_set.n_scores < MIN_CACHED or path.is_file():
        return
    columns = read_columns(score_set)
    if len(columns) != score_set.n_scores:
        return  # another run is writing scores, and will cache them
    arrays = {"output": columns.output, "value": columns.value, "in_training": columns.in_training}
    _save(path, f"{score_set.pk}-*", arrays)


def cache_outputs(project: Project) -> None:
    """Write item, group and system of the outputs of a large project to a file, and remove the earlier file."""
    path = output_file(project)
    if path.is_file() or Output.objects.filter(project=project).count() < MIN_CACHED:
        return
    outputs = read_outputs(project)
    if output_file(project) != path:
        return  # an upload is writing outputs; the next call caches them
    codes = sorted(outputs.units.codes.items(), key=lambda pair: pair[1])
    units = np.array([(system, -1 if step is None else step) for (system, step), _code in codes], dtype=np.int64)
    arrays = {name: getattr(outputs, name) for name in ("output", "item", "cluster", "system")}
    _save(path, "outputs-*", {"units": units, **arrays})


def _save(path: Path, pattern: str, arrays: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    part.replace(path)
    for other in path.parent.glob(pattern):
        if other != path:
            other.unlink(missing_ok=True)


def remove_columns(*, project: Project) -> None:
    """Remove the files of a deleted project."""
    shutil.rmtree(Path(settings.ARTEFACTS_DIR) / "columns" / str(project.pk), ignore_errors=True)
