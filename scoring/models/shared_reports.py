"""Reports of a project for people who do not sign in."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from annotation.models.visible import ProjectRows
from evalapp.accounts.models import Project


class SharedReport(models.Model):
    """A report as of its creation, and the link to it. Only the digest of the link's secret is stored. `content` is
    what `boards.render.report` reads: copies of tables, counts and, if the owner chose so, rater ids and texts."""

    class State(models.TextChoices):
        OPEN = "open", pgettext_lazy("link", "Open")
        REVOKED = "revoked", _("Revoked")
        EXPIRED = "expired", _("Expired")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="shared_reports")
    label = models.CharField(max_length=100, blank=True)
    content = models.JSONField(default=dict)
    has_raters = models.BooleanField(default=False)
    has_texts = models.BooleanField(default=False)
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    opened_at = models.DateTimeField(null=True, blank=True)
    #: How often the page or the PDF was opened by the link.
    opens = models.PositiveIntegerField(default=0)

    objects = ProjectRows.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.label or f"report {self.pk}"

    @property
    def state(self) -> str:
        if self.revoked_at:
            return self.State.REVOKED.value
        return self.State.EXPIRED.value if self.expires_at <= timezone.now() else self.State.OPEN.value
