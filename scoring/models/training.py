"""The curve of a training, which the page of its run draws."""

from __future__ import annotations

from typing import Any

from django.db import models

from evalapp.accounts.models import Project
from evalapp.common.models import Run


class CurveRows(models.QuerySet):
    def visible_to(self, user: Any) -> CurveRows:
        return self.filter(run__project__in=Project.objects.visible_to(user, "read"))


class CurvePoint(models.Model):
    """The mean loss of the steps since the previous point, up to `step`; `series` is the phase (and fold)."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="curve", db_index=False)
    series = models.CharField(max_length=100)
    step = models.BigIntegerField()
    loss = models.FloatField()

    objects = CurveRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "series", "step"], name="one_curve_point")]

    def __str__(self) -> str:
        return f"{self.series}, step {self.step}: {self.loss:.4f}"
