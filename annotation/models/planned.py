"""What campaigns of judging and campaigns of writing have in common: a plan that is opened, paused and closed. The rows
of each are in modules of their own."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from evalapp.accounts.models import SLUG

from .visible import ProjectRows


class PlannedCampaign(models.Model):
    """A campaign as somebody plans it and others work in it; which project it is of stands where it is used."""

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"
        OPEN = "open", "Open"
        PAUSED = "paused", "Paused"
        CLOSED = "closed", "Closed"

    slug = models.CharField(max_length=63, validators=[SLUG])
    name = models.CharField(max_length=200)
    state = models.CharField(max_length=6, choices=State.choices, default=State.DRAFT)
    lease_minutes = models.PositiveSmallIntegerField(
        default=30, validators=[MinValueValidator(1), MaxValueValidator(1440)]
    )
    max_per_annotator = models.PositiveIntegerField(null=True, blank=True)
    guidelines = models.TextField(blank=True)
    options = models.JSONField(default=dict, blank=True)
    seed = models.PositiveIntegerField(default=13)
    #: Written when the campaign is opened.
    unit_count = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    opened_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    objects = ProjectRows.as_manager()

    class Meta:
        abstract = True
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name
