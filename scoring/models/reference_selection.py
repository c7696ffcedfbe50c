"""How an evaluator selected the references of a set: the candidates of each item, in the order of evaluation."""

from __future__ import annotations

from typing import Any

from django.db import models

from annotation.models import Item, ReferenceSet
from evalapp.accounts.models import Project

#: `meta["kind"]` of a set that an evaluator selected. Sets and exports of version 0.1 have "annotate".
SELECTED = "selected"
SELECTED_KINDS = (SELECTED, "annotate")


class TraceRows(models.QuerySet):
    def visible_to(self, user: Any) -> TraceRows:
        return self.filter(set__project__in=Project.objects.visible_to(user, "read"))


class SelectionTrace(models.Model):
    """The selection for one item of a reference set."""

    set = models.ForeignKey(ReferenceSet, on_delete=models.CASCADE, related_name="traces", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="selection_traces")
    #: Predicted reliability of the initial references (null: there were none) and of the final ones.
    before = models.FloatField(null=True)
    after = models.FloatField(null=True)
    #: Every model of the evaluator was trained on this item's group, so the reliability is too optimistic.
    in_training = models.BooleanField(default=False)
    #: [{"candidate", "before", "after", "accepted", "evaluator", "source"}]
    steps = models.JSONField(default=list)

    objects = TraceRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["set", "item"], name="one_trace")]

    def __str__(self) -> str:
        return f"{self.set}, {self.item}"
