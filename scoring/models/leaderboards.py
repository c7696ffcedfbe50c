"""Computed leaderboards, kept until the data below them change, and snapshots, which stay as they were."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from annotation.models.visible import ProjectRows
from evalapp.accounts.models import Project

#: A table in which a figure failed is computed again after so many seconds, at the earliest after so many times the
#: seconds that computing it took.
RETRY_SECONDS = 60.0
RETRY_TIMES = 10.0


class Leaderboard(models.Model):
    """One table for one choice of parameters. `stamp` tells the state of the data it was computed from."""

    class Kind(models.TextChoices):
        SYSTEMS = "systems", "Systems"
        EVALUATORS = "evaluators", "Evaluators"
        ENHANCED = "enhanced", "Evaluators by reference set"
        SLICES = "slices", "Evaluators by part of the items"
        MATRIX = "matrix", "Evaluators against each other"
        ASPECTS = "aspects", "Evaluators by aspect"
        PAIRS = "pairs", "Evaluators on compared pairs"
        AGREEMENT = "agreement", "Agreement"

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

    def is_current(self, stamp: str) -> bool:
        """Whether this table can be shown for the data of `stamp`. One in which a figure failed is computed again
        after a minute, or later where computing it takes long: the cause may be gone."""
        if self.stamp != stamp or not self.table.get("failed"):
            return self.stamp == stamp
        wait = max(RETRY_SECONDS, RETRY_TIMES * self.seconds)
        return timezone.now() < self.computed_at + timedelta(seconds=wait)


class Snapshot(models.Model):
    """A table as it stood at one time, under an address that stays. Nothing computes it anew; a change of the data
    does not touch it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="snapshots")
    slug = models.SlugField(max_length=80)
    title = models.CharField(max_length=200)
    note = models.TextField(blank=True)
    kind = models.CharField(max_length=10, choices=Leaderboard.Kind.choices)
    params = models.JSONField(default=dict)
    #: The state of the data it was computed from, as `Leaderboard.stamp`.
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
