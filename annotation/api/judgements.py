"""Judgements in the API: every version of every answer of a campaign."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.allocation.answers import turn
from annotation.models import Judgement
from annotation.selectors.attributes import read_attributes
from annotation.selectors.campaigns import get_campaign
from annotation.selectors.campaigns_watch import get_pseudonyms, list_judgements, list_latest_judgements
from evalapp.common.api.fields import read_flag

from .responses import PagedView


class JudgementSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    rater = serializers.CharField()
    item = serializers.CharField()
    system = serializers.CharField()
    step = serializers.IntegerField(allow_null=True)
    system_b = serializers.CharField(allow_null=True)
    step_b = serializers.IntegerField(allow_null=True)
    reference = serializers.IntegerField(allow_null=True)
    unit = serializers.CharField(help_text="normal, practice or control")
    repeat = serializers.IntegerField()
    version = serializers.IntegerField()
    current = serializers.BooleanField()
    answer = serializers.DictField(help_text="In the order system, system_b.")
    swapped = serializers.BooleanField(help_text="The sides were exchanged on the page.")
    note = serializers.CharField()
    seconds = serializers.FloatField(allow_null=True)
    extra = serializers.BooleanField()
    passed = serializers.BooleanField(allow_null=True)
    created_at = serializers.DateTimeField()


def as_row(row: Judgement, pseudonyms: dict[int, str]) -> dict[str, Any]:
    assignment = row.assignment
    unit = assignment.unit
    return {
        **read_attributes(row, "version current note seconds extra passed created_at"),
        "id": row.pk,
        "rater": pseudonyms.get(row.annotator_id, ""),
        "item": unit.item.key,
        "system": unit.output_a.system.name,
        "step": unit.output_a.step,
        "system_b": unit.output_b.system.name if unit.output_b else None,
        "step_b": unit.output_b.step if unit.output_b else None,
        "reference": unit.reference.position if unit.reference else None,
        "unit": unit.kind,
        "repeat": assignment.repeat_number,
        "answer": turn(row.answer, assignment.side_swapped),
        "swapped": assignment.side_swapped,
    }


class CampaignJudgements(PagedView):
    @extend_schema(
        summary="Judgements of a campaign",
        parameters=[
            OpenApiParameter("current", bool, description="Only the latest version of each answer."),
        ],
        responses=JudgementSerializer(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        """The judgements of a campaign, newest first."""
        campaign = get_campaign(user=request.user, campaign_id=pk)
        only = read_flag(request.query_params, "current")
        rows = list_latest_judgements(campaign) if only else list_judgements(campaign)
        pseudonyms = get_pseudonyms(campaign)
        return self.paginate(
            request, rows, lambda page: JudgementSerializer([as_row(row, pseudonyms) for row in page], many=True).data
        )
