"""Online scores for texts, without storing them. The worker of the queue `live` computes them."""

from __future__ import annotations

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


def _checked(serializer: Any) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


class OnlineScore(APIView):
    @extend_schema(
        operation_id="evaluators_score",
        parameters=[PROJECT],
        request=OnlineRequestSerializer,
        responses={200: OnlineAnswerSerializer, 429: BUSY, 503: DOWN},
    )
    def post(self, request: Request, name: str) -> Response:
        """Score up to 64 texts with an evaluator of the catalogue or a trained one."""
        given = _checked(OnlineRequestSerializer(data=request.data))
        return Response(_ask(request, name, "score", given))


class OnlineComparison(APIView):
    @extend_schema(
        operation_id="evaluators_compare",
        parameters=[PROJECT],
        request=ComparisonRequestSerializer,
        responses={200: ComparisonAnswerSerializer, 429: BUSY, 503: DOWN},
    )
    def post(self, request: Request, name: str) -> Response:
        """Which of two texts is better, for up to 64 pairs, by an evaluator that compares (comparative)."""
        given = _checked(ComparisonRequestSerializer(data=request.data))
        return Response(_ask(request, name, "compare", given))


class OnlineReliability(APIView):
    @extend_schema(
        operation_id="evaluators_reliability",
        parameters=[PROJECT],
        request=ReliabilityRequestSerializer,
        responses={200: ReliabilityAnswerSerializer, 429: BUSY, 503: DOWN},
    )
    def post(self, request: Request, name: str) -> Response:
        """The predicted reliability of a set of references for a context (REAM)."""
        given = _checked(ReliabilityRequestSerializer(data=request.data))
        return Response(_ask(request, name, "reliability", given))


def _ask(request: Request, name: str, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    options = body.pop("options", None)
    project = request.query_params.get("project", "")
    return ask_evaluator(
        user=request.user, evaluator=name, request={"kind": kind, **body}, options=options, project=project
    )
