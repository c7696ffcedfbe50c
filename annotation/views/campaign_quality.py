"""The quality page of a judging campaign: agreement and drift over time, sides, raters to review, cost, whether it can
stop, and adaptive pair selection."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from annotation.models import Campaign
from annotation.selectors.campaigns_quality import LATEST, compute_quality
from annotation.services import hooks
from evalapp.common.figures import send_figure
from evalapp.side_figures import side_figure

from .campaign_pages import JUDGING
from .writing_plots import Dot, Line, draw_rounds, list_figures, looks


@require_safe
def quality(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    campaign = JUDGING.find(request, slug, pk)
    if campaign.state == Campaign.State.DRAFT:
        return redirect("annotation:campaign", slug, pk)
    figures = compute_quality(campaign)
    plots: list[dict[str, Any]] = []
    with side_figure(_("The plots of this page")):
        plots = _plots(campaign, figures["aspects"])
    savings: list[str] = []
    with side_figure(_("What evaluators save")):
        savings = hooks.describe_savings(campaign=campaign)
    return send_figure(request, list_figures(plots)) or JUDGING.show(
        request,
        "quality",
        campaign,
        fragment="advice" if request.GET.get("part") == "advice" else "figures",
        quality=figures,
        latest=LATEST,
        savings=savings,
        plots=plots,
        live=campaign.state in (Campaign.State.OPEN, Campaign.State.PAUSED),
        sided=campaign.kind != Campaign.Kind.LIKERT,
    )


def _plots(campaign: Campaign, aspects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    is_rating = campaign.kind == Campaign.Kind.LIKERT
    scale = _("mean rating, 95 %") if is_rating else _("share for the first side, 95 %")
    wanted: list[tuple[str, str, Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]]] = [
        (_("Agreement over time"), _("alpha, 95 %"), lambda aspect: aspect["growth"]),
        (_("Answers over time"), scale, lambda aspect: aspect["drift"]["rows"]),
    ]
    plots = []
    for title, axis, rows_of in wanted:
        lines = [_line(aspect["name"], rows_of(aspect)) for aspect in aspects]
        lines = [line for line in lines if line.dots]
        if lines:
            svg = draw_rounds(lines, title=title, axis=axis, across=_("judgements"))
            legend = [{"name": line.name, "colour": colour, "dash": dash} for line, colour, dash in looks(lines)]
            plots.append({"title": title, "svg": svg, "legend": legend, "lines": lines})
    return plots


def _line(name: str, rows: Sequence[Mapping[str, Any]]) -> Line:
    defined = [row for row in rows if row["value"] is not None]
    return Line(name, tuple(Dot(row["at"], row["value"], row["low"], row["high"], row["at"]) for row in defined))
