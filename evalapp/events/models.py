"""Events of a project, its webhooks, and the deliveries of events to webhooks.

The row of a delivery is its only state, as for runs: it is written in the transaction of the event, and the queue
carries only its id."""

import uuid
from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import Project, User
from evalapp.common.event_kinds import label_event


class ProjectRows(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        return self.filter(project__in=Project.objects.visible_to(user, "manage"))


class Event(models.Model):
    """Something that happened in a project. `kind` is one of `event_kinds`; `path` is the page that shows it; `key`
    makes events that are found by looking unique. `public` is its id for receivers, the same in each delivery."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="events")
    public = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=30)
    key = models.CharField(max_length=80, blank=True)
    path = models.CharField(max_length=200, blank=True)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "kind", "key"], condition=~Q(key=""), name="one_event_per_key")
        ]
        indexes = [models.Index(fields=["created_at"], name="event_created")]

    def __str__(self) -> str:
        return f"event {self.pk}: {self.kind}"

    @property
    def label(self) -> str:
        return label_event(self.kind)


class Webhook(models.Model):
    """An address that gets the events of a project that are named in `events`. Its secret is derived from `salt` and
    SECRET_KEY, so the database does not contain it; `digest` is the SHA-256 of the secret, which reveals another
    SECRET_KEY."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=100)
    url = models.CharField(max_length=500)
    events = models.JSONField(default=list)
    active = models.BooleanField(default=True)
    salt = models.CharField(max_length=32)
    digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_webhook")]

    def __str__(self) -> str:
        return self.name


class DeliveryRows(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        return self.filter(webhook__project__in=Project.objects.visible_to(user, "manage"))


class Delivery(models.Model):
    """An event on its way to a webhook. `status` and `problem` are those of the last attempt; answers of receivers are
    not stored."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        DELIVERED = "delivered", _("Delivered")
        FAILED = "failed", _("Not delivered")

    class Problem(models.TextChoices):
        HOST = "host", _("The host is not in WEBHOOK_HOSTS.")
        INTERNAL = "internal", _("The host resolves to an internal address that is not in WEBHOOK_HOSTS.")
        PLAIN = "plain", _("The address has no TLS. Use https.")
        NAME = "name", _("The name of the host cannot be resolved.")
        CONNECTION = "connection", _("The connection failed.")
        CERTIFICATE = "certificate", _("The certificate of the host is not valid.")
        SLOW = "slow", _("The receiver took too long.")
        ANSWER = "answer", _("The answer is not HTTP.")
        REDIRECT = "redirect", _("The receiver redirects. Redirects are not followed.")
        STATUS = "status", _("The receiver refused the event.")
        SECRET = "secret", _("SECRET_KEY was changed. Renew the secret.")
        OFF = "off", _("The webhook was switched off.")

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="deliveries")
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True)
    problem = models.CharField(max_length=11, choices=Problem.choices, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    #: Time of the next attempt.
    due_at = models.DateTimeField(default=timezone.now)
    queued_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = DeliveryRows.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["webhook", "-id"], name="delivery_webhook"),
            models.Index(fields=["due_at"], condition=Q(state="waiting"), name="delivery_due"),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"
