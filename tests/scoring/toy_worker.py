"""Imported by the workers of tests (`--include`): registers the toy evaluator in their catalogue, and shortens
trainings."""

from __future__ import annotations

from typing import Any

from celery.signals import task_prerun

from scoring.ml import registry
from tests.evalapp.common import quick_pool  # noqa: F401
from tests.scoring.ml.training.toy_entry import ENTRY

registry.LEARNED = (*registry.LEARNED, ENTRY)
registry.catalogue.cache_clear()


@task_prerun.connect
def _shorten(task: Any = None, **_: Any) -> None:
    """A short training must write checkpoints often, or there is none to continue from. It tries the same
    penalties of a head as trainings with the fixture `few_penalties`."""
    if task is not None and task.name == "evalapp.run":
        from scoring.ml.training import finetune, head

        finetune.CHECKPOINT_SECONDS = 0.2
        head.PENALTIES = (1.0, 0.1)
