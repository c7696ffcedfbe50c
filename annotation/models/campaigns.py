"""Judging campaigns: their aspects, the units to judge, the slots that let the database enforce the overlap, the
assignments of units to annotators, and every version of every answer (judgements).

Database constraints enforce that a slot has at most one assignment, that an annotator gets a unit only once unless it
is a planned repeat, and that a submission is stored once."""

from typing import Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import Project, User
from evalapp.common.models import Run

from .data import Aspect, Item, Output, Reference
from .shared import BaseAssignment, BaseCampaign, BaseFlag, BaseMember, CampaignRows


class Campaign(BaseCampaign):
    """A judging campaign. `plan` selects items, systems and pairs and is used when the campaign is opened; `options`
    configure the judging (see `annotation.allocation.plan`). `revision` increases whenever something changes that
    annotators are shown."""

    class Kind(models.TextChoices):
        LIKERT = "likert", _("Rating")
        PAIRWISE = "pairwise", _("Comparison of two outputs")
        TURING = "turing", _("Output or reference (Turing test)")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="campaigns")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    overlap = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1), MaxValueValidator(100)])
    plan = models.JSONField(default=dict, blank=True)
    revision = models.PositiveIntegerField(default=1)
    #: Units that are not part of the results; `unit_count` counts the others.
    practice_count = models.PositiveIntegerField(default=0)
    control_count = models.PositiveIntegerField(default=0)
    #: Adaptive pair selection: units taken from the pool so far, at most `unit_count`.
    begun_count = models.PositiveIntegerField(default=0)
    #: Judgements whose ratings were removed: tables that are computed from ratings depend on it.
    removed_count = models.PositiveIntegerField(default=0, db_default=0)
    #: Appended to rater ids if an earlier campaign has the same aspects and outputs, so that both answers are kept.
    rater_suffix = models.CharField(max_length=70, blank=True)
    #: The run that creates the units of a large campaign.
    opening = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    class Meta(BaseCampaign.Meta):
        constraints = [models.UniqueConstraint(fields=["project", "slug"], name="one_campaign")]


class CampaignAspect(models.Model):
    """A question of a campaign. Ratings have a scale from `low` to `high` in steps of `step` (null: continuous), and
    `labels` maps values to words. Comparisons have the question only."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="aspects")
    aspect = models.ForeignKey(Aspect, on_delete=models.RESTRICT, related_name="+")
    position = models.PositiveSmallIntegerField()
    question = models.CharField(max_length=300, blank=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    step = models.FloatField(null=True, default=1)
    labels = models.JSONField(default=dict)

    objects = CampaignRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "aspect"], name="one_campaign_aspect"),
            models.UniqueConstraint(fields=["campaign", "position"], name="one_campaign_aspect_position"),
        ]
        ordering = ["position"]

    def __str__(self) -> str:
        return self.question


class Unit(models.Model):
    """An output, an unordered pair of outputs of an item, or an output and a reference (Turing). Practice and control
    units have the `expected` answer with its reason (`why`) and have no slots."""

    class Kind(models.TextChoices):
        NORMAL = "normal", _("Judged")
        PRACTICE = "practice", _("Practice")
        CONTROL = "control", _("Control")

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="units", db_index=False)
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.NORMAL)
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    output_a = models.ForeignKey(Output, on_delete=models.RESTRICT, related_name="+")
    output_b = models.ForeignKey(Output, null=True, on_delete=models.RESTRICT, related_name="+")
    reference = models.ForeignKey(Reference, null=True, on_delete=models.RESTRICT, related_name="+")
    expected = models.JSONField(null=True)
    why = models.TextField(blank=True)
    #: The probability with which this unit's pair of systems (adaptive selection) or its output was selected.
    propensity = models.FloatField(null=True)

    objects = CampaignRows.as_manager()

    class Meta:
        indexes = [models.Index(fields=["campaign", "kind", "id"], name="unit_kind")]

    def __str__(self) -> str:
        return f"unit {self.pk}"


class Slot(models.Model):
    """A place for one annotator in a unit. `rank` is its position in the campaign's random order; `swapped` exchanges
    the two sides for the annotator. With adaptive pair selection, slots stay in the pool, under the number of their
    pair of systems, until that pair is selected."""

    class State(models.TextChoices):
        POOL = "pool", _("In the pool")
        FREE = "free", "Free"
        TAKEN = "taken", "Taken"

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="slots", db_index=False)
    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="slots", db_index=False)
    number = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=5, choices=State.choices, default=State.FREE)
    rank = models.IntegerField()
    swapped = models.BooleanField(default=False)
    pair = models.PositiveIntegerField(null=True)

    objects = CampaignRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["unit", "number"], name="one_slot")]
        indexes = [
            models.Index(fields=["campaign", "pair", "rank"], condition=Q(state="pool"), name="slot_pool"),
            models.Index(fields=["campaign", "rank"], condition=Q(state="free"), name="slot_free"),
            models.Index(fields=["campaign", "state"], name="slot_state"),
        ]

    def __str__(self) -> str:
        return f"slot {self.number} of unit {self.unit_id}"


class CampaignMember(BaseMember):
    """An annotator in a judging campaign. `seed` starts their random stream; `practised` and `given` count the
    assignments they got (practice; all others). `hired`: they have a row in `Participant`, whose place they need."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="members", db_index=False)
    seed = models.BigIntegerField()
    practised = models.PositiveIntegerField(default=0)
    given = models.PositiveIntegerField(default=0)
    hired = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["campaign", "annotator"], name="one_campaign_member")]

    def __str__(self) -> str:
        return f"member {self.pk}"


