"""A finished study with a result made by hand, for pages that only display it."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from evalapp.accounts.models import Project
from evalapp.common.models import Run


def make_cell(value: float, sd: float | None = None, **more: Any) -> dict[str, Any]:
    values = [value] if sd is None else [value - sd, value + sd]
    ends = {"low": value - 0.1, "high": value + 0.1}
    return {"value": value, **ends, "n": 27, "note": "", "sd": sd, "over": "seeds", "values": values, **more}


def make_result(project: str) -> dict[str, Any]:
    """Return the result of an ablation over two seeds with two rows and two figures."""
    difference = {"value": 0.2, "low": 0.1, "high": 0.3, "n": 2, "note": "", "p": 0.01, "p_holm": 0.01}
    anova = {"f": 4.5, "df_between": 1, "df_within": 2, "p": 0.168, "note": ""}
    rows = [
        {"label": "full model", "cells": {"f1": make_cell(0.5, 0.1), "spearman": make_cell(0.3, 0.05)}},
        {
            "label": "one encoder per aspect",
            "cells": {"f1": make_cell(0.7, 0.1, difference=difference), "spearman": make_cell(0.2, 0.02)},
        },
    ]
    table = {
        "name": "quality", "columns": ["f1", "spearman"], "rows": rows,
        "tests": {"f1": {"one_way": anova, "blocked": anova, "rows": ["full model", "one encoder per aspect"]}},
        "items": {
            "letters": {"full model": "a", "one encoder per aspect": "a"}, "pairs": [], "note": "", "n": 27,
            "population": "these systems, items like these", "signature": "test:permutation",
        },
    }  # fmt: skip
    part = {"items": 9, "groups": 9, "outputs": 27, "dialogues": 0}
    return {
        "study": "ablation", "project": project, "evaluators": ["shared-bert"], "aspects": ["quality"],
        "seeds": [13, 14], "seed": 13, "held_out": 30, "references": "original",
        "counts": {"train": part, "dev": part, "test": part}, "n_simulated": 0,
        "left_out": {"w/o weak supervision": "there are no checkpoints"}, "seconds": 61.0,
        "signatures": {"full model": "shared-bert|profile:recommended|seed:13"}, "tables": [table],
    }  # fmt: skip


def make_study(project: Project) -> Run:
    """Store that study."""
    now = timezone.now()
    return Run.objects.create(
        project=project, kind="study", title="Ablation: shared-bert", queue="train", state="succeeded",
        result=make_result(project.slug),
        params={"study": "ablation", "evaluators": ["shared-bert"], "seeds": 2}, input_hash=f"study-{project.pk}",
        started_at=now, finished_at=now,
    )  # fmt: skip
