"""The list of candidates on the writing page, which loads this fragment."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotation.selectors.writing import check_shows_candidates, get_own_task, list_excluded_texts
from annotation.services.writing_candidates import remember_candidates

from ..services.candidates import find_candidates

#: The number of candidates that are shown first.
FIRST = 20
MOST_WORDS = 10_000


@require_safe
def candidates(request: HttpRequest, public: str) -> HttpResponse:
    """Responses whose queries are most similar to the task's context, or pairs that contain the words `q`."""
    task = get_own_task(user=request.user, public=public)
    check_shows_candidates(task)
    campaign, words = task.campaign, request.GET.get("q", "").strip()[:MOST_WORDS]
    result = find_candidates(
        project=campaign.project,
        corpus=campaign.corpus,
        item=task.unit.item,
        k=campaign.options["candidates"],
        turns=campaign.options["candidate_turns"],
        exclude=list_excluded_texts(task),
        text=words or None,
    )
    rows = list(zip(remember_candidates(task=task, rows=result.rows), result.rows, strict=True))
    context = {"first": rows[:FIRST], "rest": rows[FIRST:], "note": result.note, "words": words}
    return render(request, "retrieval/candidates/_list.html", context)
