"""An evaluator with its options in a project, what it gave to each output, and under which signature."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone

from annotation.models import Output
from annotation.models.visible import ProjectRows
from evalapp.accounts.models import Project
from evalapp.common.models import Run


class Evaluator(models.Model):
    """A name of the catalogue with its options, as applied in one project, what was trained or uploaded there, or
    several of these combined. The catalogue itself is code; a row comes into being when an evaluator is applied for
    the first time, when all of a trained one stands in its folder, or when its parts are combined."""

    class Kind(models.TextChoices):
        SENTINEL = "sentinel", "Sentinel"
        BASELINE = "baseline", "Baseline"
        TRAINED = "trained", "Trained"
        COMBINED = "combined", "Combined"

    class State(models.TextChoices):
        READY = "ready", "Ready"
        DAMAGED = "damaged", "Damaged"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="evaluators")
    slug = models.CharField(max_length=100)
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    #: All options with their values, defaults included, so that a later default changes nothing stored.
    options = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    #: Damaged: its folder was found missing or changed when it was last loaded; `damage` says how.
    state = models.CharField(max_length=8, choices=State.choices, default=State.READY)
    damage = models.TextField(blank=True)
    #: Of trained ones: the artefact's folder below ARTEFACTS_DIR, and what people are told about the training
    #: (`scoring.pipelines.publishing.describe` says which members). Empty for what needs no training.
    folder = models.CharField(max_length=200, blank=True)
    signature = models.CharField(max_length=500, blank=True)
    record = models.JSONField(default=dict)
    #: The run that trained it or took it in.
    run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="evaluators")

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "slug"], name="one_evaluator")]
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_trained(self) -> bool:
        return self.kind == self.Kind.TRAINED

    @property
    def is_combined(self) -> bool:
        return self.kind == self.Kind.COMBINED

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of what was combined; one that came with an upload or an export does not know them."""
        return tuple(part["evaluator"] for part in self.record.get("parts", ())) if self.is_combined else ()


#: The note of a score whose text or references have words that the encoder does not know.
UNKNOWN = "some words are unknown to the encoder"


class ScoreSet(models.Model):
    """All scores of one evaluator under one signature, against one set of references (empty: it needs none)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="score_sets")
    evaluator = models.ForeignKey(Evaluator, on_delete=models.CASCADE, related_name="score_sets")
    signature = models.CharField(max_length=500)
    short_signature = models.CharField(max_length=300)
    references = models.CharField(max_length=63, blank=True)
    #: Which aspect these scores are of, where one evaluator learned several; empty where it has one score.
    aspect = models.CharField(max_length=100, blank=True)
    #: Order-free hash of every input that was scored; part of the signature that is shown.
    data_hash = models.CharField(max_length=16, blank=True)
    run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="score_sets")
    created_at = models.DateTimeField(default=timezone.now)
    #: When the last application that came to its end began to read; null while the first is still under way.
    scored_at = models.DateTimeField(null=True)
    #: [{"system", "step", "value", "n"}] for evaluators that look at all outputs of a system at once.
    systems = models.JSONField(default=list)
    #: [{"label", "system", "step", "n", "n_undefined", "n_unknown", "mean", "p5" ... "p95"}] by system.
    summary = models.JSONField(default=list)
    n_scores = models.BigIntegerField(default=0)
    n_undefined = models.BigIntegerField(default=0)
    n_truncated = models.BigIntegerField(default=0)
    n_empty = models.BigIntegerField(default=0)
    n_duplicate = models.BigIntegerField(default=0)
    n_in_training = models.BigIntegerField(default=0)

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluator", "signature", "references", "aspect"], name="one_score_set"),
        ]
        indexes = [models.Index(fields=["project", "-id"], name="score_set_project")]

    def __str__(self) -> str:
        return self.full_signature

    @property
    def full_signature(self) -> str:
        """The evaluator's signature with what it was measured against and the hash of the data."""
        return self._with_data(self.signature)

    @property
    def n_unknown(self) -> int:
        """How many outputs have a score although the encoder does not know all of their words."""
        return sum(row.get("n_unknown", 0) for row in self.summary)

    @property
    def full_short_signature(self) -> str:
        return self._with_data(self.short_signature)

    def _with_data(self, signature: str) -> str:
        parts = [signature]
        if self.references:
            parts.append(f"refs:{self.references}")
        if self.data_hash:
            parts.append(f"data:{self.data_hash}")
        return "|".join(parts)


class ScoreRows(models.QuerySet):
    def visible_to(self, user: Any) -> ScoreRows:
        return self.filter(score_set__project__in=Project.objects.visible_to(user, "read"))


class Score(models.Model):
    """One output's score; null is undefined, and `note` then says why; the note of a defined one is empty or `UNKNOWN`.
    `input_hash` is the hash of all that the
    value depends on: when it changes, and only then, the output is scored again."""

    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="scores")
    output = models.ForeignKey(Output, on_delete=models.CASCADE, related_name="scores")
    value = models.FloatField(null=True)
    note = models.CharField(max_length=200, blank=True)
    input_hash = models.BigIntegerField()
    is_empty = models.BooleanField(default=False)
    is_truncated = models.BooleanField(default=False)
    #: The evaluator learned from this item's group, or chose its weights by it: such a score is no evidence.
    in_training = models.BooleanField(default=False, db_default=False)

    objects = ScoreRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["score_set", "output"], name="one_score")]

    def __str__(self) -> str:
        return "-" if self.value is None else f"{self.value:.4f}"
