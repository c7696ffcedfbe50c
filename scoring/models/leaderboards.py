"""Computed leaderboards, which are stored until the data change, and snapshots, which never change."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from annotation.models.visible import ProjectRows
from evalapp.accounts.models import Project


class Leaderboard(models.Model):
    """The table of a query. `stamp` identifies the state of the data it was computed from."""

    class Kind(models.TextChoices):
        SYSTEMS = "systems", _("Systems")
        EVALUATORS = "evaluators", _("Evaluators")
        ENHANCED = "enhanced", _("Evaluators by reference set")
        SLICES = "slices", _("Evaluators by part of the items")
        MATRIX = "matrix", _("Evaluators against each other")
        ASPECTS = "aspects", _("Evaluators by aspect")
        PAIRS = "pairs", _("Evaluators on compared pairs")
        AGREEMENT = "agreement", _("Agreement")

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


class Snapshot(models.Model):
    """A copy of a table under a permanent address, independent of later changes of the data."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="snapshots")
    slug = models.SlugField(max_length=80)
    title = models.CharField(max_length=200)
    note = models.TextField(blank=True)
    kind = models.CharField(max_length=10, choices=Leaderboard.Kind.choices)
    params = models.JSONField(default=dict)
    #: As `Leaderboard.stamp`.
    stamp = models.CharField(max_length=64)
    table = models.JSONField(default=dict)
    computed_at = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "slug"], name="one_snapshot")]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.slug
