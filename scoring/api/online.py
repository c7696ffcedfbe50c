"""Online scores for texts, without storing them. The worker of the queue `live` computes them."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ..services.online import ask_evaluator
from .serializers import (
    ComparisonAnswerSerializer,
    ComparisonRequestSerializer,
    OnlineAnswerSerializer,
    OnlineRequestSerializer,
    ReliabilityAnswerSerializer,
    ReliabilityRequestSerializer,
)

PROJECT = OpenApiParameter("project", str, description="Needed if several projects have an evaluator of that name.")
BUSY = OpenApiResponse(description="Too many of your requests are waiting: retry when one is answered.")
DOWN = OpenApiResponse(
    description="No worker, or it is busy or loading an evaluator: retry after the time in Retry-After."
)


def _make_view(kind: str, operation_id: str, description: str, asked: type[Any], answered: type[Any]) -> type[APIView]:
    """Return the view of one kind of request to an evaluator."""

    class Online(APIView):
        @extend_schema(
            operation_id=operation_id,
            description=description,
            parameters=[PROJECT],
            request=asked,
            responses={200: answered, 429: BUSY, 503: DOWN},
        )
        def post(self, request: Request, name: str) -> Response:
            given = asked(data=request.data)
            given.is_valid(raise_exception=True)
            body = dict(given.validated_data)
            options, project = body.pop("options", None), request.query_params.get("project", "")
            asking = {"kind": kind, **body}
            answer = ask_evaluator(user=request.user, evaluator=name, request=asking, options=options, project=project)
            return Response(answer)

    return Online


OnlineScore = _make_view(
    "score", "evaluators_score", "Score up to 64 texts with an evaluator of the catalogue or a trained one.",
    OnlineRequestSerializer, OnlineAnswerSerializer,
)  # fmt: skip
OnlineComparison = _make_view(
    "compare", "evaluators_compare",
    "Which of two texts is better, for up to 64 pairs, by an evaluator that compares (comparative).",
    ComparisonRequestSerializer, ComparisonAnswerSerializer,
)  # fmt: skip
OnlineReliability = _make_view(
    "reliability", "evaluators_reliability", "The predicted reliability of a set of references for a context (REAM).",
    ReliabilityRequestSerializer, ReliabilityAnswerSerializer,
)  # fmt: skip
