"""Helpers of the pipelines: work folders, JSON, errors of `scoring.ml`, training data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings

from evalapp.common.errors import BadInput
from evalapp.common.models import Run


@contextmanager
def refuse_scoring_errors(*others: type[Exception]) -> Iterator[None]:
    """Turn errors of `scoring.ml` into messages for the user, except those in `others`."""
    from scoring.ml import ScoringError

    try:
        yield
    except others:
        raise
    except ScoringError as error:
        raise BadInput(str(error)) from error


def work_folder(run: Run) -> Path:
    """Return the folder with the files of a run until its result is stored."""
    return Path(settings.ARTEFACTS_DIR) / "work" / str(run.pk)


def to_json(value: Any) -> Any:
    """Return the value as plain JSON types; numbers that are not finite become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): to_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(part) for part in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return json.loads(json.dumps(value, default=float))


def get_trained_on(scorer: Any) -> frozenset[str]:
    """Return the groups that an evaluator was trained on; slow for cross-fitted evaluators, so call it once."""
    trained_on: frozenset[str] = getattr(scorer, "trained_on", None) or frozenset()
    return trained_on


def is_seen(trained_on: frozenset[str], group: str, item: str) -> bool:
    """Whether the group of an item is among the groups of a training."""
    from scoring.ml.types import training_names

    return bool(trained_on) and not trained_on.isdisjoint(training_names(group, item))
