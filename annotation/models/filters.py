"""Named exclusions of raters: who is left out of a table, why, and who said so. The judgements themselves stay."""

from __future__ import annotations

import hashlib
import json

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalapp.accounts.models import SLUG, Project

from .visible import ProjectRows


class RaterFilter(models.Model):
    """A named set of raters that tables can leave out. Its raters never change, so that the name in a signature means
    the same for good: another choice is another filter. Withdrawn ones can be taken up again and are never deleted."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="rater_filters", db_index=False)
    name = models.CharField(max_length=63, validators=[SLUG])
    #: Sorted keys as they stand in ratings and comparisons.
    raters = models.JSONField(default=list)
    reason = models.TextField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    withdrawn_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    withdrawn_at = models.DateTimeField(null=True)

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_rater_filter")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_active(self) -> bool:
        return self.withdrawn_at is None

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that stand for the set of raters in signatures."""
        return digest_of(self.raters)

    def covers(self, rater: str) -> bool:
        """Whether judgements of this rater are left out: of one named, or what one named said once more (`r7#2`) or in
        another campaign (`r7@12`)."""
        from evalapp.stats.agreement.judged import is_among  # numpy: not for every page

        return is_among(rater, self.raters)


def digest_of(raters: list[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(raters), ensure_ascii=False).encode()).hexdigest()[:8]
