"""A trained `ream` in a project, made from its row and its folder without training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings

from evalapp.accounts.models import Project
from scoring.models import Evaluator


def put_ream(project: Project, encoder: str, slug: str = "rater", **more: Any) -> Evaluator:
    """`more`: arguments of `untrained`."""
    from scoring.ml.encoders.source import find_encoder
    from tests.scoring.ml.evaluators.ream.untrained import untrained

    folder = f"{project.pk}/{slug}"
    evaluator = untrained(find_encoder(encoder), **more)
    evaluator.save_pretrained(Path(settings.ARTEFACTS_DIR) / folder)
    return Evaluator.objects.create(
        project=project, slug=slug, name="ream", kind=Evaluator.Kind.TRAINED, folder=folder,
        signature=evaluator.signature,
    )  # fmt: skip
