"""Hired participants of a judging campaign: the links by which they come, the versions of their consent texts, the
participants, and bans.

Database constraints enforce that a participant id has one row per link, that a place has one holder, and that nobody
passes without a place."""

from typing import Any, Self

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from annotation.allocation.recruitment import RecruitmentPlan, read_recruitment
from evalapp.accounts.models import Project, User
from evalapp.accounts.roles import Need

from .campaigns import Campaign
from .shared import CampaignRows
from .visible import ProjectRows


class Recruitment(models.Model):
    """A link for hired participants. Only the digest of its secret is stored. `settings` are those of
    `annotation.allocation.recruitment`; `refusals` counts people who did not consent, and nothing else is stored about
    them."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="recruitments")
    label = models.CharField(max_length=100, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    places = models.PositiveIntegerField()
    settings = models.JSONField(default=dict)
    refusals = models.PositiveIntegerField(default=0)
    closed_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    objects = CampaignRows.as_manager()

    def __str__(self) -> str:
        return self.label or gettext("Link %(number)d") % {"number": self.pk}

    @property
    def plan(self) -> RecruitmentPlan:
        """The stored settings, which were valid when they were saved."""
        plan, problems = read_recruitment(self.settings)
        if plan is None:
            raise ValueError(f"settings of {self!r}: {problems}")
        return plan


class RecruitmentRows(models.QuerySet):
    """Rows with a `recruitment` column. They contain ids of persons, so reading them takes the right to write."""

    def visible_to(self, user: User, need: Need = "write") -> Self:
        return self.filter(recruitment__campaign__project__in=Project.objects.visible_to(user, need))


class ConsentText(models.Model):
    """A version of the consent text of a link. Versions are never changed or deleted."""

    recruitment = models.ForeignKey(Recruitment, on_delete=models.CASCADE, related_name="consent_texts")
    version = models.PositiveIntegerField()
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)

    objects = RecruitmentRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["recruitment", "version"], name="one_consent_version")]

    def __str__(self) -> str:
        return f"version {self.version}"


class Participant(models.Model):
    """A hired participant with an own account. `place` is the number of the place that they hold, which is released
    when `lease_until` has passed; `browser` is the digest of the browser's key. `failed_rules` names the rules of the
    link that they failed. After withdrawal only the account number, state and place are left."""

    class State(models.TextChoices):
        WORKING = "working", _("Working")
        LEFT = "left", _("Left")
        PASSED = "passed", _("Passed")
        FAILED = "failed", pgettext_lazy("participant", "Failed")
        SCREENED = "screened", _("Screened out")
        WITHDRAWN = "withdrawn", _("Withdrawn")
        BANNED = "banned", _("Banned")

    recruitment = models.ForeignKey(Recruitment, on_delete=models.CASCADE, related_name="participants")
    user = models.OneToOneField(User, on_delete=models.PROTECT, related_name="participant")
    external_id = models.CharField(max_length=100)
    browser = models.CharField(max_length=64, blank=True)
    meta = models.JSONField(default=dict)
    state = models.CharField(max_length=9, choices=State.choices, default=State.WORKING)
    place = models.PositiveIntegerField(null=True)
    lease_until = models.DateTimeField(null=True)
    consent = models.ForeignKey(ConsentText, null=True, on_delete=models.CASCADE, related_name="+")
    consented_at = models.DateTimeField(default=timezone.now)
    answers = models.JSONField(default=dict)
    may_export = models.BooleanField(default=False)
    #: Whether the answers of a failed participant were set aside, so that others judge these texts.
    set_aside = models.BooleanField(default=False)
    failed_rules = models.JSONField(default=list)
    code = models.CharField(max_length=40, blank=True)
    remark = models.TextField(blank=True)
    joined_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    objects = RecruitmentRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["recruitment", "external_id"], name="one_participant"),
            models.UniqueConstraint(
                fields=["recruitment", "place"], condition=Q(place__isnull=False), name="one_holder_of_a_place"
            ),
            models.UniqueConstraint(fields=["recruitment", "code"], condition=~Q(code=""), name="one_code"),
            models.CheckConstraint(
                condition=~Q(state__in=["working", "passed"]) | Q(place__isnull=False), name="passed_with_a_place"
            ),
        ]

    def __str__(self) -> str:
        return f"participant {self.pk}"

    @property
    def has_ended(self) -> bool:
        return self.state not in (self.State.WORKING, self.State.LEFT)

    def make_values(self, code: str, id_parameter: str) -> dict[str, Any]:
        """The values of placeholders in an address to return to."""
        return {**self.meta, id_parameter: self.external_id, "participant": self.external_id, "code": code}


class ParticipantBan(models.Model):
    """A participant id that cannot take part in any study of the project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="participant_bans")
    external_id = models.CharField(max_length=100)
    reason = models.CharField(max_length=300, blank=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "external_id"], name="one_ban")]

    def __str__(self) -> str:
        return self.external_id
