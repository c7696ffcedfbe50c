"""Reference writing: campaigns, the items people write for (units), who writes (members), one person's work on one item
(tasks), what they were offered (candidates), every text they sent (attempts) and what came of it (written references).

The rules kept here by constraints: an item is in a campaign once; a person works on an item once and on one item at a
time; a submission is stored once; an accepted attempt gives one reference; nobody confirms a text twice. A reference
stands in its set as a row of `Reference` while it counts, and only then; who wrote it, how, and what was withdrawn is
kept in `WrittenReference`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from evalapp.accounts.models import Project

from .campaigns import CampaignRows, ItemFlag
from .data import Item, Reference, ReferenceSet
from .planned import PlannedCampaign


class WritingCampaign(PlannedCampaign):
    """`options` and `items` are those of `annotation.allocation.writing_plan`. `start_set` is what the campaign begins
    from; `target_set` is the set that everybody adds to (null in rounds, and where each arm has a set of its own)."""

    class Kind(models.TextChoices):
        REAM = "ream", "References with a reliability score"
        CONSTRAINT = "constraint", "Writing under a constraint"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="writing_campaigns")
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.REAM)
    items = models.JSONField(default=dict, blank=True)
    #: Names, not rows: both live in rooms downstream. Empty: none.
    evaluator = models.CharField(max_length=200, blank=True)
    corpus = models.CharField(max_length=200, blank=True)
    start_set = models.ForeignKey(ReferenceSet, null=True, on_delete=models.RESTRICT, related_name="+")
    target_set = models.ForeignKey(ReferenceSet, null=True, on_delete=models.RESTRICT, related_name="+")

    class Meta(PlannedCampaign.Meta):
        constraints = [models.UniqueConstraint(fields=["project", "slug"], name="one_writing_campaign")]

    @property
    def plan(self) -> dict[str, Any]:
        """Which items, in the form that campaigns of judging have it."""
        return {"items": self.items}

    @property
    def in_rounds(self) -> bool:
        return bool(self.options.get("mode") == "rounds")


class WritingUnit(models.Model):
    """An item to write for. `rank` is its place in the random order of the campaign; `arm` is set where arms are
    assigned to items. Whoever adds a reference holds this row."""

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="units", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    rank = models.PositiveIntegerField()
    arm = models.CharField(max_length=10, blank=True)

    objects = CampaignRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "item"], name="one_writing_unit"),
            models.UniqueConstraint(fields=["campaign", "rank"], name="one_writing_rank"),
        ]

    def __str__(self) -> str:
        return f"writing unit {self.pk}"


class WritingMember(models.Model):
    """Somebody who writes. `number` counts from 0 in the order of coming; `arm` is empty where arms belong to items;
    `set` is what this person adds to: their own in rounds, else one that others add to as well."""

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="members", db_index=False)
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    set = models.ForeignKey(ReferenceSet, on_delete=models.RESTRICT, related_name="+")
    number = models.PositiveIntegerField()
    group = models.PositiveIntegerField(default=0)
    arm = models.CharField(max_length=10, blank=True)
    done = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    accepted = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0)
    joined_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(null=True)

    objects = CampaignRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "annotator"], name="one_writing_member"),
            models.UniqueConstraint(fields=["campaign", "number"], name="one_writing_number"),
        ]

    def __str__(self) -> str:
        return f"writing member {self.pk}"


class WritingTask(models.Model):
    """One person's work on one item. `round` counts the candidates and own texts dealt with; `public` is all that the
    browser learns of it; the lease says how long the others of a group wait."""

    class State(models.TextChoices):
        OPEN = "open", "Open"
        DONE = "done", "Done"
        SKIPPED = "skipped", "Skipped"

    class Why(models.TextChoices):
        FINISHED = "finished", "The annotator was done"
        FULL = "full", "The item has as many references as wanted"
        EMPTY = "empty", "All candidates were dealt with"

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    unit = models.ForeignKey(WritingUnit, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    member = models.ForeignKey(WritingMember, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    arm = models.CharField(max_length=10)
    public = models.CharField(max_length=24, unique=True)
    state = models.CharField(max_length=7, choices=State.choices, default=State.OPEN)
    why = models.CharField(max_length=8, choices=Why.choices, blank=True)
    round = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField()
    opened_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True)
    skip_reason = models.CharField(max_length=300, blank=True)
    draft = models.JSONField(null=True)
    draft_version = models.PositiveIntegerField(default=0)
    draft_saved_at = models.DateTimeField(null=True)

    objects = CampaignRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["unit", "member"], name="one_writing_task"),
            models.UniqueConstraint(fields=["member"], condition=Q(state="open"), name="one_open_writing_task"),
        ]
        indexes = [
            models.Index(fields=["campaign", "state"], name="writing_task_state"),
            models.Index(fields=["member", "id"], name="writing_task_member"),
        ]

    def __str__(self) -> str:
        return self.public

    @property
    def item(self) -> Item:
        return self.unit.item

    @property
    def shows_scores(self) -> bool:
        return bool(self.arm == "scores" and self.campaign.evaluator)

    @property
    def shows_candidates(self) -> bool:
        """Whether the annotator chooses from a list. In rounds the one candidate comes with the desk."""
        return bool(self.campaign.corpus) and not self.campaign.in_rounds


class WritingFlag(models.Model):
    """A writer's remark that something is wrong with an item."""

    Reason = ItemFlag.Reason

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="flags")
    task = models.ForeignKey(WritingTask, on_delete=models.CASCADE, related_name="flags")
    reason = models.CharField(max_length=9, choices=ItemFlag.Reason.choices)
    text = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    objects = CampaignRows.as_manager()

    def __str__(self) -> str:
        return f"{self.reason}: {self.text}"


