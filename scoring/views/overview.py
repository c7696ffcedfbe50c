"""Parts of the project overview: the first rows of the leaderboard, and two next steps."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.selectors.presence import has_judgements, has_outputs
from evalapp.accounts.models import Project
from evalapp.accounts.roles import ROLES_FOR
from evalapp.common.navigation import find_role
from evalapp.common.overview import Step
from scoring.boards.choices import METHODS, MODELS

from ..models import Leaderboard, ScoreSet
from ..selectors.leaderboards import has_read

FIRST = 3


def _may(request: HttpRequest, project: Project, need: str) -> bool:
    user = request.user
    return bool(getattr(user, "is_superuser", False)) or find_role(request, project) in ROLES_FOR[need]  # type: ignore[index]


def leaderboard_section(request: HttpRequest, project: Project) -> str | None:
    """Return the first rows of the last stored table of systems by all human judgements and no scores; the overview
    computes none."""
    if not _may(request, project, "read"):
        return None
    stored = Leaderboard.objects.filter(project=project, kind=Leaderboard.Kind.SYSTEMS).order_by("-computed_at")[:5]
    changed = ("by", "assist", "campaign", "filter")
    whole = (row for row in stored if not any(row.params.get(name) for name in changed))
    board = next((row for row in whole if row.table.get("rows")), None)
    if board is None:
        return None
    table = board.table
    shown = {
        "method": _(METHODS.get(table["method"], table["method"])),
        "digits": 0 if table["method"] in MODELS else 2,
    }
    context = {"project": project, "board": board, "table": table, "rows": table["rows"][:FIRST], **shown}
    return render_to_string("scoring/overview/leaderboard.html", context, request=request)


def scores_step(request: HttpRequest, project: Project) -> Step | None:
    if not _may(request, project, "write"):
        return None
    done = ScoreSet.objects.filter(project=project, scored_at__isnull=False).exists()
    if not done and not has_outputs(project):
        return None
    return Step(
        title=_("Score the outputs"),
        text=_("Outputs are scored.")
        if done
        else _("Apply the trivial baselines first: other metrics must beat them."),
        url=reverse("scoring:evaluator-list", args=[project.slug]),
        action=_("Evaluators"),
        done=done,
    )


def rankings_step(request: HttpRequest, project: Project) -> Step | None:
    """Done once this user has opened the metric leaderboard. A stored table does not count: it may come from an upload
    or the demo."""
    if not _may(request, project, "read"):
        return None
    seen = has_read(request.user, project)
    if not seen and not has_judgements(project):
        return None
    return Step(
        title=_("Read the leaderboards"),
        text=_("Which system is best, and which evaluators agree with human judgements."),
        url=reverse("scoring:evaluation", args=[project.slug]),
        action=_("Evaluation"),
        done=seen,
    )
