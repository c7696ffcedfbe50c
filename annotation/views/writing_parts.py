"""What the researcher's pages of writing campaigns begin with: project and campaign, with permission."""

from __future__ import annotations

from django.http import HttpRequest

from annotation.models import WritingCampaign
from evalapp.accounts.models import Project
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotThere


def get_parts(request: HttpRequest, slug: str, pk: int, need: Need = "read") -> tuple[Project, WritingCampaign]:
    """Project and writing campaign, with permission; the campaign must be of this project."""
    project = get_project(user=request.user, slug=slug, need=need)
    campaign = WritingCampaign.objects.select_related("start_set", "target_set").filter(project=project, pk=pk).first()
    if campaign is None:
        raise NotThere("There is no such writing campaign in this project.")
    campaign.project = project
    return project, campaign
