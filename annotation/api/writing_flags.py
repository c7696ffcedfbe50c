"""Flags of items to write for, as programs send them; the desk itself is in `writing`."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from annotation.services.writing import flag_task

from .assignments import FlaggedSerializer, FlagInputSerializer, ProblemSerializer, fast_json, read_body, read_text


class WritingFlagged(APIView):
    @extend_schema(
        summary="Tell the researcher that something is wrong with an item",
        request=FlagInputSerializer,
        responses={201: FlaggedSerializer, 400: ProblemSerializer},
    )
    def post(self, request: Request, public: str) -> HttpResponse:
        body = read_body(request)
        reason, text = read_text(body, "reason"), read_text(body, "text")
        flag = flag_task(user=request.user, public=public, reason=reason, text=text)
        return fast_json({"id": flag.pk, "reason": flag.reason, "text": flag.text}, status=201)
