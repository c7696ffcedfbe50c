"""Evaluators with their options in a project, and their scores by signature."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from annotation.models import Output
from annotation.models.visible import ProjectRows
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from scoring.boards.choices import ASSISTANT


class Evaluator(models.Model):
    """An evaluator of a project: one of the catalogue with its options, a trained or uploaded one, a combination, a
    judge, or one of another program whose scores were uploaded.

    The catalogue is code. A row is created at the first application, or when the training, upload or combination ends.
    """

    class Kind(models.TextChoices):
        SENTINEL = "sentinel", _("Sentinel")
        BASELINE = "baseline", _("Baseline")
        TRAINED = "trained", _("Trained")
        COMBINED = "combined", _("Combined")
        EXTERNAL = "external", _("External")
        JUDGE = "judge", pgettext_lazy("evaluator", "Judge")

    class State(models.TextChoices):
        READY = "ready", _("Ready")
        DAMAGED = "damaged", _("Damaged")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="evaluators")
    slug = models.CharField(max_length=100)
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    #: All options including defaults, so that a changed default does not affect stored evaluators.
    options = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    #: Damaged: the folder was missing or changed when it was last loaded; `damage` has the reason.
    state = models.CharField(max_length=8, choices=State.choices, default=State.READY)
    damage = models.TextField(blank=True)
    #: For trained evaluators: the folder below ARTEFACTS_DIR, the signature, and the record of the training (see
    #: `scoring.pipelines.publishing.describe`).
    folder = models.CharField(max_length=200, blank=True)
    signature = models.CharField(max_length=500, blank=True)
    record = models.JSONField(default=dict)
    #: The run that trained it or checked its upload.
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
    def is_external(self) -> bool:
        """Whether its scores were made elsewhere and uploaded, so that they cannot be computed here."""
        return self.kind == self.Kind.EXTERNAL

    @property
    def is_judge(self) -> bool:
        """Whether a language model at an endpoint or in a folder made its scores (see `scoring.services.judges`)."""
        return self.kind == self.Kind.JUDGE

    @property
    def is_assistant(self) -> bool:
        """Whether it is the default assistant, which is fitted while people judge and has scores but no artefact."""
        return self.kind == self.Kind.BASELINE and self.slug == ASSISTANT

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the combined evaluators; unknown for a combination that was imported."""
        return tuple(part["evaluator"] for part in self.record.get("parts", ())) if self.is_combined else ()


#: The note of a score whose text or references contain words unknown to the encoder.
UNKNOWN = "some words are unknown to the encoder"


class ScoreSet(models.Model):
    """All scores of an evaluator with one signature and one reference set (empty: it needs none)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="score_sets")
    evaluator = models.ForeignKey(Evaluator, on_delete=models.CASCADE, related_name="score_sets")
    signature = models.CharField(max_length=500)
    short_signature = models.CharField(max_length=300)
    references = models.CharField(max_length=63, blank=True)
    #: The aspect of the scores, if the evaluator has several.
    aspect = models.CharField(max_length=100, blank=True)
    #: Hash of all scored inputs, independent of their order; part of the full signature.
    data_hash = models.CharField(max_length=16, blank=True)
    run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="score_sets")
    created_at = models.DateTimeField(default=timezone.now)
    #: Start of the last completed application; null during the first.
    scored_at = models.DateTimeField(null=True)
    #: [{"system", "step", "value", "n"}] for evaluators with a corpus score.
    systems = models.JSONField(default=list)
    #: [{"label", "system", "step", "n", "n_undefined", "n_unknown", "mean", "p5" ... "p95"}]
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
        """The signature with the reference set and the hash of the data."""
        return self._with_data(self.signature)

    @property
    def n_unknown(self) -> int:
        """Number of outputs with words unknown to the encoder."""
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
    """The score of an output. An undefined score is null and has the reason in `note`.

    `input_hash` covers everything that the value depends on: the output is scored again when it changes.
    """

    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="scores")
    output = models.ForeignKey(Output, on_delete=models.CASCADE, related_name="scores")
    value = models.FloatField(null=True)
    note = models.CharField(max_length=200, blank=True)
    input_hash = models.BigIntegerField()
    is_empty = models.BooleanField(default=False)
    is_truncated = models.BooleanField(default=False)
    #: The evaluator was trained or validated on the item's group, so the score is no evidence.
    in_training = models.BooleanField(default=False, db_default=False)

    objects = ScoreRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["score_set", "output"], name="one_score")]

    def __str__(self) -> str:
        return "-" if self.value is None else f"{self.value:.4f}"
