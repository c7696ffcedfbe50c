"""Columns that judging and writing campaigns share: the campaign, its members, what is assigned to them, and flags."""

from typing import Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import SLUG, Project, User
from evalapp.accounts.roles import Need

from .visible import ProjectRows


class CampaignRows(models.QuerySet):
    """Rows with a `campaign` column. They contain systems and answers, so reading them takes the right to read."""

    def visible_to(self, user: User, need: Need = "read") -> Self:
        return self.filter(campaign__project__in=Project.objects.visible_to(user, need))


class BaseCampaign(models.Model):
    """A plan that is opened, paused and closed; concrete classes add `project` and the plan's own columns."""

    class State(models.TextChoices):
        DRAFT = "draft", _("Draft")
        OPEN = "open", _("Open")
        PAUSED = "paused", _("Paused")
        CLOSED = "closed", _("Closed")

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
    #: Set when the campaign is opened.
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

    @property
    def goal(self) -> int:
        """The number of units that one annotator can work on."""
        return min(self.unit_count, self.max_per_annotator or self.unit_count)


class BaseMember(models.Model):
    """An annotator in a campaign, with the counters shown on their own page."""

    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    done = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0)
    joined_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(null=True)

    objects = CampaignRows.as_manager()

    class Meta:
        abstract = True


class BaseAssignment(models.Model):
    """A unit given to one annotator for a limited time (the lease), with a draft. The browser knows it only by the
    random id `public`."""

    public = models.CharField(max_length=24, unique=True)
    lease_until = models.DateTimeField()
    draft = models.JSONField(null=True)
    draft_version = models.PositiveIntegerField(default=0)
    draft_saved_at = models.DateTimeField(null=True)
    skip_reason = models.CharField(max_length=300, blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.public


class BaseFlag(models.Model):
    """An annotator's report that something is wrong with a unit."""

    class Reason(models.TextChoices):
        BROKEN = "broken", _("The text is broken or empty")
        LANGUAGE = "language", _("Wrong language")
        OFFENSIVE = "offensive", _("Offensive or private content")
        UNCLEAR = "unclear", _("The task does not fit this text")
        OTHER = "other", _("Something else")

    reason = models.CharField(max_length=9, choices=Reason.choices)
    text = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    objects = CampaignRows.as_manager()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.reason}: {self.text}"
