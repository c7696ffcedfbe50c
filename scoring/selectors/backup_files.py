"""Artefacts to back up: those of evaluators, and uploads that wait to be imported."""

from collections.abc import Iterator
from typing import Any

from evalapp.common.hooks import BackupFile


def list_backup_files(apps: Any) -> Iterator[BackupFile]:
    """Yield the files to back up. Caches are rebuilt, and running trainings restart."""
    model = apps.get_model("scoring", "Evaluator")
    if any(field.name == "folder" for field in model._meta.get_fields()):  # absent in the first release
        rows = model.objects.exclude(folder="").order_by("pk")
        for folder in rows.values_list("folder", flat=True).iterator():
            yield BackupFile("artefacts", folder, needed=True)
    runs = apps.get_model("common", "Run").objects.filter(kind="artefact", state__in=["queued", "running"])
    for params in runs.order_by("pk").values_list("params", flat=True).iterator():
        yield BackupFile("artefacts", f"incoming/{params.get('incoming')}")
