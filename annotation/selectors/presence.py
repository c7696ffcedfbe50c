"""Whether a project has outputs yet. Cached on the instance because several page sections ask."""

from annotation.models import Output
from evalapp.accounts.models import Project


def has_outputs(project: Project) -> bool:
    value: bool | None = getattr(project, "_has_outputs", None)
    if value is None:
        value = Output.objects.filter(project=project).exists()
        project._has_outputs = value
    return value
