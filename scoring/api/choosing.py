"""Versions of a judge, most informative outputs about an evaluator, and campaigns about chosen outputs."""

from typing import Any

from django.utils.translation import gettext_lazy
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import Campaign
from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import StrictSerializer, read_body
from evalapp.common.params import bounds

from ..selectors.telling_outputs import make_history
from ..services.choosing import (
    GOALS,
    AlignmentOptions,
    SampleOptions,
    choose_scores,
    create_alignment_campaign,
    create_sample_campaign,
    list_proposed,
)
from .judges import ReportedEstimateSerializer


def _number(options: type, name: str, default: float, words: Any) -> Any:
    low, high = bounds(options, name)
    kind = serializers.FloatField if isinstance(default, float) else serializers.IntegerField
    return kind(default=default, min_value=low, max_value=high, help_text=words)


class AlignmentBody(StrictSerializer):
    n = _number(AlignmentOptions, "n", 40, gettext_lazy("Outputs of the campaign."))
    aspect = serializers.CharField(default="", allow_blank=True)
    overlap = _number(AlignmentOptions, "overlap", 1, gettext_lazy("Raters of each output."))


class SampleBody(StrictSerializer):
    n = _number(SampleOptions, "n", 50, gettext_lazy("Outputs of each batch."))
    batches = _number(SampleOptions, "batches", 4, gettext_lazy("Batches, into which all outputs are divided first."))
    aspect = serializers.CharField(default="", allow_blank=True)
    overlap = _number(SampleOptions, "overlap", 1, gettext_lazy("Raters of each output."))
    floor = _number(SampleOptions, "floor", 0.3, gettext_lazy("Share that is drawn uniformly."))
    goal = serializers.ChoiceField(
        choices=list(GOALS), default="all",
        help_text=gettext_lazy("all: equally many outputs of each system; first: more near the first."),
    )  # fmt: skip
    after = serializers.CharField(
        default="",
        allow_blank=True,
        help_text=gettext_lazy("A campaign of an earlier batch, which the next one follows."),
    )
    seed = _number(SampleOptions, "seed", 13, gettext_lazy("The same seed and data give the same outputs."))


class ChosenCampaignSerializer(serializers.Serializer):
    """A draft about chosen outputs; open it to let annotators in."""

    id = serializers.IntegerField()
    slug = serializers.CharField()
    name = serializers.CharField()
    outputs = serializers.IntegerField()
    chosen = serializers.DictField(help_text=gettext_lazy("How the outputs were selected."))


class TellingOutputSerializer(serializers.Serializer):
    item = serializers.CharField()
    system = serializers.CharField()
    step = serializers.IntegerField(allow_null=True)
    text = serializers.CharField()
    score = serializers.FloatField()
    rating = serializers.FloatField(allow_null=True, help_text=gettext_lazy("Mean rating so far."))
    error = serializers.FloatField(
        help_text=gettext_lazy("Distance of the score from the mean rating, or the expected one.")
    )
    reason = serializers.CharField()


class DevelopmentAgreementSerializer(serializers.Serializer):
    """Agreement on one part of the groups."""

    alpha_without = ReportedEstimateSerializer()
    alpha_with = ReportedEstimateSerializer()
    correlation = ReportedEstimateSerializer()
    decided = ReportedEstimateSerializer(allow_null=True)
    mean_absolute = ReportedEstimateSerializer()
    n_outputs = serializers.IntegerField()


class LookSerializer(serializers.Serializer):
    """A look at the test part, with the figures that were shown."""

    at = serializers.DateTimeField()
    table = serializers.CharField(
        required=False, help_text=gettext_lazy("Kind of the table that compared the judge with people in all groups.")
    )
    alpha_with = ReportedEstimateSerializer(required=False)
    alpha_without = ReportedEstimateSerializer(required=False)
    correlation = ReportedEstimateSerializer(required=False)
    decided = ReportedEstimateSerializer(required=False, allow_null=True)
    mean_absolute = ReportedEstimateSerializer(required=False)
    n_outputs = serializers.IntegerField(required=False)


class JudgeVersionSerializer(serializers.Serializer):
    evaluator = serializers.CharField()
    template = serializers.CharField(allow_blank=True)
    model = serializers.CharField(allow_blank=True)
    examples = serializers.IntegerField()
    examples_from = serializers.CharField(allow_blank=True)
    development = DevelopmentAgreementSerializer()
    test = LookSerializer(many=True)


class AlignmentSerializer(serializers.Serializer):
    versions = JudgeVersionSerializer(many=True)
    looks = serializers.IntegerField(help_text=gettext_lazy("How often the test part was shown, for all versions."))
    outputs = TellingOutputSerializer(many=True)


def _describe(campaign: Campaign) -> dict[str, Any]:
    plan = campaign.plan
    return {
        "id": campaign.pk, "slug": campaign.slug, "name": campaign.name, "outputs": len(plan["outputs"]),
        "chosen": plan["chosen"],
    }  # fmt: skip


class Alignment(APIView):
    @extend_schema(
        operation_id="evaluator_alignment",
        parameters=[
            OpenApiParameter("n", int, description="Outputs to propose, 40 by default."),
            OpenApiParameter("aspect", str, description="The rated aspect; that of the scores by default."),
        ],
        responses=AlignmentSerializer,
    )
    def get(self, request: Request, slug: str, evaluator: str) -> Response:
        """The versions of a judge with their agreement, and the most informative outputs of the development part."""
        project = get_project(user=request.user, slug=slug, need="read")
        body = AlignmentBody(data=request.query_params.dict())
        body.is_valid(raise_exception=True)
        options = AlignmentOptions(**body.validated_data)
        score_set, aspect = choose_scores(project, evaluator, options.aspect)
        history = make_history(project, score_set.evaluator, aspect)
        return Response({**history, "outputs": [row.as_dict() for row in list_proposed(project, evaluator, options)]})

    @extend_schema(
        operation_id="evaluator_alignment_campaign", request=AlignmentBody, responses={201: ChosenCampaignSerializer}
    )
    def post(self, request: Request, slug: str, evaluator: str) -> Response:
        """Create the draft of a campaign about these outputs."""
        project = get_project(user=request.user, slug=slug, need="write")
        options = AlignmentOptions(**read_body(AlignmentBody, request))
        campaign = create_alignment_campaign(project=project, user=request.user, evaluator=evaluator, options=options)
        return Response(_describe(campaign), status=201)


class Sample(APIView):
    @extend_schema(
        operation_id="evaluator_sample_campaign", request=SampleBody, responses={201: ChosenCampaignSerializer}
    )
    def post(self, request: Request, slug: str, evaluator: str) -> Response:
        """Create the draft of a campaign about outputs that are drawn by the expected error of the evaluator. Their
        chances are stored with the judgements, and assisted estimates use them."""
        project = get_project(user=request.user, slug=slug, need="write")
        options = SampleOptions(**read_body(SampleBody, request))
        campaign = create_sample_campaign(project=project, user=request.user, evaluator=evaluator, options=options)
        return Response(_describe(campaign), status=201)
