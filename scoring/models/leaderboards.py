"""Computed leaderboards, kept until the data below them change."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from annotation.models.visible import ProjectRows
from evalapp.accounts.models import Project


class Leaderboard(models.Model):
    """One table for one choice of parameters. `stamp` tells the state of the data it was computed from."""

    class Kind(models.TextChoices):
        SYSTEMS = "systems", "Systems"
        EVALUATORS = "evaluators", "Evaluators"
        ENHANCED = "enhanced", "Evaluators by reference set"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="leaderboards")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    params = models.JSONField(default=dict)
    key = models.CharField(max_length=64)
    stamp = models.CharField(max_length=64)
    table = models.JSONField(default=dict)
    computed_at = models.DateTimeField(default=timezone.now)
    seconds = models.FloatField(default=0)

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "key"], name="one_leaderboard")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.project}"
