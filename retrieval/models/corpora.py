"""A corpus of (query, response) pairs: its name, parts, and the state of its indexes. The pairs are files below
CORPORA_DIR (see docs/decisions/corpora-are-files.md)."""

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from annotation.models.visible import ProjectRows
from evalapp.accounts.models import Project
from evalapp.accounts.roles import Need
from evalapp.common.models import Run


class CorpusRows(ProjectRows):
    def visible_to(self, user: Any, need: Need = "read") -> Self:
        """The corpora of the user's projects, and shared ones if they can read any project."""
        projects = Project.objects.visible_to(user, need)
        wanted = Q(project__in=projects)
        if need == "read" and projects.exists():
            wanted |= Q(project=None)
        return self.filter(wanted)


class Corpus(models.Model):
    """Pairs in one language that belong to a project, or to the whole installation (`project` is null). `home` is the
    project in which a shared corpus was created: its owners manage the corpus, and its runs belong to it."""

    class State(models.TextChoices):
        BUILDING = "building", _("Being built")
        READY = "ready", _("Ready")
        FAILED = "failed", _("Failed")

    class Tokenizer(models.TextChoices):
        WORDS = "words", _("words")
        CHARACTERS = "characters", _("characters")

    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE, related_name="corpora")
    home = models.ForeignKey(Project, null=True, on_delete=models.SET_NULL, related_name="+")
    name = models.CharField(max_length=63)
    language = models.CharField(max_length=20, default="en")
    tokenizer = models.CharField(max_length=10, choices=Tokenizer.choices, default=Tokenizer.WORDS)
    licence = models.CharField(max_length=500, blank=True)
    source = models.CharField(max_length=500, blank=True)
    #: Building: there is no index yet. Ready: also while a newer index is being built. Failed: see `error`.
    state = models.CharField(max_length=8, choices=State.choices, default=State.BUILDING)
    error = models.TextField(blank=True)
    #: The number of the last stored part.
    revision = models.PositiveIntegerField(default=0)
    #: The revisions of the embedded index and of Elasticsearch; 0: none.
    embedded_revision = models.PositiveIntegerField(default=0)
    elastic_revision = models.PositiveIntegerField(default=0)
    #: Figures of the last index: different pairs, duplicates, hash of the content, and size.
    count = models.BigIntegerField(default=0)
    duplicates = models.BigIntegerField(default=0)
    version = models.CharField(max_length=100, blank=True)
    bytes = models.BigIntegerField(default=0)
    seconds = models.FloatField(null=True)
    indexed_at = models.DateTimeField(null=True)
    run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    objects = CorpusRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], condition=Q(project__isnull=False), name="one_corpus"),
            models.UniqueConstraint(fields=["name"], condition=Q(project=None), name="one_shared_corpus"),
        ]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_shared(self) -> bool:
        return self.project_id is None

    @property
    def mark(self) -> str:
        """The state in the words for which pages have a symbol."""
        return {"building": "running", "ready": "succeeded"}.get(self.state, self.state)

    @property
    def is_waiting(self) -> bool:
        """Whether a run for it is queued or running."""
        return self.run is not None and self.run.is_active


class PartRows(models.QuerySet):
    def visible_to(self, user: Any) -> Self:
        return self.filter(corpus__in=Corpus.objects.visible_to(user))


class CorpusPart(models.Model):
    """An added file, or rows of a project. Stored parts never change; `revision` is the order in which they were
    stored, which is the order of the pairs."""

    class Kind(models.TextChoices):
        FILE = "file", _("a file")
        DIALOGUES = "dialogues", _("dialogues")
        CORPUS = "corpus", _("corpus rows")
        ITEMS = "items", _("items")

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        STORED = "stored", _("Stored")
        REFUSED = "refused", _("Refused")

    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="parts")
    kind = models.CharField(max_length=9, choices=Kind.choices)
    #: The project whose rows were added; null for a file.
    project = models.ForeignKey(Project, null=True, on_delete=models.SET_NULL, related_name="+")
    title = models.CharField(max_length=200)
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    revision = models.PositiveIntegerField(null=True)
    rows = models.BigIntegerField(default=0)
    #: The number of new rows; null if several parts were indexed together.
    added = models.BigIntegerField(null=True)
    #: The number of pairs of a project that were left out because a text is empty.
    blank = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    fault_count = models.BigIntegerField(default=0)
    #: The first faults: message, field, file and line.
    faults = models.JSONField(default=list)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    objects = PartRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["corpus", "revision"], name="one_corpus_revision")]
        ordering = ["id"]

    def __str__(self) -> str:
        return self.title

    @property
    def mark(self) -> str:
        """The state in the words for which pages have a symbol."""
        return {"waiting": "queued", "stored": "succeeded", "refused": "failed"}[self.state]


class OutboxRow(models.Model):
    """A pending change for Elasticsearch, created in the transaction that changes a corpus and deleted when the server
    has it. No foreign key, because the row of a deletion outlives its corpus."""

    class Action(models.TextChoices):
        LOAD = "load", _("Load")
        DELETE = "delete", _("Delete")

    corpus = models.BigIntegerField(db_index=True)
    action = models.CharField(max_length=6, choices=Action.choices)
    #: The alias of the corpus.
    name = models.CharField(max_length=200)
    revision = models.PositiveIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    tried_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.action} {self.name}"
