"""Whether a project holds anything yet. Asked by several sections of one page, hence remembered on the object."""

from __future__ import annotations

from annotation.models import Output
from evalapp.accounts.models import Project


def has_outputs(project: Project) -> bool:
    found: bool | None = getattr(project, "_has_outputs", None)
    if found is None:
        found = Output.objects.filter(project=project).exists()
        project._has_outputs = found
    return found
