"""Gold reliability of references during a writing campaign, from ratings."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from annotation.models import WritingCampaign
from annotation.selectors.campaigns import get_campaign
from annotation.views.writing_forms import ARM_NAMES
from annotation.views.writing_plots import list_figures, plot
from evalapp.accounts.models import Project
from evalapp.common.errors import NotThere
from evalapp.common.figures import send_figure
from evalapp.common.pages import page, project_page
from evalapp.side_figures import side_figure

from ..selectors.writing_gold import gold_growth


@project_page(GET="read")
def writing_gold(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """Gold reliability by round and arm, and by annotator if the campaign has rounds."""
    campaign = get_campaign(user=request.user, campaign_id=pk, model=WritingCampaign)
    if campaign.project_id != project.pk:
        raise NotThere(_("There is no such writing campaign in this project."))
    result = gold_growth(user=request.user, campaign=campaign, aspect=request.GET.get("aspect", ""))
    across = _("candidates processed") if campaign.in_rounds else _("references written")
    axis = _("gold reliability, %(metric)s, 95 %%") % {"metric": result.metric}
    plots: list[dict[str, Any]] = []
    with side_figure(_("The plots of this page")):
        drawn = [
            plot(result.by_arm, ARM_NAMES, title=_("By arm"), across=across, axis=axis),
            plot(result.by_person, {}, title=_("By annotator"), across=across, axis=axis),
        ]
        plots = [one for one in drawn if one is not None]
    context = {
        "project": project,
        "campaign": campaign,
        "gold": result,
        "across": across,
        "plots": plots,
        "other_aspects": [name for name in result.aspects if name != result.aspect],
    }
    return send_figure(request, list_figures(plots)) or page(
        request, "scoring/writing_gold.html", context, fragment="growth"
    )
