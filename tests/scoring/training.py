"""The toy evaluator in a project: a catalogue that includes it, ratings to learn from, and a training from request to
row."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from annotation.models import Output
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.models import Evaluator
from scoring.pipelines.publishing import list_files
from scoring.services.training import TrainingOptions, start_training
from tests.factories import make_items, make_outputs, make_ratings


def put_toy_into_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    from scoring.ml import registry
    from tests.scoring.ml.training.toy_entry import ENTRY

    monkeypatch.setattr(registry, "LEARNED", (*registry.LEARNED, ENTRY))
    registry.catalogue.cache_clear()


def fill(project: Project, n: int = 12) -> None:
    """Outputs of different lengths by two systems, rated by two people."""
    outputs = make_outputs(project, make_items(project, n))
    for index, output in enumerate(outputs):
        output.text += " more" * (index % 4)
    Output.objects.bulk_update(outputs, ["text"])
    make_ratings(project, outputs)


def train(project: Project, evaluator: str = "toy", **more: Any) -> Evaluator:
    """Trains synchronously, with a frozen encoder to be fast."""
    options = {"frozen": True, "epochs": 2, **more.pop("options", {})}
    asked = TrainingOptions(evaluator, options=options, **more)
    run = execute_run(start_training(project=project, options=asked, send=False, any_encoder=True).pk)
    assert run is not None
    assert run.state == Run.State.SUCCEEDED, run.error
    return Evaluator.objects.get(project=project, slug=run.result["evaluator"])


def checkpoints_in(folder: Path) -> list[Path]:
    """Completed checkpoints. A training removes older ones meanwhile, which would break `rglob`."""
    return [Path(place) for place, _, files in os.walk(folder) if "complete" in files]


def make_trained(project: Project, slug: str, name: str = "maude") -> Evaluator:
    """The row and the card of a trained evaluator without its network: enough for pages that only display it."""
    folder = f"{project.pk}/{slug}"
    place = Path(settings.ARTEFACTS_DIR) / folder
    place.mkdir(parents=True, exist_ok=True)
    (place / "card.md").write_text(f"# {name}\n\n| evaluator | n |\n|---|---|\n| {name} | 12 |\n", encoding="utf-8")
    log = [
        {"step": 10 * k, "epoch": k, "loss": 1 / k, "dev_loss": 1.2 / k, "dev_accuracy": 1 - 0.5 / k}
        for k in range(1, 9)
    ]
    model = {
        "dataset": project.name, "examples": {"pairs": 120}, "n_groups": 10, "n_dev_groups": 2, "steps": 80,
        "seconds": 61.0, "simulated_judgements": 0, "metrics": {"accuracy": 0.9}, "log": log,
    }  # fmt: skip
    record = {
        "profile": "recommended", "seed": 13, "aspects": [], "encoder": None, "folds": 0, "models": [model],
        "files": list_files(place), "choice": {},
    }  # fmt: skip
    return Evaluator.objects.create(
        project=project, slug=slug, name=name, kind=Evaluator.Kind.TRAINED, folder=folder, record=record,
        signature=f"{name}|profile:recommended|seed:13|v:1",
    )  # fmt: skip
