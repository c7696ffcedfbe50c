"""`visible_to(user)` for rows that belong to a project."""

from typing import Self

from django.db import models

from evalapp.accounts.models import Project, User
from evalapp.accounts.roles import Need


class ProjectRows(models.QuerySet):
    """Rows with a `project` column. They contain system names, so reading them takes the right to read."""

    def visible_to(self, user: User, need: Need = "read") -> Self:
        return self.filter(project__in=Project.objects.visible_to(user, need))
