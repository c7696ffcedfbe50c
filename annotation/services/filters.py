"""Creates, withdraws and restores rater filters, which exclude raters from tables. Neither judgements nor filters are
deleted."""

import re
from collections.abc import Iterable

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import RaterFilter
from annotation.selectors.filters import list_rater_keys
from evalapp.accounts.models import Project, User
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
REASON_LENGTH = 2_000


def create_filter(*, project: Project, user: User, name: str, raters: Iterable[str], reason: str) -> RaterFilter:
    """Create a filter with a reason; all its raters must have judged in the project."""
    chosen = sorted(set(raters))
    faults = _faults(project, name, chosen, reason)
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    try:
        with transaction.atomic():
            row = RaterFilter.objects.create(
                project=project,
                name=name,
                raters=chosen,
                reason=reason.strip(),
                created_by=user if getattr(user, "pk", None) else None,
            )
            audit.record(
                verb="filter.created", project=project, actor=user, object=name, raters=chosen, reason=row.reason
            )
    except IntegrityError as error:
        message = _(
            "There is already a filter “%(name)s” in this project. The raters of a filter never change, because "
            "signatures refer to it by name. Choose another name."
        )
        raise Conflict(message % {"name": name}) from error
    return row


def _faults(project: Project, name: str, raters: list[str], reason: str) -> list[Fault]:
    faults = []
    if not _NAME.fullmatch(name):
        faults.append(Fault(_("Use a-z, 0-9 and hyphens, at most 63 characters."), field="name"))
    if not reason.strip():
        faults.append(
            Fault(_("Give the reason for excluding these raters; it is shown with every table."), field="reason")
        )
    elif len(reason) > REASON_LENGTH:
        faults.append(Fault(_("Use at most %(n)d characters.") % {"n": REASON_LENGTH}, field="reason"))
    elif not is_storable(reason):
        faults.append(Fault(UNSTORABLE, field="reason"))
    if not raters:
        faults.append(Fault(_("Choose at least one rater."), field="raters"))
    elif unknown := sorted(set(raters) - set(list_rater_keys(project))):
        faults.append(
            Fault(
                _("There are no judgements by %(names)s in this project.") % {"names": ", ".join(unknown[:5])},
                field="raters",
            )
        )
    return faults


def withdraw_filter(*, row: RaterFilter, user: User) -> RaterFilter:
    """Withdraw a filter; new tables can no longer use it."""
    return _set(row, user, withdrawn=True)


def restore_filter(*, row: RaterFilter, user: User) -> RaterFilter:
    return _set(row, user, withdrawn=False)


@transaction.atomic
def _set(row: RaterFilter, user: User, *, withdrawn: bool) -> RaterFilter:
    row = RaterFilter.objects.select_for_update().get(pk=row.pk)
    if row.is_active is not withdrawn:
        return row
    row.withdrawn_at = timezone.now() if withdrawn else None
    row.withdrawn_by = user if withdrawn and getattr(user, "pk", None) else None
    row.save(update_fields=["withdrawn_at", "withdrawn_by"])
    verb = "filter.withdrawn" if withdrawn else "filter.restored"
    audit.record(verb=verb, project=row.project, actor=user, object=row.name)
    return row
