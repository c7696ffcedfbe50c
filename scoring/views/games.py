"""Request games by an evaluator; the leaderboard of systems shows the result."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, EvalappError
from scoring.forms.games import GamesForm

from ..selectors.games import METHOD
from ..services.reports import start_games
from .boards import render_systems


@login_required
@require_POST
def play(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue the games, or show the leaderboard of systems again with the errors of the form."""
    project = get_project(user=request.user, slug=slug, need="write")
    if not request.POST.get("by"):
        raise BadInput(_("Name the evaluator that compares the texts."))
    form = GamesForm(request.POST)
    if form.is_valid():
        try:
            run = start_games(project=project, user=request.user, options=form.as_options())
        except EvalappError as error:
            form.add_error(None, error.detail)
        else:
            messages.success(request, _("%(run)s: queued.") % {"run": run.title})
            return redirect("run", project.slug, run.pk)
    given = {name: request.POST.get(name, "") for name in ("by", "systems", "references")}
    return render_systems(request, project, {**given, "method": METHOD}, games_form=form)
