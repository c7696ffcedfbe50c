"""Delete a score set. The page that shows it is in `evaluators`."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from evalapp.accounts.selectors import get_project
from evalapp.common.errors import Conflict
from evalapp.common.pages import page

from ..models import ScoreSet
from ..services.scores import delete_scores
from .evaluators import get_set


@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, slug: str, evaluator: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="write")
    score_set = get_set(project, evaluator, request.GET.get("set", ""))
    if request.method == "POST":
        try:
            is_gone = delete_scores(score_set=score_set, user=request.user)
        except Conflict as error:
            messages.error(request, error.detail)
        else:
            messages.success(request, _("Scores of %(name)s deleted.") % {"name": evaluator})
            if is_gone:
                return redirect("scoring:evaluator-list", project.slug)
            return redirect("scoring:evaluator", project.slug, evaluator)
    others = ScoreSet.objects.filter(evaluator=score_set.evaluator).exclude(pk=score_set.pk)
    context = {
        "project": project,
        "evaluator": score_set.evaluator,
        "score_set": score_set,
        "goes": not score_set.evaluator.is_trained and not others.exists(),
    }
    return page(request, "scoring/evaluators/delete_scores.html", context)
