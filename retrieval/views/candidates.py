"""The list of candidates beside the editor of a reference: a fragment that the page loads by its address."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotation.selectors.writing import check_shows_candidates, excluded_texts, get_my_desk_task
from annotation.services.writing_candidates import remember_candidates

from ..services.candidates import candidates_for

#: So many are looked at first; the rest is a click away.
FIRST = 20
MOST_WORDS = 10_000


@login_required
@require_safe
def candidates(request: HttpRequest, public: str) -> HttpResponse:
    """Responses whose queries are most like the context of one's task, or those that hold the words `q`."""
    task = get_my_desk_task(user=request.user, public=public)
    check_shows_candidates(task)
    campaign, words = task.campaign, request.GET.get("q", "").strip()[:MOST_WORDS]
    found = candidates_for(
        project=campaign.project,
        corpus=campaign.corpus,
        item=task.unit.item,
        k=campaign.options["candidates"],
        turns=campaign.options["candidate_turns"],
        exclude=excluded_texts(task),
        text=words or None,
    )
    rows = list(zip(remember_candidates(task=task, rows=found.rows), found.rows, strict=True))
    context = {"first": rows[:FIRST], "rest": rows[FIRST:], "note": found.note, "words": words}
    return render(request, "retrieval/candidates/_list.html", context)
