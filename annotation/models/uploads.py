"""Uploads: files, errors by line, and changes, so that they can be undone."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import Project
from evalapp.common.models import Run

from .visible import ProjectRows


class Upload(models.Model):
    class State(models.TextChoices):
        MAPPING = "mapping", _("Its columns are to be matched")
        RECEIVED = "received", _("Waiting to be checked")
        CHECKING = "checking", _("Being checked")
        FAULTY = "faulty", _("Has faults, nothing was stored")
        CHECKED = "checked", _("Checked, nothing stored (dry run)")
        DONE = "done", _("Stored")
        UNDONE = "undone", _("Undone")
        CANCELLED = "cancelled", _("Cancelled")
        FAILED = "failed", _("Could not be checked, nothing was stored")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="uploads")
    run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="uploads")
    state = models.CharField(max_length=10, choices=State.choices, default=State.RECEIVED)
    title = models.CharField(max_length=200)
    #: [{"name", "kind", "bytes", "sha256"}]
    files = models.JSONField(default=list)
    content_hash = models.CharField(max_length=64, blank=True)
    options = models.JSONField(default=dict)
    #: {"items": {"rows", "added", "same", "replaced", "faulty"}, ...}
    counts = models.JSONField(default=dict)
    ignored = models.JSONField(default=list)
    fault_count = models.BigIntegerField(default=0)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    objects = ProjectRows.as_manager()

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="upload_project")]

    def __str__(self) -> str:
        return f"upload {self.pk}: {self.title}"


class UploadFault(models.Model):
    """A faulty row. The first thousand of an upload are stored; `Upload.fault_count` counts all."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="faults")
    file = models.CharField(max_length=200)
    line = models.BigIntegerField(null=True)
    field = models.CharField(max_length=100, blank=True)
    message = models.TextField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"


class UploadChange(models.Model):
    """The content of a row before an upload with `replace` changed it; undo restores it."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="changes")
    table = models.CharField(max_length=20)
    row = models.BigIntegerField()
    before = models.JSONField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.table} {self.row}"
