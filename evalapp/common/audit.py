"""Write the append-only audit log; services call it in the transaction of the action they record."""

from typing import Any

from .models import AuditEvent


def record(*, verb: str, project: Any = None, actor: Any = None, object: Any = "", **detail: Any) -> None:
    """Record an action. `verb` is a noun and a past participle: `campaign.opened`, `upload.undone`."""
    AuditEvent.objects.create(
        project=project,
        scope=getattr(project, "slug", ""),
        actor=actor if getattr(actor, "pk", None) else None,
        by=getattr(actor, "pk", None),
        verb=verb,
        object=str(object)[:200],
        detail=detail,
    )
