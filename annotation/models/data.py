"""Data of a project: systems, items, references in named sets, outputs, ratings, comparisons, dialogues and corpus
pairs, as in the interchange format. Campaigns store judgements as ratings and comparisons as well, so that every
analysis reads a single place.

`upload` is the upload that created a row, null for rows created in the product."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from evalapp.accounts.models import Project

from .ordered import NaturalOrder
from .uploads import Upload
from .visible import ProjectRows

ORIGINAL = "original"
#: In the meta of an aspect that no dataset.json declared: its range is inferred from uploaded ratings and grows with
#: them until a campaign states it.
OBSERVED = "observed"
#: In the description of such an aspect in an export: a campaign states the range. So an import keeps the range.
STATED = "stated"


def make_upload_column() -> models.ForeignKey:
    """The upload that created a row. Only undo reads it, so it has neither an index nor a database constraint, which
    would slow down imports."""
    return models.ForeignKey(
        Upload, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False, db_constraint=False
    )


class System(models.Model):
    class Kind(models.TextChoices):
        MACHINE = "machine", _("Machine")
        HUMAN = "human", _("Human")
        REFERENCE = "reference", _("Reference")
        CONTROL = "control", pgettext_lazy("system", "Control")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="systems")
    name = models.CharField(max_length=200)
    order_key = NaturalOrder(source="name", editable=False)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.MACHINE)
    meta = models.JSONField(default=dict)
    #: Whether systems.jsonl declared it (then a dump does as well), or an output created it.
    declared = models.BooleanField(default=False)
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="one_system"),
            models.UniqueConstraint(fields=["project", "order_key"], name="one_system_in_order"),
        ]

    def __str__(self) -> str:
        return self.name


class Aspect(models.Model):
    """A quality that is judged. `low` and `high` are null if it is used in comparisons only."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="aspects")
    name = models.CharField(max_length=100)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    position = models.PositiveIntegerField(default=0)
    meta = models.JSONField(default=dict)
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_aspect")]
        ordering = ["position", "id"]

    def __str__(self) -> str:
        return self.name


class Item(models.Model):
    """A context. `key` is its id in the interchange format; `context` is a list of turns, oldest first. Lists of items
    are in the order of `order_key`."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="items")
    key = models.CharField(max_length=200)
    order_key = NaturalOrder(source="key", editable=False)
    context = models.JSONField(default=list)
    source = models.TextField(null=True)
    group = models.CharField(max_length=200)
    meta = models.JSONField(default=dict)
    #: Whether an output was rated or compared. Maintained by database triggers (`annotation.triggers`).
    judged = models.BooleanField(default=False, db_default=False, editable=False)
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="one_item"),
            models.UniqueConstraint(fields=["project", "order_key"], name="one_item_in_order"),
        ]
        indexes = [
            models.Index(fields=["project", "order_key"], condition=Q(judged=True), name="item_judged"),
            models.Index(fields=["project", "order_key"], condition=Q(judged=False), name="item_unjudged"),
        ]

    def __str__(self) -> str:
        return self.key


class ReferenceSet(models.Model):
    """A named set of references. Every project has `original`, which only uploads change."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="reference_sets")
    name = models.CharField(max_length=63, default=ORIGINAL)
    meta = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_reference_set")]

    def __str__(self) -> str:
        return self.name


class ReferenceRows(models.QuerySet):
    def visible_to(self, user: object) -> Self:
        return self.filter(item__project__in=Project.objects.visible_to(user, "read"))  # type: ignore[arg-type]


class Reference(models.Model):
    set = models.ForeignKey(ReferenceSet, on_delete=models.CASCADE, related_name="references")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="references", db_index=False)
    position = models.PositiveIntegerField()
    text = models.TextField()
    meta = models.JSONField(default=dict)
    #: For references in named sets; those of `original` are deleted with their items.
    upload = make_upload_column()

    objects = ReferenceRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["item", "set", "position"], name="one_reference")]

    def __str__(self) -> str:
        return self.text[:60]


