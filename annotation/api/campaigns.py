"""The researcher's door to campaigns: plan, open, pause, resume, close, watch, flags."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import Campaign, ItemFlag
from annotation.selectors.campaigns import campaign_plan, get_campaign, get_flag, list_campaigns
from annotation.selectors.campaigns_watch import list_flags, watch_campaign
from annotation.services import campaigns as services
from annotation.services.judging_acts import resolve_flag
from evalapp.accounts.selectors import get_project
from evalapp.common.api.idempotency import idempotent
from evalapp.common.pagination import KeysetPagination

from .assignments import CONFLICT, ProblemSerializer, fast_json, read_body


class CampaignSerializer(serializers.ModelSerializer):
    project = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    opening = serializers.PrimaryKeyRelatedField(
        read_only=True, allow_null=True, help_text="The run that makes the units."
    )

    class Meta:
        model = Campaign
        fields: tuple[str, ...] = (
            "id", "project", "slug", "name", "kind", "state", "overlap", "lease_minutes", "max_per_annotator", "seed",
            "unit_count", "practice_count", "control_count", "opening", "created_at", "opened_at", "closed_at",
        )  # fmt: skip
        read_only_fields = fields


class PlanAspectSerializer(serializers.Serializer):
    name = serializers.CharField()
    question = serializers.CharField(required=False)
    low = serializers.FloatField(required=False)
    high = serializers.FloatField(required=False)
    step = serializers.FloatField(required=False, allow_null=True)
    labels = serializers.DictField(child=serializers.CharField(), required=False)


class PlanCheckSerializer(serializers.Serializer):
    item = serializers.CharField()
    system = serializers.CharField()
    system_b = serializers.CharField(required=False)
    step = serializers.IntegerField(required=False, allow_null=True)
    step_b = serializers.IntegerField(required=False, allow_null=True)
    reference = serializers.IntegerField(required=False)
    expected = serializers.DictField()
    why = serializers.CharField(required=False, allow_blank=True)


class PlanSerializer(serializers.Serializer):
    """What is judged and how; see the docs of campaigns."""

    slug = serializers.CharField(required=False)
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=Campaign.Kind.choices)
    aspects = PlanAspectSerializer(many=True)
    overlap = serializers.IntegerField(required=False, min_value=1, max_value=100)
    max_per_annotator = serializers.IntegerField(required=False, allow_null=True)
    lease_minutes = serializers.IntegerField(required=False)
    seed = serializers.IntegerField(required=False)
    guidelines = serializers.CharField(required=False, allow_blank=True)
    items = serializers.JSONField(required=False)
    systems = serializers.ListField(child=serializers.CharField(), required=False)
    pairs = serializers.IntegerField(required=False, allow_null=True)
    steps = serializers.ChoiceField(choices=["all", "last"], required=False)
    options = serializers.DictField(required=False, allow_null=True)
    practice = PlanCheckSerializer(many=True, required=False)
    controls = PlanCheckSerializer(many=True, required=False)


class CampaignDetailSerializer(CampaignSerializer):
    plan = serializers.SerializerMethodField()

    class Meta(CampaignSerializer.Meta):
        fields = (*CampaignSerializer.Meta.fields, "guidelines", "plan")
        read_only_fields = fields

    @extend_schema(responses=PlanSerializer)
    def get_plan(self, campaign: Campaign) -> dict[str, Any]:
        return campaign_plan(campaign)


class AnnotatorProgressSerializer(serializers.Serializer):
    rater = serializers.CharField()
    done = serializers.IntegerField()
    skipped = serializers.IntegerField()
    open = serializers.IntegerField()
    seconds = serializers.FloatField()
    median_seconds = serializers.FloatField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)
    controls = serializers.IntegerField()
    controls_failed = serializers.IntegerField()
    left = serializers.IntegerField()
    right = serializers.IntegerField()


class AgreementSerializer(serializers.Serializer):
    aspect = serializers.CharField()
    alpha = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    note = serializers.CharField()
    scale = serializers.CharField()


class CampaignProgressSerializer(serializers.Serializer):
    state = serializers.CharField()
    units = serializers.IntegerField()
    units_complete = serializers.IntegerField()
    units_by_answers = serializers.DictField(child=serializers.IntegerField())
    slots = serializers.IntegerField()
    done = serializers.IntegerField()
    open = serializers.IntegerField()
    lapsed = serializers.IntegerField()
    extra = serializers.IntegerField()
    share = serializers.FloatField()
    median_seconds = serializers.FloatField(allow_null=True)
    open_flags = serializers.IntegerField()
    agreement = AgreementSerializer(many=True)
    annotators = AnnotatorProgressSerializer(many=True)


class FlagSerializer(serializers.ModelSerializer):
    item = serializers.CharField(source="assignment.unit.item.key", read_only=True)
    system = serializers.CharField(source="assignment.unit.output_a.system.name", read_only=True)

    class Meta:
        model = ItemFlag
        fields = ("id", "item", "system", "reason", "text", "created_at", "resolved_at")
        read_only_fields = fields


class ProjectCampaigns(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(
        summary="Campaigns of a project, newest first",
        responses=CampaignSerializer(many=True),
    )
    def get(self, request: Request, slug: str) -> Response:
        """The campaigns of a project, newest first."""
        project = get_project(user=request.user, slug=slug, need="read")
        paginator = self.pagination_class()
        rows = paginator.paginate_queryset(list_campaigns(project=project), request, view=self)
        return paginator.get_paginated_response(CampaignSerializer(rows, many=True).data)

    @extend_schema(
        summary="A new campaign, as a draft",
        request=PlanSerializer,
        responses={201: CampaignDetailSerializer, 400: ProblemSerializer, 409: CONFLICT},
    )
    @idempotent()
    def post(self, request: Request, slug: str) -> Response:
        """Make a draft of a campaign from a plan; nothing is handed out before it is opened."""
        project = get_project(user=request.user, slug=slug, need="write")
        campaign = services.create_campaign(project=project, user=request.user, plan=read_body(request))
        return Response(CampaignDetailSerializer(campaign).data, status=201)


class CampaignDetail(APIView):
    @extend_schema(summary="One campaign with its plan", responses=CampaignDetailSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """A campaign with its whole plan."""
        return Response(CampaignDetailSerializer(get_campaign(user=request.user, campaign_id=pk)).data)

    @extend_schema(
        summary="Change a campaign",
        description="A draft in any part; later only name, guidelines, limits and options.",
        request=PlanSerializer(partial=True),
        responses={200: CampaignDetailSerializer, 400: ProblemSerializer, 409: CONFLICT},
    )
    def patch(self, request: Request, pk: int) -> Response:
        campaign = get_campaign(user=request.user, campaign_id=pk, need="write")
        changed = services.update_campaign(campaign=campaign, user=request.user, changes=read_body(request))
        return Response(CampaignDetailSerializer(changed).data)

    @extend_schema(summary="Delete a campaign without judgements", responses={204: None, 409: CONFLICT})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a campaign that has no judgements."""
        campaign = get_campaign(user=request.user, campaign_id=pk, need="write")
        services.delete_campaign(campaign=campaign, user=request.user)
        return Response(status=204)


