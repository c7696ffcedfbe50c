"""What happened last in a project, from the audit log and the runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalapp.accounts.models import Project
from evalapp.stored_texts import translate_stored

from .models import AuditEvent, Run

LATEST = 10
#: Verb of the audit log -> what happened, and the name of the page that lists such objects.
VERBS: dict[str, tuple[Any, str]] = {
    "upload.done": (gettext_lazy("Uploaded"), "annotation:upload-list"),
    "upload.undone": (gettext_lazy("Upload undone"), "annotation:upload-list"),
    "campaign.opened": (gettext_lazy("Campaign opened"), "annotation:campaign-list"),
    "campaign.closed": (gettext_lazy("Campaign closed"), "annotation:campaign-list"),
    "writing.opened": (gettext_lazy("Writing campaign opened"), "annotation:campaign-list"),
    "writing.closed": (gettext_lazy("Writing campaign closed"), "annotation:campaign-list"),
    "snapshot.taken": (gettext_lazy("Snapshot taken"), "scoring:snapshots"),
    "report.shared": (gettext_lazy("Report shared"), "scoring:report-list"),
    "member.added": (gettext_lazy("Joined the project"), "accounts:member-list"),
}
#: Objects that the log names by a number only.
NAMELESS = frozenset({"report.shared"})
#: Runs with an entry of their own in the log, and those that pages start by themselves to compute a table.
LEFT_OUT = ("import", "undo", "rank")


@dataclass(frozen=True)
class Event:
    """An event with its object, page and, for a run, its state."""

    at: datetime
    what: Any
    name: str
    url: str
    by: str = ""
    run: Run | None = None


def list_activity(project: Project) -> list[Event]:
    """Return the newest events, in two queries."""
    events = [*_list_logged(project), *_list_runs(project)]
    return sorted(events, key=lambda event: event.at, reverse=True)[:LATEST]


def _list_logged(project: Project) -> Iterator[Event]:
    rows = AuditEvent.objects.filter(project=project, verb__in=VERBS).select_related("actor").order_by("-pk")[:LATEST]
    for row in rows:
        what, page = VERBS[row.verb]
        try:
            url = reverse(page, args=[project.slug])
        except NoReverseMatch:
            url = ""
        name = "" if row.verb in NAMELESS else row.object
        by = row.actor.username if row.actor is not None else ""
        yield Event(row.at, what, name, url, "" if by == name else by)


def _list_runs(project: Project) -> Iterator[Event]:
    rows = Run.objects.filter(project=project).exclude(kind__in=LEFT_OUT).select_related("created_by")
    for run in rows.defer("params", "result", "faults").order_by("-pk")[:LATEST]:
        url = reverse("run", args=[project.slug, run.pk])
        by = run.created_by.username if run.created_by is not None else ""
        yield Event(run.finished_at or run.created_at, _("Run"), translate_stored(run.title), url, by, run)
