"""Inter-annotator agreement, named filters of raters, and statistical power, for programs."""

from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import RaterFilter
from annotation.selectors.filters import get_filter, list_filters
from annotation.services.filters import create_filter, restore_filter, withdraw_filter
from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import (
    OnePageSerializer,
    StrictModelSerializer,
    StrictSerializer,
    TextField,
    TruthField,
    WholeSerializer,
    refuse_unknown,
)
from evalapp.common.pagination import one_page
from scoring.boards.agreement.query import AgreementQuery

from ..selectors.aspects import choose_judged_way
from ..selectors.leaderboards import parse_query
from ..selectors.planning import EFFECTS, SIDES, TESTS, PowerQuestion, answer_plan, answer_power, read_question
from ..services.leaderboards import answer_leaderboard
from ..services.planning import answer_pilot
from .boards import PendingSerializer, describe_board, respond

EFFECT_WORDS = "; ".join(f"{test}: {words}" for test, words in EFFECTS.items())


class RaterFilterSerializer(StrictSerializer, StrictModelSerializer):
    """A named filter that excludes raters, which never change. `active` false: withdrawn, no table can use it."""

    raters = serializers.ListField(child=TextField(max_length=100), min_length=1)
    active = serializers.BooleanField(source="is_active", read_only=True)
    digest = serializers.CharField(read_only=True)
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None, read_only=True)

    class Meta:
        model = RaterFilter
        fields = ["name", "raters", "reason", "active", "digest", "created_by", "created_at", "withdrawn_at"]
        read_only_fields = ["created_at", "withdrawn_at"]


class RaterFiltersSerializer(OnePageSerializer):
    results = RaterFilterSerializer(many=True)


class RaterFilterMoveSerializer(StrictSerializer, WholeSerializer):
    active = TruthField(help_text=gettext_lazy("False withdraws the filter, true restores it."))


class PowerSerializer(serializers.Serializer):
    test = serializers.CharField()
    effect = serializers.JSONField()
    power = serializers.FloatField()
    alpha = serializers.FloatField()
    sides = serializers.IntegerField()
    ties = serializers.FloatField()
    unit = serializers.CharField()
    needed = serializers.IntegerField(allow_null=True)
    curve = serializers.JSONField()
    assisted = serializers.JSONField(
        allow_null=True, help_text=gettext_lazy("With `rho`: the number needed if an evaluator assists.")
    )
    designs = serializers.JSONField(
        required=False, help_text=gettext_lazy("Test `rating`: items and ratings of each design.")
    )
    pilot = serializers.JSONField(allow_null=True)
    words = serializers.ListField(child=serializers.CharField())


class Agreement(APIView):
    @describe_board("agreement", "agreement")
    def get(self, request: Request, slug: str) -> Response:
        project = get_project(user=request.user, slug=slug, need="read")
        refuse_unknown(request.query_params, AgreementQuery.names())
        query = parse_query(AgreementQuery, request.query_params)
        if query.aspect:
            query = replace(query, judged=choose_judged_way(project, query).judged)
        answer = answer_leaderboard(project=project, query=query, user=request.user)
        return respond(answer)


class FilterList(APIView):
    @extend_schema(operation_id="rater_filters_list", responses=RaterFiltersSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Every filter of the project, including withdrawn ones."""
        project = get_project(user=request.user, slug=slug, need="read")
        return one_page(RaterFilterSerializer(list_filters(project), many=True).data)

    @extend_schema(
        operation_id="rater_filters_create", request=RaterFilterSerializer, responses={201: RaterFilterSerializer}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Create a filter; a reason is required."""
        project = get_project(user=request.user, slug=slug, need="write")
        serializer = RaterFilterSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        given: dict[str, Any] = serializer.validated_data
        made = create_filter(project=project, user=request.user, **{k: given[k] for k in ("name", "raters", "reason")})
        return Response(RaterFilterSerializer(made).data, status=201)


class FilterShow(APIView):
    @extend_schema(operation_id="rater_filters_show", responses=RaterFilterSerializer)
    def get(self, request: Request, slug: str, name: str) -> Response:
        """A named filter with its raters and its reason."""
        project = get_project(user=request.user, slug=slug, need="read")
        return Response(RaterFilterSerializer(get_filter(project, name)).data)

    @extend_schema(
        operation_id="rater_filters_move", request=RaterFilterMoveSerializer, responses=RaterFilterSerializer
    )
    def patch(self, request: Request, slug: str, name: str) -> Response:
        """Withdraw or restore a filter."""
        project = get_project(user=request.user, slug=slug, need="write")
        serializer = RaterFilterMoveSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        move = restore_filter if serializer.validated_data["active"] else withdraw_filter
        return Response(RaterFilterSerializer(move(row=get_filter(project, name), user=request.user)).data)


class Power(APIView):
    @extend_schema(
        operation_id="power",
        parameters=[
            OpenApiParameter("test", OpenApiTypes.STR, enum=list(TESTS), default="preference"),
            OpenApiParameter("effect", OpenApiTypes.STR, description=EFFECT_WORDS),
            OpenApiParameter("power", OpenApiTypes.FLOAT, default=0.8),
            OpenApiParameter("alpha", OpenApiTypes.FLOAT, default=0.05),
            OpenApiParameter(
                "sides", OpenApiTypes.INT, enum=list(SIDES), description="Default: 1 for williams, else 2."
            ),
            OpenApiParameter("ties", OpenApiTypes.FLOAT, description="Default: the share so far."),
            OpenApiParameter(
                "rho",
                OpenApiTypes.FLOAT,
                description="Correlation of an assisting evaluator with the judgements, within systems.",
            ),
            OpenApiParameter("aspect", OpenApiTypes.STR),
        ],
        responses={200: PowerSerializer, 202: PendingSerializer},
    )
    def get(self, request: Request, slug: str) -> Response:
        """How many judgements are needed to detect an effect, with the project's judgements as the pilot."""
        project = get_project(user=request.user, slug=slug, need="read")
        refuse_unknown(request.query_params, PowerQuestion.__dataclass_fields__)
        question = read_question(request.query_params)
        if question.test != "rating":
            return Response(PowerSerializer(answer_power(question, project)).data)
        pilot = answer_pilot(project, question.aspect, request.user)
        if pilot.run is not None and pilot.table is None:
            detail = _("The variance components of the pilot are being computed in this run.")
            return Response({"run": pilot.run.pk, "detail": detail}, status=202)
        return Response(PowerSerializer(answer_plan(question, pilot.table)).data)