class Output(models.Model):
    """A system's text for an item; `step` is the training step of the checkpoint that generated it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="outputs")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="outputs")
    system = models.ForeignKey(System, on_delete=models.CASCADE, related_name="outputs")
    step = models.BigIntegerField(null=True)
    text = models.TextField()
    meta = models.JSONField(default=dict)
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [
            # Two constraints, because NULLs are distinct in a plain one.
            models.UniqueConstraint(fields=["item", "system"], condition=Q(step=None), name="one_output"),
            models.UniqueConstraint(
                fields=["item", "system", "step"], condition=Q(step__isnull=False), name="one_output_a_step"
            ),
        ]

    def __str__(self) -> str:
        return self.text[:60]


class Dialogue(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="dialogues")
    key = models.CharField(max_length=200)
    order_key = NaturalOrder(source="key", editable=False)
    turns = models.JSONField()
    speakers = models.JSONField(null=True)
    system = models.ForeignKey(System, null=True, on_delete=models.CASCADE, related_name="dialogues")
    meta = models.JSONField(default=dict)
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="one_dialogue"),
            models.UniqueConstraint(fields=["project", "order_key"], name="one_dialogue_in_order"),
        ]

    def __str__(self) -> str:
        return self.key


class Rating(models.Model):
    """A rater's value for an aspect of an output or of a whole dialogue. `judgement` is the id of the campaign
    judgement that it comes from."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="ratings")
    output = models.ForeignKey(Output, null=True, on_delete=models.CASCADE, related_name="ratings")
    dialogue = models.ForeignKey(Dialogue, null=True, on_delete=models.CASCADE, related_name="ratings")
    aspect = models.ForeignKey(Aspect, on_delete=models.CASCADE, related_name="ratings")
    rater = models.CharField(max_length=100)
    value = models.FloatField()
    simulated = models.BooleanField(default=False)
    meta = models.JSONField(default=dict)
    judgement = models.BigIntegerField(null=True)
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="rating_project")]
        constraints = [
            models.UniqueConstraint(
                fields=["output", "aspect", "rater"], condition=Q(output__isnull=False), name="one_rating"
            ),
            models.UniqueConstraint(
                fields=["dialogue", "aspect", "rater"],
                condition=Q(dialogue__isnull=False),
                name="one_dialogue_rating",
            ),
            models.CheckConstraint(
                condition=Q(output__isnull=False, dialogue=None) | Q(output=None, dialogue__isnull=False),
                name="rating_of_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rater}: {self.value}"


class Comparison(models.Model):
    """A rater's verdict on two outputs of an item, or on an output (a) and a reference (b, Turing M1); then `output_b`
    is null and `reference` is the position in the item's original references."""

    class Verdict(models.TextChoices):
        A = "a", _("The first is better")
        B = "b", _("The second is better")
        TIE = "tie", _("Equal")
        BOTH_BAD = "both_bad", _("Both bad")
        CANNOT_DECIDE = "cannot_decide", _("Cannot decide")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="comparisons")
    output_a = models.ForeignKey(Output, on_delete=models.CASCADE, related_name="comparisons_a")
    output_b = models.ForeignKey(Output, null=True, on_delete=models.CASCADE, related_name="comparisons_b")
    reference = models.PositiveIntegerField(null=True)
    aspect = models.ForeignKey(Aspect, on_delete=models.CASCADE, related_name="comparisons")
    rater = models.CharField(max_length=100)
    verdict = models.CharField(max_length=13, choices=Verdict.choices)
    simulated = models.BooleanField(default=False)
    meta = models.JSONField(default=dict)
    judgement = models.BigIntegerField(null=True)
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="comparison_project")]
        constraints = [
            models.UniqueConstraint(
                fields=["output_a", "output_b", "aspect", "rater"],
                condition=Q(output_b__isnull=False),
                name="one_comparison",
            ),
            models.UniqueConstraint(
                fields=["output_a", "reference", "aspect", "rater"],
                condition=Q(reference__isnull=False),
                name="one_turing_comparison",
            ),
            models.CheckConstraint(
                condition=Q(output_b__isnull=False, reference=None) | Q(output_b=None, reference__isnull=False),
                name="comparison_with_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rater}: {self.verdict}"


class CorpusPair(models.Model):
    """A row of corpus.jsonl, in the order of the file, which retrieval uses to break ties."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="corpus_pairs")
    position = models.BigIntegerField()
    query = models.TextField()
    response = models.TextField()
    meta = models.JSONField(default=dict)
    upload = make_upload_column()

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "position"], name="one_corpus_row")]

    def __str__(self) -> str:
        return self.query[:60]
