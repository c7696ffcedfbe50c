"""Keeping the scores of large sets as columns in files, so that a table that is computed anew after a judgement reads
what did not change from there. Files can be deleted at any time; the database has it all."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from django.conf import settings

from annotation.models import Output
from evalapp.accounts.models import Project

from ..models import ScoreSet
from ..selectors.columns import get_columns_file, output_file, read_columns, read_outputs

#: Below so many scores reading the database costs less than a file is worth.
MIN_KEPT = 20_000


def keep_columns(score_set: ScoreSet) -> None:
    """The columns of a large set are in a file afterwards, and files of its earlier states are gone."""
    path = get_columns_file(score_set)
    if path is None or score_set.n_scores < MIN_KEPT or path.is_file():
        return
    found = read_columns(score_set)
    if len(found) != score_set.n_scores:
        return  # somebody is writing: the next one keeps them
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, output=found.output, value=found.value, in_training=found.in_training)
    part.replace(path)
    for other in path.parent.glob(f"{score_set.pk}-*"):
        if other != path:
            other.unlink(missing_ok=True)


def keep_outputs(project: Project) -> None:
    """What the outputs of a large project are, in a file; that of an earlier state goes."""
    path = output_file(project)
    if path.is_file() or Output.objects.filter(project=project).count() < MIN_KEPT:
        return
    found = read_outputs(project)
    if output_file(project) != path:
        return  # somebody is uploading: the next one keeps them
    codes = sorted(found.units.codes.items(), key=lambda pair: pair[1])
    units = np.array([(system, -1 if step is None else step) for (system, step), _ in codes], dtype=np.int64)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(
            file, units=units, output=found.output, item=found.item, cluster=found.cluster, system=found.system
        )  # fmt: skip
    part.replace(path)
    for other in path.parent.glob("outputs-*"):
        if other != path:
            other.unlink(missing_ok=True)


def remove_columns(*, project: Project) -> None:
    """The files of a project that is deleted."""
    shutil.rmtree(Path(settings.ARTEFACTS_DIR) / "columns" / str(project.pk), ignore_errors=True)
