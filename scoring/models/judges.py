"""Prompt templates of a project, and the stored answers of language models."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from annotation.models.visible import ProjectRows
from evalapp.accounts.models import Project
from evalapp.common.models import Run


class JudgeTemplate(models.Model):
    """A version of a prompt template. Versions are never changed: a new text is a new version."""

    class Kind(models.TextChoices):
        POINTWISE = "pointwise", _("Rating of a text")
        PAIRWISE = "pairwise", _("Comparison of two texts")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="judge_templates", db_index=False)
    name = models.SlugField(max_length=40)
    version = models.PositiveIntegerField()
    kind = models.CharField(max_length=9, choices=Kind.choices)
    text = models.TextField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name", "version"], name="one_judge_template")]
        ordering = ["name", "-version"]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class JudgeAnswer(models.Model):
    """The answer of a language model to a request, found by the hash of the request. `repeat` numbers
    equal requests. A request is never paid twice."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="judge_answers", db_index=False)
    endpoint = models.CharField(max_length=40)
    digest = models.CharField(max_length=64)
    repeat = models.PositiveSmallIntegerField(default=0)
    #: The model id that the server reported.
    model = models.CharField(max_length=200)
    #: See `scoring.ml.judges.Answer.as_json`.
    answer = models.JSONField()
    #: Characters of the request, from which the tokens of further requests are estimated.
    characters = models.PositiveIntegerField()
    #: Null: the server did not say.
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    cost = models.FloatField()
    seconds = models.FloatField()
    run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "digest", "repeat", "endpoint", "model"], name="one_judge_answer"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.digest[:8]}"
