"""The live score of the reference editor, as JSON."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST

from evalapp.common.errors import EvalappError
from evalapp.common.problems import CONTENT_TYPE, from_domain

from ..services.desk import live_score


@require_POST
def score(request: HttpRequest, public: str) -> JsonResponse:
    """`{"ticket", "text", "candidates"}` -> `{"ticket", "now", "with_text", "candidates", "left", "signature",
    "note"}`; nulls and a note when there is no score in time."""
    try:
        return JsonResponse(live_score(user=request.user, public=public, body=request.body))
    except EvalappError as error:
        return JsonResponse(from_domain(error), status=error.status, content_type=CONTENT_TYPE)
