"""Which files of uploads and exports belong into a backup."""

from collections.abc import Iterator
from typing import Any

from evalapp.common.hooks import BackupFile


def list_backup_files(apps: Any) -> Iterator[BackupFile]:
    """`evalapp load` leaves links to the files it reads, so links are followed."""
    uploads = apps.get_model("annotation", "Upload").objects.order_by("pk")
    for pk in uploads.values_list("pk", flat=True).iterator():
        yield BackupFile("uploads", str(pk), follow=True)
    exports = apps.get_model("common", "Run").objects.filter(kind="export", state="succeeded").order_by("pk")
    for pk in exports.values_list("pk", flat=True).iterator():
        yield BackupFile("exports", str(pk))
