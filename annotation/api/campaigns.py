"""Judging campaigns in the API: the shared calls with their serializers, and progress."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from annotation.models import Campaign, ItemFlag
from annotation.selectors.campaigns import get_campaign, list_campaigns, make_campaign_plan
from annotation.selectors.campaigns_watch import watch_campaign
from annotation.services.campaigns import create_campaign
from evalapp.common.api.fields import ChoiceField

from .campaign_views import BaseCampaignSerializer, BasePlanSerializer, CampaignAPI, make_views
from .responses import make_json_response


class CampaignSerializer(BaseCampaignSerializer):
    opening = serializers.PrimaryKeyRelatedField(
        read_only=True, allow_null=True, help_text="The run that creates the units."
    )

    class Meta(BaseCampaignSerializer.Meta):
        model = Campaign
        fields = (*BaseCampaignSerializer.Meta.fields, "overlap", "practice_count", "control_count", "opening")
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


class PlanSerializer(BasePlanSerializer):
    """The plan of a judging campaign; see the documentation on campaigns."""

    kind = ChoiceField(choices=Campaign.Kind.choices)
    aspects = PlanAspectSerializer(many=True)
    overlap = serializers.IntegerField(required=False, min_value=1, max_value=100)
    systems = serializers.ListField(child=serializers.CharField(), required=False)
    pairs = serializers.IntegerField(required=False, allow_null=True)
    steps = ChoiceField(choices=["all", "last"], required=False)
    practice = PlanCheckSerializer(many=True, required=False)
    controls = PlanCheckSerializer(many=True, required=False)


class CampaignDetailSerializer(CampaignSerializer):
    plan = serializers.SerializerMethodField()

    class Meta(CampaignSerializer.Meta):
        fields = (*CampaignSerializer.Meta.fields, "guidelines", "plan")
        read_only_fields = fields

    @extend_schema(responses=PlanSerializer)
    def get_plan(self, campaign: Campaign) -> dict[str, Any]:
        return make_campaign_plan(campaign)


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


class CampaignProgressView(APIView):
    @extend_schema(summary="Progress of a campaign", responses=CampaignProgressSerializer)
    def get(self, request: Request, pk: int) -> HttpResponse:
        """Progress by annotator, with flags and agreement so far."""
        campaign = get_campaign(user=request.user, campaign_id=pk)
        return make_json_response(watch_campaign(campaign).wire())


VIEWS = make_views(
    CampaignAPI(
        noun="campaign",
        changeable="name, guidelines, limits and options",
        model=Campaign,
        flag_model=ItemFlag,
        list_campaigns=list_campaigns,
        create=create_campaign,
        serializer=CampaignSerializer,
        detail=CampaignDetailSerializer,
        plan=PlanSerializer,
        flag=FlagSerializer,
    )
)
