"""Flags of items to write for: as those who write send them, listed and dealt with by those who watch. The desk itself
is in `writing`."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import WritingFlag
from annotation.selectors.writing import get_writing, get_writing_flag, list_writing_flags
from annotation.services.judging_acts import resolve_flag
from annotation.services.judging_sent import read_text
from annotation.services.writing import flag_task
from evalapp.common.pagination import KeysetPagination

from .assignments import FlaggedSerializer, FlagInputSerializer, ProblemSerializer, fast_json, read_body


class WritingFlagSerializer(serializers.ModelSerializer):
    item = serializers.CharField(source="task.unit.item.key", read_only=True)

    class Meta:
        model = WritingFlag
        fields = ("id", "item", "reason", "text", "created_at", "resolved_at")
        read_only_fields = fields


class WritingFlags(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(summary="What those who write flagged", responses=WritingFlagSerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """What annotators reported about items, newest first."""
        campaign = get_writing(user=request.user, campaign_id=pk)
        paginator = self.pagination_class()
        rows = paginator.paginate_queryset(list_writing_flags(campaign=campaign), request, view=self)
        return paginator.get_paginated_response(WritingFlagSerializer(rows, many=True).data)


class WritingFlagResolve(APIView):
    @extend_schema(summary="A flag of writing has been dealt with", request=None, responses=WritingFlagSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Mark a report about an item as dealt with."""
        flag = get_writing_flag(user=request.user, flag_id=pk)
        return Response(WritingFlagSerializer(resolve_flag(user=request.user, flag=flag)).data)


class WritingFlagged(APIView):
    @extend_schema(
        summary="Tell the researcher that something is wrong with an item",
        request=FlagInputSerializer,
        responses={201: FlaggedSerializer, 400: ProblemSerializer},
    )
    def post(self, request: Request, public: str) -> HttpResponse:
        """Report that something is wrong with the item; the task stays open."""
        body = read_body(request)
        reason, text = read_text(body, "reason"), read_text(body, "text")
        flag = flag_task(user=request.user, public=public, reason=reason, text=text)
        return fast_json({"id": flag.pk, "reason": flag.reason, "text": flag.text}, status=201)
