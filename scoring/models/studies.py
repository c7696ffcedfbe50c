"""Results of the steps of studies, so that a study that was stopped computes only what is missing."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone

from evalapp.accounts.models import Project


class StudyStepRows(models.QuerySet):
    def visible_to(self, user: Any) -> StudyStepRows:
        return self.filter(project__in=Project.objects.visible_to(user, "read"))


class StudyStep(models.Model):
    """The result of a training with what was measured; `digest` is the hash of everything that it depends on, so that
    all studies of the project share it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="study_steps", db_index=False)
    digest = models.CharField(max_length=64)
    label = models.CharField(max_length=200)
    result = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    objects = StudyStepRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "digest"], name="one_study_step")]

    def __str__(self) -> str:
        return self.label
