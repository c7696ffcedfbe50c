"""Create, change and delete projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from evalapp.accounts.models import SLUG, Membership, Project, User
from evalapp.accounts.roles import Role
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault, NotAllowed
from evalapp.common.naming import find_name_faults
from evalapp.names import explain_language, explain_line

from .members import add_member

if TYPE_CHECKING:
    from evalapp.common.models import Run

#: Short names that would clash with pages below /projects/.
RESERVED = frozenset({"new"})
#: What may be changed of a project; the switch has an entry of its own in the audit log.
SWITCH = "texts_may_leave"
DESCRIPTION = (SWITCH, "name", "task", "lang", "licence", "source", "notes")
#: Fields that are names, and the checks of other fields of a single line.
NAMES, LINE_CHECKS = ("name", "task"), {"licence": explain_line, "lang": explain_language}


def may_create_projects(user: Any) -> bool:
    """Return whether a user may create projects: superusers, researchers of the institution, and owners and researchers
    of a project."""
    if not user.is_authenticated:
        return False
    roles = Membership.objects.filter(user=user, role__in=[Role.OWNER, Role.RESEARCHER])
    return bool(user.is_superuser or user.is_researcher or roles.exists())


def check_slug(slug: str) -> None:
    try:
        SLUG(slug)
    except ValidationError as error:
        raise BadInput.for_field("slug", str(error.message)) from error
    if slug in RESERVED:
        raise BadInput.for_field("slug", _("“%(slug)s” is reserved. Choose another short name.") % {"slug": slug})


def _check_lines(description: dict[str, Any]) -> None:
    """Check that fields of a single line have no line breaks or hidden characters, and that the language is a tag, as
    for dataset.json."""
    faults = find_name_faults(**{field: str(description[field]) for field in NAMES if field in description})
    for field, explain in LINE_CHECKS.items():
        if why := explain(str(description.get(field, ""))):
            faults.append(Fault(why, field=field))
    if faults:
        raise BadInput(" ".join(dict.fromkeys(fault.message for fault in faults)), faults=faults)


def check_may_create_projects(user: Any) -> None:
    """Raise `NotAllowed` if a user may not create projects."""
    if not may_create_projects(user):
        raise NotAllowed(
            _("Only owners and researchers of a project may create projects. Ask an owner of one of your projects.")
        )


@transaction.atomic
def create_project(*, slug: str, name: str = "", owner: User | None, **description: Any) -> Project:
    """Create a project with `owner` as its first member. `description`: task, lang, licence, source, notes, meta."""
    check_slug(slug)
    _check_lines({"name": name, **description})
    try:
        with transaction.atomic():
            project = Project.objects.create(slug=slug, name=name or slug, created_by=owner, **description)
    except IntegrityError as error:
        text = _("The short name “%(slug)s” is taken. Choose another.") % {"slug": slug}
        raise Conflict.for_field("slug", text) from error
    audit.record(verb="project.created", project=project, actor=owner, object=project.slug)
    if owner is not None:
        add_member(project=project, user=owner, role=Role.OWNER, actor=owner)
    return project


@transaction.atomic
def update_project(*, project: Project, actor: User | None, **changes: str | bool) -> Project:
    """Change the description of a project. Unknown fields raise `BadInput`."""
    unknown = set(changes) - set(DESCRIPTION)
    if unknown:
        raise BadInput(_("A project has no field %(names)s.") % {"names": ", ".join(sorted(unknown))})
    changed = [name for name, value in changes.items() if getattr(project, name) != value]
    _check_lines({field: changes[field] for field in changed})
    if changed:
        for name in changed:
            setattr(project, name, changes[name])
        project.save(update_fields=changed)
        if SWITCH in changed:
            verb = "project.texts-allowed-out" if project.texts_may_leave else "project.texts-kept-in"
            audit.record(verb=verb, project=project, actor=actor, object=project.slug)
        if others := [name for name in changed if name != SWITCH]:
            audit.record(verb="project.changed", project=project, actor=actor, object=project.slug, fields=others)
    return project


def delete_project(*, project: Project, actor: User, confirmation: str) -> Run | None:
    """Delete a project with its contents. `confirmation` is its short name as the user typed it. The project disappears
    at once; the contents of a large project are removed by the returned run."""
    if confirmation != project.slug:
        raise BadInput.for_field("confirmation", _("Type “%(slug)s” to delete the project.") % {"slug": project.slug})
    from evalapp.common.deletion import delete_with_contents

    return delete_with_contents(project=project, actor=actor)
