"""The part of the data that is held out to choose the weights."""

from __future__ import annotations

from collections.abc import Collection

from scoring.ml.training.job import FitJob
from scoring.ml.training.record import list_groups
from scoring.ml.types import Dataset, assign_groups

#: Share of the groups that is held out where no dev part is given, if there are enough groups.
DEV_SHARE, LEAST_GROUPS = 0.1, 10


def split_dataset(job: FitJob) -> tuple[Dataset, Dataset | None]:
    """Return the part of a `job` to learn from and the held-out part: the dev part, else a tenth of the groups if there
    are ten."""
    return job.once("parts", lambda: _split_dataset(job))


def _split_dataset(job: FitJob) -> tuple[Dataset, Dataset | None]:
    if job.dev is None and len(list_groups(job.train)) >= LEAST_GROUPS:
        learned, held_out = job.train.split(seed=job.seed, shares=(1 - DEV_SHARE, DEV_SHARE))
        return learned, held_out
    return job.train, job.dev


def hold_out_groups(groups: Collection[str], seed: int, share: float = DEV_SHARE) -> set[str]:
    """Return the `groups` to hold out, a `share` of all, drawn by `seed`."""
    parts = assign_groups(set(groups), seed, (1 - share, share))
    return {group for group, part in parts.items() if part == 1}
