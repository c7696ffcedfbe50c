"""Changes the kind of a system."""

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.models import System
from annotation.parsers.kinds import SYSTEM_KINDS
from evalapp.accounts.models import User
from evalapp.common import audit
from evalapp.common.errors import BadInput


@transaction.atomic
def set_system_kind(*, system: System, kind: str, user: User) -> System:
    """Set the kind of a system. It then counts as declared, so a dump contains it."""
    if kind not in SYSTEM_KINDS:
        raise BadInput.for_field("kind", _("kind must be one of: %(kinds)s.") % {"kinds": ", ".join(SYSTEM_KINDS)})
    if system.kind != kind or not system.declared:
        before, system.kind, system.declared = system.kind, kind, True
        system.save(update_fields=["kind", "declared"])
        audit.record(
            verb="system.kind_set", project=system.project, actor=user, object=system.name, before=before, kind=kind
        )
    return system
