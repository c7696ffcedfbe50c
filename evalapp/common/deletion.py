"""Delete a project of any size: table by table, referring rows first, many rows per statement, without loading them.
Small projects are deleted in the request, large ones in the job `delete`, invisible in the meantime.

The foreign keys of the models determine which tables belong to a project, so new models need nothing here. Apps with
files register with `hooks.PROJECT_CLEANERS`."""

from collections.abc import Iterator
from graphlib import TopologicalSorter
from typing import Any

from django.apps import apps
from django.db import connection, models, transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalapp.accounts.models import ApiToken, Invitation, Membership, Project

from . import audit
from .hooks import PROJECT_CLEANERS
from .models import AuditEvent, Run, RunLog
from .queue import enqueue_run
from .runner import RunContext

#: A project with at most this many rows in every table is deleted in the request (about a second).
SMALL = 5_000
#: Rows per statement and transaction. A cancelled or lost run continues where it stopped.
CHUNK = 10_000


def delete_with_contents(*, project: Project, actor: Any) -> Run | None:
    """Delete a project. It disappears at once and its short name is free. Returns the run that removes the rest of a
    large project, or None."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        audit.record(verb="project.deleted", project=project, actor=actor, object=project.slug, name=project.name)
        _keep_audit(project, project.slug)
        for model in (Membership, Invitation, ApiToken):
            select_rows(model, project)._raw_delete("default")
        Run.objects.filter(project=project, state=Run.State.QUEUED).update(
            state=Run.State.CANCELLED, cancel_requested=True, finished_at=timezone.now()
        )
        Run.objects.filter(project=project, state=Run.State.RUNNING).update(cancel_requested=True)
        Project.objects.filter(pk=project.pk).update(slug=f"deleted-{project.pk}", deleting_at=timezone.now())
        if _is_small(project):
            PROJECT_CLEANERS.call(project=project)
            _end(project)
            return None
        title = f"Delete {project.name}"
        return enqueue_run(kind="delete", project=project, user=actor, params={"slug": project.slug}, title=title)


def run(context: RunContext, slug: str) -> dict[str, Any]:
    """The job `delete`. It removes its own row as well, because the row belongs to the project."""
    project = context.project
    PROJECT_CLEANERS.call(project=project)
    tables = [model for model in list_owned_models() if model not in (Run, RunLog, AuditEvent)]
    counts = {model: select_rows(model, project).count() for model in tables}
    total, done = sum(counts.values()), 0
    for model in tables:
        phase = f"Deleting {model._meta.verbose_name_plural}"
        for count in _chunks(select_rows(model, project)):
            done += count
            context.progress(done, total, "rows", phase)
    with transaction.atomic():
        _keep_audit(project, slug)
        _end(project)
    return {"rows": done}


def _chunks(rows: QuerySet) -> Iterator[int]:
    """Delete by ranges of the primary key; yield the number of rows of each."""
    last: Any = None
    while True:
        following = rows.order_by("pk") if last is None else rows.filter(pk__gt=last).order_by("pk")
        end = following.values_list("pk", flat=True)[CHUNK - 1 : CHUNK].first()
        part = following if end is None else following.filter(pk__lte=end)
        yield int(part.order_by()._raw_delete("default"))
        if end is None:
            return
        last = end


def _end(project: Project) -> None:
    """Delete what remains and the project itself, in the caller's transaction."""
    for model in list_owned_models():
        if model is not AuditEvent:
            select_rows(model, project).order_by()._raw_delete("default")
    Project.objects.filter(pk=project.pk)._raw_delete("default")


def _is_small(project: Project) -> bool:
    """Return whether all tables are small. Tables that refer to the project directly are checked first: if one of them
    is large, the others need not be searched."""
    paths = _paths()
    for model in sorted(paths, key=lambda model: paths[model].count("__")):
        if select_rows(model, project).order_by().values_list("pk", flat=True)[SMALL : SMALL + 1]:
            return False
    return True


def _keep_audit(project: Project, slug: str) -> None:
    """Detach the audit log from the project; each entry keeps the short name. Entries from the time of the deletion,
    under the project's interim name, get the short name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE common_auditevent SET scope = %s WHERE project_id = %s AND position IS NULL", [slug, project.pk]
        )
        cursor.execute("UPDATE common_auditevent SET project_id = NULL WHERE project_id = %s", [project.pk])


# ---- which tables -----------------------------------------------------------------------------------------


def _paths() -> dict[type[models.Model], str]:
    """Return each model's path to its project through cascading foreign keys. Paths without nullable keys are
    preferred, then short ones, then the order of the fields."""
    paths: dict[type[models.Model], tuple[int, int, str]] = {Project: (0, 0, "")}
    managed = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
    changed = True
    while changed:
        changed = False
        for model in managed:
            for field in model._meta.concrete_fields:
                target = field.related_model if field.is_relation else None
                if model is Project or target not in paths or field.remote_field.on_delete is not models.CASCADE:
                    continue
                optional, length, path = paths[target]
                candidate = (optional + field.null, length + 1, f"{field.name}__{path}" if path else field.name)
                if model not in paths or candidate[:2] < paths[model][:2]:
                    paths[model], changed = candidate, True
    return {model: path for model, (_, _, path) in paths.items() if model is not Project}


def list_owned_models() -> list[type[models.Model]]:
    """Return all models whose rows belong to a project, referring models first."""
    paths = _paths()
    graph: dict[type[models.Model], set[type[models.Model]]] = {model: set() for model in paths}
    for model in paths:
        for field in model._meta.concrete_fields:
            target = field.related_model if field.is_relation else None
            if target in graph and target is not model:
                graph[target].add(model)
    return list(TopologicalSorter(graph).static_order())


def select_rows(model: type[models.Model], project: Project) -> Any:
    """Return the rows of a model that belong to the project."""
    return model._default_manager.filter(**{_paths()[model]: project.pk})
