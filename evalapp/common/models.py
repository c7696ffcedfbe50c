"""Background runs with their logs, idempotency keys, heartbeats of workers, mails, and the append-only audit log. The
row of a run or mail is its only state; the queue carries only its id."""

from datetime import timedelta
from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import Project, User

#: A run is sent to the queue after its transaction, which takes a moment.
UNSENT_AFTER = timedelta(seconds=3)


class RunQuerySet(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        return self.filter(project__in=Project.objects.visible_to(user, "read"))


class Run(models.Model):
    """One background job."""

    class State(models.TextChoices):
        QUEUED = "queued", _("Waiting")
        RUNNING = "running", _("Running")
        SUCCEEDED = "succeeded", _("Done")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    class Cause(models.TextChoices):
        """Why a run failed: what was asked or uploaded, the machine (memory, disk, lost workers), or an error of
        evalapp. Empty for runs of earlier versions."""

        INPUT = "input", _("Stopped")
        MACHINE = "machine", _("Failed")
        UNEXPECTED = "unexpected", _("Failed")

    ACTIVE = (State.QUEUED, State.RUNNING)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="runs")
    kind = models.CharField(max_length=20)
    title = models.CharField(max_length=200)
    queue = models.CharField(max_length=10, default="cpu")
    params = models.JSONField(default=dict)
    input_hash = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    attempt = models.PositiveSmallIntegerField(default=0)
    #: Random number of the current claim, known to the worker that has it. Unlike `attempt` it is never reused.
    claim = models.BigIntegerField(default=0, db_default=0, editable=False)
    worker = models.CharField(max_length=100, blank=True)
    heartbeat = models.DateTimeField(null=True)
    cancel_requested = models.BooleanField(default=False)
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(null=True)
    unit = models.CharField(max_length=30, blank=True)
    phase = models.CharField(max_length=100, blank=True)
    rate = models.FloatField(null=True)
    result = models.JSONField(null=True)
    error = models.TextField(blank=True)
    cause = models.CharField(max_length=10, choices=Cause.choices, blank=True, default="", db_default="")
    faults = models.JSONField(default=list)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            # An identical request gets the run that is waiting or running.
            models.UniqueConstraint(
                fields=["input_hash"],
                condition=models.Q(state__in=["queued", "running"]),
                name="one_active_run_per_input",
            )
        ]
        indexes = [
            models.Index(fields=["project", "-id"], name="run_project"),
            models.Index(fields=["state", "queue", "id"], name="run_state"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}: {self.title}"

    @property
    def is_active(self) -> bool:
        return self.state in self.ACTIVE

    @property
    def state_label(self) -> str:
        """The state for people: a run that its data or request stopped did not fail."""
        is_stopped = self.state == self.State.FAILED and self.cause == self.Cause.INPUT
        return str(self.get_cause_display() if is_stopped else self.get_state_display())

    @property
    def process(self) -> str:
        """Machine and process id of the worker."""
        return ":".join(self.worker.split(":")[:2])

    @property
    def is_unsent(self) -> bool:
        """Whether the run waits and could not be sent to the queue."""
        is_old = timezone.now() - self.created_at > UNSENT_AFTER
        return self.state == self.State.QUEUED and self.sent_at is None and is_old

    @property
    def share(self) -> float | None:
        """Progress in [0, 1]; None if the total is unknown."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def seconds_left(self) -> float | None:
        if self.state != self.State.RUNNING or not self.total or not self.rate:
            return None
        return max(0.0, (self.total - self.done) / self.rate)


class RunLog(models.Model):
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="log")
    at = models.DateTimeField(default=timezone.now)
    text = models.TextField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.text


class IdempotencyKeyQuerySet(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        return self.filter(user=user.pk)


class IdempotencyKey(models.Model):
    """A request with an idempotency key and its response; see `idempotency`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    #: Id of the token, 0 for a browser session. Not a foreign key, because the token may be deleted first.
    token = models.BigIntegerField(default=0)
    key = models.CharField(max_length=255)
    #: Method and address. The hash of the body is stored with the response, after the body has been read.
    request = models.TextField()
    body = models.CharField(max_length=64, blank=True)
    worker = models.CharField(max_length=100)
    begun_at = models.DateTimeField()
    #: None while the request is in progress.
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.TextField(blank=True)
    location = models.TextField(blank=True)

    objects = IdempotencyKeyQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "token", "key"], name="one_request_per_key")]
        indexes = [models.Index(fields=["begun_at"], name="idempotency_begun")]

    def __str__(self) -> str:
        return f"{self.key}: {self.request}"


class WorkerBeat(models.Model):
    """A worker that was alive at `at`, as it writes every few seconds."""

    name = models.CharField(max_length=100, unique=True)
    queues = models.JSONField(default=list)
    pid = models.IntegerField()
    host = models.CharField(max_length=100)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class MailQuerySet(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        return self.filter(project__in=Project.objects.visible_to(user, "manage"))


class Mail(models.Model):
    """A mail for a worker to send; see `mails`. `about` is its subject matter, such as “invitation:12”. The body is
    removed when it was sent or given up, because it may contain a secret link."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        SENT = "sent", _("Sent")
        FAILED = "failed", _("Not delivered")
        CANCELLED = "cancelled", _("Cancelled")

    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE, related_name="+")
    about = models.CharField(max_length=60, blank=True)
    to = models.EmailField()
    subject = models.CharField(max_length=200)
    body = models.TextField(blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    #: Kind and code of the last error, without its message, which may contain the address.
    error = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    #: Time of the next attempt.
    due_at = models.DateTimeField(default=timezone.now)
    queued_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = MailQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["state", "due_at"], name="mail_due"),
            models.Index(fields=["about", "-id"], name="mail_about"),
        ]

    def __str__(self) -> str:
        return f"mail {self.pk}: {self.about}"


class AuditQuerySet(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        return self.filter(project__in=Project.objects.visible_to(user, "write"))

    def update(self, **values: Any) -> int:
        raise TypeError(APPEND_ONLY)

    def delete(self) -> tuple[int, dict[str, int]]:
        raise TypeError(APPEND_ONLY)


APPEND_ONLY = "The audit log is append-only. evalapp.common.audit_chain erases users."


class AuditEvent(models.Model):
    """An action of a user. Rows are only added. `audit_chain` seals them in the order of `position` with a salted hash
    over the row (`content`) and one over all rows before it (`link`). `scope` and `by` keep the short name of the
    project and the id of the user after these are deleted."""

    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE, related_name="audit")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    verb = models.CharField(max_length=60)
    object = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)
    scope = models.CharField(max_length=63, blank=True)
    by = models.BigIntegerField(null=True)
    position = models.BigIntegerField(null=True, unique=True)
    salt = models.CharField(max_length=32, blank=True)
    content = models.CharField(max_length=64, blank=True)
    link = models.CharField(max_length=64, blank=True)
    #: Time at which personal data were erased; `content` is the hash of the original row.
    erased_at = models.DateTimeField(null=True)

    objects = AuditQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="audit_project")]

    def __str__(self) -> str:
        return f"{self.verb} {self.object}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError(APPEND_ONLY)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError(APPEND_ONLY)


class AuditHead(models.Model):
    """The last seal, in a single row. Its lock serialises sealing, and it reveals missing entries at the end."""

    position = models.BigIntegerField(default=0)
    link = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.position} {self.link[:12]}"
