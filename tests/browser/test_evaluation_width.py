"""The table of evaluators with all its columns fits a laptop's window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from annotation.models import Rating
from evalapp.common.runner import execute_run
from scoring.models import ScoreSet
from scoring.services.scores import NewScore, apply_evaluator, store_scores
from tests.cast import Cast
from tests.factories import make_items, make_outputs, make_ratings
from tests.scoring.training import make_trained

pytestmark = pytest.mark.browser


@pytest.fixture
def trained(cast: Cast, settings: Any, tmp_path: Path) -> Cast:
    """Ridge, another trained evaluator, and baselines; half of the outputs are rated."""
    settings.ARTEFACTS_DIR = tmp_path
    rng = np.random.default_rng(5)
    items = make_items(cast.project, 24)
    outputs = make_outputs(cast.project, items, ("sys-a", "sys-b", "sys-c"))
    make_ratings(cast.project, outputs[: len(outputs) // 2])
    quality = rng.normal(size=len(outputs))
    for output, value in zip(outputs, quality, strict=True):
        Rating.objects.filter(output=output).update(value=float(np.clip(round(3 + value), 1, 5)))
    for slug, method, noise in (("shared-bert-1", "shared-bert", 0.5), ("ridge-1", "ridge", 1.0)):
        evaluator = make_trained(cast.project, slug, method)
        signature = f"{method}|profile:recommended|seed:13|v:1"
        score_set = ScoreSet.objects.create(
            project=cast.project, evaluator=evaluator, signature=signature, scored_at=timezone.now()
        )
        values = quality + noise * rng.normal(size=len(outputs))
        scores = [
            NewScore(one.pk, float(value), "", 0, is_empty=False, is_truncated=False)
            for one, value in zip(outputs, values, strict=True)
        ]
        store_scores(score_set=score_set, scores=scores)
    for name in ("length", "random"):
        run = apply_evaluator(project=cast.project, evaluator=name, send=False)
        assert execute_run(run.pk).state == "succeeded"
    return cast


def test_table_with_ridge_fits_1280_pixels(trained: Cast, page_for: Callable[..., Any]) -> None:
    page = page_for(trained.researcher, width=1280)
    page.goto("/projects/alpha/evaluation/")
    heads = page.locator("table.many th[data-column]").evaluate_all("all => all.map((one) => one.dataset.column)")
    assert {"ridge", "saved", "signature"} <= set(heads)
    wrap = page.locator(".table-wrap:has(table.many)")
    assert wrap.evaluate("element => element.scrollWidth - element.clientWidth") <= 0