class CampaignMove(APIView):
    """Open, pause, resume or close the campaign, as the address says; 409 where its state does not allow that."""

    move = ""

    @extend_schema(
        request=None,
        responses={
            200: CampaignSerializer,
            202: OpenApiResponse(CampaignSerializer, description="Large: a worker opens it, see `opening`."),
            409: CONFLICT,
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        campaign = get_campaign(user=request.user, campaign_id=pk, need="write")
        moved = getattr(services, f"{self.move}_campaign")(campaign=campaign, user=request.user)
        waiting = self.move == "open" and moved.state == Campaign.State.DRAFT
        return Response(CampaignSerializer(moved).data, status=202 if waiting else 200)


class CampaignProgressView(APIView):
    @extend_schema(summary="How far a campaign is", responses=CampaignProgressSerializer)
    def get(self, request: Request, pk: int) -> HttpResponse:
        """How far a campaign is: by annotator, with flags and agreement so far."""
        campaign = get_campaign(user=request.user, campaign_id=pk)
        return fast_json(watch_campaign(campaign).wire())


class CampaignFlags(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(
        summary="What annotators flagged",
        responses=FlagSerializer(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        """What annotators reported about items, newest first."""
        campaign = get_campaign(user=request.user, campaign_id=pk)
        paginator = self.pagination_class()
        rows = paginator.paginate_queryset(list_flags(campaign), request, view=self)
        return paginator.get_paginated_response(FlagSerializer(rows, many=True).data)


class FlagResolve(APIView):
    @extend_schema(summary="A flag has been dealt with", request=None, responses=FlagSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Mark a report about an item as dealt with."""
        flag = get_flag(user=request.user, flag_id=pk)
        return Response(FlagSerializer(resolve_flag(user=request.user, flag=flag)).data)