class AssignmentRows(CampaignRows):
    def own(self, user: User) -> Self:
        return self.filter(annotator=user)


class Assignment(BaseAssignment):
    """A unit given to one annotator. `slot` is null for practice, control and repeated units and after the lease has
    expired; `version` counts the submitted answers."""

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        SUBMITTED = "submitted", _("Answered")
        SKIPPED = "skipped", _("Skipped")
        EXPIRED = "expired", _("Expired")

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="assignments", db_index=False)
    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="assignments", db_index=False)
    slot = models.ForeignKey(Slot, null=True, on_delete=models.SET_NULL, related_name="assignments", db_index=False)
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    repeat_number = models.PositiveSmallIntegerField(default=0)
    order_number = models.PositiveIntegerField()
    side_swapped = models.BooleanField(default=False)
    #: Copy of the unit's propensity at the time of assignment; null if it is not known.
    propensity = models.FloatField(null=True)
    state = models.CharField(max_length=9, choices=State.choices, default=State.OPEN)
    version = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True)

    objects = AssignmentRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["unit", "repeat_number", "annotator"], name="one_assignment"),
            models.UniqueConstraint(
                fields=["slot"],
                condition=Q(slot__isnull=False, state__in=["open", "submitted"]),
                name="one_holder_of_a_slot",
            ),
        ]
        indexes = [
            models.Index(fields=["campaign", "annotator", "order_number"], name="assignment_own"),
            models.Index(fields=["annotator", "campaign"], condition=Q(state="open"), name="assignment_open"),
            models.Index(fields=["lease_until"], condition=Q(state="open"), name="assignment_lease"),
        ]


class Judgement(models.Model):
    """One version of an answer, with the sides as the annotator saw them. `extra` marks an answer that arrived after
    its slot was given to another annotator: it is stored but does not count towards the overlap."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="judgements", db_index=False)
    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="judgements", db_index=False)
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    version = models.PositiveIntegerField()
    current = models.BooleanField(default=True)
    submission = models.UUIDField(unique=True)
    replaces = models.PositiveIntegerField(null=True)
    answer = models.JSONField()
    body_hash = models.CharField(max_length=64)
    note = models.TextField(blank=True)
    seconds = models.FloatField(null=True)
    extra = models.BooleanField(default=False)
    #: Practice and control units: whether the answer was as expected.
    passed = models.BooleanField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = CampaignRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["assignment", "version"], name="one_judgement_version")]
        indexes = [
            models.Index(fields=["campaign", "-id"], name="judgement_campaign"),
            models.Index(
                fields=["campaign", "annotator"], condition=Q(passed__isnull=False), name="judgement_of_checks"
            ),
            models.Index(fields=["campaign"], condition=Q(extra=True), name="judgement_extra"),
        ]

    def __str__(self) -> str:
        return f"judgement {self.pk}"


class ItemFlag(BaseFlag):
    """A flag on a unit of a judging campaign."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="flags")
    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="flags")

    class Meta:
        ordering = ["-id"]
