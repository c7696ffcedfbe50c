"""The toy evaluator in a project: the catalogue with it, people's ratings to learn from, and a training from wish to
row."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from annotation.models import Output
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.models import Evaluator
from scoring.services.training import Wishes, start_training
from tests.factories import make_items, make_outputs, make_ratings


def put_toy_into_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    from scoring.ml import registry
    from tests.scoring.ml.training.toy import ENTRY

    monkeypatch.setattr(registry, "_MODULES", (*registry._MODULES, SimpleNamespace(ENTRIES=(ENTRY,))))
    registry.catalogue.cache_clear()


def fill(project: Project, n: int = 12) -> None:
    """Outputs of different lengths by two systems, rated by two people."""
    outputs = make_outputs(project, make_items(project, n))
    for index, output in enumerate(outputs):
        output.text += " more" * (index % 4)
    Output.objects.bulk_update(outputs, ["text"])
    make_ratings(project, outputs)


def train(project: Project, evaluator: str = "toy", **wishes: Any) -> Evaluator:
    """Train here and now; frozen, so that it takes a moment."""
    options = {"frozen": True, "epochs": 2, **wishes.pop("options", {})}
    asked = Wishes(evaluator, options=options, **wishes)
    run = execute_run(start_training(project=project, wishes=asked, send=False, any_encoder=True).pk)
    assert run is not None
    assert run.state == Run.State.SUCCEEDED, run.error
    return Evaluator.objects.get(project=project, slug=run.result["evaluator"])
