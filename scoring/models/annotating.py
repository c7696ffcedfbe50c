"""How the references of a set were chosen: what was looked at for each item, in order."""

from __future__ import annotations

from typing import Any

from django.db import models

from annotation.models import Item, ReferenceSet
from evalapp.accounts.models import Project


class TraceRows(models.QuerySet):
    def visible_to(self, user: Any) -> TraceRows:
        return self.filter(set__project__in=Project.objects.visible_to(user, "read"))


class AnnotationTrace(models.Model):
    """One item of a set that an evaluator chose. `before` is the predicted reliability of what was there at the start
    (null: nothing was), `after` that of the whole; `steps` are `{"candidate", "before", "after", "accepted",
    "evaluator", "source"}` in the order in which candidates were looked at."""

    set = models.ForeignKey(ReferenceSet, on_delete=models.CASCADE, related_name="traces", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="annotation_traces")
    before = models.FloatField(null=True)
    after = models.FloatField(null=True)
    #: Every model of the evaluator learned from this item's group: its reliability is too good to be believed.
    in_training = models.BooleanField(default=False)
    steps = models.JSONField(default=list)

    objects = TraceRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["set", "item"], name="one_trace")]

    def __str__(self) -> str:
        return f"{self.set}, {self.item}"
