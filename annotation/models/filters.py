"""Rater filters: named sets of raters to exclude from tables, with the reason and the person. Judgements stay."""

import hashlib
import json

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalapp.accounts.models import SLUG, Project

from .visible import ProjectRows


class RaterFilter(models.Model):
    """A named set of raters that tables can exclude. Its raters never change, so that the name in a signature keeps its
    meaning; another choice is another filter. Withdrawn filters can be restored and are never deleted."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="rater_filters", db_index=False)
    name = models.CharField(max_length=63, validators=[SLUG])
    #: Sorted rater ids as in ratings and comparisons.
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
        """Eight hexadecimal digits that identify the set of raters in signatures."""
        return make_digest(self.raters)

    def covers(self, rater: str) -> bool:
        """Whether judgements of this rater are excluded: of a named rater, or their repeats (`r7#2`) or judgements in
        another campaign (`r7@12`)."""
        from evalapp.stats.agreement.judged import is_among  # imports numpy, which most pages do not need

        return is_among(rater, self.raters)


def make_digest(raters: list[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(raters), ensure_ascii=False).encode()).hexdigest()[:8]