class WritingCandidate(models.Model):
    """A text that was offered: to one task, or, with a `number`, to everybody in that round of the item."""

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="candidates", db_index=False)
    unit = models.ForeignKey(WritingUnit, on_delete=models.CASCADE, related_name="candidates", db_index=False)
    task = models.ForeignKey(WritingTask, null=True, on_delete=models.CASCADE, related_name="candidates")
    number = models.PositiveIntegerField(null=True)
    public = models.CharField(max_length=32, unique=True)
    text = models.TextField()
    query = models.TextField(blank=True)
    jaccard = models.FloatField(null=True)
    source = models.JSONField(default=dict)

    objects = CampaignRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["unit", "number"], name="one_writing_candidate"),
            models.CheckConstraint(
                condition=Q(task=None, number__isnull=False) | Q(task__isnull=False, number=None),
                name="candidate_of_a_task_or_a_round",
            ),
        ]

    def __str__(self) -> str:
        return self.text[:60]


class WritingAttempt(models.Model):
    """A text that was sent, or a candidate put aside (`text` empty). `text_before` is what the editor began with: the
    text sent before for this candidate, or the candidate. The scores are the server's own, of the set as it stood when
    the attempt was judged; they are kept for arms that do not see them, too. `counted`: it used up one of the edits."""

    class Decision(models.TextChoices):
        ACCEPT = "accept", "Accepted"
        EDIT = "edit", "To be edited"
        DROP = "drop", "Dropped"

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    task = models.ForeignKey(WritingTask, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    member = models.ForeignKey(WritingMember, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    number = models.PositiveIntegerField()
    round = models.PositiveIntegerField()
    candidate = models.ForeignKey(
        WritingCandidate, null=True, on_delete=models.SET_NULL, related_name="attempts", db_index=False
    )
    candidate_text = models.TextField(null=True)
    source = models.JSONField(default=dict)
    text_before = models.TextField(blank=True)
    text = models.TextField(blank=True)
    relevant = models.BooleanField(null=True)
    edited = models.BooleanField(default=False)
    counted = models.BooleanField(default=False)
    unscored = models.BooleanField(default=False)
    references_before = models.PositiveIntegerField(default=0)
    score_before = models.FloatField(null=True)
    score_after = models.FloatField(null=True)
    signature = models.TextField(blank=True)
    improved = models.BooleanField(null=True)
    decision = models.CharField(max_length=6, choices=Decision.choices)
    why = models.CharField(max_length=10, blank=True)
    left = models.PositiveIntegerField(default=0)
    submission = models.UUIDField(unique=True)
    body_hash = models.CharField(max_length=64)
    seconds = models.FloatField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = CampaignRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "number"], name="one_writing_attempt"),
            # The paper's rule, kept by the database as well: no score that failed to improve is ever accepted.
            models.CheckConstraint(
                condition=~Q(decision="accept") | Q(improved=None) | Q(improved=True), name="accepted_has_improved"
            ),
        ]
        indexes = [models.Index(fields=["campaign", "id"], name="writing_attempt_campaign")]

    def __str__(self) -> str:
        return f"attempt {self.number}: {self.decision}"


class WrittenReference(models.Model):
    """What an accepted attempt gave. `reference` is its row in the set while it counts; null while it waits for others
    to confirm it, when they refused it, and once it was withdrawn."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waits for others"
        SHOWN = "shown", "In the set"
        REFUSED = "refused", "Refused by others"
        WITHDRAWN = "withdrawn", "Withdrawn"

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="written", db_index=False)
    attempt = models.OneToOneField(WritingAttempt, on_delete=models.CASCADE, related_name="written")
    task = models.ForeignKey(WritingTask, on_delete=models.CASCADE, related_name="written", db_index=False)
    unit = models.ForeignKey(WritingUnit, on_delete=models.CASCADE, related_name="written", db_index=False)
    member = models.ForeignKey(WritingMember, on_delete=models.CASCADE, related_name="written", db_index=False)
    set = models.ForeignKey(ReferenceSet, on_delete=models.RESTRICT, related_name="+", db_index=False)
    reference = models.OneToOneField(Reference, null=True, on_delete=models.SET_NULL, related_name="written")
    public = models.CharField(max_length=24, unique=True)
    state = models.CharField(max_length=9, choices=State.choices, default=State.SHOWN)
    text = models.TextField()
    meta = models.JSONField(default=dict)
    gain = models.FloatField(null=True)
    score = models.FloatField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    #: In which state it was when it was withdrawn: where restoring leads back to.
    state_before = models.CharField(max_length=9, blank=True)
    withdrawn_at = models.DateTimeField(null=True)
    withdrawn_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    reason = models.CharField(max_length=300, blank=True)

    objects = CampaignRows.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["unit", "set"], name="written_place"),
            models.Index(fields=["campaign", "state", "id"], name="written_state"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state="shown") | Q(reference=None), name="written_only_shown_counts")
        ]

    def __str__(self) -> str:
        return self.text[:60]


class WrittenConfirmation(models.Model):
    """Another annotator's comparison of a written text with the original, which they saw without knowing which is
    which. `swapped`: the written text stood second."""

    class Verdict(models.TextChoices):
        WRITTEN = "written", "The written text is better"
        ORIGINAL = "original", "The original is better"
        TIE = "tie", "Equal"

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="+", db_index=False)
    written = models.ForeignKey(WrittenReference, on_delete=models.CASCADE, related_name="confirmations")
    member = models.ForeignKey(WritingMember, on_delete=models.CASCADE, related_name="+", db_index=False)
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    swapped = models.BooleanField()
    submission = models.UUIDField(unique=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = CampaignRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["written", "member"], name="one_confirmation")]

    def __str__(self) -> str:
        return self.verdict
