"""What judging is: campaigns with their aspects, the units to judge, the slots that make overlap a rule of the
database, who holds what (assignments), and every version of every answer (judgements).

The rules kept here by constraints: a unit has exactly k slots; a slot has at most one holder; nobody gets a unit
twice but by a deliberate repeat; a submission is stored once."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from evalapp.accounts.models import Project
from evalapp.accounts.roles import Need
from evalapp.common.models import Run

from .data import Aspect, Item, Output, Reference
from .planned import PlannedCampaign


class Campaign(PlannedCampaign):
    """One judging task. `plan` says what is judged (items, systems, pairs) until it is opened; `options` says how
    (see `annotation.allocation.plan`). `revision` grows with every change of what annotators are shown."""

    class Kind(models.TextChoices):
        LIKERT = "likert", "Rating"
        PAIRWISE = "pairwise", "Comparison of two outputs"
        TURING = "turing", "Generation against reference"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="campaigns")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    overlap = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1), MaxValueValidator(100)])
    plan = models.JSONField(default=dict, blank=True)
    revision = models.PositiveIntegerField(default=1)
    #: Units that are not judged for the results, beside the `unit_count` of those that are.
    practice_count = models.PositiveIntegerField(default=0)
    control_count = models.PositiveIntegerField(default=0)
    #: Adaptive choice of pairs: units taken from the pool so far; `unit_count` says how many there may be.
    begun_count = models.PositiveIntegerField(default=0)
    #: Appended to the rater when an earlier campaign asks the same of the same outputs: both answers are kept.
    rater_suffix = models.CharField(max_length=70, blank=True)
    #: The run that makes the units of a large campaign.
    opening = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    class Meta(PlannedCampaign.Meta):
        constraints = [models.UniqueConstraint(fields=["project", "slug"], name="one_campaign")]


class CampaignRows(models.QuerySet):
    """Rows with a `campaign` column: they carry systems and answers, hence the right to read."""

    def visible_to(self, user: Any, need: Need = "read") -> CampaignRows:
        return self.filter(campaign__project__in=Project.objects.visible_to(user, need))


class CampaignAspect(models.Model):
    """What is asked. In a rating: a scale from `low` to `high` in steps of `step` (null: continuous), `labels`
    maps values to words. In a comparison: the question only."""

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
    """What is judged: an output; an unordered pair of outputs of one item; an output and a reference (Turing).
    Practice and control units know the `expected` answer and `why`; both are judged outside the slots."""

    class Kind(models.TextChoices):
        NORMAL = "normal", "Judged"
        PRACTICE = "practice", "Practice"
        CONTROL = "control", "Control"

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="units", db_index=False)
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.NORMAL)
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    output_a = models.ForeignKey(Output, on_delete=models.RESTRICT, related_name="+")
    output_b = models.ForeignKey(Output, null=True, on_delete=models.RESTRICT, related_name="+")
    reference = models.ForeignKey(Reference, null=True, on_delete=models.RESTRICT, related_name="+")
    expected = models.JSONField(null=True)
    why = models.TextField(blank=True)
    #: Adaptive choice of pairs: the chance with which this unit's pair of systems was taken, once it was.
    propensity = models.FloatField(null=True)

    objects = CampaignRows.as_manager()

    class Meta:
        indexes = [models.Index(fields=["campaign", "kind", "id"], name="unit_kind")]

    def __str__(self) -> str:
        return f"unit {self.pk}"


class Slot(models.Model):
    """One of the k places of a unit. `rank` is the place in the random order of the campaign; `swapped` says that
    whoever takes this slot sees the sides exchanged. With adaptive choice of pairs a slot waits in the pool, under the
    number of its pair of systems, until that pair is chosen."""

    class State(models.TextChoices):
        POOL = "pool", "In the pool"
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


class CampaignMember(models.Model):
    """An annotator in a campaign, with the counters of their own page. `seed` begins their random stream,
    `practised` and `given` count assignments handed out (practice; all other)."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="members", db_index=False)
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    seed = models.BigIntegerField()
    practised = models.PositiveIntegerField(default=0)
    given = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0)
    joined_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(null=True)

    objects = CampaignRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["campaign", "annotator"], name="one_campaign_member")]

    def __str__(self) -> str:
        return f"member {self.pk}"


class AssignmentRows(CampaignRows):
    def own(self, user: Any) -> AssignmentRows:
        return self.filter(annotator=user)


class Assignment(models.Model):
    """One unit in one person's hands. `public` is all that the person's browser learns of it. `slot` is null for
    practice, controls, repeats and once the lease has passed; `version` counts the answers submitted."""

    class State(models.TextChoices):
        OPEN = "open", "Open"
        SUBMITTED = "submitted", "Answered"
        SKIPPED = "skipped", "Skipped"
        EXPIRED = "expired", "Lease has passed"

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="assignments", db_index=False)
    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="assignments", db_index=False)
    slot = models.ForeignKey(Slot, null=True, on_delete=models.SET_NULL, related_name="assignments", db_index=False)
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    public = models.CharField(max_length=24, unique=True)
    repeat_number = models.PositiveSmallIntegerField(default=0)
    order_number = models.PositiveIntegerField()
    side_swapped = models.BooleanField(default=False)
    #: The unit's, as it was when this was handed out; null where the order was random.
    propensity = models.FloatField(null=True)
    state = models.CharField(max_length=9, choices=State.choices, default=State.OPEN)
    version = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField()
    opened_at = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True)
    draft = models.JSONField(null=True)
    draft_version = models.PositiveIntegerField(default=0)
    draft_saved_at = models.DateTimeField(null=True)
    skip_reason = models.CharField(max_length=300, blank=True)

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

    def __str__(self) -> str:
        return self.public


class Judgement(models.Model):
    """One version of one answer, as the person saw it (sides not yet exchanged back). `extra` marks an answer
    that came after its slot was given to somebody else: kept, but not counted towards the overlap."""

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
    #: Practice and control: whether the answer was the expected one.
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


class ItemFlag(models.Model):
    """An annotator's remark that something is wrong with a unit."""

    class Reason(models.TextChoices):
        BROKEN = "broken", "The text is broken or empty"
        LANGUAGE = "language", "Wrong language"
        OFFENSIVE = "offensive", "Offensive or private content"
        UNCLEAR = "unclear", "The task does not fit this text"
        OTHER = "other", "Something else"

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="flags")
    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="flags")
    reason = models.CharField(max_length=9, choices=Reason.choices)
    text = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    objects = CampaignRows.as_manager()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.reason}: {self.text}"
