"""Projects: made, described, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from evalapp.accounts.models import SLUG, Membership, Project, User
from evalapp.accounts.roles import Role
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.naming import find_name_faults
from evalapp.names import explain_line

from .members import add_member

if TYPE_CHECKING:
    from evalapp.common.models import Run

#: Words that are pages themselves under /projects/.
RESERVED = frozenset({"new"})
DESCRIPTION = ("name", "task", "lang", "licence", "source", "notes")
#: Of these, names of one line.
NAMES = ("name", "task", "lang")
#: Of these, other texts of one line.
LINES = ("licence",)


def may_create_projects(user: Any) -> bool:
    """Whoever runs a project already, and superusers. People invited only to judge or look may not."""
    if not user.is_authenticated:
        return False
    running = Membership.objects.filter(user=user, role__in=[Role.OWNER, Role.RESEARCHER])
    return bool(user.is_superuser or running.exists())


def check_slug(slug: str) -> None:
    try:
        SLUG(slug)
    except ValidationError as error:
        raise BadInput(str(error.message), faults=[Fault(str(error.message), field="slug")]) from error
    if slug in RESERVED:
        text = _("“%(slug)s” is reserved. Choose another short name.") % {"slug": slug}
        raise BadInput(text, faults=[Fault(text, field="slug")])


def _check_lines(description: dict[str, Any]) -> None:
    """Names and texts of one line hold no line breaks and nothing hidden, as in dataset.json."""
    faults = find_name_faults(**{field: str(description[field]) for field in NAMES if field in description})
    for field in LINES:
        if why := explain_line(str(description.get(field, ""))):
            faults.append(Fault(why, field=field))
    if faults:
        raise BadInput(" ".join(dict.fromkeys(fault.message for fault in faults)), faults=faults)


@transaction.atomic
def create_project(*, slug: str, name: str = "", owner: User | None, **description: Any) -> Project:
    """A new project whose first member is `owner`. `description` takes task, lang, licence, source, notes, meta."""
    check_slug(slug)
    _check_lines({"name": name, **description})
    try:
        with transaction.atomic():
            project = Project.objects.create(slug=slug, name=name or slug, created_by=owner, **description)
    except IntegrityError as error:
        text = _("The short name “%(slug)s” is taken. Choose another.") % {"slug": slug}
        raise Conflict(text, faults=[Fault(text, field="slug")]) from error
    audit.record(verb="project.created", project=project, actor=owner, object=project.slug)
    if owner is not None:
        add_member(project=project, user=owner, role=Role.OWNER, actor=owner)
    return project


@transaction.atomic
def update_project(*, project: Project, actor: User, **changes: str) -> Project:
    """Change the description; unknown fields are refused, equal values are not recorded."""
    unknown = set(changes) - set(DESCRIPTION)
    if unknown:
        raise BadInput(_("A project has no field %(names)s.") % {"names": ", ".join(sorted(unknown))})
    changed = [name for name, value in changes.items() if getattr(project, name) != value]
    _check_lines({field: changes[field] for field in changed})
    if changed:
        for name in changed:
            setattr(project, name, changes[name])
        project.save(update_fields=changed)
        audit.record(verb="project.changed", project=project, actor=actor, object=project.slug, fields=changed)
    return project


def delete_project(*, project: Project, actor: User, confirmation: str) -> Run | None:
    """Delete a project and all it holds. `confirmation` is its short name, typed by the person. It is gone from every
    list at once; what a large one holds is removed by the run that this gives."""
    if confirmation != project.slug:
        text = _("Type “%(slug)s” to delete the project.") % {"slug": project.slug}
        raise BadInput(text, faults=[Fault(text, field="confirmation")])
    from evalapp.common.deletion import delete_with_contents

    return delete_with_contents(project=project, actor=actor)
