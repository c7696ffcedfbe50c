"""How the pages of judging and writing campaigns differ, and how all find project and campaign."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.models import Campaign, WritingCampaign
from evalapp.accounts.models import Project
from evalapp.accounts.roles import ROLES_FOR, Need
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotThere
from evalapp.common.pages import page

from .campaign_forms import JudgingEditor, RunningForm
from .plan_forms import PlanEditor
from .writing_forms import RunningWritingForm, WritingEditor

C = TypeVar("C", Campaign, WritingCampaign)
PAGE_SIZE = 50


@dataclass(frozen=True)
class CampaignPages(Generic[C]):
    """The pages of a kind of work: templates are in the folder `templates`, addresses are named `NAME`, `NAME-flags`
    and so on, and annotators start at `first_page`."""

    model: type[C]
    related: tuple[str, ...]
    templates: str
    name: str
    first_page: str
    editor: type[PlanEditor]
    running_form: Any

    def find(self, request: HttpRequest, slug: str, pk: int, need: Need = "read") -> C:
        """The campaign with its project, if the user's role in the project covers `need`."""
        project = get_project(user=request.user, slug=slug, need=need)
        campaign = self.model.objects.select_related(*self.related).filter(project=project, pk=pk).first()
        if campaign is None:
            raise NotThere(_("There is no such campaign in this project."))
        campaign.project = project
        return campaign

    def show(
        self, request: HttpRequest, name: str, campaign: C, *, status: int = 200, fragment: str = "", **context: Any
    ) -> HttpResponse:
        """A page of the campaign by the name of its template."""
        project = campaign.project
        context |= {"project": project, "campaign": campaign, "may_write": may_write(request, project)}
        return page(request, f"annotation/{self.templates}/{name}.html", context, status=status, fragment=fragment)

    def get_landing(self, campaign: C) -> str:
        """The address that an invitation link leads to."""
        return reverse(f"annotation:{self.first_page}", args=[campaign.pk])


JUDGING = CampaignPages(Campaign, ("opening",), "campaigns", "campaign", "judge", JudgingEditor, RunningForm)
WRITING = CampaignPages(
    WritingCampaign, ("start_set", "target_set"), "writing", "writing", "write", WritingEditor, RunningWritingForm
)


def may_write(request: HttpRequest, project: Project) -> bool:
    return bool(request.user.is_superuser) or project.role in ROLES_FOR["write"]  # type: ignore[union-attr,attr-defined]
