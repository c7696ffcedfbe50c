"""What another installation tells of texts that people wrote there: kept as it came and written again by a dump.
Nothing here belongs to a campaign of this installation, and no figure counts it."""

from __future__ import annotations

from django.db import models

from evalapp.accounts.models import Project

from .data import Item, Reference, ReferenceSet, upload_column
from .visible import ProjectRows


class WrittenElsewhere(models.Model):
    """Where a text of `references.jsonl` comes from. `reference` is its row in the set; null for a text that stood
    outside of it (withdrawn, refused, waiting), which then is in `text` and `meta`. `told` is `written`, canonical."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    set = models.ForeignKey(ReferenceSet, on_delete=models.CASCADE, related_name="+")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+")
    reference = models.OneToOneField(Reference, null=True, on_delete=models.CASCADE, related_name="elsewhere")
    submission = models.CharField(max_length=100)
    text = models.TextField(blank=True)
    meta = models.JSONField(default=dict)
    told = models.TextField()
    upload = upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "submission"], name="one_written_elsewhere")]

    def __str__(self) -> str:
        return self.submission


class AttemptElsewhere(models.Model):
    """A row of `attempts.jsonl`, canonical."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+")
    campaign = models.CharField(max_length=100)
    submission = models.CharField(max_length=100)
    row = models.TextField()
    upload = upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "submission"], name="one_attempt_elsewhere")]

    def __str__(self) -> str:
        return self.submission
