"""Reads uploads: one with a check of rights, and a project's list."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.models import Upload
from evalapp.accounts.models import Project, User
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotThere


def find_upload(*, user: User, pk: int, need: Need = "read", slug: str | None = None) -> Upload:
    """The upload, if the user's role in its project covers `need` and it belongs to the project `slug` (if given)."""
    upload = Upload.objects.select_related("project", "run", "created_by").filter(pk=pk).first()
    if upload is None or (slug is not None and upload.project.slug != slug):
        raise NotThere(_("There is no such upload that you can see."))
    try:
        upload.project = get_project(user=user, slug=upload.project.slug, need=need)
    except NotThere as error:
        raise NotThere(_("There is no such upload that you can see.")) from error
    return upload


def list_uploads(project: Project) -> QuerySet[Upload]:
    return Upload.objects.filter(project=project).select_related("run", "created_by")
