"""Exports as people handle them: asked for, found again, downloaded. Writing them is a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings

from annotation.exporters.formats import FORMATS
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault, NotThere
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run


def check_format(format: str) -> str:
    if format not in FORMATS:
        raise BadInput(f"There is no export format “{format}”. Use {', '.join(FORMATS)}.")
    return format


def request_export(*, project: Project, user: Any, format: str = "jsonl") -> Run:
    """A run that writes the project as an interchange folder; the same request joins the one under way."""
    check_format(format)
    title = f"Export of {project.slug} as {format}"
    return enqueue_run(kind="export", project=project, user=user, params={"format": format}, title=title)


def export_from_wishes(*, project: Project, user: Any, params: dict[str, Any]) -> Run:
    """`POST projects/{slug}/runs/` with kind export: `format` is the only wish."""
    unknown = sorted(set(params) - {"format"})
    if unknown:
        text = f"An export knows no “{unknown[0]}”; it takes format ({', '.join(FORMATS)})."
        raise BadInput(text, faults=[Fault(text, field=unknown[0])])
    return request_export(project=project, user=user, format=str(params.get("format", "jsonl")))


def folder_of(run: Run) -> Path:
    return settings.EXPORTS_DIR / str(run.pk)


def exported_file(*, run: Run, name: str) -> Path:
    """A file of a finished export. `name` must be one the run itself wrote, so no path can be made up."""
    known = [file["name"] for file in (run.result or {}).get("files", [])] + [(run.result or {}).get("archive")]
    path = folder_of(run) / name
    if name not in known or not path.is_file():
        raise NotThere("This export has no such file (any more). Export again.")
    return path
