"""The origin of texts that were written in another installation, stored as imported and exported unchanged. They do not
belong to a campaign of this installation and are not counted."""

from django.db import models

from evalapp.accounts.models import Project

from .data import Item, Reference, ReferenceSet, make_upload_column
from .visible import ProjectRows


class WrittenElsewhere(models.Model):
    """The origin of a text in `references.jsonl`. `reference` is its row in the set; null for a text outside the set
    (withdrawn, rejected, waiting), which is in `text` and `meta`. `told` is `written` in canonical form."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    set = models.ForeignKey(ReferenceSet, on_delete=models.CASCADE, related_name="+")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+")
    reference = models.OneToOneField(Reference, null=True, on_delete=models.CASCADE, related_name="elsewhere")
    submission = models.CharField(max_length=100)
    text = models.TextField(blank=True)
    meta = models.JSONField(default=dict)
    told = models.TextField()
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "submission"], name="one_written_elsewhere")]

    def __str__(self) -> str:
        return self.submission


class AttemptElsewhere(models.Model):
    """A row of `attempts.jsonl` in canonical form."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+")
    campaign = models.CharField(max_length=100)
    submission = models.CharField(max_length=100)
    row = models.TextField()
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "submission"], name="one_attempt_elsewhere")]

    def __str__(self) -> str:
        return self.submission
