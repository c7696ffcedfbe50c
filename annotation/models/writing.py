"""Reference writing campaigns: the items to write for (units), the annotators (members), an annotator's work on an item
(tasks), the candidates they are offered, every text they submit (attempts), and the resulting written references.

Database constraints enforce that an item is in a campaign once, that an annotator works on an item once and on one item
at a time, that a submission is stored once, that an accepted attempt creates one reference, and that an annotator
confirms a text once. While a written reference counts, it has a row of `Reference` in its set; `WrittenReference` keeps
its origin, also after it was withdrawn."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import Project

from .data import Item, Reference, ReferenceSet
from .shared import BaseAssignment, BaseCampaign, BaseFlag, BaseMember, CampaignRows


class WritingCampaign(BaseCampaign):
    """A campaign that collects references; see `annotation.allocation.writing_plan` for `options` and `items`. It
    starts from the references in `start_set`. All annotators add to `target_set`; it is null in rounds and if each arm
    has its own set."""

    class Kind(models.TextChoices):
        REAM = "ream", _("References with a reliability score")
        CONSTRAINT = "constraint", _("Writing under a constraint")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="writing_campaigns")
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.REAM)
    items = models.JSONField(default=dict, blank=True)
    #: Names instead of foreign keys, because both tables belong to apps downstream. Empty: none.
    evaluator = models.CharField(max_length=200, blank=True)
    corpus = models.CharField(max_length=200, blank=True)
    start_set = models.ForeignKey(ReferenceSet, null=True, on_delete=models.RESTRICT, related_name="+")
    target_set = models.ForeignKey(ReferenceSet, null=True, on_delete=models.RESTRICT, related_name="+")

    class Meta(BaseCampaign.Meta):
        constraints = [models.UniqueConstraint(fields=["project", "slug"], name="one_writing_campaign")]

    @property
    def plan(self) -> dict[str, Any]:
        """The selection of items, in the same form as `Campaign.plan`."""
        return {"items": self.items}

    @property
    def kind_label(self) -> str:
        """The kind for people: without the arm with scores, annotators see none."""
        is_unscored = self.kind == self.Kind.REAM and "scores" not in self.options.get("arms", ["scores"])
        return str(_("References without scores") if is_unscored else self.get_kind_display())

    @property
    def in_rounds(self) -> bool:
        return bool(self.options.get("mode") == "rounds")


class WritingUnit(models.Model):
    """An item to write for. `rank` is its position in the campaign's random order; `arm` is set if arms are assigned by
    item. Adding a reference locks this row."""

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


class WritingMember(BaseMember):
    """An annotator in a writing campaign. `number` counts from 0 in the order of joining; `arm` is empty if arms are
    assigned by item; `set` is the reference set that this annotator adds to: their own in rounds, otherwise shared."""

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="members", db_index=False)
    set = models.ForeignKey(ReferenceSet, on_delete=models.RESTRICT, related_name="+")
    number = models.PositiveIntegerField()
    group = models.PositiveIntegerField(default=0)
    arm = models.CharField(max_length=10, blank=True)
    accepted = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "annotator"], name="one_writing_member"),
            models.UniqueConstraint(fields=["campaign", "number"], name="one_writing_number"),
        ]

    def __str__(self) -> str:
        return f"writing member {self.pk}"


class WritingTask(BaseAssignment):
    """An annotator's work on one item. `round` counts the candidates and own texts that are finished (accepted or
    discarded); the others in a group wait until the lease expires."""

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        DONE = "done", _("Done")
        SKIPPED = "skipped", _("Skipped")

    class Why(models.TextChoices):
        FINISHED = "finished", _("Finished by the annotator")
        FULL = "full", _("The item has the wanted number of references")
        EMPTY = "empty", _("No candidates left")

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    unit = models.ForeignKey(WritingUnit, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    member = models.ForeignKey(WritingMember, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    arm = models.CharField(max_length=10)
    state = models.CharField(max_length=7, choices=State.choices, default=State.OPEN)
    why = models.CharField(max_length=8, choices=Why.choices, blank=True)
    round = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True)

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

    @property
    def item(self) -> Item:
        return self.unit.item

    @property
    def shows_scores(self) -> bool:
        return bool(self.arm == "scores" and self.campaign.evaluator)

    @property
    def shows_candidates(self) -> bool:
        """Whether the annotator chooses from a list. In rounds the page has a single candidate."""
        return bool(self.campaign.corpus) and not self.campaign.in_rounds


class WritingFlag(BaseFlag):
    """A flag on an item of a writing campaign."""

    campaign = models.ForeignKey(WritingCampaign, on_delete=models.CASCADE, related_name="flags")
    task = models.ForeignKey(WritingTask, on_delete=models.CASCADE, related_name="flags")


class WritingCandidate(models.Model):
    """A text offered as a reference to one task or, with a `number`, to all annotators in that round of the item."""

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
    """A submitted text, or a discarded candidate (`text` is empty). `text_before` is the initial text of the editor:
    the previous text for this candidate, or the candidate. The server computes both scores of the set at the time of
    the decision, also for arms that do not see them. `counted`: the attempt used up one of the edits."""

    class Decision(models.TextChoices):
        ACCEPT = "accept", _("Accepted")
        EDIT = "edit", _("Needs editing")
        DROP = "drop", _("Discarded")

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
            # The rule of the paper: a text whose score did not improve is never accepted.
            models.CheckConstraint(
                condition=~Q(decision="accept") | Q(improved=None) | Q(improved=True), name="accepted_has_improved"
            ),
        ]
        indexes = [models.Index(fields=["campaign", "id"], name="writing_attempt_campaign")]

    def __str__(self) -> str:
        return f"attempt {self.number}: {self.decision}"


class WrittenReference(models.Model):
    """The reference from an accepted attempt. `reference` is its row in the set; it is null while the text waits for
    confirmation, and after it was rejected or withdrawn."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting for confirmation")
        SHOWN = "shown", _("In the set")
        REFUSED = "refused", _("Rejected by other annotators")
        WITHDRAWN = "withdrawn", _("Withdrawn")

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
    #: The state before it was withdrawn, which restoring brings back.
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
    """Another annotator's blind comparison of a written text with the original. `swapped`: the written text was the
    second one."""

    class Verdict(models.TextChoices):
        WRITTEN = "written", _("The written text is better")
        ORIGINAL = "original", _("The original is better")
        TIE = "tie", _("Equally good")

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
