"""Studies of a project, and stored results of their steps. Does not import torch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet

from evalapp.accounts.models import Project
from evalapp.common.models import Run

from ..models import StudyStep

#: Names of the kinds of study, in the order of `scoring.ml.studies.kinds`, which imports numpy.
STUDIES = ("seeds", "ablation", "side-by-side", "p-sys", "delta", "robustness", "selection", "reliability")
#: Kinds of runs.
STUDY, CHECK = "study", "study-plan"


def list_studies(project: Project) -> QuerySet[Run]:
    """Return all studies that did not fail for good, newest first."""
    return Run.objects.filter(project=project, kind=STUDY).order_by("-pk")


def find_stored(project: Project, digests: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return digest -> result of the stored steps among `digests`."""
    rows = StudyStep.objects.filter(project=project, digest__in=digests)
    return dict(rows.values_list("digest", "result"))
